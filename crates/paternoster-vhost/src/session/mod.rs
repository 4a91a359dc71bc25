//! One front-end's session: its messages in, orders and replies out.
//!
//! ```text
//!   socket ──bytes, descriptors──▶ receive ──▶ Order ──▶ whoever has the device
//!   socket ◀──────── output ◀──────────────────────────── answer
//! ```
//!
//! Messages are taken one at a time: [`Session::wanted`] says how many bytes may be received, never
//! more than the current message has, so that descriptors belong to the message they came with.
//! While an order is not answered, or output not taken, nothing is wanted.
//!
//! A ring starts when its size, its addresses and its kick are known, in whatever order they came;
//! then the order has all that it needs. A message that is refused is answered by a 1 where the
//! front-end asks for an answer, and ends the session where it does not: otherwise the front-end
//! would assume success.
//!
//! The session maps the guest's memory and makes that for requests in flight: whoever has the
//! device gets what is mapped, and touches no descriptor but those that kick and call.

mod obey;
mod rings;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use thiserror::Error;

use self::rings::RingState;
use crate::blk::{CONFIG_LEN, WRITEBACK};
use crate::inflight::Inflight;
use crate::memory::{Memory, Sealed};
use crate::proto::{
    BACKEND_CONFIG_CHANGE, Body, Features, HEADER_LEN, MAX_BODY, MAX_DESCRIPTORS, NEED_REPLY,
    ProtocolFeatures, REPLY, RingAddresses, VERSION, VERSION_MASK, header, request,
};

/// What a device offers.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Its features.
    pub features: Features,
    /// Its configuration.
    pub config: [u8; CONFIG_LEN],
    /// Its rings.
    pub queues: u16,
    /// What its memory has to be.
    pub sealed: Sealed,
}

/// What the front-end wants of the device.
#[derive(Debug)]
pub enum Order {
    /// These features are in force.
    Features(Features),
    /// The memory is this from now on; done when nothing uses what it was before.
    Memory(Memory),
    /// The requests in flight are kept there, and what a server before this one has left there is
    /// taken first by the rings that start from now on.
    Inflight(Inflight),
    /// The ring starts, which may be before there is memory: then it waits for that.
    Start(u16, Start),
    /// It is read, or is not.
    Enable(u16, bool),
    /// It is kicked by another eventfd.
    Kick(u16, Arc<OwnedFd>),
    /// It calls by another one, or does not. It owes a call: there may have been none to call by.
    Call(u16, Option<Arc<OwnedFd>>),
    /// It says by another one, or does not, that it is broken.
    Err(u16, Option<Arc<OwnedFd>>),
    /// The ring stops; [`Answer::Base`] when its last request is done.
    Stop(u16),
    /// No ring is read any more.
    DisableAll,
    /// All rings are as new; done when all requests are. Memory and the files by which rings say
    /// that they are broken stay, and so does what the cache does.
    Reset,
    /// The cache writes back, or what is answered is durable.
    Writeback(bool),
}

/// All that a ring starts with.
#[derive(Debug)]
pub struct Start {
    /// Its descriptors.
    pub size: u16,
    /// Where it is.
    pub addresses: RingAddresses,
    /// Its next chain, where no memory of requests in flight says otherwise.
    pub base: u16,
    /// What says that a chain has come.
    pub kick: Arc<OwnedFd>,
    /// What is told that chains are done.
    pub call: Option<Arc<OwnedFd>>,
    /// What is told that it is broken.
    pub err: Option<Arc<OwnedFd>>,
    /// Whether it is read.
    pub enabled: bool,
}

/// What has become of an order.
#[derive(Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// It is not, for this reason.
    Refused(String),
    /// The ring has stopped, and this is its next chain.
    Base(u16),
}

/// What has come of some bytes.
#[derive(Debug)]
pub enum Progress {
    /// More have to come.
    NeedMore,
    /// This is to be done, and answered.
    Order(Order),
    /// A message was refused, and the front-end has been told so.
    Refused(Refusal),
}

/// A message that was refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("message {request}: {why}")]
pub struct Refusal {
    /// Its number.
    pub request: u32,
    /// Why it was.
    pub why: String,
}

