//! The server that takes over.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use paternoster_disk::Fd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::message::{Channel, FORMAT, ToPredecessor, ToSuccessor};
use super::state::{self, LeftConnection, Offer, State};
use super::store::{DescriptorStore, Stored};
use crate::catalogue::Records;
use crate::control::ControlHandle;
use crate::export_table::ServedExports;
use crate::messages::{LeftDisk, NewConnection};
use crate::passed::Passed;
use crate::peer::Peer;

/// How long the other one may take for a message that needs no work.
const ANSWER: Duration = Duration::from_secs(10);

/// Beside that, how long its devices and those who negotiate may take.
const STATE: Duration = Duration::from_secs(5);

/// A server that goes on where another one stops.
#[derive(Debug)]
pub(crate) struct Successor {
    from: From,
}

/// Where the clients and the state come from.
#[derive(Debug)]
enum From {
    /// The other server, which serves until then.
    Channel(Channel),
    /// The store of a service manager: nobody serves.
    Store(DescriptorStore),
}

/// One that could serve, and knows what there is to serve.
pub(crate) struct Prepared {
    /// None where nobody serves.
    channel: Option<Channel>,
    /// Clients, whose commands come when the other one has stopped.
    clients: Vec<(Fd, LeftConnection)>,
    state: State,
}

impl Successor {
    /// Connects to the server that waits there, and gets what it has that is not a client: to be
    /// taken in place of what would be opened. What requests have made there comes back.
    pub(crate) fn connect(path: &Path, passed: &Passed) -> Result<(Self, Records)> {
        let context = || format!("cannot take over from the server at {}", path.display());
        Self::begin(path, passed).with_context(context)
    }

    fn begin(path: &Path, passed: &Passed) -> Result<(Self, Records)> {
        let (flags, kind) = (SocketFlags::CLOEXEC, SocketType::SEQPACKET);
        let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        let channel = Channel::new(socket)?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        channel.send(&ToPredecessor::Hello { formats: vec![FORMAT], version }, &[])?;
        let (Offer { names, records, .. }, count) = match channel.receive(Some(ANSWER))? {
            (ToSuccessor::Offer { descriptors, .. }, with) => {
                (state::read(single(with)?)?.0, descriptors)
            }
            (ToSuccessor::Refuse { why }, _) => bail!("it refuses: {why}"),
            (other, _) => return Err(unexpected(&other)),
        };
        let mut all = Vec::new();
        while all.len() < count {
            match channel.receive(Some(ANSWER))? {
                (ToSuccessor::Descriptors, with) => all.extend(taken(&channel, with)?),
                (other, _) => return Err(unexpected(&other)),
            }
        }
        inherit(all, &names, passed)?;
        Ok((Self { from: From::Channel(channel) }, records.read()?))
    }

    /// Goes on with what a server has left to the service manager.
    pub(crate) fn of_store(mut store: DescriptorStore, passed: &Passed) -> Result<(Self, Records)> {
        let context = "cannot go on with what the server before has left to the service manager";
        let offer = single(store.all_of(Stored::Offer)).context(context)?;
        let (Offer { names, records, .. }, _) = state::read(offer).context(context)?;
        inherit(store.all_of(Stored::Descriptor), &names, passed).context(context)?;
        Ok((Self { from: From::Store(store) }, records.read().context(context)?))
    }

    /// Leaves: it was only to be tried.
    pub(crate) fn leave(self) -> Result<()> {
        if let From::Channel(channel) = self.from {
            channel.send(&ToPredecessor::Leave, &[])?;
        }
        Ok(())
    }

    /// Could serve: gets the clients, when the other one has stopped.
    pub(crate) fn prepared(self) -> Result<Prepared> {
        let channel = match self.from {
            From::Channel(channel) => channel,
            From::Store(mut store) => {
                let clients = store.all_of(Stored::Client);
                let state = single(store.all_of(Stored::State))?;
                return Prepared::new(None, clients, state);
            }
        };
        channel.send(&ToPredecessor::Prepared, &[])?;
        let mut sockets = Vec::new();
        loop {
            match channel.receive(Some(STATE))? {
                (ToSuccessor::Clients, with) => sockets.extend(taken(&channel, with)?),
                (ToSuccessor::State, with) => {
                    return Prepared::new(Some(channel), sockets, single(with)?);
                }
                (ToSuccessor::Abandoned { why }, _) => bail!("the other server goes on: {why}"),
                (other, _) => return Err(unexpected(&other)),
            }
        }
    }
}

