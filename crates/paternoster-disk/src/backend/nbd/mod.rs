//! A disk that is an export of another NBD server: weights in front of whatever that serves.
//!
//! ```text
//!   start ──▶ queue ──▶ link 0 ══ requests, replies ══ ┐
//!               ▲  └──▶ link 1 ══ …  ════════════════  ├─ the far server
//!               │                                      │
//!               └── lost: sent again  ◀── dialer ──────┘
//! ```
//!
//! - [`link`]: one connection. There are several only where the server says that a FLUSH on one
//!   covers what was written on all.
//! - [`queue`]: what waits to be sent, and what has to wait for a write that is sent again.
//! - [`doubt`]: what was answered and not flushed, which a lost connection puts in doubt.
//! - [`dialer`]: makes connections, on a thread of its own, after [`pauses`].
//! - [`recover`]: what becomes of requests when one is lost, and when there is one again.
//! - [`outage`]: the time between, and when requests fail in it.
//! - [`quiesce`]: disconnects for a planned restart, so that nothing is in doubt afterwards.
//! - [`service`]: how long the server takes to answer.
//! - [`notices`]: what the log is told of all that.
//!
//! **A lost connection** is made again. Until then what was asked waits, for so long as
//! [`NbdOptions::reconnect`] says; then it fails with EIO, as does what comes after it, until the
//! server answers. To be reached is not enough for that. What was outstanding on the lost one is
//! sent again, [`NbdOptions::resends`] times: a request may be what ends the server. NBD has no
//! fence: the lost connection's copy of a write may be carried out later, also after a newer write
//! that overlaps it, where the far server lives on and has not noticed.
//!
//! **A connection that this side gives up**, as the server has sent what means nothing or has not
//! answered within [`NbdOptions::answer_timeout`], may have its requests carried out at any time.
//! They fail with EIO, and nothing of them is sent again.
//!
//! A server that comes back as another one (fewer bytes, flags, blocks) is not written to: EIO, for
//! good.

mod dial;
mod dialer;
mod doubt;
mod far;
mod link;
mod notices;
mod outage;
mod pauses;
mod queue;
mod quiesce;
mod recover;
mod service;
mod tls;
mod uri;
mod wire;

pub use dial::{DialError, ask_far};
pub use dialer::NbdDialer;
pub use doubt::AfterReconnect;
pub use far::{Far, Unusable};
pub use quiesce::{QuiesceError, Quiesced};
pub use service::ServiceTimes;
pub use tls::NbdTls;
pub use uri::{NbdPlace, NbdUri, NbdUriError};

use std::collections::{BTreeMap, VecDeque};
use std::io;

use bytes::{Bytes, BytesMut};
use paternoster::{Instant, Nanos};
use paternoster_nbd::NbdError;
use paternoster_nbd::client::{Answer, Reply};
use rustix::io::Errno;
use slotmap::Key as _;

use self::dial::{Dialed, dial};
use self::dialer::Dialer;
use self::doubt::Doubt;
use self::link::{Link, Loss, RECEIVED, SENT};
use self::notices::Notices;
use self::outage::Outage;
use self::queue::{Pending, Queue};
use self::quiesce::{Flush, Stage};
use self::recover::Probe;
use self::service::Service;
use self::wire::{command, errno, in_parts};
use super::{Backend, Capabilities, Extent, Notice, TransferDone};
use crate::engine::{Transfer, TransferId, Transferred, VolumeId};
use crate::ring::{Buffers, Completion, Ring};
use crate::token::{BackendToken, Token};

/// What there is to know of a server before it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdOptions {
    /// Where it is.
    pub uri: NbdUri,
    /// The most connections to it; one where it does not say that there may be more.
    pub connections: u32,
    /// How long requests wait for a connection that was lost; then they fail with EIO.
    pub reconnect: Nanos,
    /// How often a request is sent again whose connection was lost; then it fails with EIO.
    pub resends: u32,
    /// How long a request may wait for its answer; then its connection is given up.
    pub answer_timeout: Nanos,
    /// What becomes of what was answered and not flushed when a connection was lost.
    pub after_reconnect: AfterReconnect,
}

