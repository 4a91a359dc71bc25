//! A disk in memory. A transfer is done as soon as it is started.
//!
//! Its bytes lie in chunks, and a read that covers all of a chunk moves none of them: the reply
//! holds the chunk itself. Until the reply has been sent, a write goes to a copy, which takes the
//! chunk's place.
//!
//! ```text
//!   chunks    │ 32 KiB │ absent │ 32 KiB │ 32 KiB │    absent: it reads as zeroes
//!   read           ├────────────────────────┤
//!   reply          copy │ zeroes │ shared │ copy
//!   zero      ├─────────────────┤                      drops what is whole, fills the ends
//! ```
//!
//! Less than a chunk is copied, as a short reply would keep all of its chunk in memory. A range
//! that is zeroed or trimmed is not written: else a client that zeroes a gigabyte a second would
//! keep the disk's thread, which others share, busy with filling memory.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use paternoster::Instant;

use super::{Backend, Capabilities, Extent, TransferDone};
use crate::engine::{Payload, Transfer, TransferId, Transferred};
use crate::ring::{Buffers, Ring};
use crate::spare::SpareBuffers;
use crate::token::Token;

/// Requests in flight: enough to have something to do in each round of the owner.
const DEPTH: u32 = 16;

/// Bytes in a chunk. A read of 64 KiB shares all of its bytes where it begins at a multiple of
/// that, and else half of them. With 16 KiB the former are some 5 % slower, with 64 KiB the latter
/// a tenth.
const CHUNK: usize = 32 << 10;

/// Chunks in a shelf: 16 MiB.
const SHELF: usize = 512;

/// What an absent chunk reads as.
static ZEROES: [u8; CHUNK] = [0; CHUNK];

/// Chunks that lie one after the other, each absent until it is written.
type Shelf = Box<[Option<Bytes>; SHELF]>;

/// Bytes, and what can be done to them.
#[derive(Debug)]
pub(super) struct Memory {
    /// The shelves of which a chunk has been written, by their number.
    shelves: BTreeMap<usize, Shelf>,
    /// Bytes of it.
    size: usize,
}

impl Memory {
    /// Zeroes. Memory is taken as it is written.
    pub(super) fn new(size: usize) -> Self {
        Self { shelves: BTreeMap::new(), size }
    }

    pub(super) fn size(&self) -> u64 {
        self.size as u64
    }

    /// It has so many bytes, which are more; the new ones are zeroes.
    pub(super) fn grow(&mut self, size: usize) {
        self.size = size;
    }

    /// Carries the transfer out. Ranges lie inside the disk.
    pub(super) fn carry_out(
        &mut self,
        transfer: Transfer,
        spare: &mut SpareBuffers,
    ) -> Transferred {
        let moved = transfer.len();
        let mut read = Payload::new();
        match transfer {
            Transfer::Read { offset, parts } => read = self.read(index(offset), &parts, spare),
            Transfer::Write { offset, from } => self.write(index(offset), &from),
            Transfer::Trim { offset, len } | Transfer::Zero { offset, len, .. } => {
                self.zero(index(offset)..index(offset + len));
            }
            Transfer::ReadInto { .. } => unreachable!("it offers no reads into a guest"),
            // What is in memory is read as fast without.
            Transfer::Cache { .. } | Transfer::Sync { .. } => {}
        }
        Transferred::new(Ok(moved), read)
    }

    /// The bytes of the parts, of which none keeps more in memory than it has.
    fn read(&self, offset: usize, parts: &[u32], spare: &mut SpareBuffers) -> Payload {
        let mut at = offset;
        let ranges = parts.iter().flat_map(|&part| {
            let begin = at;
            at += part as usize;
            by_chunk(begin..at)
        });
        let each = ranges.map(|(chunk, range)| match self.chunk(chunk) {
            Some(bytes) if range.len() == CHUNK => bytes.clone(),
            Some(bytes) => {
                let mut copy = spare.take(range.len());
                copy.extend_from_slice(&bytes[range]);
                copy.freeze()
            }
            None => Bytes::from_static(&ZEROES[range]),
        });
        each.collect()
    }