/// Why a session is over.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SessionError {
    /// It speaks another version.
    #[error("a message of version {0}: 1 is spoken here")]
    Version(u32),
    /// It answers what nobody asked.
    #[error("message {0} is a reply, and nothing was asked")]
    Reply(u32),
    /// It is too long.
    #[error("message {request} has a body of {size} bytes: at most {MAX_BODY} are allowed")]
    TooLong {
        /// The number of the message.
        request: u32,
        /// The bytes of its body.
        size: u32,
    },
    /// It was refused, and the front-end asked for no answer.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Bytes for the front-end, and the descriptor that goes with the first of them.
#[derive(Debug, Default)]
pub struct Output {
    /// What is to be sent.
    pub bytes: Vec<u8>,
    /// What goes with it.
    pub descriptor: Option<OwnedFd>,
}

/// The header of a message that has come.
#[derive(Clone, Copy, Debug)]
struct Header {
    request: u32,
    flags: u32,
    size: u32,
}

/// A message whose order is not answered.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    header: Header,
    then: Then,
}

/// What an order changes here, once it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    Agreed(Features),
    Started(u16),
    Stopped(u16),
    DisabledAll,
    Reset,
    WritesBack(bool),
}

/// What is to come of a message.
enum Step {
    /// It is done.
    Done,
    /// It is answered with this, and with this descriptor.
    Reply(Vec<u8>, Option<OwnedFd>),
    /// The device has to do something.
    Order(Order, Then),
}

impl Step {
    /// It is answered with a number.
    fn reply(number: u64) -> Self {
        Self::Reply(number.to_ne_bytes().into(), None)
    }
}

/// One front-end's session.
#[derive(Debug)]
pub struct Session {
    offer: Offer,
    protocol: ProtocolFeatures,
    features: Features,
    rings: Vec<RingState>,
    memory: Memory,
    /// Where our messages go.
    channel: Option<OwnedFd>,
    input: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    awaited: Option<Awaited>,
    output: Output,
}

impl Session {
    /// A session that has just begun, about that device.
    pub fn new(offer: Offer) -> Self {
        Self {
            offer,
            protocol: ProtocolFeatures::empty(),
            features: Features::empty(),
            rings: (0..offer.queues).map(|_| RingState::default()).collect(),
            memory: Memory::default(),
            channel: None,
            input: Vec::new(),
            descriptors: Vec::new(),
            awaited: None,
            output: Output::default(),
        }
    }

    /// Returns how many bytes may be received now; none while an order is not answered, or output
    /// not taken.
    pub fn wanted(&self) -> usize {
        if self.awaited.is_some() || !self.output.bytes.is_empty() {
            return 0;
        }
        let whole = match self.header() {
            Some(header) => HEADER_LEN + header.body_len(),
            None => HEADER_LEN,
        };
        whole - self.input.len()
    }

    /// Returns whether a part of a message has come.
    pub fn is_within_message(&self) -> bool {
        !self.input.is_empty()
    }

    /// How many descriptors it and its device hold: of memory, of requests in flight, of rings and
    /// for our messages.
    pub fn descriptors_held(&self) -> usize {
        let of_rings: usize = self.rings.iter().map(RingState::descriptors_held).sum();
        self.memory.regions() + 1 + of_rings + usize::from(self.channel.is_some())
    }

