//! The option phase: the client names what it wants, the server agrees or says why not.
//!
//! ```text
//!   greeting ──▶ Flags ──▶ Options ◀──────────┐
//!                            │ │ too long     │ answered
//!                            │ └───▶ Skip ────┤
//!                            ├── any option ──┤
//!                            ├── STARTTLS ────┴──▶ StartTls, and what was agreed is forgotten
//!                            ├── GO, EXPORT_NAME ──▶ Over: Entered(session)
//!                            └── ABORT ────────────▶ Over: Aborted
//! ```
//!
//! Where TLS is required nothing is agreed or told in the clear, and nothing that came in the clear
//! counts afterwards: else whoever is on the way could put options before those of the client.
//!
//! Bounds: an option longer than [`MAX_OPTION_LEN`] passes through without being stored, a client
//! may send [`MAX_OPTIONS`] of them, and answers that pile up stop the machine until they are
//! sent. How long a client may take is for the caller's clock to say.

use bytes::{Buf, BufMut, BytesMut};

use super::error::HandshakeError;
use super::options::{InfoRequest, MetaContextRequest, Refusal, clipped, put_reply};
use crate::command::Session;
use crate::export::{ExportInfo, Exports};
use crate::proto::{
    BASE_ALLOCATION, CLIENT_FLAGS_LEN, ClientFlags, EXPORT_NAME_PADDING, GREETING_LEN,
    GREETING_MAGIC, HandshakeFlags, MAX_OPTION_LEN, MAX_OPTIONS, MAX_PAYLOAD, MAX_STRING,
    OPTION_HEADER_LEN, OPTION_MAGIC, TransmissionFlags, info, opt, rep,
};

/// With this much output waiting, no further option is answered.
const OUTPUT_PAUSE: usize = 64 << 10;

/// The id `base:allocation` has in every session.
const ALLOCATION_ID: u32 = 1;

/// How a client begins that speaks TLS at once: a handshake record of TLS 1.x.
const TLS_RECORD: [u8; 2] = [0x16, 0x03];

/// The server's side of the option phase.
#[derive(Debug)]
pub struct Handshake {
    /// What the next bytes are.
    state: State,
    /// The client agreed to leave out the padding after `EXPORT_NAME`.
    no_zeroes: bool,
    /// The client asked for structured replies.
    structured_replies: bool,
    /// The export for which the last `SET_META_CONTEXT` selected `base:allocation`.
    allocation_of: Option<String>,
    tls: TlsState,
    /// Options received.
    options: u32,
    /// How often the client was refused TLS since the caller last asked.
    tls_refusals: u32,
    /// Every option but `ABORT` is refused.
    shutting_down: bool,
    /// Bytes missing when `receive` last ran out of input.
    wanted: usize,
}

/// What a client may do about TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TlsState {
    /// Nothing: there is none.
    None,
    /// Begin it, before anything else.
    Required,
    /// Nothing more.
    Begun,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The client's flags.
    Flags,
    /// An option.
    Options,
    /// The rest of an option that is too long.
    Skip { option: u32, len: u32, left: usize },
    /// Nothing: the handshake has ended.
    Over,
}

/// The result of the bytes received so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Send the output, then read more.
    NeedMore,
    /// Answers pile up: send the output, then call again before reading more.
    SendOutput,
    /// Send the output, then begin TLS; what comes within is to be received next.
    StartTls,
    /// Send the output; the transmission phase has begun with what is left of the input.
    Entered(Session),
    /// The client ended the session: send the output, then close.
    Aborted,
}

/// What one step of the machine came to.
enum Step {
    /// Look at what follows in the input.
    Again,
    /// This many bytes are missing.
    Missing(usize),
    /// The caller is to begin TLS.
    StartTls,
    /// The handshake has ended.
    End(Progress),
}

impl Default for Handshake {
    fn default() -> Self {
        Self::new()
    }
}

