//! One client in the transmission phase: its socket, the bytes received, and the bytes to send.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use paternoster::Instant;
use paternoster_disk::{Buffers, Fd, FrontToken, Payload};
use paternoster_nbd::server::{Fatal, Transmission};
use paternoster_nbd::tls::Opened;
use paternoster_nbd::{Extent, NbdError, Request, StatusQuery};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use slotmap::{Key, KeyData, new_key_type};

use super::ciphered::{Ciphered, work_of_sealing};
use super::credit::Amount;
use super::incoming::{Incoming, Room};
use super::outgoing::Outgoing;
use super::site::{ClientId, Site};
use super::{Export, Leave, nbd_extent};
use crate::admission::Admitted;
use crate::config::AtStop;
use crate::messages::{NewConnection, Resumed};

new_key_type! {
    /// Names a connection for as long as it exists.
    pub(crate) struct ConnectionId;
}

/// The operations of a connection on the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    Receive,
    Send,
    /// Waits until the client has hung up.
    HangUp,
}

impl Operation {
    /// Returns the name of the operation on the ring.
    fn token(self, id: ConnectionId) -> FrontToken {
        FrontToken { key: id.data().as_ffi(), operation: self as u8 }
    }

    pub(super) fn from_token(token: FrontToken) -> (ConnectionId, Self) {
        let id = ConnectionId::from(KeyData::from_ffi(token.key));
        let operation = match token.operation {
            op if op == Self::Receive as u8 => Self::Receive,
            op if op == Self::Send as u8 => Self::Send,
            _ => Self::HangUp,
        };
        (id, operation)
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It takes commands.
    Open,
    /// It takes no more commands; those in flight are answered, then it is closed.
    Finishing,
    /// The server is being stopped: it takes no more commands, and is closed with the server.
    Stopped,
    /// Another server is about to go on with it: nothing is received, sent or done.
    Held,
    /// Its socket has failed; commands in flight end unanswered.
    Failed,
}

/// One client.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // independent facts
pub(super) struct Connection {
    pub(super) socket: Fd,
    pub(super) transmission: Transmission,
    pub(super) export: Arc<Export>,
    /// Its name to the owner of the disk.
    pub(super) client: ClientId,
    _admitted: Admitted,
    /// Why it ends, once it does.
    pub(super) leave: Option<Leave>,
    pub(super) state: State,
    /// Its commands in flight.
    pub(super) in_flight: u32,
    pub(super) queued: Queued,
    /// A command that waits for credit.
    pub(super) pending: Option<Request>,
    /// Commands that come before those received, with data of their own: what has been given up
    /// for another server, or what the one before has left.
    pub(super) left: VecDeque<Request>,
    pub(super) waiting: Waiting,
    /// Credit that has been taken for what it does next.
    pub(super) granted: Amount,
    /// What its tenant is charged for what it holds.
    charged: [Amount; 4],
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// What is between these and the socket, if it is something.
    pub(super) tls: Option<Ciphered>,
    /// Whether a send is in flight.
    sending: bool,
    /// Whether its tenant counts it among those with one.
    pub(super) counted_sending: bool,
    /// When the client last sent something, or could begin to.
    received_at: Instant,
    /// When the client last took bytes of a reply, or could begin to.
    sent_at: Instant,
    /// Whether it is watched for hanging up.
    watched: bool,
}

/// What a connection is queued for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queued {
    /// To be worked for, in the rotation.
    pub(super) for_work: bool,
    /// To be sent its replies.
    pub(super) for_replies: bool,
}

/// What a connection waits for, beside its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// It does not wait.
    No,
    /// For credit; nothing is received from it.
    ForCredit,
    /// For the answer to a question about holes, before its next command.
    ForExtents,
}

impl Connection {
    pub(super) fn new(new: NewConnection, client: ClientId, now: Instant) -> Self {
        let Resumed { refused, output, .. } = new.resumed.unwrap_or_default();
        let mut outgoing = Outgoing::default();
        outgoing.add(&output);
        Self {
            socket: new.socket,
            transmission: Transmission::resume(new.session, refused),
            export: new.export,
            client,
            _admitted: new.admitted,
            leave: None,
            state: State::Open,
            in_flight: 0,
            queued: Queued::default(),
            pending: None,
            left: VecDeque::new(),
            waiting: Waiting::No,
            granted: Amount::Small(0),
            charged: [Amount::Small(0); 4],
            incoming: Incoming::new(&new.input),
            outgoing,
            tls: new.tls.map(Ciphered::new),
            sending: false,
            counted_sending: false,
            received_at: now,
            sent_at: now,
            watched: false,
        }
    }

