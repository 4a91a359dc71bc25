//! The thread that accepts connections, does the option phase, and hands each socket to the owner
//! of the export's disk.
//!
//! ```text
//!   accept ──▶ greeting ──▶ receive ⇄ send … ──▶ entered ──▶ the disk's owner
//!                 │                                │
//!                 └── 10 s ────────────────────────┴──▶ closed
//! ```
//!
//! A negotiation does one thing at a time on its socket: it sends, or it receives. Those that take
//! longer than the deadline are closed, and so is the oldest where too many are open, so that
//! sockets which never negotiate lock nobody out.
//!
//! Where TLS is required it is between the socket and the option phase from STARTTLS on
//! (`negotiation.rs`). To agree on keys takes up to milliseconds: few clients do it before others
//! are looked at again.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use paternoster_disk::{Buffers, Completion, Fd, IoEngine, MonotonicClock, Ring};
use paternoster_nbd::Session;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown, sockopt};
use slotmap::{SlotMap, new_key_type};

use crate::export_table::ExportTable;
use crate::gate::{Gate, Order};
use crate::log::Limits;
use crate::negotiation::{Negotiation, Next, REFUSED_EXPORT, Refused};
use crate::peer::Peer;

new_key_type! {
    struct NegotiationId;
}

/// How long a client may take to enter an export.
const DEADLINE: Duration = Duration::from_secs(10);

/// Clients that may negotiate at once; one more closes the oldest.
const MAX_NEGOTIATIONS: usize = 256;

/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Clients that agree on keys before others are looked at again.
const AGREEMENTS: usize = 4;

/// Bytes that the kernel is asked to hold for a client that is on this machine. Reads of 1 MiB on
/// one connection are 1.35 times as fast as with its 208 KiB, those of 64 KiB 1.14 times; more than
/// this does no better.
const SEND_BUFFER: usize = 512 << 10;

/// Time without traffic after which TCP asks whether the client is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);

/// Names an operation on the acceptor's ring.
#[derive(Clone, Copy, Debug)]
enum Token {
    Accept(usize),
    /// A connection has come that may be accepted without waiting for it.
    Arrived(usize),
    Received(NegotiationId),
    Sent(NegotiationId),
    Wake,
}

/// Accepts connections as its gate says.
pub(crate) struct Acceptor {
    listeners: Vec<Listener>,
    ring: Ring<Token>,
    negotiations: SlotMap<NegotiationId, Negotiation>,
    /// When each negotiation is closed, the earliest first; those that are over are skipped.
    deadlines: VecDeque<(u64, NegotiationId)>,
    /// Clients that are to agree on keys, the next first.
    agreeing: VecDeque<NegotiationId>,
    /// Listeners that wait for descriptors, and until when.
    paused: Vec<(u64, usize)>,
    limits: Limits,
    gate: Gate,
    is_open: bool,
}

/// A listening socket, and what it offers.
pub(crate) struct Listener {
    fd: Fd,
    is_tcp: bool,
    exports: Arc<ExportTable>,
    /// Whether the ring waits for a connection.
    is_accepting: bool,
}

impl Listener {
    pub(crate) fn new(fd: Fd, is_tcp: bool, exports: ExportTable) -> Self {
        Self { fd, is_tcp, exports: Arc::new(exports), is_accepting: false }
    }
}

impl Acceptor {
    /// An acceptor on the thread that calls this, which it must not leave.
    pub(crate) fn new(listeners: Vec<Listener>, gate: Gate, engine: IoEngine) -> io::Result<Self> {
        Ok(Self {
            listeners,
            ring: Ring::new(engine)?,
            negotiations: SlotMap::with_key(),
            deadlines: VecDeque::new(),
            agreeing: VecDeque::new(),
            paused: Vec::new(),
            limits: Limits::default(),
            gate,
            is_open: false,
        })
    }

    /// Accepts until it is to stop; then closes what is still negotiating.
    pub(crate) fn run(mut self) -> io::Result<()> {
        self.ring.poll_readable(Token::Wake, self.gate.fd());
        let mut completions = Vec::new();
        loop {
            match self.gate.order() {
                Order::Open if !self.is_open => self.open(),
                Order::Close if self.is_open => self.close_listeners(),
                Order::Stop => break,
                Order::Open | Order::Close => {}
            }
            let is_accepting = self.listeners.iter().any(|listener| listener.is_accepting);
            if !self.is_open && !is_accepting && self.negotiations.is_empty() {
                self.gate.note_closed();
            }
            let due = self.next_due();
            let now = (!self.agreeing.is_empty()).then(MonotonicClock::monotonic_now);
            self.ring.wait(now.or(due))?;
            self.ring.take_completions(&mut completions);
            for completion in completions.drain(..) {
                self.handle(completion);
            }
            self.agree();
            self.handle_due();
        }
        self.limits.report_rest();
        Ok(())
    }

    fn open(&mut self) {
        self.is_open = true;
        for index in 0..self.listeners.len() {
            self.accept(index);
        }
    }

