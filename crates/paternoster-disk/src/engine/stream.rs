//! What was read, as the bytes one after the other that it is, in whichever buffers they lie.

use bytes::Bytes;

use super::command::Payload;
use crate::ring::Buffers;

/// What was read, to be taken from its beginning on. Nothing is copied.
#[derive(Debug)]
pub(super) struct Stream {
    /// Those that are taken are empty.
    buffers: Payload,
    /// The first that may not be.
    at: usize,
}

impl Stream {
    pub(super) fn new(read: Payload) -> Self {
        Self { buffers: read, at: 0 }
    }

    /// Whether there was nothing, or all was taken at once.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.buffers.is_empty()
    }

    /// Takes so many bytes, or as many as there are, in buffers of which none is empty.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Payload {
        // As of a request of one piece.
        if let [one] = &self.buffers[..]
            && one.len() == len
        {
            return std::mem::take(&mut self.buffers);
        }
        self.take_part(len)
    }

    /// Skips so many bytes, if there are any.
    #[inline]
    pub(super) fn skip(&mut self, len: usize) {
        if len > 0 {
            self.take_part(len);
        }
    }

    fn take_part(&mut self, len: usize) -> Payload {
        let mut taken = Payload::new();
        let mut left = len;
        while left > 0
            && let Some(first) = self.buffers.get_mut(self.at)
        {
            let part = first.split_to(left.min(first.len()));
            left -= part.len();
            self.at += usize::from(first.is_empty());
            if !part.is_empty() {
                taken.push(part);
            }
        }
        taken
    }
}

/// What the pieces of a command have read.
#[derive(Debug, Default)]
pub(super) struct ReadByPieces {
    first: Payload,
    others: Vec<Payload>,
}

impl ReadByPieces {
    /// Adds what the piece of that number has read behind what it had before.
    #[inline]
    pub(super) fn add(&mut self, number: u32, more: Payload) {
        if number == 0 && self.first.is_empty() {
            self.first = more;
        } else {
            self.piece(number).extend(more);
        }
    }

    fn piece(&mut self, number: u32) -> &mut Payload {
        let Some(other) = number.checked_sub(1) else { return &mut self.first };
        let at = other as usize;
        if at >= self.others.len() {
            self.others.resize_with(at + 1, Payload::new);
        }
        &mut self.others[at]
    }

    /// All of it, in the order of the pieces.
    pub(super) fn in_order(self) -> Payload {
        if self.others.is_empty() {
            return self.first;
        }
        self.first.into_iter().chain(self.others.into_iter().flatten()).collect()
    }
}

/// Buffers as one: a copy where there are several.
pub(crate) fn in_one(buffers: &Buffers<Bytes>) -> Bytes {
    match &buffers[..] {
        [one] => one.clone(),
        several => several.concat().into(),
    }
}

/// Bytes of what was read.
pub(super) fn len_of(read: &Payload) -> usize {
    read.iter().map(Bytes::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_in_order_wherever_buffers_end() {
        let read = || [&b"abc"[..], b"", b"", b"defg", b"h"].into_iter().map(Bytes::from_static);
        for len in 1..10 {
            let mut stream = Stream::new(read().collect());
            let mut all = Vec::new();
            loop {
                let taken = stream.take(len);
                let expected = len.min(8 - all.len());
                assert_eq!(len_of(&taken), expected, "as many as there are");
                assert!(taken.iter().all(|part| !part.is_empty()), "{taken:?}");
                if taken.is_empty() {
                    break;
                }
                all.extend(taken.concat());
            }
            assert_eq!(all, b"abcdefgh");
        }
        assert!(Stream::new(read().collect()).take(0).is_empty());
        let empty = || Stream::new(Payload::from_elem(Bytes::new(), 1));
        assert!(empty().take(0).concat().is_empty() && empty().take(1).is_empty());
    }

    #[test]
    fn pieces_that_are_done_in_any_order_are_one_after_the_other() {
        let mut read = ReadByPieces::default();
        for (number, bytes) in [(2, "e"), (0, "a"), (1, "c"), (0, "b"), (2, "f"), (1, "d")] {
            read.add(number, Payload::from_elem(Bytes::from(bytes), 1));
        }
        assert_eq!(read.in_order().concat(), b"abcdef");
        let mut one = ReadByPieces::default();
        one.add(0, Payload::from_elem(Bytes::from("a"), 1));
        assert_eq!(one.in_order().concat(), b"a");
    }
}
