//! The thread that has the sockets of front-ends: it accepts them, holds a [`Session`] with each,
//! and hands what they want to the owner of their disk.
//!
//! ```text
//!   accept ──▶ attach ──▶ receive ──▶ order ──▶ owner
//!                            ▲                    │  the socket is not read until it has answered
//!                            └──────── answer ◀───┘
//! ```
//!
//! A front-end that begins a message has ten seconds for the rest, and one that does not read what
//! it is answered is cut off when its socket is full. What one sends costs the others a few
//! messages at a time. One that hangs up is missed even while its socket is not read.
//!
//! What an owner has told is taken before what a front-end has sent: it may know of that, as its
//! error signal does, and go by it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use paternoster_disk::{Completion, Fd, IoEngine, MonotonicClock, Ring};
use paternoster_nbd::proto::TransmissionFlags;
use paternoster_vhost::blk;
use paternoster_vhost::{Offer, Order, Output, Progress, Sealed, Session};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use slotmap::{SecondaryMap, SlotMap};

use super::listening::{Handle, Listener};
use super::{Answers, FromDevice, NewDevice, SessionId, ToDevice, ToFrontEnds, socket};
use crate::acceptor::deadline;
use crate::admission::Descriptors;
use crate::clients::Leave;
use crate::export_table::ServedExports;
use crate::log::Limits;
use crate::messages::OwnerHandle;
use crate::peer::Peer;

/// How long the rest of a message may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long to wait after the system had no descriptor for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Pieces of messages that are taken of one front-end at a time.
const PIECES: usize = 16;

/// Names an operation on the thread's ring.
#[derive(Clone, Copy, Debug)]
enum Token {
    Accept(u64),
    /// A connection has come that may be accepted without waiting for it.
    Arrived(u64),
    Readable(SessionId),
    HungUp(SessionId),
    Wake,
}

/// A front-end that is connected.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // independent facts
struct FrontEnd {
    socket: Fd,
    peer: Peer,
    /// The number of its listener.
    listener: u64,
    export: String,
    owner: OwnerHandle,
    /// None until it is known what the device is.
    session: Option<Session>,
    sealed: Sealed,
    /// The places of the descriptors that its session holds.
    descriptors: Descriptors,
    /// Whether it is said that its memory can be taken away.
    is_warned: bool,
    /// Whether nothing has to be said of where its rings go on: memory of requests in flight tells
    /// it, they have stopped here, or the log says that neither is so.
    knows_bases: bool,
    /// Whether its socket is waited for.
    is_watched: bool,
    /// Whether it has hung up: what it sent before that is obeyed, up to what it has to wait for.
    has_hung_up: bool,
    /// When it is cut off unless the message that it has begun is whole by then.
    due: Option<u64>,
}

impl Drop for FrontEnd {
    fn drop(&mut self) {
        // An operation that waits for the socket keeps it open, and ends by this.
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }
}

/// All front-ends, on the thread that has them.
pub(super) struct FrontEnds {
    ring: Ring<Token>,
    handle: Handle,
    inbox: mpsc::Receiver<ToFrontEnds>,
    exports: Arc<ServedExports>,
    listeners: BTreeMap<u64, Listener>,
    /// Listeners that wait for descriptors, and until when.
    paused: Vec<(u64, u64)>,
    /// The names of sessions, until their devices have ended: none is given to another before.
    names: SlotMap<SessionId, ()>,
    all: SecondaryMap<SessionId, FrontEnd>,
    /// Front-ends that have been answered, to be read from.
    answered: Vec<SessionId>,
    limits: Limits,
    ends: bool,
}

