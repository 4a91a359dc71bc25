//! k servers, each busy with one command at a time, and one queue in front of them. Their number
//! and their pace may change, and they may have heads that seek.
//!
//! ```text
//!               ┌ server 1  ├── a ──┤├─ c ─┤
//!   c, d, e ──▶ ┤                                 time = service × pace at start × crowd + seek
//!               └ server 2  ├─ b ─┤├──── d ────┤
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::f64::consts::PI;

use paternoster::{Instant, Nanos, Sector};

use crate::ends::Ends;
use crate::parameter_file::{Keys, ParameterError, millis};
use crate::random::{Chances, Who};
use crate::service::Service;
use crate::{Command, Completion, Model, Op, Room, Spent};

/// How servers are made.
#[derive(Clone, Debug, PartialEq)]
pub struct ServersParameters {
    /// How many there are, at least one: one number after the other, each for `every`; then again.
    pub servers: Vec<u32>,
    /// For how long each number holds.
    pub every: Nanos,
    /// How many commands it takes, and how far its sectors go.
    pub room: Room,
    /// How long one takes.
    pub service: Service,
    /// How that changes with time.
    pub pace: Pace,
    /// How it changes with what is in the device.
    pub crowd: Crowd,
    /// What a server takes besides where a command does not begin at the end of its last one.
    pub seek: Option<LinearSeek>,
}

impl ServersParameters {
    /// Servers that never change.
    pub fn new(servers: u32, service: Service) -> Self {
        let (pace, crowd) = (Pace::Steady, Crowd::NONE);
        let (servers, every) = (vec![servers.max(1)], Nanos::new(u64::MAX));
        Self { servers, every, room: Room::default(), service, pace, crowd, seek: None }
    }

    /// How many servers there are, where neither their number nor their times vary.
    pub fn constant(&self) -> Option<u32> {
        let is_steady = self.pace == Pace::Steady && self.crowd == Crowd::NONE;
        let plain =
            Service { per_kib: self.service.per_kib, ..Service::constant(self.service.fixed) };
        let is_plain = self.service == plain;
        match self.servers[..] {
            [servers] if is_steady && is_plain && self.seek.is_none() => Some(servers),
            _ => None,
        }
    }

    /// The same with other room.
    #[must_use]
    pub fn with_room(self, depth: u32, end: Sector) -> Self {
        Self { room: Room { depth, end }, ..self }
    }

    /// Reads the keys of a file of this kind, such as `devices/servers-16x80us.toml`.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let servers = keys.small_or_smalls("servers", 1..=65_536)?;
        let every = match servers.len() {
            1 => Nanos::new(u64::MAX),
            _ => millis(keys.number("every_ms", 0.001..=1e9)?),
        };
        let room = Room::read(keys)?;
        let service = Service::read(keys)?;
        let pace = if keys.has("pace") { keys.table("pace", Pace::read)? } else { Pace::Steady };
        let crowd = if keys.has("crowd") { keys.table("crowd", Crowd::read)? } else { Crowd::NONE };
        Ok(Self { servers, every, room, service, pace, crowd, seek: None })
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

impl Pace {
    /// Reads a table with one of both.
    fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        if keys.has("from_ms") {
            let from = millis(keys.number("from_ms", 0.0..=1e9)?);
            return Ok(Self::Slows { from, times: keys.number("times", 0.0..=1e6)? });
        }
        let period = millis(keys.number("period_ms", 0.001..=1e9)?);
        Ok(Self::Swings { period, part: keys.number("percent", 0.0..=100.0)? / 100.0 })
    }

    /// How many times as long a command takes that begins then.
    fn at(self, at: Instant) -> f64 {
        match self {
            Self::Slows { from, times } if at.since_start() >= from => times,
            Self::Steady | Self::Slows { .. } => 1.0,
            Self::Swings { period, part } => {
                let turns = seconds(at.since_start()) / seconds(period);
                1.0 + part * libm::sin(2.0 * PI * turns)
            }
        }
    }
}

/// How commands hinder each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowd {
    /// So many in the device do not.
    pub beyond: u32,
    /// Each further one makes what begins take longer by this part.
    pub each: f64,
}

impl Crowd {
    /// They do not.
    pub const NONE: Self = Self { beyond: u32::MAX, each: 0.0 };

    fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let beyond = keys.small("beyond", 0..=65_536)?;
        Ok(Self { beyond, each: keys.number("percent_each", 0.0..=1e6)? / 100.0 })
    }
}

