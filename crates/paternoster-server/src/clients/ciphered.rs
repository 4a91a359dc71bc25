//! TLS between a client's socket and its commands and replies.
//!
//! ```text
//!   socket ──receive──▶ sealed ──open──▶ input ──decode──▶ command      in a visit of the rotation
//!   socket ◀──send── one sealed piece ◀──seal── replies of a round      at its end
//! ```
//!
//! The cipher's work is the tenant's: what is opened counts in the visit that opens it, what is
//! sealed against the next ones.

use bytes::{Bytes, BytesMut};
use paternoster_disk::{Buffers, Fd};
use paternoster_nbd::tls::Tls;
use rustix::net::{SendFlags, send};

use super::credit::Amount;
use super::incoming::{BASE_ROOM, STREAM_ROOM, with_room};

/// Bytes that are opened in a unit of work, and that are sealed in one: 64 KiB take some 41 and 16
/// microseconds.
const OPENED_IN_A_UNIT: usize = 1600;
const SEALED_IN_A_UNIT: usize = 4096;

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
    pub(super) fn new(tls: Box<Tls>) -> Self {
        Self { tls, room: BASE_ROOM, has_part: false }
    }

    /// Opens as much of what has been received as there is room for behind `input`. Returns how
    /// much that was.
    pub(super) fn open(&mut self, input: &mut BytesMut) -> Result<usize, rustls::Error> {
        let room = input.capacity() - input.len();
        self.tls.open(input, room)
    }

    /// Returns whether the client has said that nothing more comes.
    pub(super) fn has_ended(&self) -> bool {
        self.tls.has_ended()
    }

    /// Returns the buffer to receive into; a large one for a client that streams.
    pub(super) fn begin_receive(&mut self, streams: bool) -> BytesMut {
        let wanted = self.tls.wanted();
        let sealed = std::mem::take(self.tls.sealed());
        self.has_part = !sealed.is_empty();
        let whole = sealed.len() + wanted;
        let room = whole.max(if streams { STREAM_ROOM } else { BASE_ROOM });
        let sealed = with_room(sealed, self.room, room);
        self.room = room;
        sealed
    }

    /// Takes what a receive has brought, at the end of its buffer.
    pub(super) fn received(&mut self, sealed: BytesMut) {
        *self.tls.sealed() = sealed;
        self.has_part = false;
    }

    /// Returns whether it holds a part of something that has not all come.
    pub(super) fn has_part(&self) -> bool {
        self.has_part
    }

    /// Returns the memory that it holds beyond what every connection has.
    pub(super) fn held(&self) -> Amount {
        Amount::Room(self.room - BASE_ROOM + self.tls.opened())
    }

    /// Returns whether TLS itself has something to say, such as that keys have changed.
    pub(super) fn has_to_say(&self) -> bool {
        self.tls.has_to_say()
    }

    /// Returns replies as they are sent.
    pub(super) fn seal(&mut self, replies: &Buffers<Bytes>) -> Bytes {
        self.tls.seal(replies.iter().map(|piece| &piece[..]))
    }

    /// Says to the client that nothing more comes, and why where TLS is broken; if that can be sent
    /// at once.
    pub(super) fn say_end(&mut self, socket: &Fd) {
        self.tls.end();
        let end = self.tls.seal([]);
        // Else it learns that by the socket.
        let _ = send(&**socket, &end, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// Returns the units of work that it takes to open so much.
pub(super) fn work_of_opening(bytes: usize) -> i32 {
    units(bytes / OPENED_IN_A_UNIT)
}

/// Returns the units of work that it takes to seal so much.
pub(super) fn work_of_sealing(bytes: usize) -> i32 {
    units(bytes / SEALED_IN_A_UNIT)
}

fn units(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
