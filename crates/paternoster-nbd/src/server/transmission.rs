//! The transmission phase: requests in, replies out in any order.
//!
//! ```text
//!   Header ──▶ legal? ──yes──▶ request ──▶ Header
//!     ▲          │  └─a write─▶ Payload ──▶ request ──▶ Header
//!     │          no
//!     │          ├─a write──▶ Drain ──▶ error reply ──┐
//!     └──────────┴────────────────▶ error reply ──────┘
//! ```
//!
//! The machine answers illegal requests itself, and those of length zero, so that its caller sees
//! only what there is to do. The payload of a refused write passes through without being stored.

use bytes::{Buf, BytesMut};
use thiserror::Error;

use super::check::{Refusal, Verdict, check};
use crate::command::{Command, Request, Session};
use crate::header::Header;
use crate::proto::{NbdError, REQUEST_LEN, REQUEST_MAGIC, cmd};

/// Requests that `decode` answers itself in one call: a caller with other work to do is not kept
/// from it by a client that sends nothing but rubbish.
const ANSWERS_AT_ONCE: u32 = 16;

/// The server's side of the transmission phase.
#[derive(Debug)]
pub struct Transmission {
    pub(super) session: Session,
    /// What the next bytes are.
    state: State,
    /// Every request is refused.
    shutting_down: bool,
    /// Bytes missing when `decode` last ran out of input.
    wanted: usize,
}

#[derive(Debug)]
enum State {
    /// A request.
    Header,
    /// The payload of a legal write.
    Payload { cookie: u64, offset: u64, len: usize, fua: bool },
    /// The payload of a refused write.
    Drain { cookie: u64, refusal: Refusal, left: usize },
    /// Nothing: the client has disconnected.
    Over,
}

/// What a transmission is in the middle of: with the input that is not decoded, all that another
/// machine needs to go on with the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfinished {
    /// Nothing.
    Nothing,
    /// A write, with this header: it comes before the input.
    Write([u8; REQUEST_LEN]),
    /// A write that is refused.
    Refused(RefusedWrite),
}

/// A refused write whose payload is being drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedWrite {
    /// Its number.
    pub cookie: u64,
    /// What it will be answered.
    pub error: NbdError,
    /// The words for that.
    pub message: String,
    /// Bytes of its payload that are to come.
    pub left: usize,
}

/// The error after which the connection must be closed: where the next request begins is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fatal {
    /// A request does not begin with its magic.
    #[error("a request begins with {found:#010x}, not with {REQUEST_MAGIC:#010x}")]
    BadMagic {
        /// The four bytes in its place.
        found: u32,
    },
}

impl Transmission {
    /// Begins where the handshake ended.
    pub fn new(session: Session) -> Self {
        Self { session, state: State::Header, shutting_down: false, wanted: REQUEST_LEN }
    }

    /// Goes on where another machine has stopped, in the middle of a refused write if it was; what
    /// that has not decoded is the first input.
    pub fn resume(session: Session, refused: Option<RefusedWrite>) -> Self {
        let mut resumed = Self::new(session);
        if let Some(RefusedWrite { cookie, error, message, left }) = refused {
            resumed.state = State::Drain { cookie, refusal: Refusal { error, message }, left };
        }
        resumed
    }

    /// Returns what it is in the middle of.
    pub fn unfinished(&self) -> Unfinished {
        match &self.state {
            State::Header | State::Over => Unfinished::Nothing,
            &State::Payload { cookie, offset, len, fua } => {
                let len = u32::try_from(len).expect("it was one");
                Unfinished::Write(Header::of_write(cookie, offset, len, fua).to_bytes())
            }
            State::Drain { cookie, refusal: Refusal { error, message }, left } => {
                let (cookie, error, message) = (*cookie, *error, message.clone());
                Unfinished::Refused(RefusedWrite { cookie, error, message, left: *left })
            }
        }
    }