impl FrontEnds {
    /// None yet, on the thread that calls this, which it must not leave.
    pub(super) fn new(
        io: IoEngine,
        handle: Handle,
        inbox: mpsc::Receiver<ToFrontEnds>,
        exports: Arc<ServedExports>,
    ) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(io)?,
            handle,
            inbox,
            exports,
            listeners: BTreeMap::new(),
            paused: Vec::new(),
            names: SlotMap::with_key(),
            all: SecondaryMap::new(),
            answered: Vec::new(),
            limits: Limits::default(),
            ends: false,
        })
    }

    /// Serves until the server has ended.
    pub(super) fn run(mut self) -> io::Result<()> {
        self.watch_waker();
        let mut completions = Vec::new();
        while !self.ends {
            let due = if self.answered.is_empty() { self.next_due() } else { Some(0) };
            self.ring.wait(due)?;
            self.ring.take_completions(&mut completions);
            if completions.iter().any(|one| matches!(one.token, Token::Wake)) {
                // Before what it tells of is looked for.
                self.handle.waker.clear();
                self.watch_waker();
            }
            self.take_messages();
            for completion in completions.drain(..) {
                self.handle(completion);
            }
            for id in std::mem::take(&mut self.answered) {
                self.receive(id);
            }
            self.handle_due();
        }
        self.limits.report_rest();
        Ok(())
    }

    fn watch_waker(&mut self) {
        self.ring.poll_readable(Token::Wake, self.handle.waker.fd());
    }

    fn handle(&mut self, completion: Completion<Token>) {
        let Completion { token, result, output } = completion;
        match token {
            Token::Arrived(number) => self.accept(number),
            Token::Accept(number) => self.accepted(number, output.into_socket(), result),
            Token::Readable(id) => {
                if let Some(front_end) = self.all.get_mut(id) {
                    front_end.is_watched = false;
                    self.receive(id);
                }
            }
            // One whose order or device is waited for is not read, and would not be missed.
            Token::HungUp(id) => {
                if let Some(front_end) = self.all.get_mut(id) {
                    front_end.has_hung_up = true;
                }
                let is_unread =
                    |one: &FrontEnd| one.session.as_ref().is_none_or(|it| it.wanted() == 0);
                if self.all.get(id).is_some_and(is_unread) {
                    self.end(id, Leave::HungUp);
                }
            }
            Token::Wake => {}
        }
    }

    /// Takes what owners have told, and what the operator wants. Owners tell no more than sockets
    /// have asked for.
    fn take_messages(&mut self) {
        while let Ok(message) = self.inbox.try_recv() {
            self.take(message);
        }
    }

    fn take(&mut self, message: ToFrontEnds) {
        match message {
            ToFrontEnds::Device(id, FromDevice::Ended) => {
                self.names.remove(id);
                self.all.remove(id);
            }
            ToFrontEnds::Device(_, FromDevice::Retired(_)) => {}
            ToFrontEnds::Device(id, FromDevice::Attached(device)) => self.begin(id, &device),
            ToFrontEnds::Device(id, FromDevice::Changed(device)) => self.reconfigure(id, &device),
            ToFrontEnds::Device(id, FromDevice::Answer(answer)) => {
                let Some(front_end) = self.all.get_mut(id) else { return };
                let session = front_end.session.as_mut().expect("it has sent an order");
                let progress = session.answer(answer);
                if self.went_on(id, progress) {
                    self.answered.push(id);
                }
            }
            ToFrontEnds::Device(id, FromDevice::Broken(ring, base)) => {
                let Some(front_end) = self.all.get_mut(id) else { return };
                front_end.knows_bases = true;
                if let Some(session) = &mut front_end.session {
                    session.ring_broken(ring, base);
                }
            }
            ToFrontEnds::Listen(listener) => {
                let number = listener.number;
                self.listeners.insert(number, listener);
                self.accept(number);
            }
            ToFrontEnds::Forget(number) => drop(self.listeners.remove(&number)),
            ToFrontEnds::Resize(export, size) => {
                let of_export = self.all.iter().filter(|(_, one)| one.export == export);
                for (id, front_end) in of_export {
                    front_end.owner.tell_device(id, ToDevice::Resize(size));
                }
            }
            ToFrontEnds::End => self.ends = true,
        }
    }

    fn accept(&mut self, number: u64) {
        if let Some(listener) = self.listeners.get(&number) {
            self.ring.accept(Token::Accept(number), &listener.socket);
        }
    }

    fn accepted(&mut self, number: u64, socket: Option<OwnedFd>, result: Result<u32, Errno>) {
        match (socket, result) {
            (Some(socket), _) => {
                self.attach(number, Arc::new(socket));
                self.accept(number);
            }
            (None, Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                let kind = "no descriptor is left for a front-end; it has to wait";
                if let Some(line) = self.limits.admit(kind, Instant::now()) {
                    tracing::warn!(left_out = line.left_out, "{kind}");
                }
                self.paused.push((deadline(ACCEPT_PAUSE), number));
            }
            // The server before has left the socket so.
            (None, Err(Errno::AGAIN)) => {
                if let Some(listener) = self.listeners.get(&number) {
                    self.ring.poll_readable(Token::Arrived(number), &listener.socket);
                }
            }
            // The front-end has given up before it was accepted.
            (None, _) => self.accept(number),
        }
    }

    /// Takes a front-end in, if its export has room and no other.
    fn attach(&mut self, number: u64, socket: Fd) {
        let peer = Peer::of(&*socket, false);
        let Some(Listener { export, sealed, .. }) = self.listeners.get(&number) else { return };
        let (export, sealed) = (export.clone(), *sealed);
        let other = self.all.values().find(|other| other.listener == number);
        if let Some(FrontEnd { peer: other, .. }) = other {
            let why = format!("{other} has it, and there is one front-end for each");
            return self.report_refused(&export, peer, &why);
        }
        let entry = self.exports.get(&export).filter(|entry| !entry.is_leaving);
        let Some(entry) = entry else {
            return self.report_refused(&export, peer, &"it is being removed");
        };
        let admitted = match entry.room.admit() {
            Ok(admitted) => admitted,
            Err(no_room) => return self.report_refused(&export, peer, &no_room),
        };
        let owner = entry.owner.clone();
        let id = self.names.insert(());
        let front_end = FrontEnd {
            socket,
            peer,
            listener: number,
            export,
            owner: owner.clone(),
            session: None,
            sealed,
            descriptors: entry.room.descriptors(),
            is_warned: false,
            knows_bases: false,
            is_watched: false,
            has_hung_up: false,
            due: None,
        };
        self.ring.poll_hang_up(Token::HungUp(id), &front_end.socket);
        self.all.insert(id, front_end);
        let new = NewDevice {
            export: Arc::clone(&entry.export),
            size: entry.info.size,
            read_only: entry.info.flags.contains(TransmissionFlags::READ_ONLY),
            peer,
            admitted,
            answers: Answers { session: id, to: self.handle.clone() },
        };
        owner.tell_device(id, ToDevice::Attach(new));
    }

    /// Begins the session of a front-end.
    fn begin(&mut self, id: SessionId, device: &blk::Device) {
        let Some(front_end) = self.all.get_mut(id) else { return };
        front_end.session = Some(Session::new(Offer {
            features: device.features(),
            config: device.config(true),
            queues: device.queues,
            sealed: front_end.sealed,
        }));
        self.answered.push(id);
    }

    /// Tells a front-end what its device has become, if it wants to be told.
    fn reconfigure(&mut self, id: SessionId, device: &blk::Device) {
        let session = self.all.get_mut(id).and_then(|one| one.session.as_mut());
        let message = session.and_then(|session| session.reconfigure(device.config(true)));
        let Some((bytes, channel)) = message else { return };
        if let Err(errno) = socket::send(channel, &Output { bytes, descriptor: None }) {
            self.report("a front-end was not told of another size", id, &errno);
        }
    }

    /// Receives what a front-end has sent, for as long as it may, and then waits for more.
    fn receive(&mut self, id: SessionId) {
        for _ in 0..PIECES {
            let Some(front_end) = self.all.get(id) else { return };
            let wanted = front_end.session.as_ref().expect("it has begun").wanted();
            if wanted == 0 {
                // Nobody is there to be answered.
                if front_end.has_hung_up {
                    self.end(id, Leave::HungUp);
                }
                return;
            }
            let mut bytes = vec![0; wanted];
            let (count, descriptors) = match socket::receive(&front_end.socket, &mut bytes) {
                Ok((0, _)) => return self.end(id, Leave::HungUp),
                Ok(received) => received,
                Err(Errno::WOULDBLOCK) => break,
                Err(errno) => return self.end(id, Leave::Broken(errno)),
            };
            self.take_messages();
            let Some(front_end) = self.all.get_mut(id) else { return };
            let session = front_end.session.as_mut().expect("it has begun");
            let progress = session.receive(&bytes[..count], descriptors);
            if !self.went_on(id, progress) {
                return;
            }
        }
        let Some(front_end) = self.all.get_mut(id) else { return };
        if !std::mem::replace(&mut front_end.is_watched, true) {
            self.ring.poll_readable(Token::Readable(id), &front_end.socket);
        }
    }

    /// Does what has come of a message, and sends the reply. Returns whether the session goes on.
    fn went_on(
        &mut self,
        id: SessionId,
        progress: Result<Progress, paternoster_vhost::SessionError>,
    ) -> bool {
        let front_end = &mut self.all[id];
        let session = front_end.session.as_mut().expect("it has begun");
        let is_within = session.is_within_message();
        front_end.due = is_within.then(|| front_end.due.unwrap_or_else(|| deadline(DEADLINE)));
        let held = u32::try_from(session.descriptors_held()).unwrap_or(u32::MAX);
        if let Err(no_room) = front_end.descriptors.hold(held) {
            // Before it is told that it was obeyed.
            self.report("the session of a front-end has ended", id, &no_room);
            self.end(id, Leave::Refused);
            return false;
        }
        let sent =
            session.take_output().map_or(Ok(()), |output| socket::send(&front_end.socket, &output));
        match progress {
            Ok(Progress::NeedMore) => {}
            Ok(Progress::Order(order)) => self.hand_over(id, order),
            Ok(Progress::Refused(refusal)) => {
                self.report("a message of a front-end was refused", id, &refusal);
            }
            Err(error) => {
                self.report("the session of a front-end has ended", id, &error);
                self.end(id, Leave::Refused);
                return false;
            }
        }
        if let Err(errno) = sent {
            self.end(id, Leave::Broken(errno));
        }
        sent.is_ok()
    }

    fn hand_over(&mut self, id: SessionId, order: Order) {
        let FrontEnd { is_warned, knows_bases, .. } = self.all[id];
        match &order {
            Order::Memory(memory) if memory.can_shrink() && !is_warned => {
                let why =
                    "its file has no F_SEAL_SHRINK; vhost_user_memory = \"sealed\" refuses such";
                let is_told = self.report("a machine's memory can be taken away", id, &why);
                self.all[id].is_warned = is_told;
            }
            Order::Start(_, start) if start.base > 0 && !knows_bases => {
                let why = "its rings go on where another server left them, and its front-end has \
                           not kept what was in flight (INFLIGHT_SHMFD)";
                let is_told = self.report("requests of a machine may be lost", id, &why);
                self.all[id].knows_bases = is_told;
            }
            Order::Inflight(_) | Order::Stop(_) => self.all[id].knows_bases = true,
            _ => {}
        }
        self.all[id].owner.tell_device(id, ToDevice::Order(order));
    }

    /// Ends a session. Its device ends what the disk works on.
    fn end(&mut self, id: SessionId, why: Leave) {
        let front_end = self.all.remove(id).expect("it is here");
        front_end.owner.tell_device(id, ToDevice::Detach(why));
    }

    /// Returns whether there was room for that in the log.
    fn report(&mut self, kind: &'static str, id: SessionId, why: &dyn fmt::Display) -> bool {
        let FrontEnd { export, peer, .. } = &self.all[id];
        let line = self.limits.admit(kind, Instant::now());
        if let Some(line) = &line {
            let left_out = line.left_out;
            tracing::warn!(export, peer = peer.to_string(), left_out, "{kind}: {why}");
        }
        line.is_some()
    }

    fn report_refused(&mut self, export: &str, peer: Peer, why: &dyn fmt::Display) {
        let kind = "a front-end was refused an export";
        if let Some(line) = self.limits.admit(kind, Instant::now()) {
            let left_out = line.left_out;
            tracing::info!(export, peer = peer.to_string(), left_out, "{kind}: {why}");
        }
    }

    fn next_due(&self) -> Option<u64> {
        let messages = self.all.values().filter_map(|front_end| front_end.due);
        messages.chain(self.paused.iter().map(|(until, _)| *until)).min()
    }

    fn handle_due(&mut self) {
        let now = MonotonicClock::monotonic_now();
        let is_due =
            |(id, one): (SessionId, &FrontEnd)| one.due.is_some_and(|due| due <= now).then_some(id);
        for id in self.all.iter().filter_map(is_due).collect::<Vec<_>>() {
            let why = "the rest of a message has not come in 10 s";
            self.report("the session of a front-end has ended", id, &why);
            self.end(id, Leave::Refused);
        }
        let mut over = Vec::new();
        self.paused.retain(|&(until, number)| {
            if until <= now {
                over.push(number);
            }
            until > now
        });
        for number in over {
            self.accept(number);
        }
    }
}
