//! The transmission phase from the client's side: requests out, replies in, matched by cookie.
//!
//! ```text
//!   encode ──▶ in flight ──chunk, not the last──▶ in flight
//!                  ├──last chunk, or simple reply──▶ Reply
//!                  └──anything else────────────────▶ ReplyError: close
//! ```

use std::collections::HashMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

use super::assembly::Assembly;
use super::quoted::Quoted;
use crate::command::{Command, Extent, Request, Session, StatusQuery};
use crate::header::Header;
use crate::proto::{
    CHUNK_HEADER_LEN, ExtentFlags, MAX_EXTENTS, MAX_PAYLOAD, NbdError, SIMPLE_REPLY_LEN,
    SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk,
};

/// Longest payload of an error chunk.
const MAX_ERROR_LEN: u32 = 64 << 10;

/// The client's side of the transmission phase.
#[derive(Debug)]
pub struct Transmission {
    session: Session,
    /// Requests in flight by their cookie.
    in_flight: HashMap<u64, InFlight>,
    /// `Disconnect` has been sent.
    disconnected: bool,
    /// Bytes missing when `decode` last ran out of input.
    wanted: usize,
}

#[derive(Debug)]
struct InFlight {
    answer: Expected,
    /// The first error that came.
    error: Option<RemoteError>,
}

/// What is to come of a request.
#[derive(Debug)]
enum Expected {
    Done,
    Data(Assembly),
    Extents { query: StatusQuery, extents: Vec<Extent> },
}

/// The server's answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The request's.
    pub cookie: u64,
    /// What came of it.
    pub result: Result<Answer, RemoteError>,
}

/// What a request was answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// The data of a `READ`, all of it.
    Data(Bytes),
    /// The extents from the first byte of a `BLOCK_STATUS` on; they may end before or after its
    /// range does.
    Extents(Vec<Extent>),
}

/// An error the server reports.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{error}: {}", Quoted(message.as_bytes()))]
pub struct RemoteError {
    /// What kind.
    pub error: NbdError,
    /// The server's words, if it had any.
    pub message: String,
}

/// The error of a request that cannot be sent. Whether it is legal otherwise is for the server to
/// say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// A request with this cookie is in flight.
    #[error("cookie {cookie:#x} is in flight already")]
    CookieInFlight {
        /// The cookie.
        cookie: u64,
    },
    /// More data than one request may carry.
    #[error("{len} bytes, at most {MAX_PAYLOAD} are allowed")]
    TooLong {
        /// Bytes.
        len: usize,
    },
    /// The session has no `base:allocation`, so an answer could not be understood.
    #[error("BLOCK_STATUS was not negotiated")]
    NoContext,
    /// Nothing may follow `Disconnect`.
    #[error("the session was ended")]
    Disconnected,
}

