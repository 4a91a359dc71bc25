//! k servers with one queue, whose times are random; their number and their pace may change.
//!
//! ```text
//!               ┌ server 1  ├── a ──┤├─ c ─┤
//!   c, d, e ──▶ ┤                                 time = service × pace at its start × crowd
//!               └ server 2  ├─ b ─┤├──── d ────┤
//! ```

use std::collections::VecDeque;
use std::f64::consts::PI;

use paternoster::{Instant, Nanos};

use super::ends::Ends;
use super::serves::Serves;
use crate::closed_loop::chance::{Chance, Service};
use crate::model::Command;

/// How servers are made.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolParameters {
    /// How many there are: one number after the other, each for `every`; then again.
    pub servers: Vec<u32>,
    /// For how long each number holds.
    pub every: Nanos,
    /// How long one takes.
    pub service: Service,
    /// How that changes with time.
    pub pace: Pace,
    /// How it changes with what is in the device.
    pub crowd: Crowd,
}

impl PoolParameters {
    /// Servers that never change.
    pub fn new(servers: u32, service: Service) -> Self {
        let (pace, crowd) = (Pace::Steady, Crowd { beyond: u32::MAX, each: 0.0 });
        Self { servers: vec![servers], every: Nanos::new(u64::MAX), service, pace, crowd }
    }
}

/// How fast servers are over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Always the same.
    Steady,
    /// From then on since the start they take so many times as long.
    Slows {
        /// From when on.
        from: Nanos,
        /// How many times.
        times: f64,
    },
    /// Their times swing as a sine, by this part of the mean either way.
    Swings {
        /// How long one swing takes.
        period: Nanos,
        /// 0 to 1.
        part: f64,
    },
}

/// How commands hinder each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowd {
    /// So many in the device do not.
    pub beyond: u32,
    /// Each further one makes what begins take longer by this part.
    pub each: f64,
}

/// Servers with one queue.
#[derive(Debug)]
pub(super) struct Pool {
    parameters: PoolParameters,
    /// How many there are now.
    servers: u32,
    /// The number of the next change.
    change: u64,
    busy: u32,
    /// Commands that wait for a server, and since when.
    waiting: VecDeque<(Instant, Command)>,
    /// The tags of the commands that are served.
    ends: Ends<u32>,
    chance: Chance,
}

impl Pool {
    pub(super) fn new(parameters: PoolParameters, chance: Chance) -> Self {
        let servers = parameters.servers[0];
        let (waiting, ends) = (VecDeque::new(), Ends::default());
        Self { parameters, servers, change: 1, busy: 0, waiting, ends, chance }
    }

    /// When the number of servers changes next.
    fn next_change(&self) -> Instant {
        let after = self.parameters.every.as_nanos().saturating_mul(self.change);
        Instant::START + Nanos::new(after)
    }

    /// Changes the number of servers as of `at`.
    fn change(&mut self, at: Instant) {
        let numbers = &self.parameters.servers;
        let index = self.change % numbers.len() as u64;
        self.servers = numbers[usize::try_from(index).expect("it is below a length")];
        self.change += 1;
        self.start_waiting(at);
    }

    fn start_waiting(&mut self, at: Instant) {
        while self.busy < self.servers {
            let Some((since, command)) = self.waiting.pop_front() else { return };
            self.busy += 1;
            // Whoever hears late of an end submits what follows late.
            let at = at.max(since);
            let slower = self.slower(at);
            let service = self.parameters.service.draw(&mut self.chance, &command, slower);
            self.ends.push(at + service, command.tag);
        }
    }

    /// How many times as long a command takes that begins now.
    fn slower(&self, at: Instant) -> f64 {
        let pace = match self.parameters.pace {
            Pace::Slows { from, times } if at.since_start() >= from => times,
            Pace::Steady | Pace::Slows { .. } => 1.0,
            Pace::Swings { period, part } => {
                let turns = seconds(at.since_start()) / seconds(period);
                1.0 + part * libm::sin(2.0 * PI * turns)
            }
        };
        let Crowd { beyond, each } = self.parameters.crowd;
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let surplus = (self.busy + waiting).saturating_sub(beyond);
        pace * (1.0 + each * f64::from(surplus))
    }
}

#[allow(clippy::cast_precision_loss, reason = "spans are far below 2^53 ns")]
fn seconds(span: Nanos) -> f64 {
    span.as_nanos() as f64 / 1e9
}

