//! What becomes of requests when a connection is lost, and when there is one again.
//!
//! ```text
//!   lost ──▶ nothing more is asked of the other connections; each is closed when all is answered
//!              └── all are gone: a new generation, of one connection first
//!                    └── it has answered: further ones are made
//! ```
//!
//! **Generations.** The server may have been restarted behind a lost connection, while another one
//! seems to live. A FLUSH of the new server would not cover what the old one answered. So there are
//! never connections to both: the next generation begins when the last one is gone, and a further
//! connection is used only once the first has answered something that it was asked after the
//! further one was made. Then both lead to the same server.
//!
//! **The end of waiting.** What waits fails once the [outage](super::outage) has lasted for too
//! long, once it has been sent again too often, and where it is put back too long after it was put
//! back first: the server may answer others, and never this one.

use std::fmt::Write as _;

use paternoster::Instant;
use paternoster_nbd::Command;
use rustix::io::Errno;

use super::dial::Dialed;
use super::dialer::Told;
use super::link::{Link, Loss};
use super::notices::Subject;
use super::outage::Outage;
use super::pauses::USEFUL_LIFE;
use super::queue::Pending;
use super::quiesce::QuiesceError;
use super::{NbdBackend, NbdOptions};
use crate::engine::{TransferId, Transferred};
use crate::ring::{Buffers, Ring};
use crate::token::Token;

/// A read whose answer shows that the server has lived since it was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) cookie: u64,
    since: Instant,
    /// Further connections that were there when it was asked.
    extras: usize,
}

/// Bytes that a probe reads, or a block where that is longer.
const PROBED: u32 = 512;

/// So many of them, in words.
fn requests(count: usize) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

impl NbdBackend {
    /// A connection is no more: what was outstanding on it is sent again, or fails where it was
    /// given up.
    pub(super) fn lose(&mut self, index: usize, loss: &Loss) {
        let Some(link) = self.links[index].take() else { return };
        self.lost += 1;
        link.close();
        self.flush.take_if(|flush| flush.link == index);
        let outstanding = self.take_outstanding(index);
        self.tell_loss(loss, outstanding.len());
        if loss.is_given_up() || self.changed.is_some() {
            self.give_up(outstanding);
        } else {
            let again = |pending: Pending| Pending { losses: pending.losses + 1, ..pending };
            self.put_back(outstanding.into_iter().map(again).collect());
        }
        self.end_generation();
        if self.changed.is_none() {
            let now = self.now;
            let outage = self.outage.get_or_insert_with(|| Outage::new(now));
            if outage.handle_loss() {
                self.give_everything_up();
            }
        }
        self.fail_quiesce(QuiesceError::Lost);
        self.fail_overdue();
    }

    /// Puts back what was sent and not answered, except for what was sent again too often, or has
    /// waited for too long.
    pub(super) fn put_back(&mut self, mut outstanding: Vec<Pending>) {
        let now = self.now;
        for pending in &mut outstanding {
            pending.waits_since.get_or_insert(now);
        }
        let NbdOptions { uri, resends, reconnect, .. } = &self.options;
        let (often, rest): (Vec<_>, Vec<_>) =
            outstanding.into_iter().partition(|pending| pending.losses > *resends);
        let has_time = |pending: &Pending| {
            // What has only now been lost may yet be asked of the next server.
            pending.waits_since.is_none_or(|since| now == since || now < since + *reconnect)
        };
        let (rest, late): (Vec<_>, Vec<_>) = rest.into_iter().partition(has_time);
        let often_text = format!(
            "{uri}: EIO for {}, sent again {resends} times (resends) and lost each time with the \
             connection; perhaps one of them is what ends the server",
            requests(often.len())
        );
        let late_text = format!(
            "{uri}: EIO for {}, not answered within {} ms (reconnect), though others are",
            requests(late.len()),
            reconnect.as_nanos() / 1_000_000
        );
        self.queue.put_back(rest.into_iter());
        for (failing, text) in [(often, often_text), (late, late_text)] {
            if !failing.is_empty() {
                self.notices.warn(Subject::GivenUp, text);
                self.give_up(failing);
            }
        }
    }

    /// What was sent on the connection and is not answered, in the order of sending.
    fn take_outstanding(&mut self, index: usize) -> Vec<Pending> {
        let cookies = self.sent.iter().filter(|(_, sent)| sent.link == index);
        let cookies: Vec<u64> = cookies.map(|(&cookie, _)| cookie).collect();
        for &cookie in &cookies {
            self.queue.handle_end(cookie);
        }
        let taken = cookies.iter().filter_map(|cookie| self.sent.remove(cookie));
        taken.map(|sent| sent.pending).collect()
    }

