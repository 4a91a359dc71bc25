//! The clients of a disk as its owner knows them, whichever thread serves them.

use std::collections::BTreeMap;
use std::sync::Arc;

use paternoster::IocId;
use slotmap::SlotMap;

use super::{ClientsOf, Door};
use crate::clients::{ClientId, Export};
use crate::config::Identity;
use crate::peer::Peer;

/// A client that is connected.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) export: Arc<Export>,
    /// Its number among the disk's connections, in order of arrival, from 1.
    pub(super) number: u64,
    pub(super) peer: Peer,
    /// By which of its certificate's names it has entered.
    pub(super) identity: Option<Identity>,
    pub(super) door: Door,
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

impl Registered {
    /// What it is called.
    pub(super) fn name(&self) -> String {
        let name = self.export.connection(self.number);
        if self.door == Door::VhostUser { format!("{name}v") } else { name }
    }
}

impl Register {
    pub(super) fn enter(
        &mut self,
        export: Arc<Export>,
        (peer, identity): (Peer, Option<Identity>),
        door: Door,
    ) -> ClientId {
        self.connected += 1;
        let number = self.connected;
        self.clients.insert(Registered { export, number, peer, identity, door, ioc: None })
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

    /// How many of those are connected.
    pub(super) fn clients(&self, of: &ClientsOf) -> u32 {
        let theirs = self.clients.values().filter(|client| of.has(&client.export));
        u32::try_from(theirs.count()).unwrap_or(u32::MAX)
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// The clients that have an I/O context, by that.
    pub(super) fn by_io_context(&self) -> BTreeMap<IocId, &Registered> {
        self.clients.values().filter_map(|client| Some((client.ioc?, client))).collect()
    }
}
