//! The server that hands over.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use paternoster_disk::Fd;
use rustix::net::{SocketFlags, accept_with, sockopt};

use super::decision::{HandOver, Serving};
use super::message::{Channel, FORMAT, ToPredecessor, ToSuccessor};
use super::state::{self, ConnectionState, DiskState, Offer, State};
use super::store::Stored;
use crate::clients::HeldConnection;
use crate::connections::HeldDisk;
use crate::control::ControlHandle;
use crate::gate::Gate;
use crate::messages::LeftDisk;
use crate::rights;
use crate::service_manager::ServiceManager;

/// How long the other one may take for a message that needs no work.
const ANSWER: Duration = Duration::from_secs(5);

/// How long it may take to open all that it serves.
const PREPARED: Duration = Duration::from_secs(120);

/// How long clients that have been accepted have to enter their exports, before anything stops.
const ENTER: Duration = Duration::from_millis(250);

/// How long devices may take for what they have.
const QUIET: Duration = Duration::from_millis(400);

/// How long the other one may take to read the state, while nobody serves.
const READY: Duration = Duration::from_secs(2);

/// Bytes of commands and replies that are handed over at most: they are copied while nobody
/// serves.
const MOST_BYTES: usize = 256 << 20;

/// What a server has that another one goes on with.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) control: ControlHandle,
    pub(crate) gate: Gate,
    /// Sockets that listen, but for those of virtual machines; with the name that a service
    /// manager has for them, if it has passed them.
    pub(crate) sockets: Vec<(Option<String>, Fd)>,
}

/// How a conversation has ended, if not by a hand-over.
enum Ended {
    /// There is no hand-over now.
    Refused(String),
    /// It was only tried.
    Tried,
    /// It was given up, after something had stopped or before.
    Abandoned(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::WouldBlock => "the other server does not answer".to_owned(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => {
                "the other server has gone".to_owned()
            }
            _ => format!("the other server: {error}"),
        };
        Self::Abandoned(why)
    }
}

/// Leaves all that a server has to the service manager, for the next server to go on with. Where it
/// cannot, the server serves as before, and has to end by itself.
pub(crate) fn leave_to_manager(manager: ServiceManager, source: &Source, hand_over: &HandOver) {
    let stopped = Stopped { source, hand_over };
    let held = source.control.catalogue().hold_changes();
    let left = held.map_err(Ended::Refused).and_then(|unchanging| {
        let left = stopped.store(manager);
        match &left {
            Ok(_) => std::mem::forget(unchanging),
            Err(_) => stopped.go_on(),
        }
        left
    });
    match left {
        Ok(clients) => tracing::info!("{clients} clients are left to the service manager"),
        Err(Ended::Refused(why) | Ended::Abandoned(why)) => {
            tracing::warn!("nothing is left to the service manager: {why}");
        }
        Err(Ended::Tried) => unreachable!("nobody tries"),
    }
}

/// Waits on that socket for a server that takes over, on a thread of its own, which ends with the
/// process. Who has taken over is told by `ends`.
pub(crate) fn serve(
    listener: Fd,
    source: Source,
    hand_over: HandOver,
    ends: mpsc::Sender<String>,
) -> io::Result<()> {
    let work = move || {
        loop {
            let socket = match accept_with(&listener, SocketFlags::CLOEXEC) {
                Ok(socket) => socket,
                Err(errno) => {
                    tracing::warn!("no server can take over now: {errno}");
                    thread::sleep(ANSWER);
                    continue;
                }
            };
            match answer_successor(socket, &source, &hand_over) {
                Ok(to) => {
                    // The server may have ended already.
                    let _ = ends.send(to);
                    return;
                }
                Err(Ended::Tried) => tracing::info!("another server could take over now"),
                Err(Ended::Refused(why)) => {
                    tracing::warn!("no other server takes over: {why}");
                }
                Err(Ended::Abandoned(why)) => {
                    tracing::warn!("the hand-over is given up, and this server goes on: {why}");
                }
            }
        }
    };
    thread::Builder::new().name("hand-over".to_owned()).spawn(work)?;
    Ok(())
}