    /// Accepts nobody any more but whom the kernel has accepted already.
    fn close_listeners(&mut self) {
        self.is_open = false;
        self.paused.clear();
        for listener in &self.listeners {
            self.ring.cancel(&listener.fd);
        }
    }

    fn accept(&mut self, index: usize) {
        let listener = &mut self.listeners[index];
        if self.is_open && !std::mem::replace(&mut listener.is_accepting, true) {
            self.ring.accept(Token::Accept(index), &listener.fd);
        }
    }

    fn handle(&mut self, completion: Completion<Token>) {
        let Completion { token, result, output } = completion;
        match token {
            Token::Accept(index) => self.accepted(index, output.into_socket(), result),
            Token::Arrived(index) => {
                self.listeners[index].is_accepting = false;
                self.accept(index);
            }
            Token::Received(id) => {
                if let Some(input) = output.into_buffers().pop() {
                    self.received(id, input, result);
                }
            }
            Token::Sent(id) => self.sent(id, result),
            Token::Wake => {
                self.gate.awake();
                self.ring.poll_readable(Token::Wake, self.gate.fd());
            }
        }
    }

    fn accepted(&mut self, index: usize, socket: Option<OwnedFd>, result: Result<u32, Errno>) {
        self.listeners[index].is_accepting = false;
        match (socket, result) {
            (Some(socket), _) => {
                self.begin(Arc::new(socket), index);
                self.accept(index);
            }
            (None, Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                let kind = "no descriptor is left for another connection; it has to wait";
                if let Some(line) = self.limits.admit(kind, Instant::now()) {
                    tracing::warn!(left_out = line.left_out, "{kind}");
                }
                self.paused.push((deadline(ACCEPT_PAUSE), index));
            }
            // The service manager that has passed it has it so.
            (None, Err(Errno::AGAIN)) if self.is_open => {
                let listener = &mut self.listeners[index];
                listener.is_accepting = true;
                self.ring.poll_readable(Token::Arrived(index), &listener.fd);
            }
            // The client has given up before it was accepted.
            (None, Ok(_) | Err(Errno::CONNABORTED | Errno::INTR | Errno::CANCELED)) => {
                self.accept(index);
            }
            (None, Err(_)) if !self.is_open => {}
            (None, Err(errno)) => {
                let kind = "no connection can be accepted; it is tried again";
                if let Some(line) = self.limits.admit(kind, Instant::now()) {
                    tracing::warn!(left_out = line.left_out, "{kind}: {errno}");
                }
                self.paused.push((deadline(ACCEPT_PAUSE), index));
            }
        }
    }

    fn begin(&mut self, socket: Fd, listener: usize) {
        let &Listener { is_tcp, ref exports, .. } = &self.listeners[listener];
        let exports = exports.clone();
        let peer = Peer::of(&*socket, is_tcp);
        let prepared = if is_tcp { prepare_tcp(&socket) } else { prepare_unix(&socket) };
        if let Err(error) = prepared {
            return self.report_refused("a connection was lost at once", peer, &error);
        }
        if self.negotiations.len() >= MAX_NEGOTIATIONS {
            self.close_oldest();
        }
        let id = self.negotiations.insert(Negotiation::new(socket, peer, exports));
        self.deadlines.push_back((deadline(DEADLINE), id));
        self.go_on(id);
    }

    fn received(&mut self, id: NegotiationId, input: BytesMut, result: Result<u32, Errno>) {
        let Some(negotiation) = self.negotiations.get_mut(id) else { return };
        match result {
            Ok(0) | Err(_) => self.close(id),
            Ok(_) => {
                negotiation.received(input);
                self.go_on(id);
            }
        }
    }

    fn sent(&mut self, id: NegotiationId, result: Result<u32, Errno>) {
        let Some(negotiation) = self.negotiations.get_mut(id) else { return };
        match result {
            Ok(sent) if sent > 0 => {
                negotiation.sent(usize::try_from(sent).expect("a u32 fits"));
                self.go_on(id);
            }
            _ => self.close(id),
        }
    }

    /// Has a few clients agree on keys.
    fn agree(&mut self) {
        for _ in 0..AGREEMENTS {
            let Some(id) = self.agreeing.pop_front() else { return };
            let Some(negotiation) = self.negotiations.get_mut(id) else { continue };
            let (mut refused, peer) = (Vec::new(), negotiation.peer);
            negotiation.agree(&mut refused);
            self.report_all(refused, peer);
            self.go_on(id);
        }
    }

    /// Lets the client go on until its socket is needed.
    fn go_on(&mut self, id: NegotiationId) {
        loop {
            let negotiation = &mut self.negotiations[id];
            let (mut refused, peer) = (Vec::new(), negotiation.peer);
            let next = negotiation.next(&mut refused);
            let socket = negotiation.socket.clone();
            self.report_all(refused, peer);
            return match next {
                Next::Again => continue,
                Next::Send(output) => {
                    self.ring.send(Token::Sent(id), &socket, Buffers::from_buf([output]));
                }
                Next::Receive(input) => self.ring.receive(Token::Received(id), &socket, input),
                Next::Agree => self.agreeing.push_back(id),
                Next::Close => self.close(id),
                Next::Enter(session) => self.enter(id, session),
            };
        }
    }

