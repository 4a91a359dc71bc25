//! Buffers whose bytes were sent or written, for the reads that come next.
//!
//! ```text
//!   read ──▶ buffer ──▶ reply ──▶ send completes ──▶ spare, if nobody else has it ──▶ next read
//! ```
//!
//! An allocator may give the memory of a big buffer back to the kernel when it is dropped, and the
//! next one is then taken page by page, each of which the kernel clears first; one of a page it
//! joins with its neighbours, to cut them apart again. The one that was given back last is taken
//! first: its bytes are likeliest in the processor's cache. A thread that takes none, as its reads
//! are another's, keeps none.

use std::collections::VecDeque;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// Smaller buffers the allocator itself keeps.
const LEAST: usize = 2 << 10;

/// So many are looked at for one that fits, the last ones: where all have one size, as most loads
/// have it, the first of these does.
const LOOKS: usize = 16;

/// The bytes that are kept at most. More is not in use at once where sends keep up with reads.
const MOST: usize = 8 << 20;

/// Buffers that nobody uses, the one that was given back last at the end.
#[derive(Debug, Default)]
pub(crate) struct SpareBuffers {
    buffers: VecDeque<BytesMut>,
    /// Their capacities together.
    bytes: usize,
    /// Whether one was ever taken.
    are_taken: bool,
}

impl SpareBuffers {
    /// An empty buffer with room for so many bytes: one that is spare, or a new one. Nobody is
    /// charged for what it is too big, so that is a quarter at most.
    pub(crate) fn take(&mut self, len: usize) -> BytesMut {
        self.take_aligned(len, 1)
    }

    /// The same at an address that is a multiple of `align`. To have one there, a new buffer is up
    /// to `align` bytes too big, and a spare one may be.
    pub(crate) fn take_aligned(&mut self, len: usize, align: usize) -> BytesMut {
        self.are_taken = true;
        let most = len + (len / 4).max(align - 1);
        let fits = |buffer: &BytesMut| {
            (len..=most).contains(&buffer.capacity()) && past_alignment(buffer, align) == 0
        };
        let looked_at = self.buffers.len().saturating_sub(LOOKS)..self.buffers.len();
        let spare = looked_at.rev().find(|&at| fits(&self.buffers[at]));
        let Some(mut buffer) = spare.and_then(|at| self.buffers.remove(at)) else {
            return aligned(len, align);
        };
        self.bytes -= buffer.capacity();
        buffer.clear();
        buffer
    }

    /// Keeps the buffer if it is not short and nobody else has it, and drops the oldest ones for it
    /// where there are too many.
    pub(crate) fn give_back(&mut self, buffer: Bytes) {
        if !self.are_taken || buffer.len() < LEAST {
            return;
        }
        let Ok(buffer) = buffer.try_into_mut() else { return };
        if buffer.capacity() > MOST {
            return;
        }
        self.bytes += buffer.capacity();
        self.buffers.push_back(buffer);
        while self.bytes > MOST {
            let oldest = self.buffers.pop_front().expect("they have bytes");
            self.bytes -= oldest.capacity();
        }
    }
}

/// A new buffer for so many bytes at such an address.
pub(crate) fn aligned(len: usize, align: usize) -> BytesMut {
    let mut buffer = BytesMut::with_capacity(len + align - 1);
    let skipped = past_alignment(&buffer, align);
    buffer.put_bytes(0, skipped);
    buffer.advance(skipped);
    buffer
}

