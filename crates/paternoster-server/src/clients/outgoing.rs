//! The bytes that wait to be sent to a client.
//!
//! ```text
//!   reply, short data ──▶ tail ──flush──▶ pieces ──▶ one send at a time ──▶ socket
//!   long data ────────────────────────────▲
//! ```
//!
//! Short things share a buffer: what is held for a reply of 17 bytes is 17 bytes.

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};
use paternoster_disk::{Buffers, Payload};
use rustix::io::Errno;

use super::credit::{Amount, SMALL_DATA};

/// Data of a read up to which it is copied behind its header: less than a piece of its own costs.
const SHORT: usize = 512;

/// Bytes of a buffer for replies that is kept.
const KEPT: usize = 4096;

/// Pieces sent by one operation: `IOV_MAX`.
const SEND_PIECES: usize = 1024;

/// Bytes after which one operation takes no further piece. It completes when all of them have gone:
/// that is how a client that reads slowly is distinguished from one that does not.
const SEND_BYTES: usize = 1 << 20;

/// Bytes that a piece holds beside its data.
const PIECE_COST: usize = 128;

/// The bytes that one client is to be sent.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Replies as they are encoded, behind all of `pieces`.
    tail: BytesMut,
    /// The pieces to be sent next.
    pieces: VecDeque<Piece>,
    /// The pieces of the send in flight; empty when there is none.
    sending: Buffers<Piece>,
    /// What `pieces` and `sending` hold of small amounts and of large ones.
    small: usize,
    large: usize,
}

/// Bytes that are sent together.
#[derive(Clone, Debug)]
struct Piece {
    /// What has not been sent of it.
    bytes: Bytes,
    /// Memory that it holds, until all of it is sent.
    held: usize,
    /// Whether they are data of a large command.
    is_large: bool,
}

impl Outgoing {
    /// Returns the buffer in which replies are encoded.
    pub(super) fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// Adds the data of a read behind its header.
    pub(super) fn add_data(&mut self, payload: Payload) {
        let len: usize = payload.iter().map(BytesMut::len).sum();
        if len <= SHORT {
            payload.iter().for_each(|part| self.tail.extend_from_slice(part));
            return;
        }
        self.flush_tail();
        let is_large = len > SMALL_DATA;
        for part in payload {
            self.push(part.freeze(), is_large);
        }
    }

    /// Returns the bytes of the next send; none while one is in flight.
    pub(super) fn next_send(&mut self) -> Option<Buffers<Bytes>> {
        if !self.sending.is_empty() {
            return None;
        }
        self.flush_tail();
        let mut bytes = 0;
        while bytes < SEND_BYTES
            && self.sending.len() < SEND_PIECES
            && let Some(piece) = self.pieces.pop_front()
        {
            bytes += piece.bytes.len();
            self.sending.push(piece);
        }
        let from: Buffers<Bytes> = self.sending.iter().map(|piece| piece.bytes.clone()).collect();
        (!from.is_empty()).then_some(from)
    }

    /// Takes a completed send. Returns how many bytes went, or why none did.
    pub(super) fn sent(&mut self, result: Result<u32, Errno>) -> Result<usize, Errno> {
        let sent = match result {
            Ok(sent) => sent as usize,
            Err(Errno::INTR | Errno::AGAIN) => 0,
            Err(errno) => return Err(errno),
        };
        let mut gone = sent;
        let mut left = Vec::new();
        for mut piece in std::mem::take(&mut self.sending) {
            let part = piece.bytes.len().min(gone);
            gone -= part;
            piece.bytes.advance(part);
            if piece.bytes.is_empty() {
                *self.account(piece.is_large) -= piece.held;
            } else {
                left.push(piece);
            }
        }
        // What was not sent goes back to the front, in order.
        for piece in left.into_iter().rev() {
            self.pieces.push_front(piece);
        }
        if self.is_empty() {
            // Nothing is kept for an idle client.
            self.tail = BytesMut::new();
        }
        Ok(sent)
    }

    /// Forgets everything, as nobody will read it. What is being sent is the ring's.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the memory that it holds, of small amounts and of large ones.
    pub(super) fn held(&self) -> [Amount; 2] {
        [Amount::Small(self.small + self.tail.capacity()), Amount::Large(self.large)]
    }