impl Handshake {
    /// Makes a handshake without TLS that has sent nothing yet; begin with
    /// [`Handshake::greeting`].
    pub fn new() -> Self {
        Self::with_tls(TlsState::None)
    }

    /// Makes a handshake in which a client can do nothing before it has begun TLS.
    pub fn requiring_tls() -> Self {
        Self::with_tls(TlsState::Required)
    }

    fn with_tls(tls: TlsState) -> Self {
        Self {
            tls,
            state: State::Flags,
            no_zeroes: false,
            structured_replies: false,
            allocation_of: None,
            options: 0,
            tls_refusals: 0,
            shutting_down: false,
            wanted: CLIENT_FLAGS_LEN,
        }
    }

    /// Returns the first bytes that a server sends, the same on every connection.
    pub fn greeting() -> [u8; GREETING_LEN] {
        let mut greeting = [0; GREETING_LEN];
        greeting[..8].copy_from_slice(&GREETING_MAGIC.to_be_bytes());
        greeting[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        greeting[16..].copy_from_slice(&HandshakeFlags::all().bits().to_be_bytes());
        greeting
    }

    /// Takes what is complete from the front of `input` and appends the answers to `output`.
    ///
    /// An error means: close the connection, nothing more can be said.
    pub fn receive(
        &mut self,
        input: &mut BytesMut,
        exports: &dyn Exports,
        output: &mut BytesMut,
    ) -> Result<Progress, HandshakeError> {
        while output.len() < OUTPUT_PAUSE {
            let step = match self.state {
                State::Flags => self.receive_flags(input),
                State::Options => self.receive_option(input, exports, output),
                State::Skip { option, len, left } => {
                    Ok(self.skip(input, output, option, len, left))
                }
                State::Over => Err(HandshakeError::Over),
            };
            match step {
                Ok(Step::Again) => {}
                Ok(Step::Missing(bytes)) => {
                    self.wanted = bytes;
                    return Ok(Progress::NeedMore);
                }
                Ok(Step::StartTls) => {
                    self.wanted = OPTION_HEADER_LEN;
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
        Ok(Progress::SendOutput)
    }

    /// Returns how many bytes must arrive, at least, before `receive` can do more than at its last
    /// call; never more than the longest option.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Whether the client was refused TLS (`STARTTLS`) since this was last asked.
    pub fn take_refused_tls(&mut self) -> bool {
        std::mem::take(&mut self.tls_refusals) > 0
    }

    /// From now on every option but `ABORT` is refused: the server is being shut down.
    pub fn begin_shutdown(&mut self) {
        self.shutting_down = true;
    }

    fn receive_flags(&mut self, input: &mut BytesMut) -> Result<Step, HandshakeError> {
        if input.len() < CLIENT_FLAGS_LEN {
            return Ok(Step::Missing(CLIENT_FLAGS_LEN - input.len()));
        }
        if input.starts_with(&TLS_RECORD) {
            return Err(HandshakeError::Tls);
        }
        let found = input.get_u32();
        let flags =
            ClientFlags::from_bits(found).ok_or(HandshakeError::UnknownClientFlags { found })?;
        self.no_zeroes = flags.contains(ClientFlags::NO_ZEROES);
        self.state = State::Options;
        Ok(Step::Again)
    }

    fn receive_option(
        &mut self,
        input: &mut BytesMut,
        exports: &dyn Exports,
        output: &mut BytesMut,
    ) -> Result<Step, HandshakeError> {
        if input.len() < OPTION_HEADER_LEN {
            return Ok(Step::Missing(OPTION_HEADER_LEN - input.len()));
        }
        let mut header = &input[..OPTION_HEADER_LEN];
        let (found, option, len) = (header.get_u64(), header.get_u32(), header.get_u32());
        if found != OPTION_MAGIC {
            return Err(HandshakeError::BadMagic { found });
        }
        if self.options == MAX_OPTIONS {
            return Err(HandshakeError::TooManyOptions);
        }
        let data_len = usize::try_from(len).expect("a u32 fits in memory sizes");
        if option == opt::EXPORT_NAME && data_len > MAX_STRING {
            return Err(HandshakeError::BadExportName { len });
        }
        if len > MAX_OPTION_LEN {
            self.options += 1;
            input.advance(OPTION_HEADER_LEN);
            self.state = State::Skip { option, len, left: data_len };
            return Ok(Step::Again);
        }
        let whole = OPTION_HEADER_LEN + data_len;
        if input.len() < whole {
            return Ok(Step::Missing(whole - input.len()));
        }
        self.options += 1;
        let option_bytes = input.split_to(whole);
        if option == opt::STARTTLS && self.tls == TlsState::Required && data_len == 0 {
            return self.start_tls(input.len(), output);
        }
        self.answer(option, &option_bytes[OPTION_HEADER_LEN..], exports, output)
    }

    /// Agrees to TLS, unless so many bytes came behind that, which may be anybody's.
    fn start_tls(&mut self, behind: usize, output: &mut BytesMut) -> Result<Step, HandshakeError> {
        if behind > 0 {
            return Err(HandshakeError::BehindStartTls { len: behind });
        }
        if self.shutting_down {
            refuse(output, opt::STARTTLS, &shutting_down());
            return Ok(Step::Again);
        }
        put_reply(output, opt::STARTTLS, rep::ACK, &[]);
        // What was agreed in the clear is forgotten, but for the flags, which come once.
        let no_zeroes = self.no_zeroes;
        *self = Self { state: State::Options, no_zeroes, options: self.options, ..Self::new() };
        self.tls = TlsState::Begun;
        Ok(Step::StartTls)
    }

    /// Lets the data of an option that is too long pass; refuses the option after its last byte.
    fn skip(
        &mut self,
        input: &mut BytesMut,
        output: &mut BytesMut,
        option: u32,
        len: u32,
        left: usize,
    ) -> Step {
        let passing = left.min(input.len());
        input.advance(passing);
        let left = left - passing;
        if left > 0 {
            self.state = State::Skip { option, len, left };
            // Not all of `left`: nobody shall make room for what is thrown away.
            return Step::Missing(left.min(OPTION_HEADER_LEN));
        }
        self.state = State::Options;
        let message = format!("{len} bytes of option data, at most {MAX_OPTION_LEN} are allowed");
        refuse(output, option, &Refusal::new(rep::ERR_TOO_BIG, message));
        Step::Again
    }

    fn answer(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &dyn Exports,
        output: &mut BytesMut,
    ) -> Result<Step, HandshakeError> {
        if option == opt::ABORT {
            put_reply(output, option, rep::ACK, &[]);
            return Ok(Step::End(Progress::Aborted));
        }
        if option == opt::EXPORT_NAME {
            return match self.tls {
                TlsState::Required => Err(HandshakeError::TlsRequired),
                TlsState::None | TlsState::Begun => self.enter_by_name(data, exports, output),
            };
        }
        if self.shutting_down {
            refuse(output, option, &shutting_down());
            return Ok(Step::Again);
        }
        if self.tls == TlsState::Required && option != opt::STARTTLS {
            let message = "TLS is required here: STARTTLS, as for nbds://, is allowed";
            refuse(output, option, &Refusal::new(rep::ERR_TLS_REQD, message));
            return Ok(Step::Again);
        }
        let answered = match option {
            opt::LIST => list(data, exports, output),
            opt::INFO => self.describe(option, data, exports, output).map(|_| ()),
            opt::GO => match self.describe(option, data, exports, output) {
                Ok(session) => {
                    put_reply(output, option, rep::ACK, &[]);
                    return Ok(Step::End(Progress::Entered(session)));
                }
                Err(refusal) => Err(refusal),
            },
            opt::STRUCTURED_REPLY => self.use_structured_replies(data),
            opt::LIST_META_CONTEXT => list_meta_contexts(data, exports, output),
            opt::SET_META_CONTEXT => self.set_meta_contexts(data, exports, output),
            opt::STARTTLS => Err(self.refuse_tls(data.len())),
            _ => Err(Refusal::new(rep::ERR_UNSUP, format!("option {option} is not known here"))),
        };
        match answered {
            Ok(()) => put_reply(output, option, rep::ACK, &[]),
            Err(refusal) => refuse(output, option, &refusal),
        }
        Ok(Step::Again)
    }

    fn enter_by_name(
        &mut self,
        data: &[u8],
        exports: &dyn Exports,
        output: &mut BytesMut,
    ) -> Result<Step, HandshakeError> {
        if self.shutting_down {
            return Err(HandshakeError::ShuttingDown);
        }
        let Ok(name) = str::from_utf8(data) else {
            let len = u32::try_from(data.len()).expect("option data is bounded");
            return Err(HandshakeError::BadExportName { len });
        };
        let Some(export) = exports.find(name) else {
            return Err(HandshakeError::UnknownExport { name: name.to_owned() });
        };
        exports.may_enter(name).map_err(|why| HandshakeError::NoEntry { why })?;
        let session = self.session(name, export);
        output.put_u64(session.export.size);
        output.put_u16(session.export.flags.bits());
        if !self.no_zeroes {
            output.put_bytes(0, EXPORT_NAME_PADDING);
        }
        Ok(Step::End(Progress::Entered(session)))
    }

    /// Answers `INFO` or `GO` up to its final reply.
    fn describe(
        &self,
        option: u32,
        data: &[u8],
        exports: &dyn Exports,
        output: &mut BytesMut,
    ) -> Result<Session, Refusal> {
        let request = InfoRequest::parse(data)?;
        let export = exports.find(&request.name).ok_or_else(|| unknown(&request.name))?;
        if option == opt::GO {
            exports.may_enter(&request.name).map_err(|why| Refusal::new(rep::ERR_POLICY, why))?;
        }
        let session = self.session(&request.name, export);
        let export = &session.export;
        let mut put_info = |kind: u16, parts: [&[u8]; 3]| {
            let kind = kind.to_be_bytes();
            put_reply(output, option, rep::INFO, &[&kind, parts[0], parts[1], parts[2]]);
        };
        let flags = export.flags.bits().to_be_bytes();
        put_info(info::EXPORT, [&export.size.to_be_bytes(), &flags, &[]]);
        if request.kinds.contains(&info::NAME) {
            put_info(info::NAME, [clipped(&export.name).as_bytes(), &[], &[]]);
        }
        if let Some(text) = &export.description
            && request.kinds.contains(&info::DESCRIPTION)
        {
            put_info(info::DESCRIPTION, [clipped(text).as_bytes(), &[], &[]]);
        }
        if request.kinds.contains(&info::BLOCK_SIZE) {
            let size = export.block_size;
            let sizes = [size.min, size.preferred, size.max].map(u32::to_be_bytes);
            put_info(info::BLOCK_SIZE, [&sizes[0], &sizes[1], &sizes[2]]);
        }
        Ok(session)
    }

    fn refuse_tls(&mut self, len: usize) -> Refusal {
        match self.tls {
            TlsState::None => {
                self.tls_refusals += 1;
                Refusal::new(rep::ERR_UNSUP, "there is no TLS here: nbd:// is allowed")
            }
            TlsState::Required => {
                let message = format!("STARTTLS with {len} bytes of data, none are allowed");
                Refusal::new(rep::ERR_INVALID, message)
            }
            TlsState::Begun => Refusal::new(rep::ERR_INVALID, "TLS has begun already"),
        }
    }

    fn use_structured_replies(&mut self, data: &[u8]) -> Result<(), Refusal> {
        expect_no_data("STRUCTURED_REPLY", data)?;
        self.structured_replies = true;
        Ok(())
    }

    /// The last selection counts alone, even if it fails.
    fn set_meta_contexts(
        &mut self,
        data: &[u8],
        exports: &dyn Exports,
        output: &mut BytesMut,
    ) -> Result<(), Refusal> {
        self.allocation_of = None;
        if !self.structured_replies {
            let message = "metadata contexts need structured replies, ask for these first";
            return Err(Refusal::new(rep::ERR_INVALID, message));
        }
        let request = MetaContextRequest::parse(data)?;
        exports.find(&request.name).ok_or_else(|| unknown(&request.name))?;
        if request.queries.iter().any(|query| query == BASE_ALLOCATION) {
            put_context(output, opt::SET_META_CONTEXT, ALLOCATION_ID);
            self.allocation_of = Some(request.name);
        }
        Ok(())
    }

    /// What entering `export`, asked for as `name`, would agree on.
    fn session(&self, name: &str, mut export: ExportInfo) -> Session {
        let mut flags = export.flags | TransmissionFlags::HAS_FLAGS;
        flags.set(TransmissionFlags::SEND_DF, self.structured_replies);
        if !flags.contains(TransmissionFlags::SEND_WRITE_ZEROES) {
            flags.remove(TransmissionFlags::SEND_FAST_ZERO);
        }
        export.flags = flags;
        export.block_size.max = export.block_size.max.min(MAX_PAYLOAD);
        let selected = self.allocation_of.as_deref() == Some(name);
        Session {
            export,
            structured_replies: self.structured_replies,
            allocation_context: selected.then_some(ALLOCATION_ID),
        }
    }
}

fn list(data: &[u8], exports: &dyn Exports, output: &mut BytesMut) -> Result<(), Refusal> {
    expect_no_data("LIST", data)?;
    for name in exports.names() {
        // A longer name could not be asked for; an export may have gone since it was listed.
        let Ok(len) = u32::try_from(name.len()) else { continue };
        if name.len() > MAX_STRING {
            continue;
        }
        let Some(export) = exports.find(&name) else { continue };
        let text = export.description.as_deref().map_or("", clipped);
        let parts: [&[u8]; 3] = [&len.to_be_bytes(), name.as_bytes(), text.as_bytes()];
        put_reply(output, opt::LIST, rep::SERVER, &parts);
    }
    Ok(())
}

fn list_meta_contexts(
    data: &[u8],
    exports: &dyn Exports,
    output: &mut BytesMut,
) -> Result<(), Refusal> {
    let request = MetaContextRequest::parse(data)?;
    exports.find(&request.name).ok_or_else(|| unknown(&request.name))?;
    let matches = |query: &String| query == "base:" || query == BASE_ALLOCATION;
    if request.queries.is_empty() || request.queries.iter().any(matches) {
        // Ids mean nothing in a list, and are to be zero there.
        put_context(output, opt::LIST_META_CONTEXT, 0);
    }
    Ok(())
}

fn put_context(output: &mut BytesMut, option: u32, id: u32) {
    let parts: [&[u8]; 2] = [&id.to_be_bytes(), BASE_ALLOCATION.as_bytes()];
    put_reply(output, option, rep::META_CONTEXT, &parts);
}

fn expect_no_data(option: &str, data: &[u8]) -> Result<(), Refusal> {
    if data.is_empty() {
        return Ok(());
    }
    let message = format!("{option} with {} bytes of data, none are allowed", data.len());
    Err(Refusal::new(rep::ERR_INVALID, message))
}

fn shutting_down() -> Refusal {
    Refusal::new(rep::ERR_SHUTDOWN, "the server is shutting down")
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(rep::ERR_UNKNOWN, format!("there is no export {name:?}"))
}

fn refuse(output: &mut BytesMut, option: u32, refusal: &Refusal) {
    put_reply(output, option, refusal.reply, &[clipped(&refusal.message).as_bytes()]);
}
