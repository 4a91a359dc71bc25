//! The habits of clients: after a reply they ask at once, think for a time, or reconnect.

use std::cmp::Reverse;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use paternoster_disk::MonotonicClock;
use rustix::net::Shutdown;

use crate::{Client, Load};

/// What the clients of a tenant do between a reply and their next request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit {
    /// How long they wait before they ask again, at least.
    pub think: Duration,
    /// How much longer they wait at most: each time a part of this, drawn anew.
    pub think_more: Duration,
    /// Whether they disconnect at once, and connect anew before they ask again. For connections
    /// with one request outstanding.
    pub reconnects: bool,
}

impl Load {
    /// Gives the clients of a tenant, by its place among the loads, a habit; before they start.
    ///
    /// # Panics
    ///
    /// Where there is no such tenant, or it is to reconnect with several requests outstanding.
    pub fn set_habit(&mut self, tenant: usize, habit: Habit) {
        let depth = self.tenants[tenant].0.depth;
        assert!(!habit.reconnects || depth == 1, "{depth} requests outstanding, 1 is allowed");
        self.habits[tenant] = habit;
    }

    /// The client asks again, now or when it has thought; while the load pauses, after that.
    pub(crate) fn ask_again(&mut self, index: usize, cookie: u64) -> Result<()> {
        let Habit { think, think_more, reconnects } = self.habit_of(index);
        if self.asking && think == Duration::ZERO && think_more == Duration::ZERO && !reconnects {
            return self.ask(index, cookie);
        }
        if reconnects {
            let socket = &self.clients[index].socket;
            rustix::net::shutdown(socket, Shutdown::Both).context("a connection is lost")?;
        }
        let [least, more] = [think, think_more].map(|part| u64::try_from(part.as_nanos()));
        let least = least.context("a thought of centuries")?;
        let think = least + self.random.u64(..=more.context("a thought of centuries")?);
        self.due.push(Reverse((MonotonicClock::monotonic_now() + think, index, cookie)));
        Ok(())
    }

    /// Returns whether the connection ends with its reply.
    pub(crate) fn is_over(&self, index: usize) -> bool {
        self.habit_of(index).reconnects
    }

    /// When the next client has thought.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((at, ..))| *at)
    }

    /// Has those ask that have thought.
    pub(crate) fn ask_due(&mut self) -> Result<()> {
        let now = MonotonicClock::monotonic_now();
        while self.asking && self.next_due().is_some_and(|at| at <= now) {
            let Reverse((_, index, cookie)) = self.due.pop().expect("it was looked at");
            if self.is_over(index) {
                self.connect_anew(index)?;
            }
            self.ask(index, cookie)?;
            self.send(index);
        }
        Ok(())
    }

    fn connect_anew(&mut self, index: usize) -> Result<()> {
        let tenant = self.clients[index].tenant;
        let socket: &Path = &self.socket;
        self.clients[index] = Client::connect(socket, tenant, &self.tenants[tenant].0)?;
        self.receive(index, bytes::BytesMut::new());
        Ok(())
    }

    fn habit_of(&self, index: usize) -> Habit {
        self.habits[self.clients[index].tenant]
    }
}
