//! One client in the transmission phase: its socket, what it has sent, what it is to be sent.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use paternoster::IocId;
use paternoster_disk::{Buffers, Fd, FrontToken, Payload, Ring, Token};
use paternoster_nbd::server::{Fatal, Transmission};
use paternoster_nbd::{Extent, NbdError, Request, StatusQuery};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use slotmap::{Key, KeyData, new_key_type};

use super::visits::Leave;
use crate::messages::NewConnection;
use crate::peer::Peer;

new_key_type! {
    /// Names a connection for as long as it exists.
    pub(super) struct ConnectionId;
}

/// Room for what a client sends at once.
const RECEIVE_ROOM: usize = 64 << 10;

/// Pieces sent by one operation: `IOV_MAX`.
const SEND_PIECES: usize = 1024;

/// What an operation of a connection on the ring does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Operation {
    Receive,
    Send,
}

impl Operation {
    /// The name of the operation on the ring.
    fn token(self, id: ConnectionId) -> Token {
        Token::Front(FrontToken { key: id.data().as_ffi(), operation: self as u8 })
    }

    pub(super) fn from_token(token: FrontToken) -> (ConnectionId, Self) {
        let id = ConnectionId::from(KeyData::from_ffi(token.key));
        let operation =
            if token.operation == Self::Receive as u8 { Self::Receive } else { Self::Send };
        (id, operation)
    }
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Commands are taken.
    Open,
    /// No more commands; those under way are answered, then it is closed.
    Finishing,
    /// The socket is of no use any more; commands under way end unanswered.
    Failed,
}

/// One client.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Fd,
    pub(super) transmission: Transmission,
    /// Its export, as an index into the disk's.
    pub(super) export: usize,
    /// Which of the disk's it is, in order of arrival, from 1.
    pub(super) number: u64,
    pub(super) peer: Peer,
    /// Why it ends, once it does.
    pub(super) leave: Option<Leave>,
    /// Made at its first command.
    pub(super) ioc: Option<IocId>,
    pub(super) state: State,
    /// Commands that the engine has.
    pub(super) underway: u32,
    /// Whether it is noted to be tended at the end of the turn.
    pub(super) touched: bool,
    /// Received and not yet decoded; empty while a receive is under way.
    input: BytesMut,
    /// Replies as they are encoded, behind all of `out`.
    replies: BytesMut,
    /// What is to be sent next.
    out: VecDeque<Bytes>,
    /// Whether a receive is under way.
    receiving: bool,
    /// Bytes of credit that it has been given for a large write, until that is complete.
    landing: usize,
    /// What the send under way was given.
    sending: Option<Buffers<Bytes>>,
    /// Bytes in `out` and `sending`.
    unsent: usize,
    /// Bytes of credit that its tenant is charged for it.
    charged: usize,
}

impl Connection {
    pub(super) fn new(new: NewConnection, export: usize, number: u64) -> Self {
        Self {
            socket: new.socket,
            transmission: Transmission::new(new.session),
            export,
            number,
            peer: new.peer,
            leave: None,
            ioc: None,
            state: State::Open,
            underway: 0,
            touched: false,
            input: new.input,
            replies: BytesMut::new(),
            out: VecDeque::new(),
            receiving: false,
            landing: 0,
            sending: None,
            unsent: 0,
            charged: 0,
        }
    }

    /// The next command of those received; illegal ones are answered.
    pub(super) fn decode(&mut self) -> Result<Option<Request>, Fatal> {
        if self.receiving {
            return Ok(None);
        }
        let decoded = self.transmission.decode(&mut self.input, &mut self.replies);
        if !matches!(decoded, Ok(None)) {
            self.landing = 0;
        }
        decoded
    }

    /// Whether it has been given credit for a large write, which it must be let complete.
    pub(super) fn is_landing(&self) -> bool {
        self.landing > 0
    }

    /// Bytes of credit that the next receive needs beyond those that it has been given: all of a
    /// write that does not fit into the room that every connection has.
    pub(super) fn landing_wanted(&self) -> usize {
        let whole = self.input.len() + self.transmission.wanted();
        if self.receiving || whole <= RECEIVE_ROOM { 0 } else { whole.saturating_sub(self.landing) }
    }

    /// Receives, with so much more credit.
    pub(super) fn receive(&mut self, ring: &mut Ring<Token>, id: ConnectionId, credit: usize) {
        if self.receiving {
            return;
        }
        self.landing += credit;
        let wanted = self.transmission.wanted();
        let mut input = std::mem::take(&mut self.input);
        // More room than a large write needs would move all that has come of it.
        input.reserve(if self.is_landing() { wanted } else { wanted.max(RECEIVE_ROOM) });
        ring.receive(Operation::Receive.token(id), &self.socket, input);
        self.receiving = true;
    }