impl Prepared {
    fn new(channel: Option<Channel>, sockets: Vec<OwnedFd>, state: OwnedFd) -> Result<Self> {
        let (state, mut file) = state::read::<State>(state)?;
        let connections = state::read_connections(&state, &mut file)?;
        let (clients, left) = (sockets.len(), connections.len());
        ensure!(clients == left, "{clients} clients came, and the state has {left}");
        let clients = sockets.into_iter().map(Arc::new).zip(connections).collect();
        Ok(Self { channel, clients, state })
    }

    /// Sets again what was set on the other one, before any client is served.
    pub(crate) fn set(&self, control: &ControlHandle) {
        control.set_again(&self.state.set);
        for disk in control.disks() {
            let known = self.state.disks.iter().find(|of| of.name == disk.name);
            let learned_depth = known.and_then(|of| of.learned_depth);
            let not_durable = self.state.not_durable.clone();
            disk.owner.take_over(LeftDisk { not_durable, learned_depth });
        }
    }

    /// Waits until the other one serves no more, which is when this returns.
    pub(crate) fn take_over(&self) -> Result<()> {
        let Some(channel) = &self.channel else { return Ok(()) };
        channel.send(&ToPredecessor::Ready, &[])?;
        // However long that is: only it knows who serves.
        match channel.receive(None).context("the other server goes on, or has ended")?.0 {
            ToSuccessor::Go => Ok(()),
            ToSuccessor::Abandoned { why } => bail!("the other server goes on: {why}"),
            other => Err(unexpected(&other)),
        }
    }

    /// Serves the clients. Returns how many those are; one whose export is not there any more, or
    /// is another, is closed.
    pub(crate) fn serve_clients(self, exports: &ServedExports) -> usize {
        let clients = self.clients.into_iter();
        clients.filter_map(|(socket, left)| connect_again(socket, left, exports)).count()
    }
}

/// Has the owner of its disk serve a client of the server before.
fn connect_again(socket: Fd, left: LeftConnection, exports: &ServedExports) -> Option<()> {
    let LeftConnection { session, input, resumed } = left;
    let name = &session.export.name;
    let is_tcp = matches!(
        rustix::net::sockopt::socket_domain(&socket),
        Ok(AddressFamily::INET | AddressFamily::INET6)
    );
    let peer = Peer::of(&*socket, is_tcp);
    let closed = |why: &str| {
        tracing::warn!(export = name, %peer, "a client of the server before is closed: {why}");
    };
    let Some(entry) = exports.get(name) else {
        closed("there is no such export any more");
        return None;
    };
    if !entry.is_as_told(&session.export) {
        closed("the export is smaller now, or read-only");
        return None;
    }
    let admitted = match entry.room.admit() {
        Ok(admitted) => admitted,
        Err(no_room) => {
            closed(&no_room.to_string());
            return None;
        }
    };
    let (export, resumed) = (Arc::clone(&entry.export), Some(resumed));
    let (tls, identity) = (None, None);
    let new =
        NewConnection { socket, tls, identity, session, input, export, peer, admitted, resumed };
    entry.owner.connect(new);
    Some(())
}

/// Takes sockets and files, of which some have names that a service manager has given them.
fn inherit(all: Vec<OwnedFd>, names: &BTreeMap<usize, String>, passed: &Passed) -> io::Result<()> {
    for (place, descriptor) in all.into_iter().enumerate() {
        match names.get(&place) {
            Some(name) => passed.add(name.clone(), descriptor),
            None => passed.inherited.add(descriptor)?,
        }
    }
    Ok(())
}

/// Says that these descriptors have come.
fn taken(channel: &Channel, with: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    channel.send(&ToPredecessor::Taken { descriptors: with.len() }, &[])?;
    Ok(with)
}

/// The one descriptor of a message that has one.
fn single(with: Vec<OwnedFd>) -> Result<OwnedFd> {
    let count = with.len();
    let mut with = with.into_iter();
    with.next().filter(|_| count == 1).with_context(|| format!("{count} descriptors, not one"))
}

fn unexpected(message: &ToSuccessor) -> anyhow::Error {
    anyhow!("the other server says {message:?}, which is not expected now")
}
