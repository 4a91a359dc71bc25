//! The bytes that wait to be sent to a client.
//!
//! ```text
//!   reply, short data ──▶ tail ──flush──▶ pieces ──▶ one send at a time ──▶ socket
//!   long data ────────────────────────────▲ ◀── what that has not sent
//! ```
//!
//! Short things share a buffer: what is held for a reply of 17 bytes is 17 bytes. Within TLS what
//! is sent next is sealed first, and becomes one piece.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use paternoster_disk::{Buffers, Payload};
use rustix::io::Errno;

use super::ciphered::Ciphered;
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

/// Bytes that are sealed together: few, as a record that has begun to be sent has to be sent whole.
const SEALED_BYTES: usize = 256 << 10;

/// Bytes of a piece of replies that another server has left.
const RESUMED: usize = 64 << 10;

/// Bytes that a piece holds beside its data.
const PIECE_COST: usize = 128;

/// The bytes that one client is to be sent.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Replies as they are encoded, behind all of `pieces`.
    tail: BytesMut,
    /// The pieces to be sent next.
    pieces: VecDeque<Piece>,
    /// What is held for the pieces of the send in flight, which has their bytes; empty when there
    /// is none.
    sending: Vec<Held>,
    /// What `pieces` and `sending` hold of small amounts and of large ones.
    small: usize,
    large: usize,
}

/// Bytes that are sent together.
#[derive(Debug)]
struct Piece {
    /// What has not been sent of it.
    bytes: Bytes,
    held: Held,
}

/// Memory that a piece holds, until all of it is sent.
#[derive(Clone, Copy, Debug)]
struct Held {
    bytes: usize,
    /// Whether it is for data of a large command.
    is_large: bool,
    /// Whether it is sealed, so that it is sent as it is.
    is_sealed: bool,
}

impl Outgoing {
    /// Returns the buffer in which replies are encoded.
    pub(super) fn tail(&mut self) -> &mut BytesMut {
        &mut self.tail
    }

    /// Adds the data of a read behind its header.
    pub(super) fn add_data(&mut self, payload: Payload) {
        let len: usize = payload.iter().map(Bytes::len).sum();
        if len <= SHORT {
            payload.iter().for_each(|part| self.tail.extend_from_slice(part));
            return;
        }
        self.flush_tail();
        let is_large = len > SMALL_DATA;
        for part in payload {
            self.push(part, is_large);
        }
    }

    /// Adds replies that are encoded, in pieces that can be sent and given back one by one.
    pub(super) fn add(&mut self, encoded: &[u8]) {
        self.flush_tail();
        let is_large = encoded.len() > SMALL_DATA;
        for part in encoded.chunks(RESUMED) {
            self.push(Bytes::copy_from_slice(part), is_large);
        }
    }

    /// Returns all that has not been sent; nothing is being sent.
    pub(super) fn unsent(&mut self) -> Vec<Bytes> {
        debug_assert!(self.sending.is_empty(), "the ring has it");
        self.flush_tail();
        self.pieces.iter().map(|piece| piece.bytes.clone()).collect()
    }

    /// Returns the bytes of the next send; none while one is in flight.
    pub(super) fn next_send(&mut self) -> Option<Buffers<Bytes>> {
        if !self.sending.is_empty() {
            return None;
        }
        self.flush_tail();
        let most = self.pieces.len().min(SEND_PIECES);
        let mut from = Buffers::with_capacity(most);
        self.sending.reserve_exact(most);
        let mut bytes = 0;
        while bytes < SEND_BYTES
            && from.len() < SEND_PIECES
            && let Some(piece) = self.pieces.pop_front()
        {
            bytes += piece.bytes.len();
            from.push(piece.bytes);
            self.sending.push(piece.held);
        }
        (!from.is_empty()).then_some(from)
    }

    /// Returns whether a record is being sent, or a part of one has gone.
    pub(super) fn is_within_record(&self) -> bool {
        let is_sealed = |piece: &Piece| piece.held.is_sealed;
        !self.sending.is_empty() || self.pieces.front().is_some_and(is_sealed)
    }

    /// Returns the bytes of the next send, sealed, and how many were sealed for it.
    pub(super) fn next_sealed(
        &mut self,
        tls: &mut Ciphered,
    ) -> Result<Option<(Buffers<Bytes>, usize)>, rustls::Error> {
        if !self.sending.is_empty() {
            return Ok(None);
        }
        let is_sealed = self.pieces.front().is_some_and(|piece| piece.held.is_sealed);
        let plain = if is_sealed { Buffers::new() } else { self.next_to_seal() };
        let len = plain.iter().map(Bytes::len).sum();
        if len > 0 || tls.has_to_say() && !is_sealed {
            let (sealed, is_large) = (tls.seal(&plain)?, len > SMALL_DATA);
            let held = Held { bytes: sealed.len() + PIECE_COST, is_large, is_sealed: true };
            *self.account(is_large) += held.bytes;
            self.pieces.push_front(Piece { bytes: sealed, held });
        }
        Ok(self.pieces.pop_front().map(|Piece { bytes, held }| {
            self.sending.push(held);
            (Buffers::from_buf([bytes]), len)
        }))
    }

    /// Takes what is sealed next. Of a piece of which a part is left all is held.
    fn next_to_seal(&mut self) -> Buffers<Bytes> {
        self.flush_tail();
        let (mut plain, mut left) = (Buffers::new(), SEALED_BYTES);
        while left > 0
            && let Some(piece) = self.pieces.front_mut()
        {
            let part = piece.bytes.split_to(piece.bytes.len().min(left));
            left -= part.len();
            plain.push(part);
            if piece.bytes.is_empty() {
                let Held { bytes, is_large, .. } = piece.held;
                *self.account(is_large) -= bytes;
                self.pieces.pop_front();
            }
        }
        plain
    }