    /// Returns whether nothing waits to be read by the client.
    pub(super) fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.pieces.is_empty() && self.sending.is_empty()
    }

    /// Copies what is encoded, so that no piece keeps a larger buffer.
    fn flush_tail(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        self.push(Bytes::copy_from_slice(&self.tail), false);
        self.tail.clear();
        if self.tail.capacity() > KEPT {
            self.tail = BytesMut::new();
        }
    }

    fn push(&mut self, bytes: Bytes, is_large: bool) {
        let held = bytes.len() + PIECE_COST;
        *self.account(is_large) += held;
        self.pieces.push_back(Piece { bytes, held, is_large });
    }

    fn account(&mut self, is_large: bool) -> &mut usize {
        if is_large { &mut self.large } else { &mut self.small }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_held(out: &Outgoing) -> usize {
        let [Amount::Small(small), Amount::Large(large)] = out.held() else { panic!("in order") };
        small + large
    }

    fn data(len: usize) -> Payload {
        Payload::from_elem(BytesMut::zeroed(len), 1)
    }

    /// Replies of 17 bytes once held some 300 each.
    #[test]
    fn short_replies_hold_little_more_than_their_bytes() {
        let mut out = Outgoing::default();
        out.tail().extend_from_slice(&[0; 16]);
        out.add_data(data(1));
        let first = out.next_send().expect("there is something");
        assert_eq!(first.concat().len(), 17);
        for _ in 0..10_000 {
            out.tail().extend_from_slice(&[0; 16]);
            out.add_data(data(1));
            assert!(out.next_send().is_none(), "one send at a time");
        }
        let held = bytes_held(&out);
        assert!(held < 2 * 17 * 10_001, "{held} bytes");
        assert!(out.tail.capacity() <= held, "what is charged is what is held");
    }

    #[test]
    fn what_was_not_sent_is_sent_next_in_order() {
        let mut out = Outgoing::default();
        out.tail().extend_from_slice(b"head");
        out.add_data(Payload::from_elem(BytesMut::from(&[7; 5000][..]), 1));
        out.tail().extend_from_slice(b"next");
        let mut all = Vec::new();
        for sent in [1, 4, 3000, 9000] {
            let Some(bytes) = out.next_send().map(|pieces| pieces.concat()) else { break };
            let sent = bytes.len().min(sent);
            all.extend_from_slice(&bytes[..sent]);
            let moved = out.sent(Ok(u32::try_from(sent).expect("small")));
            assert_eq!(moved, Ok(sent));
        }
        assert_eq!(all, [&b"head"[..], &[7; 5000], b"next"].concat());
        assert!(out.is_empty());
        assert_eq!(bytes_held(&out), 0, "nothing is kept");
    }

    /// What is left of it keeps all of it in memory.
    #[test]
    fn data_that_is_sent_in_part_is_charged_in_full() {
        let mut out = Outgoing::default();
        out.add_data(data(1 << 20));
        out.next_send().expect("there is something");
        assert_eq!(out.sent(Ok((1 << 20) - 1)), Ok((1 << 20) - 1));
        assert!(bytes_held(&out) >= 1 << 20);
        out.next_send().expect("there is a byte");
        assert_eq!(out.sent(Ok(1)), Ok(1));
        assert_eq!(bytes_held(&out), 0);
    }

    /// A client that took 32 MiB in more than the stall timeout was closed as one that took none.
    #[test]
    fn one_send_is_short_enough_to_show_progress_by_its_end() {
        let mut out = Outgoing::default();
        (0..5).for_each(|_| out.add_data(data(1 << 19)));
        let mut sends = Vec::new();
        while let Some(pieces) = out.next_send() {
            let len = pieces.iter().map(Bytes::len).sum::<usize>();
            sends.push(len);
            out.sent(Ok(u32::try_from(len).expect("short"))).expect("it went");
        }
        assert_eq!(sends, [1 << 20, 1 << 20, 1 << 19]);
    }

    #[test]
    fn send_that_fails_leaves_nothing_behind() {
        let mut out = Outgoing::default();
        out.add_data(data(10_000));
        out.next_send().expect("there is something");
        out.add_data(data(10_000));
        assert_eq!(out.sent(Err(Errno::PIPE)), Err(Errno::PIPE));
        out.clear();
        assert_eq!((bytes_held(&out), out.is_empty()), (0, true));
    }
}
