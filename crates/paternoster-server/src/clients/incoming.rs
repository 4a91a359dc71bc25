//! The bytes that were received from a client and are not decoded yet.
//!
//! ```text
//!   idle, one command at a time   room of 4 KiB      not charged: there is one a connection
//!   commands that stream in       room of 64 KiB     if the tenant has credit to spare
//!   a payload that fits neither   room for it alone  when the tenant has credit for it
//! ```
//!
//! Data of a write that has room of its own is not copied; other data is, so that a write of one
//! byte does not hold the buffer that it came in.

use bytes::{Bytes, BytesMut};
use rustix::io::Errno;

use super::credit::Amount;

/// Room that every connection has.
pub(super) const BASE_ROOM: usize = 4 << 10;

/// Room of a connection that streams.
pub(super) const STREAM_ROOM: usize = 64 << 10;

/// The bytes received from one client.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Received and not yet decoded; the ring has it while a receive is in flight.
    buffer: BytesMut,
    /// Bytes of memory that the buffer has.
    room: usize,
    /// Whether the room is for one payload alone.
    for_payload: bool,
    /// Whether a receive is in flight.
    receiving: bool,
    /// Bytes that the last receive brought.
    last: usize,
}

/// The room that the next receive should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Bytes in all.
    bytes: usize,
    for_payload: bool,
}

impl Incoming {
    /// Begins with what came behind the handshake, of whose buffer nothing is kept.
    pub(super) fn new(input: &[u8]) -> Self {
        let room = input.len().max(BASE_ROOM);
        Self { buffer: BytesMut::from(input), room, for_payload: false, receiving: false, last: 0 }
    }

    /// Has the room for `wanted` more bytes, for which there is credit.
    pub(super) fn make_room(&mut self, wanted: usize) {
        let buffer = self.begin_receive(self.least_room(wanted));
        self.received(buffer, Ok(0));
    }

    /// Returns the bytes to decode. The ring has them while a receive is in flight.
    pub(super) fn undecoded(&mut self) -> &mut BytesMut {
        debug_assert!(!self.receiving, "the ring has it");
        &mut self.buffer
    }

    /// Returns the room that the next receive must have for `wanted` more bytes.
    pub(super) fn least_room(&self, wanted: usize) -> Room {
        let whole = self.buffer.len() + wanted;
        match whole {
            0..=BASE_ROOM => Room { bytes: BASE_ROOM, for_payload: false },
            _ if !self.for_payload && whole <= self.room => {
                Room { bytes: self.room, for_payload: false }
            }
            _ => Room { bytes: whole, for_payload: true },
        }
    }

    /// Returns the room that it would have with memory to spare: that of a stream, where more came
    /// than the least room holds.
    pub(super) fn best_room(&self, least: Room) -> Room {
        if self.last >= BASE_ROOM && !least.for_payload {
            Room { bytes: STREAM_ROOM, for_payload: false }
        } else {
            least
        }
    }

    /// Returns the buffer to receive into, of that room.
    pub(super) fn begin_receive(&mut self, room: Room) -> BytesMut {
        let buffer = with_room(std::mem::take(&mut self.buffer), self.room, room.bytes);
        (self.room, self.for_payload) = (room.bytes, room.for_payload);
        self.receiving = true;
        buffer
    }

    /// Takes a completed receive; what it brought is at the end of `buffer`.
    pub(super) fn received(&mut self, buffer: BytesMut, result: Result<u32, Errno>) {
        self.last = result.map_or(0, |bytes| bytes as usize);
        self.buffer = buffer;
        self.receiving = false;
    }

    /// Keeps the buffer to receive into while the ring has another one, for what is sealed.
    pub(super) fn keep(&mut self, buffer: BytesMut) {
        self.buffer = buffer;
    }

    /// Takes note that what is sealed has been received.
    pub(super) fn sealed_received(&mut self) {
        self.receiving = false;
    }

    /// Returns the data of a decoded write in memory of its own.
    pub(super) fn own(&mut self, data: Bytes) -> Bytes {
        if !self.for_payload {
            return Bytes::copy_from_slice(&data);
        }
        // What came behind it, which is short, keeps no part of its buffer.
        self.buffer = BytesMut::from(&self.buffer[..]);
        (self.room, self.for_payload) = (self.buffer.len().max(BASE_ROOM), false);
        data
    }

    /// Forgets what it has: nobody will decode it.
    pub(super) fn clear(&mut self) {
        if !self.receiving {
            *self = Self::new(&[]);
        }
    }

    /// Returns the memory that it holds beyond what every connection has.
    pub(super) fn held(&self) -> Amount {
        amount_of(Room { bytes: self.room, for_payload: self.for_payload })
    }