    /// Takes a completed send, with what it has not sent. Returns how many bytes went, or why none
    /// did.
    pub(super) fn sent(
        &mut self,
        result: Result<u32, Errno>,
        unsent: Buffers<Bytes>,
    ) -> Result<usize, Errno> {
        let sent = match result {
            Ok(sent) => sent as usize,
            Err(Errno::INTR | Errno::AGAIN | Errno::CANCELED) => 0,
            Err(errno) => return Err(errno),
        };
        // What was not sent goes back to the front, in order.
        for bytes in unsent.into_iter().rev() {
            // After `clear` nothing is to be sent.
            let Some(held) = self.sending.pop() else { break };
            self.pieces.push_front(Piece { bytes, held });
        }
        for held in std::mem::take(&mut self.sending) {
            *self.account(held.is_large) -= held.bytes;
        }
        if self.is_empty() {
            // Nothing is kept for an idle client.
            self.tail = BytesMut::new();
        }
        Ok(sent)
    }

    /// Forgets everything, as nobody will read it. What is being sent is the ring's until it gives
    /// that back.
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
        let held = Held { bytes: bytes.len() + PIECE_COST, is_large, is_sealed: false };
        *self.account(is_large) += held.bytes;
        self.pieces.push_back(Piece { bytes, held });
    }

    fn account(&mut self, is_large: bool) -> &mut usize {
        if is_large { &mut self.large } else { &mut self.small }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Buf as _;

    use super::*;

    fn bytes_held(out: &Outgoing) -> usize {
        let [Amount::Small(small), Amount::Large(large)] = out.held() else { panic!("in order") };
        small + large
    }

    fn data(len: usize) -> Payload {
        Payload::from_elem(Bytes::from(vec![0; len]), 1)
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

    /// So many bytes of what `next_send` has given go.
    fn send(out: &mut Outgoing, from: Buffers<Bytes>, bytes: usize) -> Result<usize, Errno> {
        let mut gone = bytes;
        let unsent = from.into_iter().filter_map(|mut piece| {
            let part = piece.len().min(gone);
            gone -= part;
            piece.advance(part);
            (!piece.is_empty()).then_some(piece)
        });
        let unsent = unsent.collect();
        out.sent(Ok(u32::try_from(bytes).expect("small")), unsent)
    }

    #[test]
    fn what_was_not_sent_is_sent_next_in_order() {
        let mut out = Outgoing::default();
        out.tail().extend_from_slice(b"head");
        out.add_data(Payload::from_elem(Bytes::from(vec![7; 5000]), 1));
        out.tail().extend_from_slice(b"next");
        let mut all = Vec::new();
        for sent in [1, 4, 3000, 9000] {
            let Some(pieces) = out.next_send() else { break };
            let bytes = pieces.concat();
            let sent = bytes.len().min(sent);
            all.extend_from_slice(&bytes[..sent]);
            assert_eq!(send(&mut out, pieces, sent), Ok(sent));
        }
        assert_eq!(all, [&b"head"[..], &[7; 5000], b"next"].concat());
        assert!(out.is_empty());
        assert_eq!(bytes_held(&out), 0, "nothing is kept");
    }

    /// The header and the first of two parts go, and some of the second.
    #[test]
    fn amounts_are_given_back_for_what_has_gone() {
        let mut out = Outgoing::default();
        out.tail().extend_from_slice(b"head");
        let parts = [vec![7; 40_000], vec![8; 50_000]].map(Bytes::from);
        out.add_data(Payload::from_iter(parts));
        let pieces = out.next_send().expect("there is something");
        let tail = out.tail.capacity();
        let [head, first, second] = [4, 40_000, 50_000].map(|len| len + PIECE_COST);
        assert_eq!(out.held(), [Amount::Small(head + tail), Amount::Large(first + second)]);
        assert_eq!(send(&mut out, pieces, 40_005), Ok(40_005));
        assert_eq!(out.held(), [Amount::Small(tail), Amount::Large(second)]);
        assert!(out.next_send().expect("the rest").concat() == vec![8; 49_999]);
    }

    /// What is left of it keeps all of it in memory.
    #[test]
    fn data_that_is_sent_in_part_is_charged_in_full() {
        let mut out = Outgoing::default();
        out.add_data(data(1 << 20));
        let pieces = out.next_send().expect("there is something");
        assert_eq!(send(&mut out, pieces, (1 << 20) - 1), Ok((1 << 20) - 1));
        assert!(bytes_held(&out) >= 1 << 20);
        let pieces = out.next_send().expect("there is a byte");
        assert_eq!(send(&mut out, pieces, 1), Ok(1));
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
            send(&mut out, pieces, len).expect("it went");
        }
        assert_eq!(sends, [1 << 20, 1 << 20, 1 << 19]);
    }

    #[test]
    fn send_that_fails_leaves_nothing_behind() {
        let mut out = Outgoing::default();
        out.add_data(data(10_000));
        let pieces = out.next_send().expect("there is something");
        out.add_data(data(10_000));
        assert_eq!(out.sent(Err(Errno::PIPE), pieces), Err(Errno::PIPE));
        out.clear();
        assert_eq!((bytes_held(&out), out.is_empty()), (0, true));
    }

    /// A client that is given up may yet have taken a part.
    #[test]
    fn send_that_ends_after_all_was_forgotten_brings_nothing_back() {
        let mut out = Outgoing::default();
        out.add_data(data(10_000));
        let pieces = out.next_send().expect("there is something");
        out.clear();
        assert_eq!(send(&mut out, pieces, 10), Ok(10));
        assert_eq!((bytes_held(&out), out.is_empty()), (0, true));
    }
}