impl Serves for Pool {
    fn take(&mut self, now: Instant, command: Command) {
        while self.next_change() <= now {
            self.change(self.next_change());
        }
        self.waiting.push_back((now, command));
        self.start_waiting(now);
    }

    fn next(&self) -> Option<Instant> {
        let end = self.ends.next();
        if self.waiting.is_empty() {
            return end;
        }
        Some(end.map_or(self.next_change(), |end| end.min(self.next_change())))
    }

    fn ended(&mut self, now: Instant) -> Option<u32> {
        loop {
            let change = self.next_change();
            if change <= now && self.ends.next().is_none_or(|end| change <= end) {
                self.change(change);
                continue;
            }
            let (end, tag) = self.ends.pop(now)?;
            self.busy -= 1;
            // The next one began when this one ended, however late this is asked.
            self.start_waiting(end);
            return Some(tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, ends, read};
    use super::*;
    use crate::model::Model;

    fn pool(parameters: PoolParameters) -> Pool {
        Pool::new(parameters, Chance::new(1, 1))
    }

    #[test]
    fn third_command_waits_for_the_first_of_two_servers() {
        let mut pool = pool(PoolParameters::new(2, Service::constant(80.0)));
        for (us, tag) in [(0, 0), (10, 1), (20, 2)] {
            pool.submit(at(us), read(tag));
        }
        assert_eq!(ends(&mut pool), [(0, 80), (1, 90), (2, 160)]);
    }

    /// The second is served until 160 µs. The third comes at 500, as the driver hears of the first
    /// only then: it cannot have begun at 160.
    #[test]
    fn command_that_comes_late_begins_late() {
        let mut pool = pool(PoolParameters::new(1, Service::constant(80.0)));
        pool.submit(at(0), read(0));
        pool.submit(at(0), read(1));
        assert_eq!(pool.ended(at(500)), Some(0));
        pool.submit(at(500), read(2));
        assert_eq!(pool.ended(at(500)), Some(1));
        assert_eq!(pool.ended(at(500)), None);
        assert_eq!(ends(&mut pool), [(2, 580)]);
    }

    /// Two servers, then one, each for 100 µs. The second half begins with two that are served, and
    /// only when both have ended the next begins.
    #[test]
    fn server_that_is_gone_ends_what_it_has_and_takes_no_more() {
        let service = Service::constant(80.0);
        let every = Nanos::from_micros(100);
        let parameters =
            PoolParameters { servers: vec![2, 1], every, ..PoolParameters::new(1, service) };
        let mut pool = pool(parameters);
        for tag in 0..5 {
            pool.submit(at(0), read(tag));
        }
        // 2 and 3 begin at 80; at 160 one server is left, for 4 until 200, when it ends at 240.
        assert_eq!(ends(&mut pool), [(0, 80), (1, 80), (2, 160), (3, 160), (4, 240)]);
    }

    #[test]
    fn more_servers_take_what_waits_at_once() {
        let service = Service::constant(150.0);
        let every = Nanos::from_micros(100);
        let parameters =
            PoolParameters { servers: vec![1, 3], every, ..PoolParameters::new(1, service) };
        let mut pool = pool(parameters);
        for tag in 0..3 {
            pool.submit(at(0), read(tag));
        }
        assert_eq!(ends(&mut pool), [(0, 150), (1, 250), (2, 250)]);
    }

    /// Beyond one in the device each further one adds a half: with two waiting behind it the second
    /// finds two, and takes 150 µs, the last 100.
    #[test]
    fn crowd_slows_what_begins() {
        let crowd = Crowd { beyond: 1, each: 0.5 };
        let parameters =
            PoolParameters { crowd, ..PoolParameters::new(1, Service::constant(100.0)) };
        let mut pool = pool(parameters);
        for tag in 0..3 {
            pool.submit(at(0), read(tag));
        }
        assert_eq!(ends(&mut pool), [(0, 100), (1, 250), (2, 350)]);
    }

    /// A quarter of a swing after the start the sine is 1: twice the time with a part of 1.
    #[test]
    fn pace_swings_with_the_time_at_which_a_command_begins() {
        let pace = Pace::Swings { period: Nanos::from_micros(400), part: 1.0 };
        let parameters = PoolParameters { pace, ..PoolParameters::new(1, Service::constant(50.0)) };
        let mut pool = pool(parameters);
        pool.submit(at(0), read(0));
        assert_eq!(ends(&mut pool), [(0, 50)]);
        pool.submit(at(100), read(1));
        assert_eq!(ends(&mut pool), [(1, 200)]);
    }
}