    fn write(&mut self, offset: usize, from: &Buffers<Bytes>) {
        let mut at = offset;
        for part in from {
            let mut left = &part[..];
            for (chunk, range) in by_chunk(at..at + part.len()) {
                let (from, rest) = left.split_at(range.len());
                if range.len() == CHUNK {
                    self.replace(chunk, from);
                } else {
                    self.change(chunk, |bytes| bytes[range].copy_from_slice(from));
                }
                left = rest;
            }
            at += part.len();
        }
    }

    fn zero(&mut self, range: Range<usize>) {
        for (chunk, range) in by_chunk(range) {
            if self.chunk(chunk).is_none() {
                continue;
            }
            if range.len() == CHUNK {
                *self.place(chunk) = None;
            } else {
                self.change(chunk, |bytes| bytes[range].fill(0));
            }
        }
    }

    fn chunk(&self, chunk: usize) -> Option<&Bytes> {
        self.shelves.get(&(chunk / SHELF))?[chunk % SHELF].as_ref()
    }

    fn place(&mut self, chunk: usize) -> &mut Option<Bytes> {
        let Self { shelves, .. } = self;
        let empty = || Box::new([const { None }; SHELF]);
        &mut shelves.entry(chunk / SHELF).or_insert_with(empty)[chunk % SHELF]
    }

    /// Changes all bytes of a chunk. What they were need not be copied, nor what is absent zeroed.
    fn replace(&mut self, chunk: usize, from: &[u8]) {
        let place = self.place(chunk);
        let bytes = match place.take().map(Bytes::try_into_mut) {
            Some(Ok(mut bytes)) => {
                bytes.copy_from_slice(from);
                bytes
            }
            Some(Err(_)) | None => BytesMut::from(from),
        };
        *place = Some(bytes.freeze());
    }