/// The state of a server that is a disk, for statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarStats {
    /// Where it is.
    pub uri: NbdUri,
    /// Connections now.
    pub connections: u32,
    /// Connections that were lost, or given up.
    pub lost: u64,
    /// Requests that were sent again.
    pub sent_again: u64,
    /// Whether what was answered and not flushed is in doubt.
    pub in_doubt: bool,
    /// Whether it was disconnected for a restart.
    pub quiesced: Quiesced,
    /// Whether requests wait for it.
    pub is_paused: bool,
    /// How long it has taken to answer reads and writes in the last 10 to 20 seconds; none where it
    /// answered few.
    pub recent: Option<ServiceTimes>,
    /// The same since it was opened.
    pub usual: Option<ServiceTimes>,
}

/// The operation of the dialer's event.
const DIALED: u8 = 2;

/// An export of another server as a disk.
#[derive(Debug)]
pub struct NbdBackend {
    options: NbdOptions,
    /// Whose back end it is; of none before the owner begins.
    volume: VolumeId,
    /// What the server was when the disk was opened.
    far: Far,
    dialer: Dialer,
    /// The connections; none where one is being made.
    links: Vec<Option<Link>>,
    /// Links that were made before the ring was there.
    unwatched: Vec<usize>,
    next_key: u64,
    queue: Queue,
    /// What was sent and is not answered, by its cookie, and so in the order of sending.
    sent: BTreeMap<u64, Sent>,
    next_cookie: u64,
    doubt: Doubt,
    done: VecDeque<TransferDone>,
    /// Connections beside the first that wait until it has shown that they lead to one server.
    extras: Vec<(usize, Dialed)>,
    probe: Option<Probe>,
    /// Since when the connections of this generation answer what they are asked.
    useful_since: Option<Instant>,
    outage: Option<Outage>,
    quiesce: Stage,
    /// The FLUSH after which the server is disconnected, until it is answered.
    flush: Option<Flush>,
    service: Service,
    /// In what the server has become another one: then nothing is asked of it any more.
    changed: Option<String>,
    notices: Notices,
    lost: u64,
    sent_again: u64,
    /// The latest moment that it was told of.
    now: Instant,
}

/// What becomes of a transfer that begins.
enum Fate {
    /// The server is asked for this.
    Asked(Transfer),
    /// It is over.
    Over(Transferred),
}

/// A transfer that waits for its answer.
#[derive(Debug)]
struct Sent {
    pending: Pending,
    link: usize,
    /// When it was asked for.
    since: Instant,
    /// Of a sync: what it covers.
    covers: u64,
}

impl NbdBackend {
    /// Connects to the server, which becomes a disk of this size and these abilities. `dialer`
    /// makes the connections that come later.
    ///
    /// # Errors
    ///
    /// Where it cannot be reached, or does not show the export.
    pub fn open(options: NbdOptions, dialer: &NbdDialer) -> io::Result<Self> {
        let first = dial(&options.uri).map_err(io::Error::other)?;
        let far = first.far;
        let dialer = Dialer::new(options.uri.clone(), dialer)?;
        let (mut notices, mut wanted) = (Vec::new(), options.connections.max(1));
        if wanted > 1 && !far.allows_several_connections() {
            wanted = 1;
            notices.push(Notice::Info(format!(
                "one connection to {}: it does not say that there may be more (CAN_MULTI_CONN)",
                options.uri
            )));
        }
        if !far.flushes() {
            notices.push(Notice::Warning(format!(
                "{} cannot flush: clients are offered neither FLUSH nor FUA",
                options.uri
            )));
        }
        let mut backend = Self {
            doubt: Doubt::new(options.after_reconnect, far.flushes()),
            options,
            volume: VolumeId::null(),
            far,
            dialer,
            links: (0..wanted).map(|_| None).collect(),
            unwatched: Vec::new(),
            next_key: 0,
            queue: Queue::default(),
            sent: BTreeMap::new(),
            next_cookie: 0,
            done: VecDeque::new(),
            extras: Vec::new(),
            probe: None,
            useful_since: None,
            outage: None,
            quiesce: Stage::InUse,
            flush: None,
            service: Service::default(),
            changed: None,
            notices: Notices::ready(notices),
            lost: 0,
            sent_again: 0,
            now: Instant::START,
        };
        backend.add_link(0, first);
        // The others may come when they come: a server may admit fewer.
        (1..backend.links.len()).for_each(|extra| backend.dialer.want_extra(extra));
        Ok(backend)
    }