/// A device of k servers.
#[derive(Debug)]
pub struct Servers {
    parameters: ServersParameters,
    /// The number of the next change.
    change: u64,
    /// How many servers there are now.
    present: u32,
    busy: u32,
    heads: Option<Heads>,
    /// Commands that wait for a server, and since when.
    waiting: VecDeque<(Instant, Command)>,
    /// Flushes, which take no time and no server: when each came, and its tag.
    flushes: VecDeque<(Instant, u32)>,
    /// The tags and the servers of the commands that are served.
    ends: Ends<(u32, u32)>,
    /// What each command spends, by its tag; valid while it is served. Tags are small.
    spent: Vec<Spent>,
    chances: Chances,
}

impl Servers {
    /// Makes an idle device, whose random times are of that seed.
    pub fn new(parameters: ServersParameters, seed: u64) -> Self {
        Self {
            change: 1,
            present: parameters.servers[0],
            busy: 0,
            heads: parameters.seek.map(Heads::new),
            waiting: VecDeque::new(),
            flushes: VecDeque::new(),
            ends: Ends::default(),
            spent: Vec::new(),
            chances: Chances::new(seed, Who::Device),
            parameters,
        }
    }

    /// Makes an idle device whose times do not vary, nor how many servers there are.
    pub fn constant(servers: u32, room: Room, fixed: Nanos, per_kib: Nanos) -> Self {
        let service = Service { per_kib, ..Service::constant(fixed) };
        Self::new(ServersParameters { room, ..ServersParameters::new(servers, service) }, 0)
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
        self.present = numbers[usize::try_from(index).expect("it is below a length")];
        self.change += 1;
        self.start_waiting(at);
    }

    /// Changes the number of servers as of `now`, as often as it has changed since nothing waited.
    fn catch_up(&mut self, now: Instant) {
        if self.waiting.is_empty() && self.next_change() <= now {
            self.change = now.since_start().as_nanos() / self.parameters.every.as_nanos();
            self.change(now);
        }
        while self.next_change() <= now {
            self.change(self.next_change());
        }
    }

    fn start_waiting(&mut self, at: Instant) {
        while self.busy < self.present {
            let Some((since, command)) = self.waiting.pop_front() else { return };
            self.busy += 1;
            // Whoever hears late of an end submits what follows late.
            let at = at.max(since);
            let slower = self.slower(at);
            let mut draws = self.chances.of(&command);
            let mut spent = self.parameters.service.draw(&mut draws, &command, slower);
            let mut server = 0;
            if let Some(heads) = &mut self.heads {
                (server, spent.seek) = heads.take(&command);
            }
            self.remember(command.tag, spent);
            let service = spent.seek + spent.transfer + spent.overhead;
            self.ends.push(at + service, (command.tag, server));
        }
    }

    fn remember(&mut self, tag: u32, spent: Spent) {
        let tag = tag as usize;
        if self.spent.len() <= tag {
            self.spent.resize(tag + 1, Spent::default());
        }
        self.spent[tag] = spent;
    }

    /// How many times as long a command takes that begins now.
    fn slower(&self, at: Instant) -> f64 {
        let Crowd { beyond, each } = self.parameters.crowd;
        let waiting = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let surplus = (self.busy + waiting).saturating_sub(beyond);
        self.parameters.pace.at(at) * (1.0 + each * f64::from(surplus))
    }
}

impl Model for Servers {
    fn depth(&self) -> u32 {
        self.parameters.room.depth
    }

    fn end(&self) -> Sector {
        self.parameters.room.end
    }

    fn rotational(&self) -> bool {
        self.heads.is_some()
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.catch_up(now);
        if command.op == Op::Flush {
            self.flushes.push_back((now, command.tag));
            return;
        }
        self.waiting.push_back((now, command));
        self.start_waiting(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if let Some((at, _)) = self.flushes.front() {
            return Some(*at);
        }
        let end = self.ends.next();
        if self.waiting.is_empty() {
            return end;
        }
        Some(end.map_or(self.next_change(), |end| end.min(self.next_change())))
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        if let Some((_, tag)) = self.flushes.pop_front() {
            return Some(Completion { tag, spent: Spent::default() });
        }
        if self.ends.next().is_none() {
            self.catch_up(now);
        }
        loop {
            let change = self.next_change();
            if change <= now && self.ends.next().is_none_or(|end| change <= end) {
                self.change(change);
                continue;
            }
            let (end, (tag, server)) = self.ends.pop(now)?;
            self.busy -= 1;
            if let Some(heads) = &mut self.heads {
                heads.free.push(Reverse(server));
            }
            // The next one began when this one ended, however late this is asked.
            self.start_waiting(end);
            return Some(Completion { tag, spent: self.spent[tag as usize] });
        }
    }
}

/// The time of a seek: a part that each has, and a part in proportion to its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearSeek {
    /// Any seek.
    pub base: Nanos,
    /// Further nanoseconds for each 2^20 sectors.
    pub ns_per_mi_sector: u64,
}