    /// Changes the bytes of a chunk, or of a copy of it that takes its place: a reply that has not
    /// been sent must not see that.
    fn change(&mut self, chunk: usize, change: impl FnOnce(&mut [u8])) {
        let place = self.place(chunk);
        let mut bytes = match place.take().map(Bytes::try_into_mut) {
            Some(Ok(bytes)) => bytes,
            Some(Err(shared)) => BytesMut::from(&shared[..]),
            None => BytesMut::zeroed(CHUNK),
        };
        change(&mut bytes);
        *place = Some(bytes.freeze());
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("the disk is in memory")
}

/// Cuts the range where chunks begin: the number of each, and a range of its bytes.
fn by_chunk(range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let Range { start: mut at, end } = range;
    std::iter::from_fn(move || {
        let (chunk, begin) = (at / CHUNK, at % CHUNK);
        let len = (CHUNK - begin).min(end - at);
        at += len;
        (len > 0).then_some((chunk, begin..begin + len))
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

    /// Four chunks and a short one.
    const SIZE: usize = 4 * CHUNK + 100;

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

    fn read(memory: &mut Memory, range: Range<usize>) -> Payload {
        let len = u32::try_from(range.len()).expect("a small disk");
        let read = Transfer::Read { offset: range.start as u64, parts: Parts::from_buf([len]) };
        transfer(memory, read).read
    }

    /// The chunks that are there.
    fn present(memory: &Memory) -> Vec<usize> {
        (0..5).filter(|&chunk| memory.chunk(chunk).is_some()).collect()
    }

    #[test]
    fn zeroed_chunks_are_dropped_and_not_filled() {
        let mut memory = Memory::new(SIZE);
        assert_eq!(present(&memory), [0; 0], "memory is taken as it is written");
        zero(&mut memory, 0..SIZE);
        assert_eq!(present(&memory), [0; 0], "what reads as zeroes is not zeroed");
        write(&mut memory, 0..SIZE, 7);
        zero(&mut memory, 10..SIZE);
        assert_eq!(present(&memory), [0, 4], "the last one is zeroed in part, as it is short");
        let whole = read(&mut memory, 0..SIZE).concat();
        assert!(whole[..10].iter().all(|&byte| byte == 7));
        assert!(whole[10..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn reply_that_holds_chunks_does_not_see_what_is_written_afterwards() {
        let mut memory = Memory::new(SIZE);
        write(&mut memory, 0..SIZE, 7);
        let before = memory.chunk(1).map(|chunk| chunk.as_ptr());
        let held = read(&mut memory, CHUNK..3 * CHUNK);
        assert_eq!(Some(held[0].as_ptr()), before, "it is the chunk itself");
        write(&mut memory, CHUNK + 5..CHUNK + 6, 9);
        zero(&mut memory, 2 * CHUNK..3 * CHUNK);
        assert!(held.concat().iter().all(|&byte| byte == 7));
        let now = read(&mut memory, CHUNK..3 * CHUNK).concat();
        assert_eq!(now[4..7], [7, 9, 7]);
        assert!(now[CHUNK..].iter().all(|&byte| byte == 0));
        drop(held);
        let place = memory.chunk(1).map(|chunk| chunk.as_ptr());
        write(&mut memory, CHUNK..CHUNK + 1, 3);
        assert_eq!(memory.chunk(1).map(|chunk| chunk.as_ptr()), place, "nobody holds it any more");
    }

    /// Else a client that does not read its replies would keep more than it is charged for.
    #[test]
    fn reply_of_less_than_a_chunk_holds_none() {
        let mut memory = Memory::new(SIZE);
        write(&mut memory, 0..SIZE, 7);
        for (range, lens) in [
            (0..CHUNK - 1, vec![CHUNK - 1]),
            (1..CHUNK, vec![CHUNK - 1]),
            (100..CHUNK + 100, vec![CHUNK - 100, 100]),
            (CHUNK - 1..2 * CHUNK + 1, vec![1, CHUNK, 1]),
            (4 * CHUNK..SIZE, vec![100]),
        ] {
            let read = read(&mut memory, range.clone());
            assert_eq!(read.iter().map(Bytes::len).collect::<Vec<_>>(), lens, "{range:?}");
            for part in read {
                assert_eq!(part.is_unique(), part.len() < CHUNK, "{range:?}");
            }
        }
    }

    /// Ranges of all kinds against bytes that are plainly written.
    #[test]
    fn disk_reads_as_plain_bytes_do() {
        let mut memory = Memory::new(SIZE);
        let mut plain = vec![0; SIZE];
        let edges = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7, 4 * CHUNK, SIZE];
        let ranges = || edges.iter().flat_map(|&end| edges.iter().map(move |&begin| begin..end));
        for (step, range) in ranges().chain(ranges().rev()).filter(|it| !it.is_empty()).enumerate()
        {
            let byte = u8::try_from(step % 250 + 1).expect("below 251");
            let before = read(&mut memory, 0..plain.len());
            if step % 3 == 0 {
                write(&mut memory, range.clone(), byte);
                plain[range].fill(byte);
            } else {
                zero(&mut memory, range.clone());
                plain[range].fill(0);
            }
            assert!(read(&mut memory, 0..plain.len()).concat() == plain, "step {step}");
            if step % 2 == 0 {
                drop(before);
            }
            if step % 10 == 9 {
                // Within its last chunk, up to its end, or by chunks.
                let size = plain.len() + [1, CHUNK - 101, 2 * CHUNK][step / 10 % 3];
                memory.grow(size);
                plain.resize(size, 0);
                assert!(read(&mut memory, 0..size).concat() == plain, "it grows at step {step}");
            }
        }
    }

    #[test]
    fn what_is_not_written_takes_no_memory() {
        let mut memory = Memory::new(1);
        memory.grow(usize::MAX);
        write(&mut memory, usize::MAX - CHUNK..usize::MAX, 7);
        assert_eq!(memory.shelves.len(), 1);
        assert!(read(&mut memory, usize::MAX - CHUNK - 1..usize::MAX).concat()[..2] == [0, 7]);
    }
}