/// Hands over to who has connected. Returns the words for that.
fn answer_successor(
    socket: OwnedFd,
    source: &Source,
    hand_over: &HandOver,
) -> Result<String, Ended> {
    let peer = sockopt::socket_peercred(&socket).map_err(io::Error::from)?;
    let channel = Channel::new(socket)?;
    let refuse = |why: String| {
        // Where it has gone it need not hear of that.
        let _ = channel.send(&ToSuccessor::Refuse { why: why.clone() }, &[]);
        Ended::Refused(why)
    };
    if peer.uid != rustix::process::geteuid() {
        return Err(refuse(format!("it is of uid {}", peer.uid.as_raw())));
    }
    match channel.receive(Some(ANSWER))?.0 {
        ToPredecessor::Hello { formats, .. } if formats.contains(&FORMAT) => {}
        ToPredecessor::Hello { formats, version } => {
            let (ours, reads) = (env!("CARGO_PKG_VERSION"), formats);
            return Err(refuse(format!(
                "paternoster {version} reads states of formats {reads:?}, and paternoster {ours} \
                 writes {FORMAT}"
            )));
        }
        other => return Err(unexpected(&other)),
    }
    let unchanging = source.control.catalogue().hold_changes().map_err(refuse)?;
    let files = files(source).map_err(refuse)?;
    offer(&channel, source, files)?;
    match channel.receive(Some(PREPARED))?.0 {
        ToPredecessor::Prepared => {}
        ToPredecessor::Leave => return Err(Ended::Tried),
        other => return Err(unexpected(&other)),
    }
    let stopped = Stopped { source, hand_over };
    match stopped.hand_over(&channel) {
        Ok((clients, stall)) => {
            // Nothing is to change here any more.
            std::mem::forget(unchanging);
            let pid = peer.pid.as_raw_pid();
            Ok(format!("process {pid} serves {clients} clients after {} ms", stall.as_millis()))
        }
        Err(ended) => {
            stopped.go_on();
            if let Ended::Abandoned(why) = &ended {
                let _ = channel.send(&ToSuccessor::Abandoned { why: why.clone() }, &[]);
            }
            Err(ended)
        }
    }
}

fn unexpected(message: &ToPredecessor) -> Ended {
    Ended::Abandoned(format!("the other server says {message:?}, which is not expected now"))
}

/// The images of all disks, and what else is a file.
fn files(source: &Source) -> Result<Vec<Fd>, String> {
    let mut files = source.control.catalogue().to_hand_over();
    for disk in source.control.disks() {
        let answer = disk.owner.files().recv_timeout(ANSWER);
        let of_disk = answer.map_err(|_| format!("disk {:?} does not answer", disk.name))?;
        files.extend(of_disk?);
    }
    Ok(files)
}

impl Source {
    /// What there is before anything stops: sockets, these files, and what requests have made.
    fn offer(&self, files: Vec<Fd>) -> (Offer, Vec<Fd>) {
        let names = self.sockets.iter().enumerate();
        let names = names.filter_map(|(place, (name, _))| Some((place, name.clone()?)));
        let records = self.control.catalogue().records().written();
        let offer = Offer { format: FORMAT, names: names.collect(), records };
        let sockets = self.sockets.iter().map(|(_, socket)| socket.clone());
        (offer, sockets.chain(files).collect())
    }
}

/// Sends all that is needed before anything stops.
fn offer(channel: &Channel, source: &Source, files: Vec<Fd>) -> Result<(), Ended> {
    let (offer, descriptors) = source.offer(files);
    let message = ToSuccessor::Offer {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        descriptors: descriptors.len(),
    };
    channel.send(&message, &[Arc::new(state::write(&offer, &[])?)])?;
    send_all(channel, &ToSuccessor::Descriptors, &descriptors, ANSWER)
}

/// Sends descriptors, as many at a time as a message takes: more would count as in flight.
fn send_all(
    channel: &Channel,
    message: &ToSuccessor,
    descriptors: &[Fd],
    patience: Duration,
) -> Result<(), Ended> {
    for some in descriptors.chunks(rights::MOST) {
        channel.send(message, some)?;
        match channel.receive(Some(patience))?.0 {
            ToPredecessor::Taken { descriptors } if descriptors == some.len() => {}
            other => return Err(unexpected(&other)),
        }
    }
    Ok(())
}

/// A server that is about to stop, or has stopped, for another one.
struct Stopped<'e> {
    source: &'e Source,
    hand_over: &'e HandOver,
}