    fn enter(&mut self, id: NegotiationId, session: Session) {
        let Some(negotiation) = self.negotiations.remove(id) else { return };
        if let Err((peer, why)) = negotiation.enter(session) {
            self.report_refused(REFUSED_EXPORT, peer, &why);
        }
    }

    fn report_all(&mut self, refused: Vec<Refused>, peer: Peer) {
        for (kind, why) in refused {
            self.report_refused(kind, peer, &why);
        }
    }

    fn close(&mut self, id: NegotiationId) {
        // Dropping the socket closes it once no operation holds it any more.
        if let Some(negotiation) = self.negotiations.remove(id) {
            let _ = shutdown(&*negotiation.socket, Shutdown::Both);
        }
    }

    fn close_oldest(&mut self) {
        while let Some((_, id)) = self.deadlines.pop_front() {
            if let Some(oldest) = self.negotiations.get(id) {
                let why = format!("it is the oldest of {}", self.negotiations.len());
                self.report_refused("too many clients negotiate: one is closed", oldest.peer, &why);
                return self.close(id);
            }
        }
    }

    /// Logs that a client entered no export. `kind` is the sentence, of which there is one a
    /// second.
    fn report_refused(&mut self, kind: &'static str, peer: Peer, why: &dyn fmt::Display) {
        let Some(line) = self.limits.admit(kind, Instant::now()) else { return };
        let negotiating = self.negotiations.len();
        // As strings: text has them in quotes, with what is not printable escaped.
        let (peer, why) = (peer.to_string(), why.to_string());
        tracing::info!(peer, why, negotiating, left_out = line.left_out, "{kind}");
    }

    fn next_due(&mut self) -> Option<u64> {
        while let Some(&(at, id)) = self.deadlines.front() {
            if self.negotiations.contains_key(id) {
                return self.paused.iter().map(|&(at, _)| at).chain([at]).min();
            }
            self.deadlines.pop_front();
        }
        self.paused.iter().map(|&(at, _)| at).min()
    }

    fn handle_due(&mut self) {
        let now = MonotonicClock::monotonic_now();
        while let Some(&(at, id)) = self.deadlines.front()
            && at <= now
        {
            self.deadlines.pop_front();
            if let Some(negotiation) = self.negotiations.get(id) {
                let why = format!("it entered no export within {DEADLINE:?}");
                self.report_refused("a client took too long", negotiation.peer, &why);
                self.close(id);
            }
        }
        for (at, index) in std::mem::take(&mut self.paused) {
            if at <= now {
                self.accept(index);
            } else {
                self.paused.push((at, index));
            }
        }
    }
}

/// The moment that lies so far ahead, as the ring takes it.
pub(crate) fn deadline(span: Duration) -> u64 {
    let nanos = u64::try_from(span.as_nanos()).expect("a short span");
    MonotonicClock::monotonic_now().saturating_add(nanos)
}

/// The client reads one reply while the kernel takes the next. The kernel allows
/// `net.core.wmem_max`, often 208 KiB, and holds twice what it is asked for. What a machine has
/// beyond that stays. TCP finds a size by itself.
fn prepare_unix(socket: &Fd) -> Result<(), Errno> {
    if sockopt::socket_send_buffer_size(&**socket)? >= 2 * SEND_BUFFER {
        return Ok(());
    }
    sockopt::set_socket_send_buffer_size(&**socket, SEND_BUFFER)
}

/// Replies are sent at once, and a client that has vanished is noticed.
fn prepare_tcp(socket: &Fd) -> Result<(), Errno> {
    sockopt::set_tcp_nodelay(&**socket, true)?;
    sockopt::set_socket_keepalive(&**socket, true)?;
    sockopt::set_tcp_keepidle(&**socket, KEEPALIVE_IDLE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn unix_socket_holds_more_where_that_is_allowed_and_never_less_than_before() {
        let size = |socket: &Fd| sockopt::socket_send_buffer_size(&**socket).expect("it is open");
        let (small, large) = UnixStream::pair().expect("sockets");
        let [small, large] = [small, large].map(|socket| Fd::new(OwnedFd::from(socket)));
        // Twice what is asked for is held, as far as the machine allows it.
        sockopt::set_socket_send_buffer_size(&*small, 4096).expect("allowed");
        sockopt::set_socket_send_buffer_size(&*large, 4 << 20).expect("cut where it must be");
        let before = size(&large);
        for socket in [&small, &large] {
            prepare_unix(socket).expect("allowed");
        }
        assert!(size(&small) > 8192, "{}", size(&small));
        assert!(size(&large) >= before.min(2 * SEND_BUFFER), "{before}");
        assert!(before < 2 * SEND_BUFFER || size(&large) == before, "what is more stays");
    }
}
