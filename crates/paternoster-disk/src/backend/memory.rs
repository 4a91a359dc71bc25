//! A disk in memory. A transfer is done as soon as it is started.
//!
//! A range that is zeroed or trimmed is not written: its whole pages are marked blank, and a blank
//! page reads as zeroes whatever its bytes are. Else a client that zeroes a gigabyte a second would
//! keep the disk's thread, which others share, busy with filling memory.
//!
//! ```text
//!   zero      ├───────────────────────────────┤
//!   pages   │ bytes │ blank │ blank │ blank │ bytes │     only the ends are filled
//!   write                     ├──┤                    clears the mark, fills the rest of its page
//! ```

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use bytes::{BufMut as _, Bytes, BytesMut};
use paternoster::Instant;

use super::{Backend, Capabilities, Extent, TransferDone};
use crate::engine::{Transfer, TransferId, Transferred};
use crate::ring::{Buffers, Ring};
use crate::spare::SpareBuffers;
use crate::token::Token;

/// Requests in flight: enough to have something to do in each round of the owner.
const DEPTH: u32 = 16;

/// Bytes in a page.
const PAGE: usize = 4096;

/// Bytes, and what can be done to them.
#[derive(Debug)]
pub(super) struct Memory {
    /// Whole pages, with where they begin: one part, and one more for each time that it has grown.
    parts: Vec<(usize, Vec<u8>)>,
    /// Bytes of it.
    size: usize,
    /// Of each page, whether it reads as zeroes whatever its bytes are.
    blank: Vec<bool>,
}

impl Memory {
    /// Zeroes. Memory is taken as it is written.
    pub(super) fn new(size: usize) -> Self {
        let pages = size.div_ceil(PAGE);
        Self { parts: vec![(0, vec![0; pages * PAGE])], size, blank: vec![false; pages] }
    }

    pub(super) fn size(&self) -> u64 {
        self.size as u64
    }

    /// It has so many bytes, which are more; the new ones are zeroes. Nothing is copied.
    pub(super) fn grow(&mut self, size: usize) -> io::Result<()> {
        let pages = size.div_ceil(PAGE);
        let more = pages.saturating_sub(self.blank.len()) * PAGE;
        // Asked for first: what does not fit would end the process.
        Vec::<u8>::new().try_reserve_exact(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // Nobody has written to the rest of its last page.
        if more > 0 {
            self.parts.push((self.blank.len() * PAGE, vec![0; more]));
            self.blank.resize(pages, false);
        }
        self.size = size;
        Ok(())
    }

    /// The bytes of a range of one page.
    fn at(&self, range: Range<usize>) -> &[u8] {
        let (start, bytes) = &self.parts[self.part_of(range.start)];
        &bytes[range.start - start..range.end - start]
    }

    fn at_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        let part = self.part_of(range.start);
        let (start, bytes) = &mut self.parts[part];
        &mut bytes[range.start - *start..range.end - *start]
    }

    fn part_of(&self, at: usize) -> usize {
        self.parts.partition_point(|(start, _)| *start <= at).saturating_sub(1)
    }

    /// Carries the transfer out. Ranges lie inside the disk.
    pub(super) fn carry_out(
        &mut self,
        transfer: Transfer,
        spare: &mut SpareBuffers,
    ) -> Transferred {
        let moved = transfer.len();
        let mut filled = Buffers::new();
        match transfer {
            Transfer::Read { offset, parts } => filled = self.read(index(offset), &parts, spare),
            Transfer::Write { offset, from } => self.write(index(offset), &from),
            Transfer::Trim { offset, len } | Transfer::Zero { offset, len, .. } => {
                self.zero(index(offset)..index(offset + len));
            }
            // What is in memory is read as fast without.
            Transfer::Cache { .. } | Transfer::Sync { .. } => {}
        }
        Transferred::new(Ok(moved), filled)
    }

    fn read(&self, offset: usize, parts: &[u32], spare: &mut SpareBuffers) -> Buffers<BytesMut> {
        let mut at = offset;
        let each = parts.iter().map(|&part| {
            let begin = at;
            at += part as usize;
            self.read_range(begin..at, spare.take(part as usize))
        });
        each.collect()
    }

    fn read_range(&self, range: Range<usize>, mut read: BytesMut) -> BytesMut {
        for range in by_page(range) {
            if self.blank[range.start / PAGE] {
                read.put_bytes(0, range.len());
            } else {
                read.extend_from_slice(self.at(range));
            }
        }
        read
    }

    fn write(&mut self, offset: usize, from: &Buffers<Bytes>) {
        let mut at = offset;
        for part in from {
            for range in by_page(at..at + part.len()) {
                self.make_true(range.start / PAGE);
                let from = &part[range.start - at..range.end - at];
                self.at_mut(range).copy_from_slice(from);
            }
            at += part.len();
        }
    }

    fn zero(&mut self, range: Range<usize>) {
        for range in by_page(range) {
            let page = range.start / PAGE;
            if range == self.page(page) {
                self.blank[page] = true;
            } else if !self.blank[page] {
                self.at_mut(range).fill(0);
            }
        }
    }

    /// Makes the bytes of the page what it reads as.
    fn make_true(&mut self, page: usize) {
        if self.blank[page] {
            let range = self.page(page);
            self.at_mut(range).fill(0);
            self.blank[page] = false;
        }
    }

