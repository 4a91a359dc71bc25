//! What was read, as the bytes one after the other that it is, in whichever buffers they lie.

use bytes::Bytes;
use smallvec::SmallVec;

use super::command::Payload;
use crate::ring::Buffers;

/// What was read, to be taken from its beginning on. Nothing is copied.
#[derive(Debug)]
pub(super) struct Stream {
    /// The rest of the buffer that was taken from last.
    first: Bytes,
    rest: smallvec::IntoIter<[Bytes; 1]>,
}

impl Stream {
    pub(super) fn new(read: Payload) -> Self {
        Self { first: Bytes::new(), rest: read.into_iter() }
    }

    /// Takes so many bytes, or as many as there are, in buffers of which none is empty.
    pub(super) fn take(&mut self, len: usize) -> Payload {
        let mut taken = Payload::new();
        let mut left = len;
        while left > 0 {
            while self.first.is_empty() {
                let Some(next) = self.rest.next() else { return taken };
                self.first = next;
            }
            let part = self.first.split_to(left.min(self.first.len()));
            left -= part.len();
            taken.push(part);
        }
        taken
    }
}

/// What the pieces of a command have read, in their order.
pub(super) fn in_order(mut pieces: SmallVec<[Payload; 1]>) -> Payload {
    match pieces.len() {
        1 => std::mem::take(&mut pieces[0]),
        _ => pieces.into_iter().flatten().collect(),
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
    }
}
