//! The transfers that wait to be sent, and which of them may be.
//!
//! ```text
//!   start ─────────────▶ │ waiting, in order of arrival │ ──▶ sent ──answered──▶ done
//!   connection is lost ─▶ in front, in their old order    ◀── lost
//! ```
//!
//! A write that is sent again may be carried out twice, and the second time may be late. So nothing
//! that overlaps it is sent before it is answered, reads included; of two that overlap each other
//! the one that was sent first goes first. Trims and zeroes write too.
//!
//! A request may be what ends the server. What was lost with two connections is sent alone, so that
//! nothing else is lost with it, and fails when it has been sent again too often.

use std::collections::VecDeque;
use std::ops::Range;

use paternoster::Instant;

use crate::engine::{Transfer, TransferId};

/// Connections with which a request is lost before it is sent alone.
const SUSPECT: u32 = 2;

/// A transfer that is to be answered by the server.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: TransferId,
    pub(super) transfer: Transfer,
    /// Connections on which it was sent and that were lost before it was answered.
    pub(super) losses: u32,
    /// When it was lost first, or refused by a server that was shutting down.
    pub(super) waits_since: Option<Instant>,
}

impl Pending {
    pub(super) fn new(id: TransferId, transfer: Transfer) -> Self {
        Self { id, transfer, losses: 0, waits_since: None }
    }

    /// Whether it is sent alone: it may be what ends the server.
    pub(super) fn is_suspect(&self) -> bool {
        self.losses >= SUSPECT
    }

    /// The bytes that it reads or writes: none of a sync.
    pub(super) fn bytes(&self) -> Range<u64> {
        let start = match self.transfer {
            Transfer::Read { offset, .. }
            | Transfer::ReadInto { offset, .. }
            | Transfer::Cache { offset, .. }
            | Transfer::Write { offset, .. }
            | Transfer::Trim { offset, .. }
            | Transfer::Zero { offset, .. } => offset,
            Transfer::Sync { .. } => 0,
        };
        start..start + self.transfer.len()
    }

    /// Whether it changes what is stored.
    pub(super) fn writes(&self) -> bool {
        matches!(
            self.transfer,
            Transfer::Write { .. } | Transfer::Trim { .. } | Transfer::Zero { .. }
        )
    }

    /// Whether others wait for its answer: it may be carried out twice.
    fn holds_others(&self) -> bool {
        self.losses > 0 && self.writes()
    }
}

/// The transfers that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Pending>,
    /// Writes that were sent again and are not answered, by the names of their requests.
    held: Vec<(u64, Range<u64>)>,
    /// The request that is sent alone and not answered, by its name.
    alone: Option<u64>,
}

impl Queue {
    pub(super) fn push(&mut self, pending: Pending) {
        self.waiting.push_back(pending);
    }

    /// Puts those back in front that were sent and are not answered, in this order.
    pub(super) fn put_back(&mut self, pending: impl DoubleEndedIterator<Item = Pending>) {
        for pending in pending.rev() {
            self.waiting.push_front(pending);
        }
    }

    /// Takes the next one that may be sent; `is_busy` says whether the server has others.
    pub(super) fn next(&mut self, is_busy: bool) -> Option<Pending> {
        let is_alone = self.waiting.front().is_some_and(Pending::is_suspect);
        if self.alone.is_some() || is_alone && is_busy {
            return None;
        }
        let mut held: Vec<Range<u64>> = self.held.iter().map(|(_, bytes)| bytes.clone()).collect();
        for index in 0..self.waiting.len() {
            let pending = &self.waiting[index];
            let bytes = pending.bytes();
            if !held.iter().any(|held| overlap(held, &bytes)) {
                return self.waiting.remove(index);
            }
            if pending.holds_others() {
                held.push(bytes);
            }
        }
        None
    }

    /// Notes that it is sent under this name.
    pub(super) fn handle_sent(&mut self, cookie: u64, pending: &Pending) {
        if pending.is_suspect() {
            self.alone = Some(cookie);
        }
        if pending.holds_others() {
            self.held.push((cookie, pending.bytes()));
        }
    }

