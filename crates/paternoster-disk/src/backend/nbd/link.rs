//! One connection that has entered the export: requests out, replies in.
//!
//! ```text
//!   request ──▶ outgoing ──one send at a time──▶ socket
//!   replies ◀── input ◀──one receive at a time── socket
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use paternoster_nbd::client::{EncodeError, Reply, ReplyError, Transmission};
use paternoster_nbd::{Command, Request};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown, sockopt};

use super::dial::{Dialed, leave};
use crate::engine::VolumeId;
use crate::ring::{Buffers, Fd, MAX_BUFFERS, Ring};
use crate::token::{BackendToken, Token};

/// Room for replies that arrive at once.
const RECEIVE_ROOM: usize = 128 << 10;

/// What a token's operation is.
pub(super) const RECEIVED: u8 = 0;
pub(super) const SENT: u8 = 1;

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: Fd,
    transmission: Transmission,
    /// The key of its operations' tokens.
    key: u64,
    /// What has come and is not decoded; with a receive while one is under way.
    input: BytesMut,
    /// The buffers to send after the send that is under way.
    outgoing: VecDeque<Bytes>,
    is_sending: bool,
    /// Whether nothing more is asked of it: it is closed once all is answered.
    is_leaving: bool,
}

impl Link {
    pub(super) fn new(dialed: Dialed, key: u64) -> Self {
        let Dialed { socket, session, input, .. } = dialed;
        Self {
            socket: socket.into(),
            transmission: Transmission::new(session),
            key,
            input,
            outgoing: VecDeque::new(),
            is_sending: false,
            is_leaving: false,
        }
    }

    pub(super) fn key(&self) -> u64 {
        self.key
    }

    fn token(&self, volume: VolumeId, operation: u8) -> Token {
        Token::Backend(volume, BackendToken { key: self.key, operation })
    }

    pub(super) fn in_flight(&self) -> usize {
        self.transmission.in_flight()
    }

    /// Whether more may be asked of it.
    pub(super) fn is_open(&self) -> bool {
        !self.is_leaving
    }

    pub(super) fn set_leaving(&mut self) {
        self.is_leaving = true;
    }

    /// Whether nothing more is asked of it, and all is answered.
    pub(super) fn has_left(&self) -> bool {
        self.is_leaving && self.in_flight() == 0
    }

    /// Adds a request to what is sent next. A write's data is not copied.
    pub(super) fn ask(&mut self, cookie: u64, command: Command) -> Result<(), EncodeError> {
        let request = Request { cookie, command };
        let mut header = BytesMut::new();
        self.transmission.encode_header(&request, &mut header)?;
        self.outgoing.push_back(header.freeze());
        if let Command::Write { data, .. } = request.command {
            self.outgoing.push_back(data);
        }
        Ok(())
    }

    /// Sends what there is, unless something is being sent.
    pub(super) fn send(&mut self, ring: &mut Ring<Token>, volume: VolumeId) {
        if self.is_sending || self.outgoing.is_empty() {
            return;
        }
        let most = self.outgoing.len().min(MAX_BUFFERS);
        let from: Buffers<Bytes> = self.outgoing.drain(..most).collect();
        self.is_sending = true;
        ring.send(self.token(volume, SENT), &self.socket, from);
    }

    /// A send is over; `unsent` is sent first.
    pub(super) fn handle_sent(&mut self, unsent: Buffers<Bytes>) {
        self.is_sending = false;
        put_back(&mut self.outgoing, unsent);
    }

    /// Receives what comes next.
    pub(super) fn receive(&mut self, ring: &mut Ring<Token>, volume: VolumeId) {
        let mut input = std::mem::take(&mut self.input);
        input.reserve(self.transmission.wanted().max(RECEIVE_ROOM));
        ring.receive(self.token(volume, RECEIVED), &self.socket, input);
    }

    pub(super) fn handle_received(&mut self, input: BytesMut) {
        self.input = input;
    }

    /// Takes the next reply from what was received.
    pub(super) fn take_reply(&mut self) -> Result<Option<Reply>, ReplyError> {
        self.transmission.decode(&mut self.input)
    }

    /// Ends the operations on its socket, and drops what is not sent.
    pub(super) fn close(self) {
        // A unix socket knows nothing of that, and one that has failed needs it no more.
        let _ = sockopt::set_socket_linger(&*self.socket, Some(Duration::ZERO));
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }

    /// Leaves the server in good order, if nothing is in flight.
    pub(super) fn leave(mut self) {
        if self.in_flight() == 0 && !self.is_sending && self.outgoing.is_empty() {
            leave(&self.socket, &mut self.transmission);
        }
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }
}

/// Puts what a send has not sent before what has come meanwhile.
fn put_back(outgoing: &mut VecDeque<Bytes>, unsent: Buffers<Bytes>) {
    for bytes in unsent.into_iter().rev() {
        outgoing.push_front(bytes);
    }
}

/// Why a connection is no more.
#[derive(Debug)]
pub(super) enum Loss {
    /// The server has closed it.
    Closed,
    /// It has failed.
    Failed(Errno),
    /// TCP has found out that nobody is there, so that this side gives up.
    Silent,
    /// A request was not answered in time, so that this side gives up.
    Unanswered,
    /// The server has sent what means nothing, so that this side gives up.
    Garbage(ReplyError),
}

impl Loss {
    /// The loss that an operation's error means.
    pub(super) fn of(errno: Errno) -> Self {
        // Nobody else ends a connection so: TCP was told for how long to wait.
        if errno == Errno::TIMEDOUT { Self::Silent } else { Self::Failed(errno) }
    }

    /// Whether this side gives a connection up that may live.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self, Self::Silent | Self::Unanswered | Self::Garbage(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_sent_goes_before_what_has_come_meanwhile() {
        let mut outgoing = VecDeque::from([Bytes::from_static(b"c")]);
        let unsent = [&b"a"[..], b"b"].map(Bytes::from_static);
        put_back(&mut outgoing, unsent.into_iter().collect());
        assert_eq!(outgoing, [&b"a"[..], b"b", b"c"]);
    }
}
