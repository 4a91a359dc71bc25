//! The server that takes over.

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
use crate::catalogue::Records;
use crate::control::ControlHandle;
use crate::export_table::ServedExports;
use crate::messages::{LeftDisk, NewConnection, Resumed};
use crate::passed::Passed;
use crate::peer::Peer;

/// How long the other one may take for a message that needs no work.
const ANSWER: Duration = Duration::from_secs(10);

/// Beside that, how long its devices and those who negotiate may take.
const STATE: Duration = Duration::from_secs(5);

/// A server that is connected to the one which it takes over from.
#[derive(Debug)]
pub(crate) struct Successor {
    channel: Channel,
}

/// One that could serve, and knows what there is to serve.
pub(crate) struct Prepared {
    channel: Channel,
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
                (state::read(only(with)?)?.0, descriptors)
            }
            (ToSuccessor::Refuse { why }, _) => bail!("it refuses: {why}"),
            (other, _) => return Err(unexpected(&other)),
        };
        let mut place = 0;
        while place < count {
            let with = match channel.receive(Some(ANSWER))? {
                (ToSuccessor::Descriptors, with) => taken(&channel, with)?,
                (other, _) => return Err(unexpected(&other)),
            };
            for descriptor in with {
                match names.get(&place) {
                    Some(name) => passed.add(name.clone(), descriptor),
                    None => passed.inherited.add(descriptor)?,
                }
                place += 1;
            }
        }
        Ok((Self { channel }, records.read()?))
    }

    /// Leaves: it was only to be tried.
    pub(crate) fn leave(self) -> Result<()> {
        self.channel.send(&ToPredecessor::Leave, &[])?;
        Ok(())
    }

    /// Could serve: gets the clients, when the other one has stopped.
    pub(crate) fn prepared(self) -> Result<Prepared> {
        let Self { channel } = self;
        channel.send(&ToPredecessor::Prepared, &[])?;
        let mut sockets = Vec::new();
        let (state, connections) = loop {
            match channel.receive(Some(STATE))? {
                (ToSuccessor::Clients, with) => sockets.extend(taken(&channel, with)?),
                (ToSuccessor::State, with) => {
                    let (state, mut file) = state::read::<State>(only(with)?)?;
                    let connections = state::read_connections(&state, &mut file)?;
                    break (state, connections);
                }
                (ToSuccessor::Abandoned { why }, _) => bail!("the other server goes on: {why}"),
                (other, _) => return Err(unexpected(&other)),
            }
        };
        let (clients, left) = (sockets.len(), connections.len());
        ensure!(clients == left, "{clients} clients came, and the state has {left}");
        let clients = sockets.into_iter().map(Arc::new).zip(connections).collect();
        Ok(Prepared { channel, clients, state })
    }
}

impl Prepared {
    /// Sets again what was set on the other one, before any client is served.
    pub(crate) fn set(&self, control: &ControlHandle) {
        control.set_again(&self.state.set);
        for disk in control.disks() {
            if let Some(of) = self.state.disks.iter().find(|of| of.name == disk.name) {
                let (failed_syncs, learned_depth) = (of.failed_syncs.clone(), of.learned_depth);
                disk.owner.take_over(LeftDisk { failed_syncs, learned_depth });
            }
        }
    }

    /// Waits until the other one serves no more, which is when this returns.
    pub(crate) fn take_over(&self) -> Result<()> {
        self.channel.send(&ToPredecessor::Ready, &[])?;
        // However long that is: only it knows who serves.
        match self.channel.receive(None).context("the other server goes on, or has ended")?.0 {
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
    let LeftConnection { session, refused, input, output } = left;
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
    let (export, resumed) = (Arc::clone(&entry.export), Some(Resumed { refused, output }));
    let new = NewConnection { socket, session, input, export, peer, admitted, resumed };
    entry.owner.connect(new);
    Some(())
}

/// Says that these descriptors have come.
fn taken(channel: &Channel, with: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    channel.send(&ToPredecessor::Taken { descriptors: with.len() }, &[])?;
    Ok(with)
}

/// The one descriptor of a message that has one.
fn only(with: Vec<OwnedFd>) -> Result<OwnedFd> {
    let count = with.len();
    let mut with = with.into_iter();
    with.next().filter(|_| count == 1).with_context(|| format!("{count} descriptors, not one"))
}

fn unexpected(message: &ToSuccessor) -> anyhow::Error {
    anyhow!("the other server says {message:?}, which is not expected now")
}
