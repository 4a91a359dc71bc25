//! Connections that another server is about to go on with.
//!
//! ```text
//!   hold ──▶ receives and sends end, the disk gives up what it has not begun
//!     ──▶ held: session, socket
//!                input    commands without an answer, as they came; then what was not decoded
//!                output   what was not sent
//!     ──▶ the other server decodes the input, and sends the output before anything else
//! ```
//!
//! A connection is carried as bytes: commands have no form of their own there. Where the other one
//! does not come, what was given up is done here.
//!
//! One within TLS cannot be carried, as nobody gives its keys away: it ends with this server, and
//! its client connects anew, to the other one.

use std::sync::Arc;

use bytes::Bytes;
use paternoster_disk::{CommandOp, Fd};
use paternoster_nbd::server::{RefusedWrite, Unfinished};
use paternoster_nbd::{Command, Request, Session};

use super::connection::{Connection, ConnectionId, Decoded, State, Waiting};
use super::incoming::Incoming;
use super::site::Site;
use super::{Clients, Export, Leave};

/// A connection as whoever goes on with it needs it.
#[derive(Clone, Debug)]
pub(crate) struct HeldConnection {
    pub(crate) socket: Fd,
    pub(crate) export: Arc<Export>,
    pub(crate) session: Session,
    pub(crate) refused: Option<RefusedWrite>,
    /// Whether it has credit for all of the payload whose beginning has come.
    pub(crate) has_room: bool,
    pub(crate) input: Vec<Bytes>,
    pub(crate) output: Vec<Bytes>,
}

impl Clients {
    /// Takes nothing in and sends nothing any more: another server is to go on.
    pub(crate) fn hold(&mut self) {
        self.is_held = true;
        self.lets_go = true;
        self.connections.values_mut().for_each(Connection::hold);
    }

    /// Has the ring give back what it has of the sockets.
    pub(super) fn let_go(&mut self, site: &mut impl Site) {
        for connection in self.connections.values() {
            site.ring().cancel(&connection.socket);
        }
    }

    /// Returns whether nothing is under way any more.
    pub(crate) fn are_held(&self) -> bool {
        let is_held = self.is_held && !self.lets_go;
        is_held && self.connections.values().all(Connection::is_at_rest)
    }

    /// What another server needs to go on, when nothing is under way any more.
    pub(crate) fn held(&mut self) -> Vec<HeldConnection> {
        self.connections.values_mut().filter_map(Connection::held).collect()
    }

    /// Goes on with a connection that another server has left.
    pub(super) fn resume(&mut self, id: ConnectionId, has_room: bool) {
        self.connections[id].resume(has_room);
        self.update_charge(id);
        self.queue_replies(id);
    }

    /// No other server goes on.
    pub(crate) fn go_on(&mut self) {
        (self.is_held, self.lets_go) = (false, false);
        for id in self.connections.keys().collect::<Vec<_>>() {
            let tenant = self.tenant_of(id);
            let connection = &mut self.connections[id];
            connection.go_on();
            if connection.waiting == Waiting::ForCredit {
                // It asks again, and is watched again.
                connection.waiting = Waiting::No;
                self.tenants[tenant].credit.forget(id);
                self.note_change(tenant);
            }
            self.queue(id);
            self.queue_replies(id);
        }
    }
}

impl Connection {
    /// Takes no more commands, and is not sent anything.
    pub(super) fn hold(&mut self) {
        if matches!(self.state, State::Open | State::Finishing) {
            self.state = State::Held;
        }
    }

    /// Takes a command back that the disk has given up.
    pub(super) fn take_back(&mut self, cookie: u64, left: CommandOp) {
        let command = command_of(left, self.export.offset);
        self.left.push_back(Request { cookie, command });
    }

    /// Returns whether nothing of it is under way.
    fn is_at_rest(&self) -> bool {
        let is_receiving = self.incoming.is_receiving();
        self.in_flight == 0 && !self.is_sending() && !is_receiving
    }

    /// What another server needs; none of one that has failed, or that cannot be carried.
    fn held(&mut self) -> Option<HeldConnection> {
        if self.state != State::Held || self.tls.is_some() {
            return None;
        }
        let disconnect = matches!(self.leave, Some(Leave::Disconnected))
            .then_some(Request { cookie: 0, command: Command::Disconnect });
        let mut input = Vec::new();
        for request in self.left.iter().chain(&self.pending).chain(&disconnect) {
            let header = request.header().expect("it came in a request");
            input.push(Bytes::copy_from_slice(&header));
            if let Command::Write { data, .. } = &request.command {
                input.push(data.clone());
            }
        }
        let refused = match self.transmission.unfinished() {
            Unfinished::Nothing => None,
            Unfinished::Write(header) => {
                input.push(Bytes::copy_from_slice(&header));
                None
            }
            Unfinished::Refused(refused) => Some(refused),
        };
        input.push(Bytes::copy_from_slice(self.incoming.undecoded()));
        Some(HeldConnection {
            socket: self.socket.clone(),
            export: Arc::clone(&self.export),
            session: self.transmission.session().clone(),
            refused,
            has_room: self.incoming.has_payload_room(),
            input,
            output: self.outgoing.unsent(),
        })
    }

    fn go_on(&mut self) {
        if self.state != State::Held {
            return;
        }
        self.state = State::Open;
        match self.leave {
            Some(Leave::Disconnected) => {
                self.leave = None;
                self.left.push_back(Request { cookie: 0, command: Command::Disconnect });
            }
            // The end of the stream will be received again.
            Some(Leave::Closed) => self.leave = None,
            Some(_) => self.state = State::Finishing,
            None => {}
        }
    }

    /// Decodes all that another server has left. Its commands ask for credit one after the other,
    /// as others do; the room of a payload is kept where there was credit for that.
    fn resume(&mut self, has_room: bool) {
        loop {
            match self.decode() {
                Ok(Decoded::Request(request, _)) => self.left.push_back(request),
                Ok(Decoded::Answered) => {}
                Ok(Decoded::NeedMore) => break,
                Err(fatal) => return self.fail(Leave::CutOff(fatal)),
            }
        }
        let rest = Incoming::new(self.incoming.undecoded());
        self.incoming = rest;
        if has_room {
            self.incoming.make_room(self.transmission.wanted());
        }
    }
}

/// What a command of the disk was on the wire, of an export that begins there.
fn command_of(op: CommandOp, base: u64) -> Command {
    match op {
        CommandOp::Read { offset, len } => Command::Read { offset: offset - base, len, df: false },
        CommandOp::ReadInto { .. } => unreachable!("no client of NBD has memory here"),
        CommandOp::Cache { offset, len } => Command::Cache { offset: offset - base, len },
        CommandOp::Write { offset, data, fua } => {
            Command::Write { offset: offset - base, data, fua }
        }
        CommandOp::Trim { offset, len, fua } => Command::Trim { offset: offset - base, len, fua },
        CommandOp::Zero { offset, len, fua, allocate, fast } => {
            let offset = offset - base;
            Command::WriteZeroes { offset, len, fua, no_hole: allocate, fast }
        }
        CommandOp::Flush => Command::Flush,
    }
}