    /// Returns what the handshake agreed on.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Takes the next legal request from the front of `input`; answers the others in `output`.
    ///
    /// `None` means that input is missing, that the client has disconnected, or, where
    /// [`has_more`](Self::has_more) says so, that enough was answered for one call. The data of a
    /// write is split off `input`, not copied. An error means: close the connection.
    pub fn decode(
        &mut self,
        input: &mut BytesMut,
        output: &mut BytesMut,
    ) -> Result<Option<Request>, Fatal> {
        for _ in 0..ANSWERS_AT_ONCE {
            match &mut self.state {
                State::Header => {
                    let Some(bytes) = input.first_chunk::<REQUEST_LEN>() else {
                        self.wanted = REQUEST_LEN - input.len();
                        return Ok(None);
                    };
                    let found = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                    if found != REQUEST_MAGIC {
                        return Err(Fatal::BadMagic { found });
                    }
                    let header = Header::parse(bytes);
                    input.advance(REQUEST_LEN);
                    if let Some(request) = self.begin(&header, output) {
                        return Ok(Some(request));
                    }
                }
                State::Payload { cookie, offset, len, fua } => {
                    if input.len() < *len {
                        self.wanted = *len - input.len();
                        return Ok(None);
                    }
                    let data = input.split_to(*len).freeze();
                    let command = Command::Write { offset: *offset, data, fua: *fua };
                    let request = Request { cookie: *cookie, command };
                    self.state = State::Header;
                    return Ok(Some(request));
                }
                State::Drain { cookie, refusal, left } => {
                    let passing = input.len().min(*left);
                    input.advance(passing);
                    *left -= passing;
                    if *left > 0 {
                        self.wanted = REQUEST_LEN.min(*left);
                        return Ok(None);
                    }
                    let (cookie, error) = (*cookie, refusal.error);
                    let message = std::mem::take(&mut refusal.message);
                    self.state = State::Header;
                    self.reply_error(cookie, error, &message, output);
                }
                State::Over => {
                    input.clear();
                    self.wanted = 0;
                    return Ok(None);
                }
            }
        }
        self.wanted = 0;
        Ok(None)
    }

    /// Returns whether `decode` gave none only because it had answered enough: it is to be called
    /// again.
    pub fn has_more(&self) -> bool {
        self.wanted == 0 && !matches!(self.state, State::Over)
    }

    /// How many bytes must arrive, at least, before `decode` can do more than at its last call, and
    /// how much room the input should have for them: all that is missing of a write's payload, but
    /// no more than a header while a refused payload is drained.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// From now on every request is answered with [`NbdError::Shutdown`].
    pub fn begin_shutdown(&mut self) {
        self.shutting_down = true;
    }

    /// What a request's header alone leads to.
    fn begin(&mut self, header: &Header, output: &mut BytesMut) -> Option<Request> {
        let cookie = header.cookie;
        let len = usize::try_from(header.len).expect("a u32 fits in memory sizes");
        match self.judge(header) {
            Ok(Verdict::Run(command)) => {
                if command == Command::Disconnect {
                    self.state = State::Over;
                }
                return Some(Request { cookie, command });
            }
            Ok(Verdict::Payload { offset, fua }) => {
                self.state = State::Payload { cookie, offset, len, fua };
            }
            Ok(Verdict::Nothing) if header.code == cmd::READ => {
                self.reply_empty_read(cookie, output);
            }
            Ok(Verdict::Nothing) => self.reply_ok(cookie, output),
            Err(refusal) if header.code == cmd::WRITE => {
                self.state = State::Drain { cookie, refusal, left: len };
            }
            Err(refusal) => self.reply_error(cookie, refusal.error, &refusal.message, output),
        }
        None
    }

    fn judge(&self, header: &Header) -> Result<Verdict, Refusal> {
        if self.shutting_down && header.code != cmd::DISC {
            let message = "the server is shutting down".to_owned();
            return Err(Refusal { error: NbdError::Shutdown, message });
        }
        check(header, &self.session)
    }
}