    /// Returns whether there may be a command to take: not while it waits for anything.
    pub(super) fn takes_commands(&self) -> bool {
        let waits = self.waiting != Waiting::No || self.incoming.is_receiving();
        self.state == State::Open && !waits
    }

    /// The server is being stopped: what has not been taken in waits for the end, or is refused.
    pub(super) fn stop(&mut self, at_stop: AtStop) {
        match at_stop {
            AtStop::Close if self.state == State::Open => self.state = State::Stopped,
            AtStop::Close => {}
            AtStop::Refuse => self.transmission.begin_shutdown(),
        }
    }

    /// Returns whether the next command need not be decoded.
    pub(super) fn has_command(&self) -> bool {
        self.pending.is_some() || !self.left.is_empty()
    }

    /// Takes the next command: the one that waited, else what was left, else one of those received.
    pub(super) fn next_command(&mut self) -> Result<Decoded, Fatal> {
        match self.pending.take() {
            Some(request) => Ok(Decoded::Request(request, DataIn::Input)),
            None => match self.left.pop_front() {
                Some(request) => Ok(Decoded::Request(request, DataIn::Own)),
                None => self.decode(),
            },
        }
    }

    /// Has a command wait that was taken.
    pub(super) fn put_back(&mut self, request: Request, data: DataIn) {
        match data {
            DataIn::Own => self.left.push_front(request),
            DataIn::Input | DataIn::Room => self.pending = Some(request),
        }
    }

    /// Decodes the next command of those received; illegal ones are answered.
    pub(super) fn decode(&mut self) -> Result<Decoded, Fatal> {
        let room = if self.has_payload_room() { DataIn::Room } else { DataIn::Input };
        let decoded = self.transmission.decode(self.incoming.undecoded(), self.outgoing.tail())?;
        Ok(match decoded {
            Some(request) => Decoded::Request(request, room),
            None if self.transmission.has_more() => Decoded::Answered,
            None => Decoded::NeedMore,
        })
    }

    /// Returns whether it has room, and credit, for a payload alone: until that is taken from it.
    pub(super) fn has_payload_room(&self) -> bool {
        self.incoming.has_payload_room()
    }

    /// Returns the data of a write in memory of its own.
    pub(super) fn own(&mut self, data: Bytes, is_in: DataIn) -> Bytes {
        match is_in {
            DataIn::Own => data,
            DataIn::Input | DataIn::Room => self.incoming.own(data),
        }
    }

    /// Returns the room that the next receive must have, and the one that it would have with memory
    /// to spare; each with the credit that it takes.
    pub(super) fn rooms(&self) -> [(Room, Amount); 2] {
        let least = self.incoming.least_room(self.transmission.wanted());
        let best = self.incoming.best_room(least);
        let mut wished = self.incoming.needed_for(best);
        if let Some(tls) = self.tls.as_ref().filter(|_| best.is_stream()) {
            wished = Amount::Room(wished.bytes() + tls.needed_for_stream());
        }
        [(least, self.incoming.needed_for(least)), (best, wished)]
    }

    /// Takes what TLS has received, else begins to receive, into that room; `has_spare` says
    /// whether there was credit for the best one. Returns the units of work that it took.
    pub(super) fn receive(
        &mut self,
        site: &mut impl Site,
        id: ConnectionId,
        room: Room,
        has_spare: bool,
    ) -> i32 {
        let mut buffer = self.incoming.begin_receive(room);
        if let Some(tls) = &mut self.tls {
            let (opened, units) = tls.open(&mut buffer);
            if opened == Ok(Opened::Missing) {
                self.incoming.keep(buffer);
                buffer = tls.begin_receive(room.is_stream() && has_spare);
            } else {
                self.opened(opened, buffer);
                return 1 + units;
            }
        }
        self.received_at = site.now();
        let token = site.token(Operation::Receive.token(id));
        site.ring().receive(token, &self.socket, buffer);
        1
    }

