//! Where a log is read from: in pieces, line by line, as often as it is replayed.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// Bytes that can be read at any place, as often as wished.
pub trait ReadAt: fmt::Debug + Send + Sync {
    /// Reads from byte `offset` on. Returns how many bytes were read: none at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, into, offset)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let bytes = (self.len() - start).min(into.len());
        into[..bytes].copy_from_slice(&self[start..start + bytes]);
        Ok(bytes)
    }
}

/// How much is read at once, and how long a line may be, in bytes.
pub(super) const PIECE: usize = 1 << 16;

/// The lines of a source, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    source: Arc<dyn ReadAt>,
    /// Where the next piece starts in the source.
    offset: u64,
    piece: Vec<u8>,
    /// The part of the piece that was read and is not given yet.
    start: usize,
    end: usize,
    /// The number of the last line, from 1.
    number: u32,
}

/// Why there is no line.
#[derive(Debug)]
pub(super) enum NoLine {
    Unreadable(io::Error),
    /// It is longer than a piece.
    Long,
}

impl Lines {
    pub(super) fn new(source: Arc<dyn ReadAt>) -> Self {
        Self { source, offset: 0, piece: vec![0; PIECE], start: 0, end: 0, number: 0 }
    }

    /// The number of the line that was given last.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// How much was read of the source: all of it when there is no line any more.
    pub(super) fn bytes(&self) -> u64 {
        self.offset
    }

    /// The next line without its end; none behind the last one.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, NoLine> {
        self.number = self.number.saturating_add(1);
        // What has been looked through without finding an end.
        let mut known = 0;
        loop {
            let left = &self.piece[self.start..self.end];
            if let Some(length) = left[known..].iter().position(|&byte| byte == b'\n') {
                let line = self.start..self.start + known + length;
                self.start = line.end + 1;
                return Ok(Some(&self.piece[line]));
            }
            known = left.len();
            if self.fill()? == 0 {
                let line = self.start..self.end;
                self.start = self.end;
                return Ok((!line.is_empty()).then(|| &self.piece[line]));
            }
        }
    }

    /// Reads more behind what is left of the piece. Returns how much.
    fn fill(&mut self) -> Result<usize, NoLine> {
        self.piece.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == PIECE {
            return Err(NoLine::Long);
        }
        let read = self.source.read_at(self.offset, &mut self.piece[self.end..]);
        let read = read.map_err(NoLine::Unreadable)?;
        self.end += read;
        self.offset += u64::try_from(read).expect("a length fits");
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Arc::new(bytes.to_vec()));
        let mut all = vec![];
        while let Some(line) = lines.next().expect("a vector is readable") {
            all.push(line.to_vec());
        }
        all
    }

    #[test]
    fn last_line_needs_no_end() {
        assert_eq!(lines(b""), Vec::<Vec<u8>>::new());
        assert_eq!(lines(b"a\n\nb"), [b"a".to_vec(), vec![], b"b".to_vec()]);
        assert_eq!(lines(b"a\nb\n"), [b"a", b"b"]);
    }

    /// Lines of 1 to 999 bytes, some of them at the border of two pieces.
    #[test]
    fn line_may_lie_in_two_pieces() {
        let wanted: Vec<_> = (1..1000).map(|length| vec![b'x'; length]).collect();
        let bytes = wanted.join(&b'\n');
        assert!(bytes.len() > 7 * PIECE);
        assert_eq!(lines(&bytes), wanted);
    }

    #[test]
    fn line_is_not_longer_than_a_piece() {
        let mut lines = Lines::new(Arc::new(vec![b'x'; PIECE + 1]));
        assert!(matches!(lines.next(), Err(NoLine::Long)));
    }
}
