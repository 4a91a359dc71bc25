//! A device whose times were measured: by operation, by size, and by how many commands are in it.
//!
//! ```text
//!              1 outstanding   8      32          a command of 6 KiB that makes 4 outstanding
//!     4 KiB      55 µs        69      85          takes what lies between the four
//!     8 KiB      62 µs        80     130          times around it
//! ```
//!
//! Between two measured numbers times are interpolated linearly. A command that is smaller than all
//! that were measured takes as long as the smallest, and one that is greater takes as much longer
//! than the greatest as it is greater. More than the most outstanding that were measured are not
//! taken. Where commands lie on the device does not matter, and nothing is drawn.

mod from_toml;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paternoster::{Instant, Nanos, Sector, SectorCount};

use super::{Command, Completion, Model, Op, Spent};

/// What was measured of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableParameters {
    /// The sector behind the last one.
    pub end: Sector,
    /// Whether it has moving parts.
    pub rotational: bool,
    /// Times of reads, if they were measured.
    pub reads: Option<Times>,
    /// Times of writes, if they were measured.
    pub writes: Option<Times>,
    /// Time of a discard.
    pub discard: Nanos,
    /// Time of a flush.
    pub flush: Nanos,
}

/// The times of an operation: a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// The sizes that were measured, in rising order; none is 0.
    sizes: Vec<SectorCount>,
    /// How many were outstanding, in rising order from 1 on.
    outstanding: Vec<u32>,
    /// The times of each size, by how many were outstanding.
    rows: Vec<Vec<Nanos>>,
}

impl Times {
    /// How many were outstanding at most.
    fn most(&self) -> u32 {
        *self.outstanding.last().expect("a grid has a column")
    }

