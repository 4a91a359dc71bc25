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

use std::fmt::Write as _;

use paternoster::Instant;
use paternoster_nbd::Command;
use rustix::io::Errno;

use super::NbdBackend;
use super::dial::Dialed;
use super::dialer::Told;
use super::link::{Link, Loss};
use super::queue::Pending;
use crate::backend::Notice;
use crate::engine::{TransferId, Transferred};
use crate::ring::{Buffers, Ring};
use crate::token::Token;

/// A time in which no connection is known to work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    pub(super) since: Instant,
    /// Whether it has lasted so long that requests fail.
    pub(super) fails: bool,
}

/// A read whose answer shows that the server has lived since it was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) cookie: u64,
    /// Further connections that were there when it was asked.
    extras: usize,
}

/// Bytes that a probe reads, or a block where that is longer.
const PROBED: u32 = 512;

impl NbdBackend {
    /// A connection is no more: what was outstanding on it is sent again, or fails where it was
    /// given up.
    pub(super) fn lose(&mut self, now: Instant, index: usize, loss: &Loss) {
        let Some(link) = self.links[index].take() else { return };
        self.lost += 1;
        let is_new = self.fruitless == 0;
        self.fruitless = if link.has_answered() { 0 } else { self.fruitless.saturating_add(1) };
        link.close();
        let outstanding = self.take_outstanding(index);
        if is_new {
            self.tell_loss(loss, outstanding.len());
        }
        if loss.is_given_up() || self.changed.is_some() {
            for pending in outstanding {
                self.give_up(pending.id);
            }
        } else {
            let again = |pending| Pending { is_again: true, ..pending };
            self.queue.put_back(outstanding.into_iter().map(again));
        }
        self.end_generation();
        if self.outage.is_none() && self.changed.is_none() {
            self.outage = Some(Outage { since: now, fails: false });
        }
        self.fail_overdue(now);
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
            Loss::Garbage(error) => write!(text, "is given up: {error}"),
        };
        let _ = if loss.is_given_up() {
            write!(text, "; {outstanding} requests get EIO, and may yet be carried out")
        } else {
            write!(text, "; {outstanding} requests are to be sent again")
        };
        self.notices.push(Notice::Warning(text));
    }

    /// The server is going: it answers no more, on any connection.
    pub(super) fn handle_shutdown(&mut self, now: Instant, index: usize) {
        if self.links[index].as_ref().is_some_and(Link::is_open) {
            self.outage.get_or_insert(Outage { since: now, fails: false });
            self.leave_all();
        }
    }

    /// Nothing more is asked of the connections that there are; those that owe nothing are closed.
    fn end_generation(&mut self) {
        self.leave_all();
        self.close_left();
    }

    fn leave_all(&mut self) {
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
            self.notices.push(Notice::Warning(format!(
                "{}: what it answered and did not flush is in doubt: every FLUSH and every FUA \
                 command gets EIO until this server restarts (after_reconnect = \"trust\" would \
                 say that its cache survives)",
                self.options.uri
            )));
        }
        self.fail_doubtful_syncs();
        if self.links.iter().all(Option::is_none) && self.changed.is_none() {
            self.dialer.want(0, self.fruitless);
        }
    }

    /// Where something is in doubt, no sync that waits can succeed.
    fn fail_doubtful_syncs(&mut self) {
        if !self.doubt.is_raised() {
            return;
        }
        let (syncs, others): (Vec<_>, Vec<_>) =
            self.queue.drain().partition(|pending| pending.id == TransferId::Sync);
        self.queue.put_back(others.into_iter());
        for pending in syncs {
            self.end(pending.id, Transferred::new(Err(Errno::IO), Buffers::new()));
        }
    }

    /// Has all that waits fail once no connection has worked for too long, and gives up those that
    /// may be there.
    pub(super) fn fail_overdue(&mut self, now: Instant) {
        let Some(outage) = &mut self.outage else { return };
        if outage.fails || now.saturating_since(outage.since) < self.options.reconnect {
            return;
        }
        outage.fails = true;
        let failing = self.queue.len() + self.sent.len();
        self.notices.push(Notice::Warning(format!(
            "{} has not come back within {} s: {failing} requests get EIO, and so do others until \
             it does",
            self.options.uri,
            self.options.reconnect.as_nanos() / 1_000_000_000
        )));
        self.give_everything_up();
    }

    /// Closes all connections, and has everything fail that waits or is outstanding.
    fn give_everything_up(&mut self) {
        let has_links = self.links.iter().any(Option::is_some);
        self.links.iter_mut().filter_map(Option::take).for_each(Link::close);
        for (cookie, sent) in std::mem::take(&mut self.sent) {
            self.queue.handle_end(cookie);
            self.give_up(sent.pending.id);
        }
        let waiting: Vec<_> = self.queue.drain().map(|pending| pending.id).collect();
        for id in waiting {
            self.give_up(id);
        }
        if has_links {
            self.fruitless = self.fruitless.saturating_add(1);
            self.end_generation();
        }
    }

    fn give_up(&mut self, id: TransferId) {
        self.end(id, Transferred::given_up(Errno::IO));
    }

    /// Takes what the dialer has to say.
    pub(super) fn take_dialed(&mut self, ring: &mut Ring<Token>) {
        for told in self.dialer.take() {
            match told {
                Told::Unreachable(why) => {
                    let text = format!("{} cannot be used: {why}", self.options.uri);
                    self.notices.push(Notice::Warning(text));
                }
                Told::Dialed(..) if self.changed.is_some() => {}
                Told::Dialed(index, dialed) => self.handle_dialed(index, *dialed),
            }
        }
        self.watch_links(ring);
        self.send(ring);
    }

    fn handle_dialed(&mut self, index: usize, dialed: Dialed) {
        if let Some(difference) = self.far.difference(&dialed.far) {
            self.notices.push(Notice::Warning(format!(
                "{} is not what it was: {difference}; everything gets EIO until this server \
                 restarts",
                self.options.uri
            )));
            self.changed = Some(difference);
            self.outage = None;
            return self.give_everything_up();
        }
        let has_first = self.links[0].as_ref().is_some_and(Link::is_open);
        if index == 0 {
            self.add_link(0, dialed);
            (1..self.links.len()).for_each(|extra| self.dialer.want(extra, 0));
        } else if has_first {
            self.extras.push((index, dialed));
        }
        // One that comes when its generation is over is let go.
        self.begin_probe();
    }

    /// Asks the first connection for something, unless that is under way.
    fn begin_probe(&mut self) {
        let is_needed = self.outage.is_some() || !self.extras.is_empty();
        let Some(first) = self.links[0].as_mut().filter(|link| link.is_open()) else { return };
        if self.probe.is_some() || !is_needed {
            return;
        }
        let (cookie, extras) = (self.next_cookie, self.extras.len());
        self.next_cookie += 1;
        let len = PROBED.max(self.far.capabilities().block);
        let len = u32::try_from(self.far.size()).map_or(len, |size| size.min(len));
        // It is no longer than the server takes, and has a new name.
        if first.ask(cookie, Command::Read { offset: 0, len, df: false }).is_ok() {
            self.probe = Some(Probe { cookie, extras });
        }
    }

    /// The server lives: it has answered something on a connection of this generation.
    pub(super) fn handle_life(&mut self, index: usize, cookie: u64) {
        if !self.links[index].as_ref().is_some_and(Link::is_open) {
            return;
        }
        if self.outage.take().is_some() {
            let waiting = self.queue.len() + self.sent.len();
            self.notices.push(Notice::Info(format!(
                "{} is connected again: {waiting} requests go on",
                self.options.uri
            )));
        }
        let Some(probe) = self.probe.filter(|probe| probe.cookie == cookie) else { return };
        self.probe = None;
        let proven: Vec<_> = self.extras.drain(..probe.extras).collect();
        for (index, dialed) in proven {
            self.add_link(index, dialed);
        }
        self.begin_probe();
    }
}
