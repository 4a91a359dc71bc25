//! A disk in memory. A transfer is done as soon as it is started.

use std::collections::VecDeque;
use std::io;

use bytes::BytesMut;
use paternoster::Instant;

use super::{Backend, Capabilities, Extent, TransferDone};
use crate::engine::{Transfer, TransferId, Transferred};
use crate::ring::{Buffers, Ring};
use crate::token::Token;

/// Requests in flight: enough to have something to do in each round of the owner.
const DEPTH: u32 = 16;

/// Bytes, and what can be done to them.
#[derive(Debug)]
pub(super) struct Memory {
    bytes: Vec<u8>,
}

impl Memory {
    /// Zeroes. Memory is taken as it is written.
    pub(super) fn new(size: usize) -> Self {
        Self { bytes: vec![0; size] }
    }

    pub(super) fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Carries the transfer out. Ranges lie inside the disk.
    pub(super) fn carry_out(&mut self, transfer: Transfer) -> Transferred {
        let moved = transfer.len();
        let mut filled = Buffers::new();
        match transfer {
            Transfer::Read { offset, mut into } => {
                self.read(offset, &mut into);
                filled = into;
            }
            Transfer::Write { offset, from } => {
                let mut at = offset;
                for part in from {
                    self.range(at, part.len() as u64).copy_from_slice(&part);
                    at += part.len() as u64;
                }
            }
            Transfer::Trim { offset, len } | Transfer::Zero { offset, len, .. } => {
                self.range(offset, len).fill(0);
            }
            // What is in memory is read as fast without.
            Transfer::Cache { .. } | Transfer::Sync { .. } => {}
        }
        Transferred { result: Ok(moved), filled }
    }

    fn read(&mut self, offset: u64, into: &mut Buffers<BytesMut>) {
        let mut at = offset;
        for part in into {
            let len = part.len() as u64;
            part.copy_from_slice(self.range(at, len));
            at += len;
        }
    }

    fn range(&mut self, offset: u64, len: u64) -> &mut [u8] {
        let index = |at: u64| usize::try_from(at).expect("the disk is in memory");
        &mut self.bytes[index(offset)..index(offset + len)]
    }
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
        Capabilities { size, rotational: false, fast_zero: true, depth: DEPTH }
    }

    fn start(&mut self, _: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        let transferred = self.memory.carry_out(transfer);
        self.done.push_back((now, TransferDone { id, transferred }));
    }

    fn take_done(&mut self, _now: Instant) -> Option<TransferDone> {
        self.done.pop_front().map(|(_, done)| done)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.done.front().map(|&(started, _)| started)
    }

    fn extents(&self, _offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len, hole: false }])
    }
}