    /// The bytes of the page; the last may be short.
    fn page(&self, page: usize) -> Range<usize> {
        page * PAGE..self.size.min((page + 1) * PAGE)
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("the disk is in memory")
}

/// Cuts the range where pages begin.
fn by_page(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let begin = at;
        at = range.end.min((begin / PAGE + 1) * PAGE);
        (begin < range.end).then_some(begin..at)
    })
}

/// A disk in memory.
#[derive(Debug)]
pub struct MemoryBackend {
    memory: Memory,
    /// Transfers that are done, each with the moment at which it was started.
    done: VecDeque<(Instant, TransferDone)>,
}

impl MemoryBackend {
    /// Makes a disk of `size` bytes, all of them zero.
    pub fn new(size: usize) -> Self {
        Self { memory: Memory::new(size), done: VecDeque::new() }
    }
}

impl Backend for MemoryBackend {
    fn capabilities(&self) -> Capabilities {
        let size = self.memory.size();
        Capabilities::new(size, DEPTH)
    }

    fn start(&mut self, ring: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        let transferred = self.memory.carry_out(transfer, ring.spare());
        self.done.push_back((now, TransferDone { id, transferred }));
    }

    fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        // What is started while the owner goes through these waits for its next round.
        self.poll_timeout().filter(|started| *started <= now)?;
        self.done.pop_front().map(|(_, done)| done)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.done.front().map(|&(started, _)| started)
    }

    fn takes_time(&self) -> bool {
        false
    }

    fn extents(&self, _offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len, hole: false }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Parts;

    /// Four pages and a short one.
    const SIZE: usize = 4 * PAGE + 100;

    fn transfer(memory: &mut Memory, transfer: Transfer) -> Transferred {
        let len = transfer.len();
        let transferred = memory.carry_out(transfer, &mut SpareBuffers::default());
        assert_eq!(transferred.result, Ok(len));
        transferred
    }

    fn write(memory: &mut Memory, range: Range<usize>, byte: u8) {
        let from = Buffers::from_buf([Bytes::from(vec![byte; range.len()])]);
        transfer(memory, Transfer::Write { offset: range.start as u64, from });
    }

    fn zero(memory: &mut Memory, range: Range<usize>) {
        let (offset, len) = (range.start as u64, range.len() as u64);
        transfer(memory, Transfer::Zero { offset, len, allocate: false });
    }

    fn read(memory: &mut Memory, range: Range<usize>) -> Vec<u8> {
        let len = u32::try_from(range.len()).expect("a small disk");
        let read = Transfer::Read { offset: range.start as u64, parts: Parts::from_buf([len]) };
        let read = transfer(memory, read);
        read.filled[0].to_vec()
    }

    #[test]
    fn zeroed_pages_are_marked_and_not_filled() {
        let mut memory = Memory::new(SIZE);
        write(&mut memory, 0..SIZE, 7);
        zero(&mut memory, 10..SIZE);
        assert_eq!(memory.blank, [false, true, true, true, true], "the last page is short");
        assert_eq!(memory.parts[0].1[PAGE], 7, "a marked page keeps its bytes");
        let whole = read(&mut memory, 0..SIZE);
        assert!(whole[..10].iter().all(|&byte| byte == 7));
        assert!(whole[10..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn write_to_part_of_a_blank_page_leaves_the_rest_of_it_zero() {
        let mut memory = Memory::new(SIZE);
        write(&mut memory, 0..SIZE, 7);
        zero(&mut memory, 0..SIZE);
        write(&mut memory, PAGE + 5..PAGE + 6, 9);
        let page = read(&mut memory, PAGE..2 * PAGE);
        let others = page.iter().filter(|&&byte| byte != 0).collect::<Vec<_>>();
        assert_eq!((page[5], others), (9, vec![&9]));
    }

    /// Ranges of all kinds against bytes that are plainly written.
    #[test]
    fn disk_reads_as_plain_bytes_do() {
        let mut memory = Memory::new(SIZE);
        let mut plain = vec![0; SIZE];
        let edges = [0, 1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 3 * PAGE + 7, 4 * PAGE, SIZE];
        let ranges = || edges.iter().flat_map(|&end| edges.iter().map(move |&begin| begin..end));
        for (step, range) in ranges().chain(ranges().rev()).filter(|it| !it.is_empty()).enumerate()
        {
            let byte = u8::try_from(step % 250 + 1).expect("below 251");
            if step % 3 == 0 {
                write(&mut memory, range.clone(), byte);
                plain[range].fill(byte);
            } else {
                zero(&mut memory, range.clone());
                plain[range].fill(0);
            }
            assert!(read(&mut memory, 0..plain.len()) == plain, "step {step}");
            if step % 10 == 9 {
                // Within its last page, up to its end, or by pages.
                let size = plain.len() + [1, PAGE - 101, 2 * PAGE][step / 10 % 3];
                memory.grow(size).expect("it is small");
                plain.resize(size, 0);
                assert!(read(&mut memory, 0..size) == plain, "it grows at step {step}");
            }
        }
    }

    #[test]
    fn memory_that_there_is_not_is_an_error() {
        let mut memory = Memory::new(SIZE);
        let error = memory.grow(usize::MAX / 4).expect_err("nobody has so much");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(memory.size(), SIZE as u64);
    }
}