    /// The time of a command of that size, which makes so many outstanding.
    fn time(&self, size: SectorCount, outstanding: u32) -> Nanos {
        let of_size = |row: usize| {
            let (low, high) = neighbours(&self.outstanding, &outstanding);
            let point = |column: usize| (self.outstanding[column], self.rows[row][column]);
            between(point(low), point(high), outstanding)
        };
        let (low, high) = neighbours(&self.sizes, &size);
        let point = |row: usize| (self.sizes[row].0, of_size(row));
        let time = between(point(low), point(high), size.0);
        let greatest = *self.sizes.last().expect("a grid has a row");
        let nanos = u128::from(time.as_nanos()) * u128::from(size.max(greatest).0);
        let nanos = nanos / u128::from(greatest.0);
        Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The indices of the numbers between which `number` lies: twice the same where it lies on one or
/// outside of all.
fn neighbours<N: Ord>(numbers: &[N], number: &N) -> (usize, usize) {
    match numbers.binary_search(number) {
        Ok(index) => (index, index),
        Err(0) => (0, 0),
        Err(index) if index == numbers.len() => (index - 1, index - 1),
        Err(index) => (index - 1, index),
    }
}

/// The time at `x`, on the line through both points. Where they are one, it is its time.
fn between((x0, low): (u32, Nanos), (x1, high): (u32, Nanos), x: u32) -> Nanos {
    if x0 == x1 {
        return low;
    }
    let (low, high) = (i128::from(low.as_nanos()), i128::from(high.as_nanos()));
    let nanos = low + (high - low) * i128::from(x - x0) / i128::from(x1 - x0);
    Nanos::new(u64::try_from(nanos).expect("it lies between two times"))
}

/// A device of measured times.
#[derive(Debug)]
pub struct Table {
    parameters: TableParameters,
    depth: u32,
    /// The commands that it has, by their end; those of one end in the order of their start.
    ends: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    /// What each command spends, by its tag; valid while the device has it.
    spent: Vec<Spent>,
    started: u64,
}

impl Table {
    /// Makes an idle device.
    pub fn new(parameters: TableParameters) -> Self {
        let TableParameters { reads, writes, .. } = &parameters;
        let depth = [reads, writes].into_iter().flatten().map(Times::most).min().unwrap_or(1);
        let spent = vec![Spent::default(); depth as usize];
        Self { parameters, depth, ends: BinaryHeap::new(), spent, started: 0 }
    }

    fn times(&self, op: Op) -> Option<&Times> {
        match op {
            Op::Write => self.parameters.writes.as_ref(),
            _ => self.parameters.reads.as_ref(),
        }
    }

    fn time(&self, command: &Command) -> Nanos {
        let outstanding = u32::try_from(self.ends.len()).expect("not more than its depth") + 1;
        match command.op {
            Op::Discard => self.parameters.discard,
            Op::Flush => self.parameters.flush,
            op => {
                let times = self.times(op).expect("an operation that it takes");
                times.time(command.sectors, outstanding)
            }
        }
    }
}

impl Model for Table {
    fn depth(&self) -> u32 {
        self.depth
    }

    fn end(&self) -> Sector {
        self.parameters.end
    }

    fn rotational(&self) -> bool {
        self.parameters.rotational
    }

    fn takes(&self, op: Op) -> bool {
        matches!(op, Op::Discard | Op::Flush) || self.times(op).is_some()
    }

    fn submit(&mut self, now: Instant, command: Command) {
        let time = self.time(&command);
        self.started += 1;
        self.spent[command.tag as usize] = Spent { overhead: time, ..Spent::default() };
        self.ends.push(Reverse((now + time, self.started, command.tag)));
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
        Some(Completion { tag, spent: self.spent[tag as usize] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;

    const US: fn(u64) -> Nanos = Nanos::from_micros;

    /// Reads of 4 KiB take 100 µs with one outstanding and 200 with three, those of 8 KiB 140 and
    /// 280.
    fn reads() -> Times {
        Times {
            sizes: vec![SectorCount(8), SectorCount(16)],
            outstanding: vec![1, 3],
            rows: vec![vec![US(100), US(200)], vec![US(140), US(280)]],
        }
    }

    #[test]
    fn measured_times_are_as_measured_and_those_between_lie_on_a_line() {
        let time = |sectors: u32, outstanding: u32| reads().time(SectorCount(sectors), outstanding);
        assert_eq!(time(8, 1), US(100));
        assert_eq!(time(16, 3), US(280));
        assert_eq!(time(8, 2), US(150));
        // With two outstanding 4 KiB take 150 and 8 KiB 210: 6 KiB lie in the middle.
        assert_eq!(time(12, 2), US(180));
        assert_eq!(time(10, 2), US(165));
    }

    #[test]
    fn small_commands_take_as_the_smallest_and_great_ones_in_proportion_to_the_greatest() {
        let time = |sectors: u32, outstanding: u32| reads().time(SectorCount(sectors), outstanding);
        assert_eq!(time(1, 1), US(100));
        assert_eq!(time(40, 1), US(350));
        assert_eq!(time(32, 2), US(420));
    }

    /// Three reads of 4 KiB at 0, 10 and 20 µs make 1, 2 and 3 outstanding, and take 100, 150 and
    /// 200 µs. One that comes at 100 µs, as the first ends, makes 3 again.
    #[test]
    fn command_takes_longer_the_more_are_outstanding_as_it_comes() {
        let parameters = TableParameters {
            end: Sector(1000),
            rotational: false,
            reads: Some(reads()),
            writes: None,
            discard: Nanos::ZERO,
            flush: US(5),
        };
        let mut device = Table::new(parameters);
        assert_eq!(device.depth(), 3);
        assert!(device.takes(Op::Flush) && !device.takes(Op::Write));
        let at = |us: u64| Instant::from_nanos(us * 1000);
        let read = |tag| {
            let (sector, sectors) = (Sector(0), SectorCount(8));
            let chance = Chance::default();
            Command { tag, op: Op::Read, durable: false, sector, sectors, chance }
        };
        for (tag, us) in [(0, 0), (1, 10), (2, 20)] {
            device.submit(at(us), read(tag));
        }
        assert_eq!(device.poll(at(99)), None);
        assert_eq!(device.poll(at(100)).map(|done| done.tag), Some(0));
        device.submit(at(100), read(0));
        let mut ends = Vec::new();
        while let Some(next) = device.poll_timeout() {
            let done = device.poll(next).expect("it is due");
            assert_eq!(done.spent.overhead, if done.tag == 1 { US(150) } else { US(200) });
            ends.push((done.tag, next));
        }
        assert_eq!(ends, [(1, at(160)), (2, at(220)), (0, at(300))]);
    }
}