    /// Notes that it is answered, or lost with its connection.
    pub(super) fn handle_end(&mut self, cookie: u64) {
        self.held.retain(|(held, _)| *held != cookie);
        self.alone = self.alone.filter(|&alone| alone != cookie);
    }

    /// Takes all that wait.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Pending> {
        self.waiting.drain(..)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use slotmap::Key as _;

    use super::*;
    use crate::engine::{Parts, SyncRange, VolumeId};
    use crate::ring::Buffers;

    fn pending(transfer: Transfer, is_again: bool) -> Pending {
        let id = TransferId::Sync(VolumeId::null());
        Pending { losses: u32::from(is_again), ..Pending::new(id, transfer) }
    }

    fn write(bytes: Range<u64>, is_again: bool) -> Pending {
        let len = usize::try_from(bytes.end - bytes.start).expect("short");
        let from = Buffers::from_buf([Bytes::from(vec![0; len])]);
        pending(Transfer::Write { offset: bytes.start, from }, is_again)
    }

    fn read(bytes: Range<u64>, is_again: bool) -> Pending {
        let len = u32::try_from(bytes.end - bytes.start).expect("short");
        pending(Transfer::Read { offset: bytes.start, parts: Parts::from_buf([len]) }, is_again)
    }

    /// Sends all that may be sent, under names from `cookie` on: what they cover.
    fn send(queue: &mut Queue, mut cookie: u64) -> Vec<Range<u64>> {
        let mut sent = Vec::new();
        while let Some(pending) = queue.next(!sent.is_empty()) {
            queue.handle_sent(cookie, &pending);
            sent.push(pending.bytes());
            cookie += 1;
        }
        sent
    }

    #[test]
    fn all_are_sent_in_their_order_where_none_is_sent_again() {
        let mut queue = Queue::default();
        queue.push(write(0..10, false));
        queue.push(read(5..8, false));
        queue.push(write(0..10, false));
        assert_eq!(send(&mut queue, 0), [0..10, 5..8, 0..10]);
    }

    #[test]
    fn what_overlaps_a_write_that_is_sent_again_waits_for_its_answer() {
        let mut queue = Queue::default();
        queue.push(write(2..4, false));
        queue.push(read(9..12, false));
        queue.push(read(10..12, false));
        let sync = pending(Transfer::Sync { range: SyncRange::Whole }, false);
        queue.push(sync);
        queue.put_back([write(0..10, true), write(3..5, true), read(0..1, true)].into_iter());
        assert_eq!(send(&mut queue, 0), [0..10, 10..12, 0..0], "and a sync covers no bytes");
        queue.handle_end(0);
        assert_eq!(send(&mut queue, 10), [3..5, 0..1, 9..12], "the first of two goes first");
        queue.handle_end(10);
        let last = send(&mut queue, 20);
        assert_eq!((last.len(), last.first(), queue.len()), (1, Some(&(2..4)), 0));
    }

    #[test]
    fn reads_that_are_sent_again_hold_nobody() {
        let mut queue = Queue::default();
        queue.push(write(0..4, false));
        queue.put_back([read(0..4, true)].into_iter());
        assert_eq!(send(&mut queue, 0), [0..4, 0..4]);
    }

    #[test]
    fn what_was_lost_with_two_connections_is_sent_alone() {
        let mut queue = Queue::default();
        queue.push(read(8..9, false));
        let suspect = |bytes| Pending { losses: 2, ..read(bytes, true) };
        queue.put_back([suspect(0..1), suspect(1..2), read(2..3, true)].into_iter());
        assert!(queue.next(true).is_none(), "another one is under way");
        assert_eq!(send(&mut queue, 0), vec![0..1; 1]);
        assert_eq!(send(&mut queue, 1), [], "it is not answered");
        queue.handle_end(0);
        assert_eq!(send(&mut queue, 1), vec![1..2; 1]);
        queue.handle_end(1);
        assert_eq!(send(&mut queue, 2), [2..3, 8..9]);
    }
}