    /// Returns the memory that it would hold in that room; 0 if that is no more than now.
    pub(super) fn needed_for(&self, room: Room) -> Amount {
        if room.bytes <= self.room {
            return Amount::Small(0);
        }
        amount_of(room)
    }

    /// Returns whether it has room for a payload alone, which is not complete.
    pub(super) fn has_payload_room(&self) -> bool {
        self.for_payload
    }

    pub(super) fn is_receiving(&self) -> bool {
        self.receiving
    }
}

impl Room {
    /// Returns whether it is that of a stream.
    pub(super) fn is_stream(self) -> bool {
        self.bytes == STREAM_ROOM && !self.for_payload
    }
}

/// Returns the buffer with so much room in all, of which it had `room`. In place where it can be:
/// it must not grow by itself, as that doubles it, uncharged.
pub(super) fn with_room(mut buffer: BytesMut, room: usize, bytes: usize) -> BytesMut {
    if bytes == room && buffer.try_reclaim(bytes - buffer.len()) {
        return buffer;
    }
    let mut other = BytesMut::with_capacity(bytes);
    other.extend_from_slice(&buffer);
    other
}

/// Returns the charge for a room: a payload's is its command's soon, that of a stream may stay.
fn amount_of(Room { bytes, for_payload }: Room) -> Amount {
    let beyond = bytes - BASE_ROOM;
    if for_payload { Amount::of_data(beyond, 0) } else { Amount::Room(beyond) }
}

#[cfg(test)]
mod tests {
    use bytes::Buf as _;

    use super::*;

    /// A receive brings that many bytes.
    fn receive(incoming: &mut Incoming, wanted: usize, bytes: usize, spare: bool) -> Room {
        let least = incoming.least_room(wanted);
        let room = if spare { incoming.best_room(least) } else { least };
        let mut buffer = incoming.begin_receive(room);
        assert!(buffer.capacity() >= buffer.len() + wanted, "there is room for it");
        assert!(buffer.capacity() <= room.bytes, "what is charged is what is held");
        let bytes = bytes.min(buffer.capacity() - buffer.len());
        buffer.resize(buffer.len() + bytes, 7);
        incoming.received(buffer, Ok(u32::try_from(bytes).expect("small")));
        room
    }

    #[test]
    fn client_that_streams_has_more_room_if_there_is_memory_to_spare() {
        let mut incoming = Incoming::new(&[]);
        assert_eq!(receive(&mut incoming, 28, 28, true).bytes, BASE_ROOM);
        incoming.undecoded().clear();
        assert_eq!(receive(&mut incoming, 28, 100_000, true).bytes, BASE_ROOM);
        incoming.undecoded().clear();
        assert_eq!(receive(&mut incoming, 28, 100_000, true).bytes, STREAM_ROOM);
        incoming.undecoded().clear();
        assert_eq!(incoming.held(), Amount::Room(STREAM_ROOM - BASE_ROOM));
        assert_eq!(receive(&mut incoming, 28, 28, false).bytes, BASE_ROOM);
        assert_eq!(incoming.held().bytes(), 0);
    }

    /// It grew to twice its room where more than half of it was left.
    #[test]
    fn buffer_with_a_long_rest_keeps_to_its_room() {
        let mut incoming = Incoming::new(&[]);
        receive(&mut incoming, 28, BASE_ROOM, false);
        for taken in [100, 1000, 28, 2000, 1, 500] {
            let input = incoming.undecoded();
            input.advance(taken);
            receive(&mut incoming, 1, taken, false);
        }
        let whole = incoming.undecoded();
        whole.advance(28);
        let data = whole.split_to(1000).freeze();
        drop(incoming.own(data));
        receive(&mut incoming, 1, 28, false);
    }

    /// A write of one byte once held 64 KiB.
    #[test]
    fn data_that_shares_a_buffer_is_copied_out_of_it() {
        let mut incoming = Incoming::new(&[]);
        receive(&mut incoming, 28, 100, true);
        let input = incoming.undecoded();
        let data = input.split_to(1).freeze();
        let address = data.as_ptr();
        assert_ne!(incoming.own(data).as_ptr(), address);
    }

    #[test]
    fn large_payload_has_room_of_its_own_and_takes_it_along() {
        let mut incoming = Incoming::new(&[7; 100]);
        let wanted = (1 << 20) - 100;
        let room = receive(&mut incoming, wanted, 1000, true);
        assert_eq!((room.bytes, room.for_payload), (1 << 20, true));
        assert!(incoming.has_payload_room());
        assert_eq!(receive(&mut incoming, wanted - 1000, wanted, true), room);
        let input = incoming.undecoded();
        let data = input.split_to(1 << 20).freeze();
        let address = data.as_ptr();
        assert_eq!(incoming.own(data).as_ptr(), address, "it is not copied");
        assert_eq!((incoming.held().bytes(), incoming.has_payload_room()), (0, false));
    }
}
