//! The write buffer: a write is done when it has room in it; the dies program what is in it later.

use std::collections::VecDeque;

/// The chunks in the buffer, and who waits for them to be programmed.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    /// Chunks that it holds at most.
    capacity: u32,
    /// Chunks in it.
    used: u32,
    /// Chunks that have come into it since the start.
    accepted: u64,
    /// Those of them that have been programmed.
    programmed: u64,
    /// Writes that wait for room, in their order.
    writes: VecDeque<(u32, u32)>,
    /// What waits for chunks to be programmed: how many since the start, and the tag.
    durable: Vec<(u64, u32)>,
}

impl WriteBuffer {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            capacity: capacity.max(1),
            used: 0,
            accepted: 0,
            programmed: 0,
            writes: VecDeque::new(),
            durable: Vec::new(),
        }
    }

    /// Puts so many chunks of a write into it. Returns whether they had room at once; if not, the
    /// write waits. One that is greater than the buffer has room in an empty one.
    pub(super) fn write(&mut self, tag: u32, chunks: u32) -> bool {
        let enters = self.writes.is_empty() && self.has_room(chunks);
        if enters {
            self.enter(chunks);
        } else {
            self.writes.push_back((tag, chunks));
        }
        enters
    }

    /// Has the command wait until all that is in the buffer, or waits for room in it, has been
    /// programmed. Returns whether that is so at once.
    pub(super) fn sync(&mut self, tag: u32) -> bool {
        let waiting: u64 = self.writes.iter().map(|(_, chunks)| u64::from(*chunks)).sum();
        let until = self.accepted + waiting;
        if until == self.programmed {
            return true;
        }
        self.durable.push((until, tag));
        false
    }

    /// So many chunks have been programmed.
    pub(super) fn programmed(&mut self, chunks: u32) {
        self.used -= chunks;
        self.programmed += u64::from(chunks);
    }

    /// Takes a write that has room now, with its chunks.
    pub(super) fn take_write(&mut self) -> Option<(u32, u32)> {
        let &(tag, chunks) = self.writes.front()?;
        if !self.has_room(chunks) {
            return None;
        }
        self.writes.pop_front();
        self.enter(chunks);
        Some((tag, chunks))
    }

    /// Takes the tag of a command whose wait for chunks to be programmed is over.
    pub(super) fn take_durable(&mut self) -> Option<u32> {
        let index = self.durable.iter().position(|(until, _)| *until <= self.programmed)?;
        Some(self.durable.remove(index).1)
    }

    fn has_room(&self, chunks: u32) -> bool {
        self.used == 0 || self.used + chunks <= self.capacity
    }

    fn enter(&mut self, chunks: u32) {
        self.used += chunks;
        self.accepted += u64::from(chunks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_enter_in_their_order_as_chunks_are_programmed() {
        let mut buffer = WriteBuffer::new(4);
        assert!(buffer.write(1, 3));
        assert!(!buffer.write(2, 2), "one chunk has room");
        assert!(!buffer.write(3, 1), "and it waits behind the other");
        buffer.programmed(1);
        assert_eq!(buffer.take_write(), Some((2, 2)));
        assert_eq!(buffer.take_write(), None);
        buffer.programmed(1);
        assert_eq!(buffer.take_write(), Some((3, 1)));
    }

    #[test]
    fn sync_waits_for_what_came_before_it_and_no_more() {
        let mut buffer = WriteBuffer::new(2);
        assert!(buffer.sync(9), "nothing is in it");
        assert!(buffer.write(1, 2));
        assert!(!buffer.write(2, 1));
        assert!(!buffer.sync(8));
        buffer.programmed(2);
        assert_eq!(buffer.take_write(), Some((2, 1)));
        assert_eq!(buffer.take_durable(), None, "the write that waited counts");
        assert!(buffer.write(3, 1));
        buffer.programmed(1);
        assert_eq!(buffer.take_durable(), Some(8), "the one that came later does not");
    }

    #[test]
    fn write_greater_than_the_buffer_enters_an_empty_one() {
        let mut buffer = WriteBuffer::new(2);
        assert!(buffer.write(1, 5));
        assert!(!buffer.write(2, 1));
        buffer.programmed(4);
        assert_eq!(buffer.take_write(), Some((2, 1)));
    }
}
