//! TLS between a client's socket and its commands and replies.
//!
//! ```text
//!   socket ──receive──▶ sealed ──open──▶ input ──decode──▶ command      in a visit of the rotation
//!   socket ◀──send── one sealed piece ◀──seal── replies of a round      at its end
//! ```
//!
//! The cipher's work is the tenant's: what is opened counts in the visit that opens it, records and
//! bytes; what is sealed counts against the next visits.

use bytes::{Bytes, BytesMut};
use paternoster_disk::{Buffers, Fd};
use paternoster_nbd::tls::{Opened, Tls};
use rustix::net::{SendFlags, send};

use super::credit::Amount;
use super::incoming::{BASE_ROOM, STREAM_ROOM, with_room};

/// Bytes that are opened in a unit of work, beside a unit for each record, and that are sealed in
/// one: 64 KiB take some 41 and 16 microseconds.
const OPENED_IN_A_UNIT: usize = 1600;
const SEALED_IN_A_UNIT: usize = 4096;

/// Room for what is sealed that every connection has: the longest record. Beside it rustls has as
/// much of its own, a record that is open, and up to 64 KiB of a message of its own.
const RECORD_ROOM: usize = 19 << 10;

/// A connection's TLS.
#[derive(Debug)]
pub(super) struct Ciphered {
    tls: Box<Tls>,
    /// Bytes of memory that the buffer has which is received into.
    room: usize,
    /// Whether the ring has the beginning of a record.
    has_part: bool,
}

impl Ciphered {
    /// Begins with what came behind the handshake, of whose buffer nothing is kept.
    pub(super) fn new(mut tls: Box<Tls>) -> Self {
        let sealed = tls.sealed();
        *sealed = BytesMut::from(&sealed[..]);
        let room = sealed.len().max(BASE_ROOM);
        Self { tls, room, has_part: false }
    }

    /// Opens some of what has been received, as much as there is room for behind `input`. Returns
    /// what has come of that, and the units of work that it took.
    pub(super) fn open(&mut self, input: &mut BytesMut) -> (Result<Opened, rustls::Error>, i32) {
        let (room, before) = (input.capacity() - input.len(), self.tls.records());
        let opened = self.tls.open(input, room);
        let bytes = if let Ok(Opened::Data(bytes)) = opened { bytes } else { 0 };
        let records = usize::try_from(self.tls.records() - before).unwrap_or(usize::MAX);
        (opened, units(bytes / OPENED_IN_A_UNIT + records))
    }

    /// Returns the room that a stream needs beyond that of every connection and its own.
    pub(super) fn needed_for_stream(&self) -> usize {
        STREAM_ROOM.saturating_sub(self.room.max(RECORD_ROOM))
    }

    /// Returns the buffer to receive into; a large one for a stream, if there is credit for that.
    pub(super) fn begin_receive(&mut self, has_stream_room: bool) -> BytesMut {
        let wanted = self.tls.wanted();
        let sealed = std::mem::take(self.tls.sealed());
        self.has_part = !sealed.is_empty();
        let least = if has_stream_room { STREAM_ROOM } else { BASE_ROOM };
        let room = least.max(sealed.len() + wanted);
        let sealed = with_room(sealed, self.room, room);
        debug_assert!(sealed.capacity() <= room, "what is charged is what is held");
        self.room = room;
        sealed
    }

    /// Takes what a receive has brought, at the end of its buffer.
    pub(super) fn received(&mut self, sealed: BytesMut) {
        *self.tls.sealed() = sealed;
        self.has_part = false;
    }

    /// Returns whether it holds a part of a record, whose rest has not come.
    pub(super) fn has_part(&self) -> bool {
        self.has_part
    }

    /// Returns the memory that it holds beyond what every connection has.
    pub(super) fn held(&self) -> Amount {
        Amount::Room(self.room.saturating_sub(RECORD_ROOM))
    }

    /// Returns whether TLS itself has something to say, such as that keys have changed.
    pub(super) fn has_to_say(&self) -> bool {
        self.tls.has_to_say()
    }

    /// Returns replies as they are sent.
    pub(super) fn seal(&mut self, replies: &Buffers<Bytes>) -> Result<Bytes, rustls::Error> {
        let replies: Vec<_> = replies.iter().map(|piece| &piece[..]).collect();
        self.tls.seal(&replies)
    }

    /// Says to the client that nothing more comes, and why where TLS is broken; if that can be sent
    /// at once.
    pub(super) fn say_end(&mut self, socket: &Fd) {
        self.tls.end();
        // Else it learns that by the socket.
        let _ = send(&**socket, &self.tls.say(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// Returns the units of work that it takes to seal so much.
pub(super) fn work_of_sealing(bytes: usize) -> i32 {
    units(bytes / SEALED_IN_A_UNIT)
}

fn units(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
