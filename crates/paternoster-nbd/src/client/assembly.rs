//! The data of a `READ`, put together from chunks that come in any order.
//!
//! ```text
//!   asked for   ├────────────────────────┤
//!   chunks             ├──2──┤├──1───┤        may not overlap, nor pass the ends
//!               ├─3(h)─┤              ├─4┤    h: a hole, zeroes
//! ```
//!
//! A single chunk with all of the data is kept as it is, without a copy.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

/// Most separate pieces of one reply, which bounds what their bookkeeping takes up.
const MAX_PIECES: usize = 1 << 16;

/// What has come of one read.
#[derive(Debug)]
pub(super) struct Assembly {
    /// First byte asked for.
    offset: u64,
    /// Bytes asked for.
    len: u32,
    /// At most one chunk may come.
    df: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Nothing,
    /// All of it in one chunk.
    Whole(Bytes),
    /// `covered` maps the start of each run that has come to its end; runs do not touch.
    Pieces {
        data: BytesMut,
        covered: BTreeMap<u32, u32>,
    },
}

impl Assembly {
    pub(super) fn new(offset: u64, len: u32, df: bool) -> Self {
        Self { offset, len, df, content: Content::Nothing }
    }

    /// Bytes asked for, the most that one chunk may carry.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Takes a chunk of data.
    pub(super) fn add_data(&mut self, offset: u64, chunk: Bytes) -> Result<(), &'static str> {
        let len = u32::try_from(chunk.len()).map_err(|_| "more data than was asked for")?;
        let start = self.place(offset, len)?;
        if len == self.len && matches!(self.content, Content::Nothing) {
            self.content = Content::Whole(chunk);
            return Ok(());
        }
        let place = usize_of(start)..usize_of(start + len);
        self.cover(start, start + len)?[place].copy_from_slice(&chunk);
        Ok(())
    }

    /// Takes a chunk of zeroes.
    pub(super) fn add_hole(&mut self, offset: u64, len: u32) -> Result<(), &'static str> {
        let start = self.place(offset, len)?;
        // The buffer is zeroed when it is made, and nothing in it is written twice.
        self.cover(start, start + len).map(|_| ())
    }

    /// The data, if all of it has come.
    pub(super) fn finish(self) -> Option<Bytes> {
        match self.content {
            Content::Whole(data) => Some(data),
            Content::Pieces { data, covered } => {
                (covered.get(&0) == Some(&self.len)).then(|| data.freeze())
            }
            Content::Nothing => (self.len == 0).then(Bytes::new),
        }
    }

    /// Where in the data a chunk belongs.
    fn place(&self, offset: u64, len: u32) -> Result<u32, &'static str> {
        if self.df && !matches!(self.content, Content::Nothing) {
            return Err("a second chunk, though no more than one was asked for");
        }
        if len == 0 {
            return Err("an empty chunk");
        }
        let start = offset.checked_sub(self.offset).and_then(|start| u32::try_from(start).ok());
        match start {
            Some(start) if start.checked_add(len).is_some_and(|end| end <= self.len) => Ok(start),
            _ => Err("a chunk outside the range asked for"),
        }
    }

    /// Notes that `start..end` has come, and returns the buffer.
    fn cover(&mut self, start: u32, end: u32) -> Result<&mut BytesMut, &'static str> {
        if matches!(self.content, Content::Nothing) {
            let data = BytesMut::zeroed(usize_of(self.len));
            self.content = Content::Pieces { data, covered: BTreeMap::new() };
        }
        let Content::Pieces { data, covered } = &mut self.content else {
            return Err("a chunk that overlaps an earlier one");
        };
        let before = covered.range(..end).next_back().map(|(&start, &end)| (start, end));
        if before.is_some_and(|(_, before_end)| before_end > start) {
            return Err("a chunk that overlaps an earlier one");
        }
        let after = covered.remove(&end);
        let first = match before {
            Some((before_start, before_end)) if before_end == start => before_start,
            _ => start,
        };
        covered.insert(first, after.unwrap_or(end));
        if covered.len() > MAX_PIECES {
            return Err("too many separate chunks");
        }
        Ok(data)
    }
}

fn usize_of(bytes: u32) -> usize {
    usize::try_from(bytes).expect("a u32 fits in memory sizes")
}