/// The error of a reply that a server must not send. Close the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// Neither a simple nor a structured reply, or a structured one that was not negotiated.
    #[error("a reply begins with {found:#010x}")]
    BadMagic {
        /// The four bytes in its place.
        found: u32,
    },
    /// A reply to nothing.
    #[error("a reply to cookie {cookie:#x}, which is not in flight")]
    UnknownCookie {
        /// The cookie.
        cookie: u64,
    },
    /// A simple reply where only a structured one is allowed.
    #[error("a simple reply to cookie {cookie:#x}, which needs a structured one")]
    NotStructured {
        /// The cookie.
        cookie: u64,
    },
    /// A chunk that means nothing, or not here.
    #[error("a chunk of type {kind} and {len} bytes for cookie {cookie:#x}: {why}")]
    BadChunk {
        /// The cookie.
        cookie: u64,
        /// Its type.
        kind: u16,
        /// Bytes of its payload.
        len: u32,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// The header of a chunk, without its magic.
#[derive(Debug, Clone, Copy)]
struct ChunkHeader {
    done: bool,
    kind: u16,
    cookie: u64,
    len: u32,
}

impl ChunkHeader {
    fn parse(bytes: &[u8; CHUNK_HEADER_LEN]) -> Self {
        let mut fields = &bytes[size_of::<u32>()..];
        Self {
            done: fields.get_u16() & chunk::FLAG_DONE != 0,
            kind: fields.get_u16(),
            cookie: fields.get_u64(),
            len: fields.get_u32(),
        }
    }

    fn bad(&self, why: &'static str) -> ReplyError {
        ReplyError::BadChunk { cookie: self.cookie, kind: self.kind, len: self.len, why }
    }
}

impl Transmission {
    /// Begins where the handshake ended.
    pub fn new(session: Session) -> Self {
        let wanted = SIMPLE_REPLY_LEN;
        Self { session, in_flight: HashMap::new(), disconnected: false, wanted }
    }

    /// Returns what the handshake agreed on.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns how many requests are in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Appends a request, with the data of a write, to `output`.
    pub fn encode(&mut self, request: &Request, output: &mut BytesMut) -> Result<(), EncodeError> {
        self.encode_header(request, output)?;
        if let Command::Write { data, .. } = &request.command {
            output.put_slice(data);
        }
        Ok(())
    }

    /// Like [`encode`](Self::encode), without the data: that must follow on the wire.
    pub fn encode_header(
        &mut self,
        request: &Request,
        output: &mut BytesMut,
    ) -> Result<(), EncodeError> {
        let Request { cookie, command } = request;
        if self.disconnected {
            return Err(EncodeError::Disconnected);
        }
        if self.in_flight.contains_key(cookie) {
            return Err(EncodeError::CookieInFlight { cookie: *cookie });
        }
        let header = Header::of(request)?;
        let answer = match *command {
            Command::Read { offset, len, df } => Expected::Data(Assembly::new(offset, len, df)),
            Command::BlockStatus(_) if self.session.allocation_context.is_none() => {
                return Err(EncodeError::NoContext);
            }
            Command::BlockStatus(query) => Expected::Extents { query, extents: Vec::new() },
            _ => Expected::Done,
        };
        output.put_slice(&header.to_bytes());
        if *command == Command::Disconnect {
            self.disconnected = true;
        } else {
            self.in_flight.insert(*cookie, InFlight { answer, error: None });
        }
        Ok(())
    }

    /// Takes the next finished reply from the front of `input`; `None` means that input is missing.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Reply>, ReplyError> {
        loop {
            if input.len() < SIMPLE_REPLY_LEN {
                return Ok(self.wait(input, SIMPLE_REPLY_LEN));
            }
            match (&input[..]).get_u32() {
                SIMPLE_REPLY_MAGIC => return self.decode_simple(input),
                STRUCTURED_REPLY_MAGIC if self.session.structured_replies => {}
                found => return Err(ReplyError::BadMagic { found }),
            }
            let Some(header) = input.first_chunk().map(ChunkHeader::parse) else {
                return Ok(self.wait(input, CHUNK_HEADER_LEN));
            };
            let Some(request) = self.in_flight.get_mut(&header.cookie) else {
                return Err(ReplyError::UnknownCookie { cookie: header.cookie });
            };
            request.check_chunk(&header).map_err(|why| header.bad(why))?;
            let len = usize_of(header.len);
            if input.len() < CHUNK_HEADER_LEN + len {
                return Ok(self.wait(input, CHUNK_HEADER_LEN + len));
            }
            input.advance(CHUNK_HEADER_LEN);
            let payload = input.split_to(len).freeze();
            let context = self.session.allocation_context;
            request.take_chunk(&header, payload, context).map_err(|why| header.bad(why))?;
            if header.done {
                let request = self.in_flight.remove(&header.cookie);
                let request = request.expect("the request was found in flight above");
                let result = request.finish().map_err(|why| header.bad(why))?;
                return Ok(Some(Reply { cookie: header.cookie, result }));
            }
        }
    }

    /// Returns how many bytes must arrive before `decode` can do more than at its last call.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    fn wait(&mut self, input: &BytesMut, whole: usize) -> Option<Reply> {
        self.wanted = whole - input.len();
        None
    }

    /// Takes a simple reply whose header has come.
    fn decode_simple(&mut self, input: &mut BytesMut) -> Result<Option<Reply>, ReplyError> {
        let mut header = &input[size_of::<u32>()..SIMPLE_REPLY_LEN];
        let (code, cookie) = (header.get_u32(), header.get_u64());
        let Some(request) = self.in_flight.get(&cookie) else {
            return Err(ReplyError::UnknownCookie { cookie });
        };
        let len = match &request.answer {
            Expected::Data(_) if self.session.structured_replies => {
                return Err(ReplyError::NotStructured { cookie });
            }
            Expected::Extents { .. } if code == 0 => {
                return Err(ReplyError::NotStructured { cookie });
            }
            Expected::Data(assembly) if code == 0 => Some(usize_of(assembly.len())),
            _ => None,
        };
        let whole = SIMPLE_REPLY_LEN + len.unwrap_or(0);
        if input.len() < whole {
            return Ok(self.wait(input, whole));
        }
        self.in_flight.remove(&cookie);
        input.advance(SIMPLE_REPLY_LEN);
        let result = match len {
            Some(len) => Ok(Answer::Data(input.split_to(len).freeze())),
            None if code == 0 => Ok(Answer::Done),
            None => Err(RemoteError { error: NbdError::from_code(code), message: String::new() }),
        };
        Ok(Some(Reply { cookie, result }))
    }
}