    /// Returns what the server was when the disk was opened.
    pub fn opened(&self) -> &Far {
        &self.far
    }

    fn add_link(&mut self, index: usize, dialed: Dialed) {
        self.links[index] = Some(Link::new(dialed, self.next_key));
        self.next_key += 1;
        self.unwatched.push(index);
    }

    fn end(&mut self, id: TransferId, transferred: Transferred) {
        self.done.push_back(TransferDone { id, transferred });
    }

    /// What is to become of a transfer: some need no server, and of some none can be asked.
    fn judge(&self, transfer: Transfer) -> Fate {
        let done = |len| Fate::Over(Transferred::new(Ok(len), Buffers::new()));
        match transfer {
            Transfer::Sync { .. } if self.is_durable() && !self.may_ask() => done(0),
            _ if self.changed.is_some() || self.outage.is_some_and(|outage| outage.fails()) => {
                Fate::Over(Transferred::given_up(Errno::IO))
            }
            Transfer::Sync { .. } if !self.far.flushes() => done(0),
            Transfer::Sync { .. } if self.doubt.is_raised() => {
                Fate::Over(Transferred::new(Err(Errno::IO), Buffers::new()))
            }
            Transfer::Trim { len, .. } if !self.far.trims() => done(len),
            Transfer::Cache { len, .. } if !self.far.caches() => done(len),
            Transfer::Zero { offset, len, .. } if !self.far.zeroes() => {
                let len = usize::try_from(len).expect("a transfer is shorter than memory");
                let from = Buffers::from_buf([Bytes::from(vec![0; len])]);
                Fate::Asked(Transfer::Write { offset, from })
            }
            transfer => Fate::Asked(transfer),
        }
    }

    /// Whether everything that was answered is durable, so that a sync succeeds without the server.
    fn is_durable(&self) -> bool {
        self.changed.is_none() && self.doubt.is_durable()
    }

    /// Whether the server may be asked: it is not away for good or for a while.
    fn may_ask(&self) -> bool {
        self.is_connected() && !self.outage.is_some_and(|outage| outage.fails())
    }

    /// Whether more may be asked of a connection.
    fn is_connected(&self) -> bool {
        self.links.iter().flatten().any(Link::is_open)
    }

    /// Has what may be sent asked of the connections, the least busy one each time.
    fn ask_what_may_be(&mut self) {
        while !self.quiesce.holds() {
            let open = self.links.iter().enumerate();
            let open = open.filter_map(|(index, link)| Some((index, link.as_ref()?)));
            let open = open.filter(|(_, link)| link.is_open());
            let Some((index, _)) = open.min_by_key(|(_, link)| link.in_flight()) else { return };
            let is_busy = !self.sent.is_empty();
            let Some(pending) = self.queue.next(is_busy) else { return };
            let cookie = self.next_cookie;
            self.next_cookie += 1;
            let link = self.links[index].as_mut().expect("it is open");
            if link.ask(cookie, command(&pending.transfer)).is_err() {
                // Longer than any request may be, which the engine does not give.
                self.end(pending.id, Transferred::new(Err(Errno::IO), Buffers::new()));
                continue;
            }
            self.sent_again += u64::from(pending.losses > 0);
            self.queue.handle_sent(cookie, &pending);
            let covers = self.doubt.covered();
            self.sent.insert(cookie, Sent { pending, link: index, since: self.now, covers });
        }
    }

    fn send(&mut self, ring: &mut Ring<Token>) {
        self.ask_what_may_be();
        self.go_on_quiescing();
        let volume = self.volume;
        self.links.iter_mut().flatten().for_each(|link| link.send(ring, volume));
    }