    /// A receive has completed.
    pub(super) fn received(&mut self, input: BytesMut, result: Result<u32, Errno>) {
        self.input = input;
        self.receiving = false;
        match result {
            Ok(0) => self.finish(Leave::Closed),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => self.fail(Leave::Broken(errno)),
        }
    }

    /// The client has said or shown that no more commands come.
    pub(super) fn finish(&mut self, why: Leave) {
        self.leave.get_or_insert(why);
        if self.state == State::Open {
            self.state = State::Finishing;
        }
    }

    /// The socket is of no use any more.
    pub(super) fn fail(&mut self, why: Leave) {
        self.leave.get_or_insert(why);
        self.state = State::Failed;
        // Has operations under way end soon.
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }

    pub(super) fn reply_ok(&mut self, cookie: u64) {
        self.transmission.reply_ok(cookie, &mut self.replies);
    }

    pub(super) fn reply_error(&mut self, cookie: u64, error: NbdError, message: &str) {
        self.transmission.reply_error(cookie, error, message, &mut self.replies);
    }

    pub(super) fn reply_block_status(&mut self, cookie: u64, query: StatusQuery, of: &[Extent]) {
        self.transmission.reply_block_status(cookie, query, of, &mut self.replies);
    }

    /// Answers a read.
    pub(super) fn reply_read(&mut self, cookie: u64, offset: u64, len: u32, payload: Payload) {
        if self.state == State::Failed {
            return;
        }
        self.transmission.read_header(cookie, offset, len, &mut self.replies);
        self.flush_replies();
        self.unsent += usize::try_from(len).expect("a u32 fits");
        self.out.extend(payload.into_iter().map(BytesMut::freeze));
    }

    /// Puts the replies that are encoded to what is sent next.
    fn flush_replies(&mut self) {
        if !self.replies.is_empty() {
            self.unsent += self.replies.len();
            self.out.push_back(self.replies.split().freeze());
        }
    }

    /// Sends what there is, unless a send is under way.
    pub(super) fn send(&mut self, ring: &mut Ring<Token>, id: ConnectionId) {
        if self.sending.is_some() || self.state == State::Failed {
            return;
        }
        self.flush_replies();
        if self.out.is_empty() {
            return;
        }
        let pieces = self.out.len().min(SEND_PIECES);
        let from: Buffers<Bytes> = self.out.drain(..pieces).collect();
        self.sending = Some(from.clone());
        ring.send(Operation::Send.token(id), &self.socket, from);
    }

    /// A send has completed.
    pub(super) fn sent(&mut self, result: Result<u32, Errno>) {
        let pieces = self.sending.take().unwrap_or_default();
        let mut sent = match result {
            Ok(sent) => sent as usize,
            Err(Errno::INTR | Errno::AGAIN) => 0,
            Err(errno) => {
                self.fail(Leave::Broken(errno));
                return;
            }
        };
        self.unsent -= sent;
        // What was not sent goes back to the front, in order.
        let mut left = Vec::new();
        for mut piece in pieces {
            let part = piece.len().min(sent);
            sent -= part;
            let _ = piece.split_to(part);
            if !piece.is_empty() {
                left.push(piece);
            }
        }
        for piece in left.into_iter().rev() {
            self.out.push_front(piece);
        }
    }

    /// What its tenant was charged for it, and what it holds now and is charged from here on:
    /// replies that are not sent, and a large write that is not complete.
    pub(super) fn recharge(&mut self) -> (usize, usize) {
        let now = self.unsent + self.replies.len() + self.landing;
        (std::mem::replace(&mut self.charged, now), now)
    }

    /// What its tenant is charged for it.
    pub(super) fn charged(&self) -> usize {
        self.charged
    }

    /// Whether everything that was to be sent is.
    pub(super) fn is_drained(&self) -> bool {
        self.underway == 0
            && self.replies.is_empty()
            && self.out.is_empty()
            && self.sending.is_none()
    }

    /// Whether nothing is left to do for it.
    pub(super) fn is_over(&self) -> bool {
        match self.state {
            State::Open => false,
            State::Finishing => self.is_drained() && !self.receiving,
            State::Failed => self.underway == 0 && self.sending.is_none() && !self.receiving,
        }
    }
}