impl InFlight {
    /// Returns whether a chunk of this type and length may come, before its payload is awaited.
    fn check_chunk(&self, header: &ChunkHeader) -> Result<(), &'static str> {
        let len = header.len;
        let fits = match (header.kind, &self.answer) {
            (chunk::NONE, _) if !header.done => return Err("it must be the last"),
            (chunk::NONE, _) => len == 0,
            (chunk::OFFSET_DATA, Expected::Data(assembly)) => len > 8 && len - 8 <= assembly.len(),
            (chunk::OFFSET_HOLE, Expected::Data(_)) => len == 12,
            (chunk::BLOCK_STATUS, Expected::Extents { extents, .. }) => {
                if !extents.is_empty() {
                    return Err("the extents have come already");
                }
                let extents = usize_of(len.saturating_sub(4)) / 8;
                len % 8 == 4 && (1..=MAX_EXTENTS).contains(&extents)
            }
            (kind, _) if kind & chunk::ERROR_BIT != 0 => (6..=MAX_ERROR_LEN).contains(&len),
            _ => return Err("it does not belong to this request"),
        };
        if fits { Ok(()) } else { Err("its length is wrong") }
    }

    fn take_chunk(
        &mut self,
        header: &ChunkHeader,
        mut payload: Bytes,
        context: Option<u32>,
    ) -> Result<(), &'static str> {
        match (header.kind, &mut self.answer) {
            (chunk::OFFSET_DATA, Expected::Data(assembly)) => {
                assembly.add_data(payload.get_u64(), payload)
            }
            (chunk::OFFSET_HOLE, Expected::Data(assembly)) => {
                assembly.add_hole(payload.get_u64(), payload.get_u32())
            }
            (chunk::BLOCK_STATUS, Expected::Extents { query, extents }) => {
                if Some(payload.get_u32()) != context {
                    return Err("its context was not selected");
                }
                *extents = parse_extents(*query, payload)?;
                Ok(())
            }
            (chunk::NONE, _) => Ok(()),
            _ => {
                let error = parse_error(header.kind, payload)?;
                self.error.get_or_insert(error);
                Ok(())
            }
        }
    }

    /// What the request brought, after its last chunk.
    fn finish(self) -> Result<Result<Answer, RemoteError>, &'static str> {
        if let Some(error) = self.error {
            return Ok(Err(error));
        }
        match self.answer {
            Expected::Done => Ok(Ok(Answer::Done)),
            Expected::Data(assembly) => match assembly.finish() {
                Some(data) => Ok(Ok(Answer::Data(data))),
                None => Err("it ends a reply that lacks some of the data"),
            },
            Expected::Extents { extents, .. } if extents.is_empty() => {
                Err("it ends a reply that lacks the extents")
            }
            Expected::Extents { extents, .. } => Ok(Ok(Answer::Extents(extents))),
        }
    }
}

fn parse_extents(query: StatusQuery, mut payload: Bytes) -> Result<Vec<Extent>, &'static str> {
    if query.one && payload.len() != 8 {
        return Err("more than the one extent asked for");
    }
    let mut extents = Vec::with_capacity(payload.len() / 8);
    let mut end = 0u64;
    while payload.has_remaining() {
        if end >= u64::from(query.len) {
            return Err("extents go on after the range asked for");
        }
        let len = payload.get_u32();
        if len == 0 {
            return Err("an extent is empty");
        }
        end += u64::from(len);
        extents.push(Extent { len, flags: ExtentFlags::from_bits_truncate(payload.get_u32()) });
    }
    if query.one && end > u64::from(query.len) {
        return Err("the one extent is longer than the range asked for");
    }
    Ok(extents)
}

fn parse_error(kind: u16, mut payload: Bytes) -> Result<RemoteError, &'static str> {
    let code = payload.get_u32();
    let len = usize::from(payload.get_u16());
    if code == 0 {
        return Err("an error without a number");
    }
    let after = if kind == chunk::ERROR_OFFSET { 8 } else { 0 };
    if payload.len() < len + after {
        return Err("the error's message is longer than the chunk");
    }
    let message = String::from_utf8_lossy(&payload[..len]).into_owned();
    Ok(RemoteError { error: NbdError::from_code(code), message })
}

fn usize_of(bytes: u32) -> usize {
    usize::try_from(bytes).expect("a u32 fits in memory sizes")
}