    fn handle_received(
        &mut self,
        ring: &mut Ring<Token>,
        index: usize,
        (result, input): (Result<u32, Errno>, BytesMut),
    ) {
        let volume = self.volume;
        let Some(link) = &mut self.links[index] else { return };
        link.handle_received(input);
        match result {
            Ok(0) => return self.lose(index, &Loss::Closed),
            Err(errno) => return self.lose(index, &Loss::of(errno)),
            Ok(_) => {}
        }
        loop {
            let Some(link) = &mut self.links[index] else { return };
            match link.take_reply() {
                Ok(Some(reply)) => self.handle_reply(index, reply),
                Ok(None) if link.has_left() => return self.close_left(),
                Ok(None) => match link.open() {
                    Ok(true) => {}
                    Ok(false) => return link.receive(ring, volume),
                    Err(loss) => return self.lose(index, &loss),
                },
                Err(error) => return self.lose(index, &Loss::Garbage(error)),
            }
        }
    }

    fn handle_reply(&mut self, index: usize, reply: Reply) {
        let Reply { cookie, result } = reply;
        let is_going = matches!(&result, Err(remote) if remote.error == NbdError::Shutdown);
        if is_going {
            self.handle_shutdown(index);
        } else {
            self.handle_life(index, cookie);
        }
        self.queue.handle_end(cookie);
        if self.handle_quiesce_flush(cookie, &result) {
            return;
        }
        let Some(Sent { pending, covers, since, .. }) = self.sent.remove(&cookie) else { return };
        if is_going {
            // It was not carried out.
            return self.put_back(vec![pending]);
        }
        if matches!(pending.transfer, Transfer::Read { .. } | Transfer::Write { .. }) {
            self.service.count(self.now, self.now.saturating_since(since));
        }
        let len = pending.transfer.len();
        let transferred = match (result, &pending.transfer) {
            (Ok(Answer::Data(data)), Transfer::Read { parts, .. }) => {
                Transferred::new(Ok(len), in_parts(&data, parts))
            }
            (Ok(_), Transfer::Sync { .. }) => {
                self.doubt.handle_flush(covers);
                // Meanwhile another connection may have been lost.
                let result = if self.doubt.is_raised() { Err(Errno::IO) } else { Ok(0) };
                Transferred::new(result, Buffers::new())
            }
            (Ok(_), _) => {
                if pending.writes() {
                    self.doubt.handle_answer();
                }
                Transferred::new(Ok(len), Buffers::new())
            }
            (Err(remote), _) => Transferred::new(Err(errno(remote.error)), Buffers::new()),
        };
        self.end(pending.id, transferred);
    }

    fn watch_links(&mut self, ring: &mut Ring<Token>) {
        let volume = self.volume;
        for index in std::mem::take(&mut self.unwatched) {
            if let Some(link) = &mut self.links[index] {
                link.receive(ring, volume);
            }
        }
    }

    fn watch_dialer(&self, ring: &mut Ring<Token>) {
        let token = Token::Backend(self.volume, BackendToken { key: 0, operation: DIALED });
        ring.poll_readable(token, self.dialer.fd());
    }
}

impl Backend for NbdBackend {
    fn capabilities(&self) -> Capabilities {
        self.far.capabilities()
    }

    fn start(&mut self, _: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        self.now = now;
        match self.judge(transfer) {
            Fate::Asked(transfer) => self.queue.push(Pending::new(id, transfer)),
            Fate::Over(transferred) => self.end(id, transferred),
        }
    }

    fn begin(&mut self, ring: &mut Ring<Token>, volume: VolumeId) {
        self.volume = volume;
        self.watch_dialer(ring);
        self.watch_links(ring);
    }

    fn all_started(&mut self, ring: &mut Ring<Token>) {
        self.send(ring);
    }

