//! Replies, as they stand on the wire.
//!
//! ```text
//!   simple      magic u32 │ error u32 │ cookie u64 │ data of a READ
//!   structured  magic u32 │ flags u16 │ type u16 │ cookie u64 │ length u32 │ payload
//! ```
//!
//! With structured replies agreed on, errors and the answers to `READ` and `BLOCK_STATUS` are
//! structured, one chunk each; plain success stays a simple reply, which is shorter.

use bytes::{BufMut, BytesMut};

use super::options::clipped;
use super::transmission::Transmission;
use crate::command::{Extent, StatusQuery};
use crate::proto::{
    CHUNK_HEADER_LEN, ExtentFlags, MAX_EXTENTS, NbdError, SIMPLE_REPLY_LEN, SIMPLE_REPLY_MAGIC,
    STRUCTURED_REPLY_MAGIC, chunk,
};

/// Bytes of the offset that starts a data chunk.
const OFFSET_LEN: u32 = 8;
/// Bytes of the offset and length that make up a hole chunk.
const HOLE_LEN: u32 = 12;
/// Bytes of an error chunk before its message: error and length of the message.
const ERROR_LEN: usize = 6;
/// Bytes of a status chunk before its descriptors: the context's id.
const CONTEXT_LEN: usize = 4;
/// Bytes of a descriptor: length and flags.
const EXTENT_LEN: usize = 8;

impl Transmission {
    /// Says that a request other than `READ` and `BLOCK_STATUS` is done.
    pub fn reply_ok(&self, cookie: u64, output: &mut BytesMut) {
        put_simple(output, 0, cookie);
    }

    /// Says that a request failed. `message` is for people, may be empty, and reaches them if
    /// replies are structured.
    pub fn reply_error(&self, cookie: u64, error: NbdError, message: &str, output: &mut BytesMut) {
        if !self.session.structured_replies {
            put_simple(output, error.code(), cookie);
            return;
        }
        let message = clipped(message);
        put_chunk(output, chunk::ERROR, cookie, wire_len(ERROR_LEN + message.len()));
        output.put_u32(error.code());
        output.put_u16(u16::try_from(message.len()).expect("a message is clipped to 4096 bytes"));
        output.put_slice(message.as_bytes());
    }

    /// Starts the answer to a `READ`: exactly `len` bytes of data must follow on the wire, and
    /// nothing in between. The whole answer is one chunk, so that DF is kept.
    pub fn read_header(&self, cookie: u64, offset: u64, len: u32, output: &mut BytesMut) {
        if !self.session.structured_replies {
            put_simple(output, 0, cookie);
            return;
        }
        put_chunk(output, chunk::OFFSET_DATA, cookie, OFFSET_LEN.saturating_add(len));
        output.put_u64(offset);
    }

    /// Answers a `READ` whose data is all zeroes. Nothing need follow: structured replies say it
    /// in a few bytes, otherwise the zeroes are put into `output`.
    pub fn reply_zeroes(&self, cookie: u64, offset: u64, len: u32, output: &mut BytesMut) {
        if !self.session.structured_replies {
            put_simple(output, 0, cookie);
            output.put_bytes(0, usize::try_from(len).expect("a u32 fits in memory sizes"));
            return;
        }
        put_chunk(output, chunk::OFFSET_HOLE, cookie, HOLE_LEN);
        output.put_u64(offset);
        output.put_u32(len);
    }

    /// Answers a `BLOCK_STATUS` with what is known of its range, from its first byte on.
    ///
    /// `extents` may be more than was asked for: what passes the end of the range is cut off,
    /// neighbours alike are joined, and the answer ends after one extent if that was asked, or
    /// after [`MAX_EXTENTS`]. Without any, the range counts as plain data, which is always true.
    pub fn reply_block_status(
        &self,
        cookie: u64,
        query: StatusQuery,
        extents: &[Extent],
        output: &mut BytesMut,
    ) {
        let Some(context) = self.session.allocation_context else {
            let message = "BLOCK_STATUS was not negotiated for this export";
            return self.reply_error(cookie, NbdError::Invalid, message, output);
        };
        let descriptors = fit(query, extents);
        let len = CONTEXT_LEN + descriptors.len() * EXTENT_LEN;
        put_chunk(output, chunk::BLOCK_STATUS, cookie, wire_len(len));
        output.put_u32(context);
        for extent in descriptors {
            output.put_u32(extent.len);
            output.put_u32(extent.flags.bits());
        }
    }

    /// Answers a `READ` of nothing. A data chunk may not be empty.
    pub(super) fn reply_empty_read(&self, cookie: u64, output: &mut BytesMut) {
        if self.session.structured_replies {
            put_chunk(output, chunk::NONE, cookie, 0);
        } else {
            put_simple(output, 0, cookie);
        }
    }
}

/// The extents of `query`'s range in the form they may be sent.
fn fit(query: StatusQuery, extents: &[Extent]) -> Vec<Extent> {
    let most = if query.one { 1 } else { MAX_EXTENTS };
    let mut left = query.len;
    let mut fitted: Vec<Extent> = Vec::with_capacity(extents.len().clamp(1, most));
    for extent in extents {
        let len = extent.len.min(left);
        if len == 0 {
            continue;
        }
        let full = fitted.len() == most;
        match fitted.last_mut() {
            Some(last) if last.flags == extent.flags => last.len += len,
            _ if full => break,
            _ => fitted.push(Extent { len, flags: extent.flags }),
        }
        left -= len;
    }
    if fitted.is_empty() {
        fitted.push(Extent { len: query.len, flags: ExtentFlags::empty() });
    }
    fitted
}

fn put_simple(output: &mut BytesMut, error: u32, cookie: u64) {
    output.reserve(SIMPLE_REPLY_LEN);
    output.put_u32(SIMPLE_REPLY_MAGIC);
    output.put_u32(error);
    output.put_u64(cookie);
}

/// Appends the header of a reply's only chunk; `len` bytes of payload must follow.
fn put_chunk(output: &mut BytesMut, kind: u16, cookie: u64, len: u32) {
    output.reserve(CHUNK_HEADER_LEN + ERROR_LEN);
    output.put_u32(STRUCTURED_REPLY_MAGIC);
    output.put_u16(chunk::FLAG_DONE);
    output.put_u16(kind);
    output.put_u64(cookie);
    output.put_u32(len);
}

fn wire_len(len: usize) -> u32 {
    u32::try_from(len).expect("messages and descriptors are bounded")
}
