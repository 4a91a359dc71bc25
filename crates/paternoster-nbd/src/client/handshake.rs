//! The option phase from the client's side: the target, and what to negotiate on the way to it.
//!
//! ```text
//!   greeting ──▶ STRUCTURED_REPLY ──▶ SET_META_CONTEXT ──▶ GO ──────▶ Entered
//!                 (if an option)       (if an option)        │ not known there
//!                                                           └▶ EXPORT_NAME ──▶ Entered
//!   greeting ──▶ STRUCTURED_REPLY ──▶ INFO ──▶ ABORT: Described
//!   greeting ──▶ LIST ──▶ ABORT: Listed
//! ```
//!
//! Within TLS the greeting is followed by STARTTLS, and all else comes when TLS has begun.
//!
//! A server that knows neither structured replies nor metadata contexts is used without them.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::error::HandshakeError;
use crate::command::Session;
use crate::export::{BlockSize, ExportInfo};
use crate::proto::{
    BASE_ALLOCATION, ClientFlags, EXPORT_NAME_PADDING, GREETING_LEN, GREETING_MAGIC,
    HandshakeFlags, MAX_OPTION_LEN, MAX_STRING, OLD_MAGIC, OPTION_HEADER_LEN, OPTION_MAGIC,
    OPTION_REPLY_HEADER_LEN, OPTION_REPLY_MAGIC, TransmissionFlags, info, opt, rep,
};

/// Most replies to one option.
const MAX_REPLIES: usize = 1 << 16;
/// Most bytes in the replies to one option.
const MAX_REPLIED: usize = 16 << 20;
/// Bytes of an export's size and flags.
const SIZE_AND_FLAGS_LEN: usize = 10;
/// Bytes of an export's block sizes.
const BLOCK_SIZES_LEN: usize = 12;

/// What a client asks of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// How the handshake is to end.
    pub target: Target,
    /// The kind of replies to ask for.
    pub replies: Replies,
}

/// The kind of replies that a client asks for. A server that does not know them sends simple ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replies {
    /// Simple ones, for which a client asks with nothing.
    Simple,
    /// Structured ones.
    Structured,
    /// Structured ones, and `base:allocation` for block status, which needs them.
    StructuredWithAllocation,
}

/// How a handshake is to end. An empty name means the server's default export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// In the transmission phase with this export.
    Go(String),
    /// In the transmission phase with this export, in the old way that gives no reasons.
    ExportName(String),
    /// With a description of this export.
    Info(String),
    /// With a list of the exports.
    List,
}

/// One line of a server's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What to ask for.
    pub name: String,
    /// A text for people.
    pub description: Option<String>,
}

/// The client's side of the option phase.
#[derive(Debug)]
pub struct Handshake {
    options: ClientOptions,
    /// What the next bytes are.
    state: State,
    /// Both sides leave out the padding after `EXPORT_NAME`.
    no_zeroes: bool,
    /// The server agreed to structured replies.
    structured_replies: bool,
    /// The id the server gave `base:allocation`.
    allocation_context: Option<u32>,
    /// What `GO` or `INFO` said so far.
    export: ExportInfo,
    /// Size and flags are among it.
    described: bool,
    /// What `LIST` said so far.
    listed: Vec<Listed>,
    /// Replies to this option.
    replies: usize,
    /// Bytes in them.
    replied: usize,
    /// Bytes missing when `receive` last ran out of input.
    wanted: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Greeting {
        /// Whether TLS is to be begun.
        wants_tls: bool,
    },
    /// Nothing before TLS: then the first option is sent.
    Tls,
    /// Replies to this option.
    Replies(u32),
    /// Size and flags, without a header.
    ExportName,
    /// Nothing: the handshake has ended.
    Over,
}

/// The result of the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Send the output, then read more.
    NeedMore,
    /// Begin TLS; then call again, to send within it and receive from it.
    StartTls,
    /// Send the output; the transmission phase has begun with what is left of the input.
    Entered(Session),
    /// Send the output, then close: this is the export.
    Described(ExportInfo),
    /// Send the output, then close: these are the exports.
    Listed(Vec<Listed>),
}

/// What one step of the machine came to.
enum Step {
    /// Look at what follows in the input.
    Again,
    /// This many bytes are missing.
    Missing(usize),
    /// TLS is to be begun.
    StartTls,
    /// The handshake has ended.
    End(Progress),
}

/// One reply and what it answers.
struct OptionReply {
    option: u32,
    reply: u32,
    data: Bytes,
}

impl OptionReply {
    fn bad<T>(&self, why: &'static str) -> Result<T, HandshakeError> {
        let (option, reply, len) = (self.option, self.reply, self.data.len());
        Err(HandshakeError::BadReply { option, reply, len, why })
    }

