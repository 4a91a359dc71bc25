//! The clients of a disk as its owner knows them, whichever thread serves them.

use std::collections::BTreeMap;

use paternoster::IocId;
use slotmap::SlotMap;

use crate::clients::ClientId;
use crate::peer::Peer;

/// A client that is connected.
#[derive(Debug)]
pub(super) struct Registered {
    /// Its export, as an index into the disk's.
    pub(super) export: usize,
    /// Its number among the disk's connections, in order of arrival, from 1.
    pub(super) number: u64,
    pub(super) peer: Peer,
    /// Its I/O context, made at its first command.
    pub(super) ioc: Option<IocId>,
}

/// All clients that are connected.
#[derive(Debug, Default)]
pub(super) struct Register {
    clients: SlotMap<ClientId, Registered>,
    /// The number of connections so far.
    connected: u64,
}

impl Register {
    pub(super) fn enter(&mut self, export: usize, peer: Peer) -> ClientId {
        self.connected += 1;
        let number = self.connected;
        self.clients.insert(Registered { export, number, peer, ioc: None })
    }

    pub(super) fn leave(&mut self, client: ClientId) -> Registered {
        self.clients.remove(client).expect("a client leaves once")
    }

    pub(super) fn client(&mut self, client: ClientId) -> &mut Registered {
        &mut self.clients[client]
    }

    pub(super) fn get(&self, client: ClientId) -> Option<&Registered> {
        self.clients.get(client)
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// The export and the number of each client that has an I/O context.
    pub(super) fn by_io_context(&self) -> BTreeMap<IocId, (usize, u64)> {
        let clients = self.clients.values();
        clients.filter_map(|client| Some((client.ioc?, (client.export, client.number)))).collect()
    }
}