/// How many bytes into the buffer the first such address is.
fn past_alignment(buffer: &BytesMut, align: usize) -> usize {
    let address = buffer.as_ptr().addr();
    address.next_multiple_of(align) - address
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    /// Those of a thread that reads.
    fn taken_from() -> SpareBuffers {
        SpareBuffers { are_taken: true, ..SpareBuffers::default() }
    }

    fn sent(len: usize, byte: u8) -> Bytes {
        Bytes::from(vec![byte; len])
    }

    #[test]
    fn buffer_that_was_sent_is_taken_again_and_is_empty() {
        let mut spare = taken_from();
        let buffer = sent(100 * KIB, 7);
        let address = buffer.as_ptr();
        spare.give_back(buffer);
        assert_ne!(spare.take(101 * KIB).as_ptr(), address, "it is too small");
        assert_ne!(spare.take(79 * KIB).as_ptr(), address, "it is more than a quarter too big");
        let taken = spare.take(80 * KIB);
        assert_eq!((taken.as_ptr(), taken.len(), taken.capacity()), (address, 0, 100 * KIB));
        assert_ne!(spare.take(80 * KIB).as_ptr(), address, "there was one");
        assert_eq!(spare.bytes, 0);
    }

    #[test]
    fn buffer_that_somebody_still_reads_is_not_taken() {
        let mut spare = taken_from();
        let buffer = sent(100 * KIB, 7);
        spare.give_back(buffer.slice(..80 * KIB));
        assert_eq!(spare.bytes, 0);
        assert_eq!(buffer[100 * KIB - 1], 7);
        spare.give_back(buffer);
        assert_eq!(spare.bytes, 100 * KIB);
    }

    /// Where it is aligned, a page of it takes up to two.
    #[test]
    fn aligned_page_is_taken_again() {
        let mut spare = taken_from();
        for _ in 0..100 {
            let mut page = spare.take_aligned(4096, 4096);
            page.put_bytes(7, 4096);
            spare.give_back(page.freeze());
        }
        assert_eq!(spare.buffers.len(), 1);
    }

    /// Else many of another size would cost each read a look at all of them.
    #[test]
    fn only_the_last_ones_are_looked_at() {
        for others in [LOOKS - 1, LOOKS] {
            let mut spare = taken_from();
            let buffer = sent(100 * KIB, 7);
            let address = buffer.as_ptr();
            spare.give_back(buffer);
            (0..others).for_each(|_| spare.give_back(sent(4 * KIB, 1)));
            assert_eq!(spare.take(100 * KIB).as_ptr() == address, others < LOOKS);
        }
    }

    /// A thread that only sends kept 8 MiB for nobody.
    #[test]
    fn thread_that_takes_none_keeps_none() {
        let mut spare = SpareBuffers::default();
        spare.give_back(sent(100 * KIB, 7));
        assert_eq!(spare.bytes, 0);
        drop(spare.take(1));
        spare.give_back(sent(100 * KIB, 7));
        assert_eq!(spare.bytes, 100 * KIB);
    }

    #[test]
    fn small_ones_are_not_kept_and_no_more_than_8_mib_of_the_others() {
        let mut spare = taken_from();
        spare.give_back(sent(LEAST - 1, 1));
        spare.give_back(sent(MOST + 1, 1));
        assert_eq!(spare.bytes, 0);
        spare.give_back(sent(MOST / 2, 1));
        (0..4).for_each(|_| spare.give_back(sent(MOST / 4, 2)));
        assert_eq!(spare.bytes, MOST, "the oldest, the biggest one, went");
        assert_eq!(spare.buffers.len(), 4);
    }

    #[test]
    fn buffer_that_is_aligned_is_taken_again_and_another_is_not() {
        let mut spare = taken_from();
        let mut first = spare.take_aligned(64 * KIB, 4096);
        first.put_bytes(7, 64 * KIB);
        let address = first.as_ptr();
        spare.give_back(first.freeze());
        assert_eq!(spare.take_aligned(64 * KIB, 4096).as_ptr(), address);
        let mut odd = spare.take_aligned(64 * KIB + 8, 4096);
        odd.put_bytes(7, 64 * KIB + 8);
        odd.advance(8);
        spare.give_back(odd.freeze());
        assert!(spare.take_aligned(64 * KIB, 4096).as_ptr().addr().is_multiple_of(4096));
    }
}
