//! Written data that are only in the buffer: when a write may end before its data are on the
//! medium, and which of them goes there next.

use super::geometry::Geometry;
use super::head::{Access, Head, Range};
use super::link::Arrival;
use super::units::Millis;

/// Whether a write ends when its data are in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBack {
    /// Never: it ends when they are on the medium.
    Off,
    /// If nothing else is to be written, or it goes on where that ends.
    Appending,
    /// Always; but what it does not go on from is written first, and so before a read.
    OneRun,
    /// Always. What is to be written waits in the buffer and is written in the order that takes the
    /// least time.
    Sorted,
}

/// When and what the disk writes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteBackPolicy {
    /// Which writes it holds back.
    pub mode: WriteBack,
    /// How long the disk has to be idle before it writes back.
    pub idle: Millis,
    /// Sorted: at most this many runs wait.
    pub runs: usize,
    /// Writes that go on where one waiting ends become one run with it.
    pub joins: bool,
}

/// The runs that wait, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    runs: Vec<Range>,
}

impl Dirty {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn sectors(&self) -> u64 {
        self.runs.iter().map(|run| run.sectors()).sum()
    }

    /// Whether a run ends where `range` begins.
    pub(super) fn is_continued_by(&self, range: Range) -> bool {
        self.runs.iter().any(|run| run.end == range.first)
    }

    pub(super) fn overlaps(&self, range: Range) -> bool {
        self.runs.iter().any(|run| run.overlaps(range))
    }

    /// Adds `range`: to a run that ends where it begins, if `joins` and the run stays within `most`
    /// sectors. What it overwrites need not be written any more.
    pub(super) fn add(&mut self, range: Range, joins: bool, most: u64) {
        self.remove(range);
        let joined = self
            .runs
            .iter_mut()
            .find(|run| joins && run.end == range.first && run.sectors() + range.sectors() <= most);
        match joined {
            Some(run) => run.end = range.end,
            None => self.runs.push(range),
        }
    }

    /// Drops `range`, whatever runs it is in.
    pub(super) fn remove(&mut self, range: Range) {
        if !self.overlaps(range) {
            return;
        }
        let mut left = Vec::with_capacity(self.runs.len() + 1);
        for run in self.runs.drain(..) {
            let before = Range { first: run.first, end: run.end.min(range.first) };
            let behind = Range { first: run.first.max(range.end), end: run.end };
            left.extend([before, behind].into_iter().filter(|part| part.first < part.end));
        }
        self.runs = left;
    }

    /// Takes the first of the runs that came first.
    pub(super) fn take_first(&mut self) -> Option<Range> {
        (!self.runs.is_empty()).then(|| self.runs.remove(0))
    }

    /// Takes the run that `head` can begin to write soonest from `start` on.
    pub(super) fn take_nearest(
        &mut self,
        geometry: &Geometry,
        head: &Head,
        start: Millis,
    ) -> Option<Range> {
        let access = Access::Write(Arrival::DONE);
        let positioning = |run: &Range| head.positioning(geometry, run.first, start, access);
        let nearest = (0..self.runs.len()).min_by(|&a, &b| {
            positioning(&self.runs[a]).0.total_cmp(&positioning(&self.runs[b]).0)
        })?;
        Some(self.runs.remove(nearest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster::Sector;

    fn range(first: u64, end: u64) -> Range {
        Range { first: Sector(first), end: Sector(end) }
    }

    #[test]
    fn write_that_goes_on_joins_its_run() {
        let mut dirty = Dirty::default();
        dirty.add(range(0, 8), true, 100);
        dirty.add(range(8, 16), true, 100);
        assert_eq!(dirty.runs, [range(0, 16)]);
    }

    #[test]
    fn run_does_not_outgrow_its_segment() {
        let mut dirty = Dirty::default();
        dirty.add(range(0, 8), true, 10);
        dirty.add(range(8, 16), true, 10);
        assert_eq!(dirty.runs, [range(0, 8), range(8, 16)]);
    }

    #[test]
    fn what_is_overwritten_is_written_once() {
        let mut dirty = Dirty::default();
        dirty.add(range(0, 30), false, 100);
        dirty.add(range(10, 20), false, 100);
        assert_eq!(dirty.runs, [range(0, 10), range(20, 30), range(10, 20)]);
        assert_eq!(dirty.sectors(), 30);
    }
}