    fn ring_event(
        &mut self,
        ring: &mut Ring<Token>,
        now: Instant,
        completion: Completion<BackendToken>,
    ) {
        self.now = now;
        let Completion { token: BackendToken { key, operation }, result, output } = completion;
        if operation == DIALED {
            self.watch_dialer(ring);
            return self.take_dialed(ring);
        }
        let has_key = |link: &Option<Link>| link.as_ref().is_some_and(|link| link.key() == key);
        // What belongs to a connection that is no more says nothing.
        let Some(index) = self.links.iter().position(has_key) else { return };
        match (operation, result) {
            (RECEIVED, result) => {
                let input = output.into_buffers().pop().unwrap_or_default();
                self.handle_received(ring, index, (result, input));
                self.watch_links(ring);
                self.send(ring);
            }
            (SENT, Ok(_)) => {
                let volume = self.volume;
                if let Some(link) = &mut self.links[index] {
                    link.handle_sent(output.into_unsent());
                    link.send(ring, volume);
                }
            }
            (SENT, Err(errno)) => self.lose(index, &Loss::of(errno)),
            _ => {}
        }
    }

    fn grow(&mut self, size: u64) -> io::Result<()> {
        let shown = self.links.iter().flatten().map(Link::size).min().unwrap_or_default();
        if shown < size {
            let uri = &self.options.uri;
            return Err(io::Error::other(format!("connections to {uri} show {shown} bytes")));
        }
        self.far.set_size(size);
        Ok(())
    }

    fn quiesce(&mut self, now: Instant) -> Result<(), QuiesceError> {
        self.now = now;
        self.begin_quiesce()
    }

    fn resume(&mut self, now: Instant) {
        self.now = now;
        self.end_quiesce();
    }

    fn begin_end(&mut self, now: Instant) {
        self.now = now;
        self.end_quiesce();
        self.options.reconnect = Nanos::ZERO;
        self.notices.end();
        self.handle_what_is_due();
    }

    fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        self.now = now;
        self.handle_what_is_due();
        self.done.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.done.is_empty() {
            return Some(Instant::START);
        }
        let outage =
            self.outage.and_then(|outage| outage.due(self.options.reconnect, self.waiting() > 0));
        [outage, self.answer_due(), self.notices.due()].into_iter().flatten().min()
    }

    fn extents(&self, _offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len, hole: false }])
    }

    fn rotational_because(&self) -> String {
        let is = if self.far.is_rotational() { "says" } else { "does not say" };
        format!("{} {is} that it is rotational", self.options.uri)
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        self.notices.take()
    }

    fn warnings(&self, now: Instant) -> Vec<String> {
        let uri = &self.options.uri;
        let outage = self.outage.filter(|_| self.changed.is_none()).map(|outage| {
            let seconds = now.saturating_since(outage.since).as_nanos() / 1_000_000_000;
            let does = if outage.fails() { "gets EIO" } else { "waits" };
            format!("{uri} has been lost for {seconds} s: what is asked for {does}")
        });
        let changed = self.changed.as_ref().map(|difference| {
            format!(
                "{uri} is not what it was: {difference}; everything gets EIO until it is opened \
                 again"
            )
        });
        let doubt = self
            .doubt
            .is_raised()
            .then(|| format!("{uri} may have lost writes that were not flushed: flushes get EIO"));
        let quiesced = match self.quiesce {
            Stage::Quiesced { since } => Some(format!(
                "{uri} has been quiesced for {} s: requests wait until `ctl volume resume`",
                now.saturating_since(since).as_nanos() / 1_000_000_000
            )),
            _ => None,
        };
        let slow = self.service.warning(now).map(|text| format!("{uri} {text}"));
        [outage, quiesced, changed, doubt, slow].into_iter().flatten().collect()
    }

    fn is_paused(&self) -> bool {
        self.quiesce.holds() || self.outage.is_some_and(|outage| outage.waits())
    }

    fn far(&self, now: Instant) -> Option<FarStats> {
        let connections = self.links.iter().flatten().count();
        Some(FarStats {
            uri: self.options.uri.clone(),
            connections: u32::try_from(connections).unwrap_or(u32::MAX),
            lost: self.lost,
            sent_again: self.sent_again,
            in_doubt: self.doubt.is_raised(),
            quiesced: self.quiesce.shown(),
            is_paused: self.is_paused(),
            recent: self.service.recent(now),
            usual: self.service.usual(),
        })
    }
}

impl Drop for NbdBackend {
    fn drop(&mut self) {
        self.links.drain(..).flatten().for_each(Link::leave);
    }
}