    fn text(&self, bytes: &[u8]) -> Result<String, HandshakeError> {
        if bytes.len() > MAX_STRING {
            return self.bad("a string is longer than 4096 bytes");
        }
        match str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => self.bad("a string is not UTF-8"),
        }
    }
}

impl Handshake {
    /// Makes a handshake that waits for the server's greeting.
    pub fn new(options: ClientOptions) -> Self {
        let name = match &options.target {
            Target::Go(name) | Target::ExportName(name) | Target::Info(name) => name.clone(),
            Target::List => String::new(),
        };
        Self {
            options,
            state: State::Greeting { wants_tls: false },
            no_zeroes: false,
            structured_replies: false,
            allocation_context: None,
            export: ExportInfo {
                name,
                description: None,
                size: 0,
                flags: TransmissionFlags::empty(),
                block_size: BlockSize::default(),
            },
            described: false,
            listed: Vec::new(),
            replies: 0,
            replied: 0,
            wanted: size_of::<u64>(),
        }
    }

    /// Has it begin TLS before it asks for anything.
    #[must_use]
    pub fn within_tls(mut self) -> Self {
        self.state = State::Greeting { wants_tls: true };
        self
    }

    /// Takes what is complete from the front of `input` and appends what to send to `output`.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        output: &mut BytesMut,
    ) -> Result<Progress, HandshakeError> {
        loop {
            let step = match self.state {
                State::Greeting { wants_tls } => self.receive_greeting(wants_tls, input, output),
                State::Tls => Ok(self.send_first(output)),
                State::Replies(option) => self.receive_reply(option, input, output),
                State::ExportName => Ok(self.receive_export_name(input)),
                State::Over => Err(HandshakeError::Over),
            };
            match step {
                Ok(Step::Again) => {}
                Ok(Step::Missing(bytes)) => {
                    self.wanted = bytes;
                    return Ok(Progress::NeedMore);
                }
                Ok(Step::StartTls) if !input.is_empty() => {
                    self.state = State::Over;
                    return Err(HandshakeError::BehindStartTls { len: input.len() });
                }
                Ok(Step::StartTls) => {
                    self.state = State::Tls;
                    return Ok(Progress::StartTls);
                }
                Ok(Step::End(progress)) => {
                    self.state = State::Over;
                    return Ok(progress);
                }
                Err(error) => {
                    self.state = State::Over;
                    return Err(error);
                }
            }
        }
    }

    /// Returns how many bytes must arrive before `receive` can do more than at its last call.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Returns whether the export was asked for in the old way, by `EXPORT_NAME`. A server that
    /// does not have it closes the connection.
    pub fn asks_by_export_name(&self) -> bool {
        matches!(self.state, State::ExportName)
    }

    fn receive_greeting(
        &mut self,
        wants_tls: bool,
        input: &mut BytesMut,
        output: &mut BytesMut,
    ) -> Result<Step, HandshakeError> {
        // What does not begin as NBD does may end soon, and never have as many bytes as a greeting.
        for (at, wanted) in [(0, GREETING_MAGIC), (size_of::<u64>(), OPTION_MAGIC)] {
            let Some(found) = input.get(at..).and_then(|rest| rest.first_chunk()) else {
                return Ok(Step::Missing(at + size_of::<u64>() - input.len()));
            };
            match u64::from_be_bytes(*found) {
                OLD_MAGIC if wanted == OPTION_MAGIC => return Err(HandshakeError::OldHandshake),
                found if found != wanted => return Err(HandshakeError::BadMagic { found, wanted }),
                _ => {}
            }
        }
        if input.len() < GREETING_LEN {
            return Ok(Step::Missing(GREETING_LEN - input.len()));
        }
        input.advance(GREETING_LEN - size_of::<u16>());
        let offered = HandshakeFlags::from_bits_truncate(input.get_u16());
        self.no_zeroes = offered.contains(HandshakeFlags::NO_ZEROES);
        let fixed = offered.contains(HandshakeFlags::FIXED_NEWSTYLE);
        let mut flags = ClientFlags::empty();
        flags.set(ClientFlags::FIXED_NEWSTYLE, fixed);
        flags.set(ClientFlags::NO_ZEROES, self.no_zeroes);
        output.put_u32(flags.bits());
        match self.options.target {
            _ if wants_tls && !fixed => return Err(HandshakeError::NoOptions),
            _ if wants_tls => self.send(opt::STARTTLS, output),
            Target::Info(_) | Target::List if !fixed => return Err(HandshakeError::NoOptions),
            Target::Go(_) | Target::ExportName(_) if !fixed => self.send(opt::EXPORT_NAME, output),
            _ => return Ok(self.send_first(output)),
        }
        Ok(Step::Again)
    }

    /// Asks for the first thing that it wants.
    fn send_first(&mut self, output: &mut BytesMut) -> Step {
        match self.options.target {
            Target::Go(_) | Target::ExportName(_) | Target::Info(_)
                if self.options.replies != Replies::Simple =>
            {
                self.send(opt::STRUCTURED_REPLY, output);
            }
            _ => self.send_target(output),
        }
        Step::Again
    }

    fn receive_reply(
        &mut self,
        sent: u32,
        input: &mut BytesMut,
        output: &mut BytesMut,
    ) -> Result<Step, HandshakeError> {
        if input.len() < OPTION_REPLY_HEADER_LEN {
            return Ok(Step::Missing(OPTION_REPLY_HEADER_LEN - input.len()));
        }
        let mut header = &input[..OPTION_REPLY_HEADER_LEN];
        let (found, option) = (header.get_u64(), header.get_u32());
        let (reply, len) = (header.get_u32(), header.get_u32());
        if found != OPTION_REPLY_MAGIC {
            return Err(HandshakeError::BadMagic { found, wanted: OPTION_REPLY_MAGIC });
        }
        if option != sent {
            return Err(HandshakeError::WrongOption { found: option, sent });
        }
        let len = usize_of(len);
        self.check_amount(option, len)?;
        let whole = OPTION_REPLY_HEADER_LEN + len;
        if input.len() < whole {
            return Ok(Step::Missing(whole - input.len()));
        }
        self.replies += 1;
        self.replied += len;
        input.advance(OPTION_REPLY_HEADER_LEN);
        let data = input.split_to(len).freeze();
        self.handle_reply(&OptionReply { option, reply, data }, output)
    }

    /// One more reply of `len` bytes is not too much.
    fn check_amount(&self, option: u32, len: usize) -> Result<(), HandshakeError> {
        let amounts = [
            (self.replies + 1, MAX_REPLIES, "replies"),
            (len, usize_of(MAX_OPTION_LEN), "bytes at once"),
            (self.replied + len, MAX_REPLIED, "bytes in all"),
        ];
        for (amount, limit, unit) in amounts {
            if amount > limit {
                return Err(HandshakeError::TooMuch { option, limit, unit });
            }
        }
        Ok(())
    }

    fn handle_reply(
        &mut self,
        reply: &OptionReply,
        output: &mut BytesMut,
    ) -> Result<Step, HandshakeError> {
        if reply.reply & rep::ERROR != 0 {
            return self.handle_refusal(reply, output);
        }
        match (reply.option, reply.reply) {
            (opt::STARTTLS, rep::ACK) => return Ok(Step::StartTls),
            (opt::STRUCTURED_REPLY, rep::ACK) => {
                self.structured_replies = true;
                let enters = matches!(self.options.target, Target::Go(_) | Target::ExportName(_));
                if self.options.replies == Replies::StructuredWithAllocation && enters {
                    self.send(opt::SET_META_CONTEXT, output);
                } else {
                    self.send_target(output);
                }
            }
            (opt::SET_META_CONTEXT, rep::META_CONTEXT) => self.note_context(reply)?,
            (opt::SET_META_CONTEXT, rep::ACK) => self.send_target(output),
            (opt::LIST, rep::SERVER) => self.note_listed(reply)?,
            (opt::LIST, rep::ACK) => {
                self.send(opt::ABORT, output);
                return Ok(Step::End(Progress::Listed(std::mem::take(&mut self.listed))));
            }
            (opt::GO | opt::INFO, rep::INFO) => self.note_info(reply)?,
            (opt::GO | opt::INFO, rep::ACK) if !self.described => {
                return reply.bad("size and flags did not come before");
            }
            (opt::GO, rep::ACK) => return Ok(Step::End(Progress::Entered(self.session()))),
            (opt::INFO, rep::ACK) => {
                self.send(opt::ABORT, output);
                return Ok(Step::End(Progress::Described(self.export.clone())));
            }
            _ => return reply.bad("it does not belong to this option"),
        }
        Ok(Step::Again)
    }

    /// Goes on without what is optional; falls back where `GO` is unknown; else gives up.
    fn handle_refusal(
        &mut self,
        reply: &OptionReply,
        output: &mut BytesMut,
    ) -> Result<Step, HandshakeError> {
        match (reply.option, reply.reply) {
            (opt::STRUCTURED_REPLY | opt::SET_META_CONTEXT, code) if code != rep::ERR_SHUTDOWN => {
                self.allocation_context = None;
                self.send_target(output);
                Ok(Step::Again)
            }
            (opt::GO, rep::ERR_UNSUP) => {
                self.send(opt::EXPORT_NAME, output);
                Ok(Step::Again)
            }
            (option, code) => {
                self.send(opt::ABORT, output);
                let message = String::from_utf8_lossy(&reply.data).into_owned();
                Err(HandshakeError::Refused { option, reply: code, message })
            }
        }
    }

    fn note_context(&mut self, reply: &OptionReply) -> Result<(), HandshakeError> {
        let mut data = &reply.data[..];
        match data.try_get_u32() {
            Ok(id) if data == BASE_ALLOCATION.as_bytes() => self.allocation_context = Some(id),
            Ok(_) => {}
            Err(_) => return reply.bad("it has no id"),
        }
        Ok(())
    }

    fn note_listed(&mut self, reply: &OptionReply) -> Result<(), HandshakeError> {
        let mut data = &reply.data[..];
        let len = data.try_get_u32().map(usize_of).ok();
        let Some((name, text)) = len.and_then(|len| data.split_at_checked(len)) else {
            return reply.bad("it ends within the export's name");
        };
        let (name, text) = (reply.text(name)?, reply.text(text)?);
        let description = (!text.is_empty()).then_some(text);
        self.listed.push(Listed { name, description });
        Ok(())
    }

    fn note_info(&mut self, reply: &OptionReply) -> Result<(), HandshakeError> {
        let mut data = &reply.data[..];
        let Ok(kind) = data.try_get_u16() else { return reply.bad("it has no kind") };
        match (kind, data.len()) {
            (info::EXPORT, SIZE_AND_FLAGS_LEN) => {
                self.export.size = data.get_u64();
                self.export.flags = TransmissionFlags::from_bits_truncate(data.get_u16());
                self.described = true;
            }
            (info::NAME, _) => self.export.name = reply.text(data)?,
            (info::DESCRIPTION, _) => self.export.description = Some(reply.text(data)?),
            (info::BLOCK_SIZE, BLOCK_SIZES_LEN) => {
                let (min, preferred, max) = (data.get_u32(), data.get_u32(), data.get_u32());
                if !min.is_power_of_two() || !preferred.is_power_of_two() || max < min {
                    return reply.bad("block sizes are not powers of two in order");
                }
                self.export.block_size = BlockSize { min, preferred, max };
            }
            (info::EXPORT | info::BLOCK_SIZE, _) => return reply.bad("its length is wrong"),
            // Kinds that were not asked for are to be ignored.
            _ => {}
        }
        Ok(())
    }

    fn receive_export_name(&mut self, input: &mut BytesMut) -> Step {
        let padding = if self.no_zeroes { 0 } else { EXPORT_NAME_PADDING };
        let whole = SIZE_AND_FLAGS_LEN + padding;
        if input.len() < whole {
            return Step::Missing(whole - input.len());
        }
        self.export.size = input.get_u64();
        self.export.flags = TransmissionFlags::from_bits_truncate(input.get_u16());
        input.advance(padding);
        Step::End(Progress::Entered(self.session()))
    }

    fn session(&self) -> Session {
        Session {
            export: self.export.clone(),
            structured_replies: self.structured_replies,
            allocation_context: self.allocation_context,
        }
    }

    fn send_target(&mut self, output: &mut BytesMut) {
        let option = match self.options.target {
            Target::Go(_) => opt::GO,
            Target::ExportName(_) => opt::EXPORT_NAME,
            Target::Info(_) => opt::INFO,
            Target::List => opt::LIST,
        };
        self.send(option, output);
    }

    /// Sends an option with the data it takes, and awaits its replies.
    fn send(&mut self, option: u32, output: &mut BytesMut) {
        let name = self.export.name.as_bytes();
        let mut data = BytesMut::new();
        match option {
            opt::EXPORT_NAME => data.put_slice(name),
            opt::SET_META_CONTEXT => {
                put_string(&mut data, name);
                data.put_u32(1);
                put_string(&mut data, BASE_ALLOCATION.as_bytes());
            }
            opt::GO | opt::INFO => {
                put_string(&mut data, name);
                data.put_u16(3);
                data.put_u16(info::NAME);
                data.put_u16(info::DESCRIPTION);
                data.put_u16(info::BLOCK_SIZE);
            }
            _ => {}
        }
        output.reserve(OPTION_HEADER_LEN + data.len());
        output.put_u64(OPTION_MAGIC);
        output.put_u32(option);
        put_string(output, &data);
        self.replies = 0;
        self.replied = 0;
        self.state = match option {
            opt::EXPORT_NAME => State::ExportName,
            _ => State::Replies(option),
        };
    }
}

/// Appends a length and what has it.
fn put_string(output: &mut BytesMut, text: &[u8]) {
    output.put_u32(u32::try_from(text.len()).expect("names are far shorter than 4 GiB"));
    output.put_slice(text);
}

fn usize_of(bytes: u32) -> usize {
    usize::try_from(bytes).expect("a u32 fits in memory sizes")
}
