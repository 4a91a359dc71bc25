//! k servers, each busy with one command at a time, and one queue in front of them.
//!
//! ```text
//!               ┌ server 1  ├── a ──┤├── c ──┤
//!   c, d, e ──▶ ┤
//!               └ server 2  ├── b ─────┤├── d ──┤
//!
//!   service time = fixed + per sector × sectors
//! ```
//!
//! The simplest device that serves several commands at once. Where a command is on the device does
//! not matter.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::path::Path;

use paternoster::{Instant, Nanos, Sector};

use super::parameter_file::{Keys, ParameterError, micros};
use super::{Command, Completion, Model, Op, Spent};

/// How long a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServersParameters {
    /// Commands served at once; at least 1.
    pub servers: u32,
    /// Commands taken at once, those that wait included.
    pub depth: u32,
    /// The sector behind the last one.
    pub end: Sector,
    /// Time of any command but a flush, which takes none.
    pub fixed: Nanos,
    /// Further time for each sector that is read or written.
    pub per_sector: Nanos,
}

impl ServersParameters {
    /// Reads the text of a TOML file, such as `devices/servers-16x80us.toml`; `path` is what errors
    /// call it.
    pub fn from_toml(path: &Path, text: &str) -> Result<Self, ParameterError> {
        let mut keys = Keys::open(path, text)?;
        keys.one_of("kind", &[("servers", ())])?;
        keys.description()?;
        let servers = keys.small("servers", 1..=65_536)?;
        let depth = keys.small("depth", 1..=65_536)?;
        let end = Sector(keys.whole("sectors", 8..=1 << 50)?);
        let fixed = micros(keys.number("fixed_us", 0.0..=1e7)?);
        let per_sector = micros(keys.number("per_sector_us", 0.0..=1e6)?);
        keys.end()?;
        Ok(Self { servers, depth, end, fixed, per_sector })
    }
}

/// A device of k servers.
#[derive(Debug)]
pub struct Servers {
    parameters: ServersParameters,
    /// Servers that are free.
    free: u32,
    waiting: VecDeque<Command>,
    /// The commands that are served, by their end; those of one end in the order of their start.
    ends: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    /// What each command spends, by its tag; valid while it is served.
    spent: Vec<Spent>,
    started: u64,
}

impl Servers {
    /// Makes an idle device.
    pub fn new(parameters: ServersParameters) -> Self {
        let ServersParameters { servers, depth, .. } = parameters;
        Self {
            parameters,
            free: servers.max(1),
            waiting: VecDeque::new(),
            ends: BinaryHeap::new(),
            spent: vec![Spent::default(); depth as usize],
            started: 0,
        }
    }

    fn start(&mut self, now: Instant, command: Command) {
        let spent = self.service(&command);
        self.free -= 1;
        self.started += 1;
        self.spent[command.tag as usize] = spent;
        let end = now + spent.overhead + spent.transfer;
        self.ends.push(Reverse((end, self.started, command.tag)));
    }

    fn service(&self, command: &Command) -> Spent {
        let ServersParameters { fixed, per_sector, .. } = self.parameters;
        let sectors = u64::from(command.sectors.0);
        let (overhead, transfer) = match command.op {
            Op::Read | Op::Write => (fixed, Nanos::new(per_sector.as_nanos() * sectors)),
            Op::Discard => (fixed, Nanos::ZERO),
            Op::Flush => (Nanos::ZERO, Nanos::ZERO),
        };
        Spent { transfer, overhead, ..Spent::default() }
    }
}

impl Model for Servers {
    fn depth(&self) -> u32 {
        self.parameters.depth
    }

    fn end(&self) -> Sector {
        self.parameters.end
    }

    fn rotational(&self) -> bool {
        false
    }

    fn submit(&mut self, now: Instant, command: Command) {
        if self.free > 0 {
            self.start(now, command);
        } else {
            self.waiting.push_back(command);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ends.peek().map(|Reverse((end, ..))| *end)
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        let &Reverse((end, _, tag)) = self.ends.peek()?;
        if end > now {
            return None;
        }
        self.ends.pop();
        self.free += 1;
        if let Some(next) = self.waiting.pop_front() {
            // It began when its server became free, however late this is asked.
            self.start(end, next);
        }
        Some(Completion { tag, spent: self.spent[tag as usize] })
    }
}

#[cfg(test)]
mod tests {
    use paternoster::SectorCount;

    use super::*;

    fn read(tag: u32, sectors: u32) -> Command {
        let sectors = SectorCount(sectors);
        Command { tag, op: Op::Read, durable: false, sector: Sector(0), sectors }
    }

    /// Two servers, 80 µs and 1 µs a sector: commands of 8 sectors take 88 µs. The third one begins
    /// as the first one ends.
    #[test]
    fn third_command_waits_for_the_first_of_two_servers() {
        let mut device = Servers::new(ServersParameters {
            servers: 2,
            depth: 8,
            end: Sector(1000),
            fixed: Nanos::from_micros(80),
            per_sector: Nanos::from_micros(1),
        });
        let at = |us: u64| Instant::from_nanos(us * 1000);
        device.submit(at(0), read(0, 8));
        device.submit(at(10), read(1, 8));
        device.submit(at(20), read(2, 8));
        let mut ends = Vec::new();
        while let Some(next) = device.poll_timeout() {
            while let Some(done) = device.poll(next) {
                ends.push((done.tag, next));
            }
        }
        assert_eq!(ends, [(0, at(88)), (1, at(98)), (2, at(176))]);
    }
}