    fn tell_loss(&mut self, loss: &Loss, outstanding: usize) {
        let mut text = format!("a connection to {} ", self.options.uri);
        let _ = match loss {
            Loss::Closed => write!(text, "was closed by the server"),
            Loss::Failed(errno) => write!(text, "is lost: {errno}"),
            Loss::Silent => write!(text, "is given up: the server is silent"),
            Loss::Unanswered => write!(
                text,
                "is given up: a request was not answered within {} ms (answer_timeout)",
                self.options.answer_timeout.as_nanos() / 1_000_000
            ),
            Loss::Garbage(error) => write!(text, "is given up: {error}"),
            Loss::Tls(error) => write!(text, "is given up: TLS: {error}"),
        };
        let _ = if loss.is_given_up() {
            write!(text, "; EIO for {}, which may yet be carried out", requests(outstanding))
        } else {
            write!(text, "; {} to be sent again", requests(outstanding))
        };
        self.notices.warn(Subject::Lost, text);
    }

    /// The server is going: it answers no more, on any connection.
    pub(super) fn handle_shutdown(&mut self, index: usize) {
        if !self.links[index].as_ref().is_some_and(Link::is_open) {
            return;
        }
        let text = format!("{} is shutting down: requests wait for the next one", self.options.uri);
        self.notices.warn(Subject::Lost, text);
        let now = self.now;
        let ends_trial = self.outage.get_or_insert_with(|| Outage::new(now)).handle_loss();
        self.leave_all();
        self.fail_quiesce(QuiesceError::Lost);
        if ends_trial {
            self.give_everything_up();
        }
    }

    /// Nothing more is asked of the connections that there are; those that owe nothing are closed.
    fn end_generation(&mut self) {
        self.leave_all();
        self.close_left();
    }

    pub(super) fn leave_all(&mut self) {
        self.probe = None;
        self.extras.clear();
        self.dialer.want_nothing();
        self.links.iter_mut().flatten().for_each(Link::set_leaving);
    }

    /// Closes the connections that have left, and begins the next generation where all have.
    pub(super) fn close_left(&mut self) {
        for slot in &mut self.links {
            if slot.as_ref().is_some_and(Link::has_left) {
                slot.take().into_iter().for_each(Link::leave);
            }
        }
        if self.doubt.handle_loss() {
            let text = format!(
                "{}: what it answered and did not flush is in doubt: every FLUSH and every FUA \
                 command gets EIO until it is opened again (after_reconnect = \"trust\" would \
                 say that its cache survives)",
                self.options.uri
            );
            self.notices.warn(Subject::Doubt, text);
        }
        self.fail_doubtful_syncs();
        let is_wanted = self.changed.is_none() && !self.quiesce.is_quiesced();
        if is_wanted && self.links.iter().all(Option::is_none) {
            let useful = self.useful_since.take();
            let was_useful = useful.is_some_and(|since| self.now >= since + USEFUL_LIFE);
            self.dialer.want_first(was_useful);
        }
    }

    /// Where something is in doubt, no sync that waits can succeed.
    pub(super) fn fail_doubtful_syncs(&mut self) {
        if self.doubt.is_raised() {
            self.end_syncs(Err(Errno::IO));
        }
    }

    /// Ends all syncs that wait.
    pub(super) fn end_syncs(&mut self, result: Result<u64, Errno>) {
        let (syncs, others): (Vec<_>, Vec<_>) =
            self.queue.drain().partition(|pending| matches!(pending.id, TransferId::Sync(_)));
        self.queue.put_back(others.into_iter());
        for pending in syncs {
            self.end(pending.id, Transferred::new(result, Buffers::new()));
        }
    }

    /// Does what is due by now.
    pub(super) fn handle_what_is_due(&mut self) {
        while let Some((_, index)) = self.oldest().filter(|&(since, _)| self.is_overdue(since)) {
            self.lose(index, &Loss::Unanswered);
        }
        self.fail_overdue();
        let (now, waits) = (self.now, self.waiting() > 0);
        if self.outage.is_some_and(|outage| outage.has_passed(now, waits)) {
            self.end_outage();
        }
        self.notices.advance(now);
    }

    /// What has waited longest for its answer: since when, and on which connection.
    fn oldest(&self) -> Option<(Instant, usize)> {
        let sent = self.sent.values().next().map(|sent| (sent.since, sent.link));
        let probe = self.probe.map(|probe| (probe.since, 0));
        let flush = self.flush.map(|flush| (flush.since, flush.link));
        sent.into_iter().chain(probe).chain(flush).min()
    }

    fn is_overdue(&self, since: Instant) -> bool {
        self.now >= since + self.options.answer_timeout
    }

    /// When a connection is given up, unless an answer comes before.
    pub(super) fn answer_due(&self) -> Option<Instant> {
        self.oldest().map(|(since, _)| since + self.options.answer_timeout)
    }

