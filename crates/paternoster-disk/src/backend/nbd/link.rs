//! One connection that has entered the export: requests out, replies in.
//!
//! ```text
//!   request ──▶ outgoing ──one send at a time──▶ socket
//!   replies ◀── input ◀──one receive at a time── socket
//! ```
//!
//! Within TLS what is sent next is sealed first, and what is received is opened before it is
//! decoded.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use paternoster_nbd::client::{EncodeError, Reply, ReplyError, Transmission};
use paternoster_nbd::tls::{Opened, Tls};
use paternoster_nbd::{Command, Request};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown, sockopt};

use super::dial::{Dialed, leave};
use crate::engine::VolumeId;
use crate::ring::{Buffers, Fd, MAX_BUFFERS, Ring};
use crate::token::{BackendToken, Token};

/// Room for replies that arrive at once.
const RECEIVE_ROOM: usize = 128 << 10;

/// Bytes that are sealed together.
const SEALED_BYTES: usize = 256 << 10;

/// What a token's operation is.
pub(super) const RECEIVED: u8 = 0;
pub(super) const SENT: u8 = 1;

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    socket: Fd,
    tls: Option<Box<Tls>>,
    transmission: Transmission,
    /// Bytes of the export, as this connection shows it.
    size: u64,
    /// The key of its operations' tokens.
    key: u64,
    /// What has come and is not decoded; with a receive while one is under way.
    input: BytesMut,
    /// The buffers to send after the send that is under way.
    outgoing: VecDeque<Bytes>,
    /// What is sealed and comes before them.
    sealed: VecDeque<Bytes>,
    is_sending: bool,
    /// Whether nothing more is asked of it: it is closed once all is answered.
    is_leaving: bool,
}

impl Link {
    pub(super) fn new(dialed: Dialed, key: u64) -> Self {
        let Dialed { socket, tls, session, far, input } = dialed;
        Self {
            socket: socket.into(),
            tls,
            transmission: Transmission::new(session),
            size: far.size(),
            key,
            input,
            outgoing: VecDeque::new(),
            sealed: VecDeque::new(),
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

    pub(super) fn size(&self) -> u64 {
        self.size
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
        if self.is_sending {
            return;
        }
        self.seal();
        let from = if self.tls.is_some() { &mut self.sealed } else { &mut self.outgoing };
        let most = from.len().min(MAX_BUFFERS);
        let from: Buffers<Bytes> = from.drain(..most).collect();
        if from.is_empty() {
            return;
        }
        self.is_sending = true;
        ring.send(self.token(volume, SENT), &self.socket, from);
    }

    /// Seals what is to be sent next, behind what TLS itself has to say.
    fn seal(&mut self) {
        let Some(tls) = self.tls.as_mut().filter(|_| self.sealed.is_empty()) else { return };
        let mut bytes = 0;
        let is_next = |piece: &&Bytes| {
            let is_next = bytes < SEALED_BYTES;
            bytes += piece.len();
            is_next
        };
        let count = self.outgoing.iter().take_while(is_next).count();
        if count == 0 && !tls.has_to_say() {
            return;
        }
        let pieces: Vec<Bytes> = self.outgoing.drain(..count).collect();
        let pieces: Vec<_> = pieces.iter().map(|piece| &piece[..]).collect();
        match tls.seal(&pieces) {
            Ok(sealed) => self.sealed.push_back(sealed),
            // Its keys may seal no more: the receive ends, and the connection is made anew.
            Err(_) => _ = shutdown(&*self.socket, Shutdown::Both),
        }
    }

    /// A send is over; `unsent` is sent first.
    pub(super) fn handle_sent(&mut self, unsent: Buffers<Bytes>) {
        self.is_sending = false;
        let from = if self.tls.is_some() { &mut self.sealed } else { &mut self.outgoing };
        put_back(from, unsent);
    }

    /// Receives what comes next.
    pub(super) fn receive(&mut self, ring: &mut Ring<Token>, volume: VolumeId) {
        let mut input = match &mut self.tls {
            None => std::mem::take(&mut self.input),
            Some(tls) => std::mem::take(tls.sealed()),
        };
        let wanted = if self.tls.is_some() { 0 } else { self.transmission.wanted() };
        input.reserve(wanted.max(RECEIVE_ROOM));
        ring.receive(self.token(volume, RECEIVED), &self.socket, input);
    }

    pub(super) fn handle_received(&mut self, input: BytesMut) {
        match &mut self.tls {
            None => self.input = input,
            Some(tls) => *tls.sealed() = input,
        }
    }

    /// Opens some of what was received; false where nothing is left, as in the clear.
    pub(super) fn open(&mut self) -> Result<bool, Loss> {
        let Some(tls) = &mut self.tls else { return Ok(false) };
        match tls.open(&mut self.input, RECEIVE_ROOM) {
            Ok(Opened::Data(_)) => Ok(true),
            Ok(Opened::Missing) => Ok(false),
            // By an alert too it is the server that has ended it.
            Ok(Opened::Ended) | Err(rustls::Error::AlertReceived(_)) => Err(Loss::Closed),
            Err(error) => Err(Loss::Tls(error)),
        }
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
        let is_sent = self.outgoing.is_empty() && self.sealed.is_empty();
        if self.in_flight() == 0 && !self.is_sending && is_sent {
            leave(&self.socket, &mut self.transmission, self.tls.as_deref_mut());
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
    /// The same of TLS.
    Tls(rustls::Error),
}

impl Loss {
    /// The loss that an operation's error means.
    pub(super) fn of(errno: Errno) -> Self {
        // Nobody else ends a connection so: TCP was told for how long to wait.
        if errno == Errno::TIMEDOUT { Self::Silent } else { Self::Failed(errno) }
    }

    /// Whether this side gives a connection up that may live.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self, Self::Silent | Self::Unanswered | Self::Garbage(_) | Self::Tls(_))
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