    /// The features in force.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Takes bytes, no more than are wanted, and the descriptors that came with them.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        descriptors: Vec<OwnedFd>,
    ) -> Result<Progress, SessionError> {
        assert!(bytes.len() <= self.wanted(), "no more than is wanted");
        self.input.extend_from_slice(bytes);
        self.descriptors.extend(descriptors);
        // Those beyond the limit are closed.
        self.descriptors.truncate(MAX_DESCRIPTORS);
        let Some(header) = self.header() else { return Ok(Progress::NeedMore) };
        header.check()?;
        if self.wanted() > 0 {
            return Ok(Progress::NeedMore);
        }
        let message = std::mem::take(&mut self.input);
        let descriptors = std::mem::take(&mut self.descriptors);
        let body = Body(&message[HEADER_LEN..]);
        match self.obey(header.request, body, descriptors) {
            Ok(Step::Done) => {
                self.acknowledge(header, 0);
                Ok(Progress::NeedMore)
            }
            Ok(Step::Reply(body, descriptor)) => {
                self.reply(header.request, &body, descriptor);
                Ok(Progress::NeedMore)
            }
            Ok(Step::Order(order, then)) => {
                self.awaited = Some(Awaited { header, then });
                Ok(Progress::Order(order))
            }
            Err(why) => self.refuse(header, why),
        }
    }

    /// Says what has become of the order.
    pub fn answer(&mut self, answer: Answer) -> Result<Progress, SessionError> {
        let Awaited { header, then } = self.awaited.take().expect("an order is answered once");
        match answer {
            Answer::Done => {
                self.done(then);
                self.acknowledge(header, 0);
            }
            Answer::Base(base) => {
                let Then::Stopped(ring) = then else { unreachable!("a ring has stopped") };
                self.stopped(ring, base);
                let body = [u32::from(ring), base.into()].map(u32::to_ne_bytes).concat();
                self.reply(header.request, &body, None);
            }
            Answer::Refused(why) => return self.refuse(header, why),
        }
        Ok(Progress::NeedMore)
    }

    fn done(&mut self, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Agreed(features) => self.features = features,
            Then::Started(ring) => self.started(ring),
            Then::Stopped(_) => unreachable!("a ring that stops has a base"),
            Then::DisabledAll => self.disable_rings(),
            Then::Reset => self.forget_rings(),
            Then::WritesBack(writeback) => {
                self.offer.config[WRITEBACK as usize] = u8::from(writeback);
            }
        }
    }

    /// The device is configured like this from now on. Returns the message that says so and the
    /// descriptor to which it goes, if the front-end wants to be told.
    pub fn reconfigure(&mut self, config: [u8; CONFIG_LEN]) -> Option<(Vec<u8>, &OwnedFd)> {
        let writeback = self.offer.config[WRITEBACK as usize];
        self.offer.config = config;
        self.offer.config[WRITEBACK as usize] = writeback;
        let message = header(BACKEND_CONFIG_CHANGE, 0, 0).into();
        Some((message, self.channel.as_ref()?))
    }

    /// Takes what is to be sent.
    pub fn take_output(&mut self) -> Option<Output> {
        let output = std::mem::take(&mut self.output);
        (!output.bytes.is_empty()).then_some(output)
    }

    /// The header, once all of it has come.
    fn header(&self) -> Option<Header> {
        let bytes = Body(self.input.get(..HEADER_LEN)?);
        let [request, flags, size] = bytes.words().expect("a header has three words");
        Some(Header { request, flags, size })
    }

    /// Answers a message that asks for an answer and has none of its own.
    fn acknowledge(&mut self, header: Header, code: u64) {
        if self.wants_answer(header) {
            self.reply(header.request, &code.to_ne_bytes(), None);
        }
    }

    fn wants_answer(&self, header: Header) -> bool {
        header.flags & NEED_REPLY != 0 && self.protocol.contains(ProtocolFeatures::REPLY_ACK)
    }

    fn reply(&mut self, request: u32, body: &[u8], descriptor: Option<OwnedFd>) {
        self.output.bytes.extend_from_slice(&header(request, REPLY, body.len()));
        self.output.bytes.extend_from_slice(body);
        self.output.descriptor = descriptor;
    }

    /// Refuses a message.
    fn refuse(&mut self, header: Header, why: String) -> Result<Progress, SessionError> {
        let refusal = Refusal { request: header.request, why };
        if !self.wants_answer(header) || has_own_reply(header.request) {
            return Err(refusal.into());
        }
        self.acknowledge(header, 1);
        Ok(Progress::Refused(refusal))
    }
}

impl Header {
    fn check(self) -> Result<(), SessionError> {
        let Self { request, flags, size } = self;
        if flags & VERSION_MASK != VERSION {
            return Err(SessionError::Version(flags & VERSION_MASK));
        }
        if flags & REPLY != 0 {
            return Err(SessionError::Reply(request));
        }
        if size > MAX_BODY {
            return Err(SessionError::TooLong { request, size });
        }
        Ok(())
    }

    /// The bytes of the body that are ever waited for.
    fn body_len(self) -> usize {
        usize::try_from(self.size.min(MAX_BODY)).expect("at most 4096")
    }
}

/// Returns whether a message is answered with something else than whether it was obeyed.
fn has_own_reply(request: u32) -> bool {
    matches!(
        request,
        request::GET_FEATURES
            | request::GET_PROTOCOL_FEATURES
            | request::GET_QUEUE_NUM
            | request::GET_MAX_MEM_SLOTS
            | request::GET_VRING_BASE
            | request::GET_CONFIG
            | request::GET_INFLIGHT_FD
    )
}