    /// Requests that wait, to be sent or to be answered.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len() + self.sent.len()
    }

    /// Has all that waits fail once an outage has lasted for too long, and gives up the connections
    /// that may be there.
    fn fail_overdue(&mut self) {
        let (now, reconnect) = (self.now, self.options.reconnect);
        if !self.outage.as_mut().is_some_and(|outage| outage.begin_to_fail(now, reconnect)) {
            return;
        }
        let text = format!(
            "{} has not come back within {} ms (reconnect): EIO for {}, and for others until it \
             answers",
            self.options.uri,
            reconnect.as_nanos() / 1_000_000,
            requests(self.waiting())
        );
        self.notices.warn(Subject::Failing, text);
        self.give_everything_up();
    }

    /// Closes all connections, and has everything fail that waits or is outstanding.
    fn give_everything_up(&mut self) {
        self.fail_quiesce(QuiesceError::Lost);
        self.flush = None;
        let has_links = self.links.iter().any(Option::is_some);
        self.links.iter_mut().filter_map(Option::take).for_each(Link::close);
        for (cookie, sent) in std::mem::take(&mut self.sent) {
            self.queue.handle_end(cookie);
            self.give_up([sent.pending]);
        }
        let waiting: Vec<_> = self.queue.drain().collect();
        self.give_up(waiting);
        if has_links {
            self.end_generation();
        }
    }

    /// Has requests fail that may be carried out all the same; a sync only if it had something to
    /// make durable.
    fn give_up(&mut self, pending: impl IntoIterator<Item = Pending>) {
        for pending in pending {
            let is_sync = matches!(pending.id, TransferId::Sync(_));
            let transferred = if is_sync && self.is_durable() {
                Transferred::new(Ok(0), Buffers::new())
            } else {
                Transferred::given_up(Errno::IO)
            };
            self.end(pending.id, transferred);
        }
    }

    /// Takes what the dialer has to say.
    pub(super) fn take_dialed(&mut self, ring: &mut Ring<Token>) {
        for told in self.dialer.take() {
            match told {
                Told::Unreachable(why) => {
                    let text = format!("{} cannot be used: {why}", self.options.uri);
                    self.notices.warn(Subject::Unreachable, text);
                }
                Told::Dialed(..) if self.changed.is_some() || self.quiesce.holds() => {}
                Told::Dialed(index, dialed) => self.handle_dialed(index, *dialed),
            }
        }
        self.watch_links(ring);
        self.send(ring);
    }

    fn handle_dialed(&mut self, index: usize, dialed: Dialed) {
        if let Some(difference) = self.far.difference(&dialed.far) {
            let text = format!(
                "{} is not what it was: {difference}; everything gets EIO until it is opened again",
                self.options.uri
            );
            self.notices.warn(Subject::Changed, text);
            self.changed = Some(difference);
            self.outage = None;
            return self.give_everything_up();
        }
        let has_first = self.links[0].as_ref().is_some_and(Link::is_open);
        if index == 0 {
            self.add_link(0, dialed);
            (1..self.links.len()).for_each(|extra| self.dialer.want_extra(extra));
            self.begin_probe();
        } else if has_first {
            self.extras.push((index, dialed));
            self.begin_probe();
        }
        // One that comes when its generation is over is let go.
    }

    /// Asks the first connection for something, unless that is under way.
    fn begin_probe(&mut self) {
        let Some(first) = self.links[0].as_mut().filter(|link| link.is_open()) else { return };
        if self.probe.is_some() {
            return;
        }
        let (cookie, extras) = (self.next_cookie, self.extras.len());
        self.next_cookie += 1;
        let len = PROBED.max(self.far.capabilities().block);
        let len = u32::try_from(self.far.size()).map_or(len, |size| size.min(len));
        // It is no longer than the server takes, and has a new name.
        if first.ask(cookie, Command::Read { offset: 0, len, df: false }).is_ok() {
            self.probe = Some(Probe { cookie, since: self.now, extras });
        }
    }

    /// The server has answered something on a connection of this generation.
    pub(super) fn handle_life(&mut self, index: usize, cookie: u64) {
        if !self.links[index].as_ref().is_some_and(Link::is_open) {
            return;
        }
        if self.sent.contains_key(&cookie) {
            self.useful_since.get_or_insert(self.now);
            self.end_outage();
        }
        if self.probe.is_some_and(|probe| probe.cookie == cookie) {
            self.handle_probe();
        }
    }

    fn handle_probe(&mut self) {
        let Some(probe) = self.probe.take() else { return };
        let (now, waits) = (self.now, self.waiting() > 0);
        if self.outage.as_mut().is_some_and(|outage| outage.handle_probe(now, waits)) {
            self.end_outage();
        }
        let proven: Vec<_> = self.extras.drain(..probe.extras).collect();
        for (index, dialed) in proven {
            self.add_link(index, dialed);
        }
        if !self.extras.is_empty() {
            self.begin_probe();
        }
    }

    fn end_outage(&mut self) {
        if self.outage.take().is_some() {
            let waiting = requests(self.waiting());
            let text = format!("{} is connected again: {waiting} to go on with", self.options.uri);
            self.notices.info(Subject::Connected, text);
        }
    }
}
