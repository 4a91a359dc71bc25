//! The data of options, taken apart, and replies to options, put together.

use bytes::{Buf, BufMut, BytesMut};

use crate::proto::{MAX_STRING, OPTION_REPLY_HEADER_LEN, OPTION_REPLY_MAGIC, rep};

/// An error reply to an option.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// One of the `rep::ERR_` codes.
    pub(super) reply: u32,
    /// For people.
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(reply: u32, message: impl Into<String>) -> Self {
        Self { reply, message: message.into() }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(rep::ERR_INVALID, message)
    }
}

/// Data of `INFO` and `GO`:
///
/// ```text
/// u32 name length │ name │ u16 requests │ u16 each
/// ```
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InfoRequest {
    /// Name of the export.
    pub(super) name: String,
    /// Wanted kinds of information, `info::` codes or unknown ones.
    pub(super) kinds: Vec<u16>,
}

impl InfoRequest {
    pub(super) fn parse(mut data: &[u8]) -> Result<Self, Refusal> {
        let name = take_string(&mut data, "export name")?;
        let count = data.try_get_u16().map_err(|_| cut_short("number of requests"))?;
        if data.len() != usize::from(count) * 2 {
            let left = data.len();
            return Err(Refusal::invalid(format!("{count} requests announced in {left} bytes")));
        }
        let kinds = data.chunks_exact(2).map(|kind| u16::from_be_bytes([kind[0], kind[1]]));
        Ok(Self { name, kinds: kinds.collect() })
    }
}

/// Data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`:
///
/// ```text
/// u32 name length │ name │ u32 queries │ each: u32 length │ query
/// ```
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MetaContextRequest {
    /// Name of the export.
    pub(super) name: String,
    /// Contexts asked for; none means all when listing and none when selecting.
    pub(super) queries: Vec<String>,
}

impl MetaContextRequest {
    pub(super) fn parse(mut data: &[u8]) -> Result<Self, Refusal> {
        let name = take_string(&mut data, "export name")?;
        let count = data.try_get_u32().map_err(|_| cut_short("number of queries"))?;
        let mut queries = Vec::new();
        for _ in 0..count {
            queries.push(take_string(&mut data, "query")?);
        }
        if !data.is_empty() {
            let left = data.len();
            return Err(Refusal::invalid(format!("{left} bytes follow the last of the queries")));
        }
        Ok(Self { name, queries })
    }
}

/// Takes a string and its length from the front of `data`.
fn take_string(data: &mut &[u8], what: &str) -> Result<String, Refusal> {
    let len = data.try_get_u32().map_err(|_| cut_short(what))?;
    let len = usize::try_from(len).expect("a u32 fits in memory sizes");
    if len > MAX_STRING {
        let message = format!("{what} of {len} bytes, at most {MAX_STRING} are allowed");
        return Err(Refusal::new(rep::ERR_TOO_BIG, message));
    }
    let (text, rest) = data.split_at_checked(len).ok_or_else(|| cut_short(what))?;
    *data = rest;
    let text = str::from_utf8(text).map_err(|_| Refusal::invalid(format!("{what} is not UTF-8")));
    text.map(str::to_owned)
}

fn cut_short(what: &str) -> Refusal {
    Refusal::invalid(format!("option data ends within its {what}"))
}

/// Appends a reply to `option` whose data is `parts` one after the other.
pub(super) fn put_reply(output: &mut BytesMut, option: u32, reply: u32, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    output.reserve(OPTION_REPLY_HEADER_LEN + len);
    output.put_u64(OPTION_REPLY_MAGIC);
    output.put_u32(option);
    output.put_u32(reply);
    output.put_u32(u32::try_from(len).expect("replies are made of a few bounded strings"));
    for part in parts {
        output.put_slice(part);
    }
}

/// `text`, cut to what the protocol allows for a string.
pub(super) fn clipped(text: &str) -> &str {
    let mut end = text.len().min(MAX_STRING);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