impl LinearSeek {
    fn time(self, from: Sector, to: Sector) -> Nanos {
        if from == to {
            return Nanos::ZERO;
        }
        let way = from.0.abs_diff(to.0).saturating_mul(self.ns_per_mi_sector) >> 20;
        Nanos::new(self.base.as_nanos().saturating_add(way))
    }
}

/// The heads of servers, one each.
#[derive(Debug)]
struct Heads {
    seek: LinearSeek,
    /// The servers that are free and have been busy, the lowest first; then come those that never
    /// were.
    free: BinaryHeap<Reverse<u32>>,
    /// Where the last command of each server that has been busy ended.
    at: Vec<Sector>,
}

impl Heads {
    fn new(seek: LinearSeek) -> Self {
        Self { seek, free: BinaryHeap::new(), at: Vec::new() }
    }

    /// The free server of the lowest number takes a command. Returns it, and how long it seeks.
    fn take(&mut self, command: &Command) -> (u32, Nanos) {
        let server = self.free.pop().map_or(self.at.len(), |Reverse(server)| server as usize);
        if server == self.at.len() {
            self.at.push(Sector(0));
        }
        let took = self.seek.time(self.at[server], command.sector);
        self.at[server] = Sector(command.sector.0 + u64::from(command.sectors.0));
        (u32::try_from(server).expect("servers are counted in u32"), took)
    }
}

#[allow(clippy::cast_precision_loss, reason = "spans are far below 2^53 ns")]
fn seconds(span: Nanos) -> f64 {
    span.as_nanos() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, ends, read};

    fn done(pool: &mut Servers) -> Option<u32> {
        pool.poll(at(500)).map(|done| done.tag)
    }

    fn pool(parameters: ServersParameters) -> Servers {
        Servers::new(parameters, 1)
    }

    #[test]
    fn third_command_waits_for_the_first_of_two_servers() {
        let mut pool = pool(ServersParameters::new(2, Service::constant(Nanos::from_micros(80))));
        for (us, tag) in [(0, 0), (10, 1), (20, 2)] {
            pool.submit(at(us), read(tag));
        }
        assert_eq!(ends(&mut pool), [(0, 80), (1, 90), (2, 160)]);
    }

    /// The second is served until 160 µs. The third comes at 500, as the driver hears of the first
    /// only then: it cannot have begun at 160.
    #[test]
    fn command_that_comes_late_begins_late() {
        let mut pool = pool(ServersParameters::new(1, Service::constant(Nanos::from_micros(80))));
        pool.submit(at(0), read(0));
        pool.submit(at(0), read(1));
        assert_eq!(done(&mut pool), Some(0));
        pool.submit(at(500), read(2));
        assert_eq!(done(&mut pool), Some(1));
        assert_eq!(done(&mut pool), None);
        assert_eq!(ends(&mut pool), [(2, 580)]);
    }

    /// Two servers, then one, each for 100 µs. The second half begins with two that are served, and
    /// only when both have ended the next begins.
    #[test]
    fn server_that_is_gone_ends_what_it_has_and_takes_no_more() {
        let service = Service::constant(Nanos::from_micros(80));
        let every = Nanos::from_micros(100);
        let parameters =
            ServersParameters { servers: vec![2, 1], every, ..ServersParameters::new(1, service) };
        let mut pool = pool(parameters);
        for tag in 0..5 {
            pool.submit(at(0), read(tag));
        }
        // 2 and 3 begin at 80; at 160 one server is left, for 4 until 200, when it ends at 240.
        assert_eq!(ends(&mut pool), [(0, 80), (1, 80), (2, 160), (3, 160), (4, 240)]);
    }

    #[test]
    fn more_servers_take_what_waits_at_once() {
        let service = Service::constant(Nanos::from_micros(150));
        let every = Nanos::from_micros(100);
        let parameters =
            ServersParameters { servers: vec![1, 3], every, ..ServersParameters::new(1, service) };
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
        let parameters = ServersParameters {
            crowd,
            ..ServersParameters::new(1, Service::constant(Nanos::from_micros(100)))
        };
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
        let parameters = ServersParameters {
            pace,
            ..ServersParameters::new(1, Service::constant(Nanos::from_micros(50)))
        };
        let mut pool = pool(parameters);
        pool.submit(at(0), read(0));
        assert_eq!(ends(&mut pool), [(0, 50)]);
        pool.submit(at(100), read(1));
        assert_eq!(ends(&mut pool), [(1, 200)]);
    }
}
