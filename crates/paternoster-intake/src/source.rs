//! The bytes of a trace: decompressed where its first bytes say that it is compressed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// How much of a trace its format is found from, in bytes.
pub(crate) const HEAD: usize = 64 << 10;

/// How large a window of zstd may be: 2 to this power, in bytes. It bounds the memory of a reader.
const WINDOW_LOG: u32 = 25;

const GZIP: &[u8] = &[0x1f, 0x8b];
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The bytes of a trace, and its first ones, which are read twice.
pub(crate) struct Source {
    /// At most [`HEAD`] bytes.
    pub(crate) head: Vec<u8>,
    pub(crate) bytes: Box<dyn BufRead + Send>,
}

impl Source {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::new(File::open(path)?)
    }

    pub(crate) fn new(raw: impl Read + Send + 'static) -> io::Result<Self> {
        let mut raw = BufReader::with_capacity(HEAD, raw);
        let begin = raw.fill_buf()?;
        let mut bytes: Box<dyn Read + Send> = if begin.starts_with(GZIP) {
            Box::new(MultiGzDecoder::new(raw))
        } else if begin.starts_with(ZSTD) {
            let mut decoder = zstd::Decoder::with_buffer(raw)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(decoder)
        } else {
            Box::new(raw)
        };
        let mut head = Vec::new();
        bytes.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        // Some programs mark UTF-8 so.
        if head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let all = Cursor::new(head.clone()).chain(bytes);
        Ok(Self { head, bytes: Box::new(BufReader::with_capacity(HEAD, all)) })
    }
}
