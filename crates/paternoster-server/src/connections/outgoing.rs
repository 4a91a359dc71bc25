//! What a client is to be sent.
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

/// Data of a read up to which it is copied behind its header.
const SHORT: usize = 4096;

/// Pieces sent by one operation: `IOV_MAX`.
const SEND_PIECES: usize = 1024;

/// What a piece holds beside its bytes.
const PIECE_COST: usize = 128;

/// What one client is to be sent.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Replies as they are encoded, behind all of `pieces`.
    tail: BytesMut,
    /// What is to be sent next.
    pieces: VecDeque<Piece>,
    /// What the send under way was given; empty when there is none.
    sending: Buffers<Piece>,
    /// What `pieces` and `sending` hold of small amounts and of large ones.
    small: usize,
    large: usize,
}

/// Bytes that stand together.
#[derive(Clone, Debug)]
struct Piece {
    bytes: Bytes,
    /// Whether they are data of a large command.
    is_large: bool,
}

impl Outgoing {
    /// Where replies are encoded.
    pub(super) fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// The data of a read, behind its header.
    pub(super) fn add_data(&mut self, payload: Payload) {
        let len: usize = payload.iter().map(BytesMut::len).sum();
        if len <= SHORT {
            payload.iter().for_each(|part| self.tail.extend_from_slice(part));
            return;
        }
        self.flush_tail();
        let is_large = len > SMALL_DATA;
        for part in payload {
            self.push(Piece { bytes: part.freeze(), is_large });
        }
    }

    /// What the next send is to be given; none while one is under way.
    pub(super) fn next_send(&mut self) -> Option<Buffers<Bytes>> {
        if !self.sending.is_empty() {
            return None;
        }
        self.flush_tail();
        let count = self.pieces.len().min(SEND_PIECES);
        self.sending = self.pieces.drain(..count).collect();
        let from: Buffers<Bytes> = self.sending.iter().map(|piece| piece.bytes.clone()).collect();
        (!from.is_empty()).then_some(from)
    }

    /// A send has completed: how many bytes went, or why none did.
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
            *self.account(&piece) -= part;
            if piece.bytes.is_empty() {
                *self.account(&piece) -= PIECE_COST;
            } else {
                left.push(piece);
            }
        }
        // What was not sent goes back to the front, in order.
        for piece in left.into_iter().rev() {
            self.pieces.push_front(piece);
        }
        Ok(sent)
    }

    /// Forgets everything, as nobody will read it. What is being sent is the ring's.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Memory that it holds, of small amounts and of large ones.
    pub(super) fn held(&self) -> [Amount; 2] {
        [Amount::Small(self.small + self.tail.capacity()), Amount::Large(self.large)]
    }

    /// Whether nothing waits to be read by the client.
    pub(super) fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.pieces.is_empty() && self.sending.is_empty()
    }

    /// Copies what is encoded, so that no piece keeps a larger buffer.
    fn flush_tail(&mut self) {
        if self.tail.is_empty() {
            return;
        }
        self.push(Piece { bytes: Bytes::copy_from_slice(&self.tail), is_large: false });
        self.tail.clear();
        if self.tail.capacity() > SHORT {
            self.tail = BytesMut::new();
        }
    }

    fn push(&mut self, piece: Piece) {
        *self.account(&piece) += piece.bytes.len() + PIECE_COST;
        self.pieces.push_back(piece);
    }

    fn account(&mut self, piece: &Piece) -> &mut usize {
        if piece.is_large { &mut self.large } else { &mut self.small }
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
        assert!(bytes_held(&out) <= SHORT, "a buffer at most is kept");
    }

    #[test]
    fn a_send_that_fails_leaves_nothing_behind() {
        let mut out = Outgoing::default();
        out.add_data(data(10_000));
        out.next_send().expect("there is something");
        out.add_data(data(10_000));
        assert_eq!(out.sent(Err(Errno::PIPE)), Err(Errno::PIPE));
        out.clear();
        assert_eq!((bytes_held(&out), out.is_empty()), (0, true));
    }
}