impl Stopped<'_> {
    /// Hands over. Returns how many clients, and how long nobody served them.
    fn hand_over(&self, channel: &Channel) -> Result<(usize, Duration), Ended> {
        if !self.source.gate.close(ENTER) {
            tracing::debug!("some who negotiate will have to connect again");
        }
        let begun = Instant::now();
        let (state, connections) = self.stop(begun)?;
        let sockets: Vec<_> = connections.iter().map(|held| held.socket.clone()).collect();
        send_all(channel, &ToSuccessor::Clients, &sockets, READY)?;
        channel.send(&ToSuccessor::State, &[Arc::new(state::write(&state, &connections)?)])?;
        match channel.receive(Some(READY))?.0 {
            ToPredecessor::Ready => {}
            other => return Err(unexpected(&other)),
        }
        let mut serving = self.hand_over.serving();
        if *serving != Serving::Serves {
            return Err(Ended::Abandoned("this server ends".to_owned()));
        }
        channel.send(&ToSuccessor::Go, &[])?;
        *serving = Serving::HandedOver;
        Ok((connections.len(), begun.elapsed()))
    }

    /// Leaves all to the service manager. Returns how many clients; an error where it does not take
    /// that, or the server cannot stop: then nothing is left there, and the server may go on.
    fn store(&self, manager: ServiceManager) -> Result<usize, Ended> {
        let files = files(self.source).map_err(Ended::Refused)?;
        self.source.gate.close(ENTER);
        let (state, connections) = self.stop(Instant::now())?;
        // Those of socket units it passes itself.
        let own = self.source.sockets.iter().filter(|(name, _)| name.is_none());
        let source = Source { sockets: own.cloned().collect(), ..self.source.clone() };
        let (offer, descriptors) = source.offer(files);
        let of = |kind: Stored, all: Vec<Fd>| {
            all.into_iter().enumerate().map(move |(number, fd)| (kind.name(number), fd))
        };
        let clients = connections.iter().map(|held| held.socket.clone()).collect();
        let offer = vec![Arc::new(state::write(&offer, &[])?)];
        let state = vec![Arc::new(state::write(&state, &connections)?)];
        // The state is the last: where it is missing, nothing was left.
        let all: Vec<_> = of(Stored::Descriptor, descriptors)
            .chain(of(Stored::Client, clients))
            .chain(of(Stored::Offer, offer))
            .chain(of(Stored::State, state))
            .collect();
        let stored = all.iter().try_for_each(|(name, fd)| ServiceManager::store(name, fd));
        if let Err(error) = stored.and_then(|()| ServiceManager::wait_until_heard()) {
            manager.forget(&all.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
            return Err(Ended::Abandoned(format!("the service manager: {error}")));
        }
        *self.hand_over.serving() = Serving::HandedOver;
        Ok(connections.len())
    }

    /// Has all disks stop.
    fn stop(&self, begun: Instant) -> Result<(State, Vec<HeldConnection>), Ended> {
        let disks = self.source.control.disks();
        let asked: Vec<_> = disks.iter().map(|disk| (disk, disk.owner.hold())).collect();
        let mut state = State { format: FORMAT, ..State::default() };
        let mut connections = Vec::new();
        for (disk, answer) in asked {
            let answer = answer.recv_timeout(QUIET.saturating_sub(begun.elapsed()));
            let late = |_| {
                let (name, millis) = (&disk.name, QUIET.as_millis());
                Ended::Abandoned(format!(
                    "disk {name:?} has not done what is in its device in {millis} ms: try again"
                ))
            };
            let failed = |why| Ended::Abandoned(format!("disk {:?}: {why}", disk.name));
            let held = answer.map_err(late)?.map_err(failed)?;
            let HeldDisk { connections: of_disk, bytes, left } = held;
            let LeftDisk { not_durable, learned_depth } = left;
            let name = disk.name.clone();
            state.disks.push(DiskState { name, learned_depth });
            state.not_durable.extend(not_durable);
            let of = of_disk.iter().zip(bytes).map(|(one, bytes)| ConnectionState::of(one, bytes));
            state.connections.extend(of);
            connections.extend(of_disk);
        }
        let parts = connections.iter().flat_map(|held| held.input.iter().chain(&held.output));
        let bytes: usize = parts.map(bytes::Bytes::len).sum();
        if bytes > MOST_BYTES {
            return Err(Ended::Abandoned(format!(
                "commands and replies of {bytes} bytes wait, and {MOST_BYTES} are allowed: try \
                 again with less load"
            )));
        }
        state.set = self.source.control.set_by_request().clone();
        Ok((state, connections))
    }

    /// Serves as before.
    fn go_on(&self) {
        for disk in self.source.control.disks() {
            disk.owner.go_on();
        }
        if *self.hand_over.serving() == Serving::Serves {
            self.source.gate.open();
        }
    }
}