    /// Takes what TLS had.
    fn opened(&mut self, opened: Result<Opened, rustls::Error>, buffer: BytesMut) {
        let bytes = if let Ok(Opened::Data(bytes)) = opened { bytes } else { 0 };
        self.incoming.received(buffer, Ok(u32::try_from(bytes).unwrap_or(u32::MAX)));
        match opened {
            Ok(Opened::Ended) => self.finish(Leave::Closed),
            Ok(_) => {}
            Err(error) => self.fail(Leave::Tls(error)),
        }
    }

    /// Takes a completed receive.
    pub(super) fn received(&mut self, input: BytesMut, result: Result<u32, Errno>, now: Instant) {
        if let Some(tls) = &mut self.tls {
            tls.received(input);
            self.incoming.sealed_received();
        } else {
            self.incoming.received(input, result);
        }
        self.received_at = now;
        match result {
            Ok(0) => self.finish(Leave::Closed),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN | Errno::CANCELED) => {}
            Err(errno) => self.fail(Leave::Broken(errno)),
        }
        if self.state == State::Failed {
            self.incoming.clear();
        }
    }

    /// Watches for the client to hang up while nothing is received.
    pub(super) fn watch(&mut self, site: &mut impl Site, id: ConnectionId) {
        if !std::mem::replace(&mut self.watched, true) {
            let token = site.token(Operation::HangUp.token(id));
            site.ring().poll_hang_up(token, &self.socket);
        }
    }

    /// Notes that the client has hung up, or is not watched for that any more.
    pub(super) fn hung_up(&mut self, watched: Result<u32, Errno>) {
        self.watched = false;
        if watched == Err(Errno::CANCELED) {
            return;
        }
        // What is received says so itself, after what was sent before.
        if self.waiting == Waiting::ForCredit {
            self.fail(Leave::Closed);
        }
    }

    /// Notes that the client sends no more commands.
    pub(super) fn finish(&mut self, why: Leave) {
        self.leave.get_or_insert(why);
        if matches!(self.state, State::Open | State::Stopped) {
            self.state = State::Finishing;
        }
    }

    /// Takes no more commands, and hears no more of the client; those in flight are answered.
    pub(super) fn finish_with_answers(&mut self, why: Leave) {
        self.finish(why);
        // It may be shut already. What is being received ends by it.
        let _ = shutdown(&*self.socket, Shutdown::Read);
    }

    /// Gives up the socket, and all that it holds.
    pub(super) fn fail(&mut self, why: Leave) {
        self.leave.get_or_insert(why);
        self.state = State::Failed;
        self.shut();
        self.pending = None;
        self.left.clear();
        self.incoming.clear();
        self.outgoing.clear();
    }

    /// Shuts the socket, which ends operations in flight.
    pub(super) fn shut(&mut self) {
        // In the middle of a record there is nothing that could be said.
        if let Some(tls) = self.tls.as_mut().filter(|_| !self.outgoing.is_within_record()) {
            tls.say_end(&self.socket);
        }
        // It may be shut already.
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }

    /// Returns whether it has made no progress since `then` with what it holds: a payload that does
    /// not come, or replies that are not read.
    pub(super) fn is_stalled_since(&self, then: Instant) -> bool {
        let has_part = self.tls.as_ref().is_some_and(Ciphered::has_part);
        let has_part = has_part || self.incoming.has_payload_room();
        let by_payload = has_part && self.received_at <= then;
        let by_replies = self.sending && self.sent_at <= then;
        self.state != State::Failed && (by_payload || by_replies)
    }

    pub(super) fn reply_ok(&mut self, cookie: u64) {
        self.transmission.reply_ok(cookie, self.outgoing.tail());
    }

    pub(super) fn reply_error(&mut self, cookie: u64, error: NbdError, message: &str) {
        self.transmission.reply_error(cookie, error, message, self.outgoing.tail());
    }

    /// Answers which parts of a range are holes.
    pub(super) fn reply_extents(
        &mut self,
        cookie: u64,
        query: StatusQuery,
        answer: &io::Result<Vec<paternoster_disk::Extent>>,
    ) {
        match answer {
            Ok(extents) => {
                let extents: Vec<Extent> = extents.iter().map(nbd_extent).collect();
                self.transmission.reply_block_status(cookie, query, &extents, self.outgoing.tail());
            }
            Err(error) => self.reply_error(cookie, NbdError::Io, &error.to_string()),
        }
    }

    /// Answers a read.
    pub(super) fn reply_read(&mut self, cookie: u64, offset: u64, len: u32, payload: Payload) {
        self.transmission.read_header(cookie, offset, len, self.outgoing.tail());
        self.outgoing.add_data(payload);
    }

    /// Sends what there is, unless a send is in flight. Returns the units of work that it took to
    /// seal it.
    pub(super) fn send(&mut self, site: &mut impl Site, id: ConnectionId) -> i32 {
        if self.state == State::Failed {
            self.outgoing.clear();
        }
        let next = match &mut self.tls {
            _ if self.state == State::Held => Ok(None),
            Some(tls) if self.state != State::Failed => self.outgoing.next_sealed(tls),
            _ => Ok(self.outgoing.next_send().map(|from| (from, 0))),
        };
        let (from, sealed) = match next {
            Ok(Some(next)) => next,
            Ok(None) => return 0,
            Err(error) => {
                self.fail(Leave::Tls(error));
                return 0;
            }
        };
        // Until now nothing was there to be read.
        self.sent_at = site.now();
        self.sending = true;
        let token = site.token(Operation::Send.token(id));
        site.ring().send(token, &self.socket, from);
        work_of_sealing(sealed)
    }

    /// Returns whether a send is in flight.
    pub(super) fn is_sending(&self) -> bool {
        self.sending
    }

    /// Takes a completed send.
    pub(super) fn sent(
        &mut self,
        result: Result<u32, Errno>,
        unsent: Buffers<Bytes>,
        now: Instant,
    ) {
        self.sending = false;
        match self.outgoing.sent(result, unsent) {
            Ok(0) => {}
            Ok(_) => self.sent_at = now,
            Err(errno) => self.fail(Leave::Broken(errno)),
        }
        if self.state == State::Failed {
            self.outgoing.clear();
        }
    }

    /// Updates what its tenant is charged for it, and returns what that was before and what it is
    /// from here on: replies that are not sent, and what it has received beyond the room of every
    /// connection.
    pub(super) fn update_charge(&mut self) -> ([Amount; 4], [Amount; 4]) {
        let [small, large] = self.outgoing.held();
        let sealed = self.tls.as_ref().map_or(Amount::Room(0), Ciphered::held);
        let now = [small, large, self.incoming.held(), sealed];
        (std::mem::replace(&mut self.charged, now), now)
    }

    /// Returns whether a visit would do something for it.
    #[cfg(test)]
    pub(super) fn has_work(&self) -> bool {
        let sends = !self.sending && !self.outgoing.is_empty() && self.state != State::Held;
        self.takes_commands() || sends || self.is_over()
    }

    /// Returns what its tenant is charged for it, and the credit taken for what it does next.
    pub(super) fn charged(&self) -> impl Iterator<Item = Amount> {
        self.charged.into_iter().chain([self.granted])
    }

    /// Returns whether everything that was to be sent is.
    pub(super) fn is_drained(&self) -> bool {
        self.in_flight == 0 && self.outgoing.is_empty() && !self.sending
    }

    /// Returns whether nothing is left to do for it.
    pub(super) fn is_over(&self) -> bool {
        let is_receiving = self.incoming.is_receiving();
        match self.state {
            State::Open | State::Stopped | State::Held => false,
            State::Finishing => self.is_drained() && !is_receiving,
            State::Failed => self.in_flight == 0 && !self.sending && !is_receiving,
        }
    }
}

/// In what memory the data of a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataIn {
    /// Among other input.
    Input,
    /// In room that its connection has, and has credit, for it alone.
    Room,
    /// In memory of its own.
    Own,
}

/// The result of decoding what a client has sent.
#[derive(Debug)]
pub(super) enum Decoded {
    /// A command, and where the data of a write is.
    Request(Request, DataIn),
    /// Illegal commands, which are answered; there is more to look at.
    Answered,
    /// The beginning of something.
    NeedMore,
}
