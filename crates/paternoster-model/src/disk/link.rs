//! The link to the host: when data that come from the medium have left, and when data that are to
//! be written have arrived.
//!
//! The link moves sectors in order, each in the same time, and works while the medium does.

use paternoster::Sector;

use super::head::{Range, Run};
use super::units::{Millis, real, whole};

/// The time of a sector on the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// To the host.
    pub read_sector: Millis,
    /// From the host.
    pub write_sector: Millis,
}

impl Link {
    /// When all of `range` has left for the host. It leaves from `ready` on; what no run covers is
    /// in the buffer. `runs` are in order. The link is taken when `mark` sectors are in the buffer.
    pub(super) fn delivered(&self, range: Range, ready: Millis, runs: &[Run], mark: u64) -> Millis {
        let marked = Sector(range.first.0 + mark.clamp(1, range.sectors()) - 1);
        let mut left = ready;
        for run in runs.iter().filter(|run| run.range.first <= marked) {
            let last = Sector(marked.0.min(run.range.end.0 - 1));
            let before = last.0 - run.range.first.0 + 1;
            left = left.max(run.begins + run.each * real(before));
        }
        let mut at = range.first;
        for run in runs {
            left += self.read_sector * real(run.range.first.0.saturating_sub(at.0));
            left = self.pass_on(run, left);
            at = run.range.end;
        }
        left + self.read_sector * real(range.end.0.saturating_sub(at.0))
    }

    /// When the link has passed on all of `run`, if it is free from `free` on. Each sector leaves
    /// behind the one before it, and not before the medium has it. The latest of these bounds is
    /// the first sector's or the last one's, whichever of link and medium is slower.
    fn pass_on(&self, run: &Run, free: Millis) -> Millis {
        let link = self.read_sector;
        let sectors = real(run.range.sectors());
        let behind_others = free + link * sectors;
        let from_first = run.begins + run.each + link * sectors;
        let from_last = run.ends() + link;
        behind_others.max(from_first).max(from_last)
    }

    /// How sectors of `range` arrive, if the first begins to at `begins`, and the medium is not
    /// written before `mark` of them are there.
    pub(super) fn arrival(&self, range: Range, begins: Millis, mark: u64) -> Arrival {
        Arrival {
            first: range.first,
            begins,
            each: self.write_sector,
            marked: begins + self.write_sector * real(mark),
        }
    }
}

/// When sectors are in the buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrival {
    first: Sector,
    begins: Millis,
    each: Millis,
    /// None counts as there before this.
    marked: Millis,
}

impl Arrival {
    /// All are there.
    pub(super) const DONE: Self =
        Self { first: Sector(0), begins: Millis::ZERO, each: Millis::ZERO, marked: Millis::ZERO };

    /// When `sector` is there.
    pub(super) fn of(&self, sector: Sector) -> Millis {
        self.by_link(sector).max(self.marked)
    }

    fn by_link(&self, sector: Sector) -> Millis {
        let upto = sector.0.saturating_sub(self.first.0) + 1;
        self.begins + self.each * real(upto)
    }

    /// The first sector of `range` that is not there in time, if the range passes from `begins` on
    /// and each sector takes `each`; its end if there is none. The first sector is in time.
    pub(super) fn first_late(&self, range: Range, begins: Millis, each: Millis) -> Sector {
        let loses = self.each - each;
        if loses <= Millis::ZERO {
            return range.end;
        }
        // The link falls behind by `loses` with each sector. The mark was reached at the first.
        let lead = begins - self.by_link(range.first);
        let in_time = whole((lead.0 / loses.0).floor()).saturating_add(1);
        Sector(range.first.0.saturating_add(in_time).min(range.end.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, end: u64) -> Range {
        Range { first: Sector(first), end: Sector(end) }
    }

    fn link(each: f64) -> Link {
        Link { read_sector: Millis(each), write_sector: Millis(each) }
    }

    fn run(first: u64, end: u64, begins: f64, each: f64) -> Run {
        Run { range: range(first, end), begins: Millis(begins), each: Millis(each) }
    }

    /// Sector by sector: each leaves behind the one before it, when the medium has it.
    fn delivered_by_sectors(link: Link, all: Range, ready: f64, runs: &[Run], mark: u64) -> f64 {
        let there = |sector: u64| {
            let run = runs.iter().find(|run| run.range.has(range(sector, sector + 1)));
            run.map_or(0.0, |run| run.begins.0 + run.each.0 * real(sector - run.range.first.0 + 1))
        };
        let marked = all.first.0 + mark.clamp(1, all.sectors());
        let mut left = (all.first.0..marked).map(there).fold(ready, f64::max);
        for sector in all.first.0..all.end.0 {
            left = left.max(there(sector)) + link.read_sector.0;
        }
        left
    }

    #[test]
    fn delivery_is_that_of_sector_by_sector() {
        let all = range(10, 30);
        let runs = [run(12, 20, 3.0, 0.5), run(20, 30, 9.5, 0.25)];
        for (each, mark, ready) in
            [(0.1, 0, 1.0), (1.0, 0, 1.0), (0.3, 20, 0.0), (0.3, 5, 20.0), (0.0, 1, 0.0)]
        {
            let closed = link(each).delivered(all, Millis(ready), &runs, mark).0;
            let by_sectors = delivered_by_sectors(link(each), all, ready, &runs, mark);
            assert!((closed - by_sectors).abs() < 1e-9, "{each} {mark}: {closed} {by_sectors}");
        }
    }

    #[test]
    fn slow_link_is_late_for_the_sector_where_the_medium_has_caught_up() {
        // Sector n is there at (n + 1) · 1 ms and needed at 3 + n · 0.5 ms: late from n = 5 on.
        let arrival = link(1.0).arrival(range(0, 20), Millis::ZERO, 0);
        let late = arrival.first_late(range(0, 20), Millis(3.0), Millis(0.5));
        let by_sectors = (0..20).find(|&n| arrival.of(Sector(n)).0 > 3.0 + 0.5 * real(n));
        assert_eq!((late, by_sectors), (Sector(5), Some(5)));
    }

    #[test]
    fn nothing_is_written_before_the_mark_is_reached() {
        let arrival = link(1.0).arrival(range(0, 4), Millis(2.0), 4);
        assert_eq!(arrival.of(Sector(0)), Millis(6.0));
        assert_eq!(link(1.0).arrival(range(0, 4), Millis(2.0), 0).of(Sector(0)), Millis(3.0));
    }
}
