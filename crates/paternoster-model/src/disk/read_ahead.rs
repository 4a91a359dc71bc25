//! Reading on after a read, into its segment, until a goal is reached or something else is asked.
//!
//! Nothing is computed while it goes on: [`ReadAhead::go_on`] finds how far it has come by then.

use paternoster::Sector;

use super::cache::SegmentId;
use super::geometry::Geometry;
use super::head::{Access, Begin, Head, Pass, Range, Run};
use super::units::{Millis, real};

/// How far the disk reads ahead.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own of a real disk")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAheadPolicy {
    /// Up to where.
    pub until: Until,
    /// At most this many sectors.
    pub most: u64,
    /// At least this many before it does anything else.
    pub least: u64,
    /// It may take the room of the sectors that were asked for.
    pub over_requested: bool,
    /// It begins anew after a read that the buffer could answer.
    pub after_hit: bool,
    /// What passes below the head before the first sector that was asked for is kept, too.
    pub keeps_passed: bool,
    /// Stopped in the middle of a sector, it drops it; otherwise it reads it to its end.
    pub stops_in_sector: bool,
    /// A write that goes to the buffer alone stops it.
    pub write_stops: bool,
}

/// Where reading ahead ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// At once.
    Nothing,
    /// At the end of the track.
    Track,
    /// At the end of the cylinder.
    Cylinder,
    /// When the segment is full.
    Segment,
}

impl ReadAheadPolicy {
    /// Where it ends behind `read`, in a segment of `room` sectors.
    pub(super) fn goal(&self, geometry: &Geometry, read: Range, room: u64) -> Sector {
        let last = Sector(read.end.0 - 1);
        let bound = match self.until {
            Until::Nothing => read.end,
            Until::Track => geometry.track_end(last),
            Until::Cylinder => geometry.cylinder_end(last),
            Until::Segment => geometry.end(),
        };
        let room = if self.over_requested { room } else { room.saturating_sub(read.sectors()) };
        let most = Sector(read.end.0.saturating_add(self.most.min(room)));
        bound.min(most).min(geometry.end()).max(read.end)
    }
}

/// Reading ahead that has begun, and maybe ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAhead {
    pub(super) segment: SegmentId,
    /// The first sector that nobody has asked for.
    from: Sector,
    /// The first sector that was not read yet.
    pub(super) next: Sector,
    pub(super) goal: Sector,
    /// When the head was done with the sector before `next`.
    pub(super) at: Millis,
    /// What the head is reading.
    run: Option<Run>,
}

impl ReadAhead {
    pub(super) fn new(segment: SegmentId, next: Sector, goal: Sector, at: Millis) -> Self {
        Self { segment, from: next, next, goal, at, run: None }
    }

    /// Whether it has something left to read.
    pub(super) fn is_going(&self) -> bool {
        self.next < self.goal
    }

    /// Reads what passes until `time`.
    pub(super) fn go_on(&mut self, geometry: &Geometry, head: &mut Head, time: Millis) {
        while self.is_going() && self.at <= time {
            let run = self.run_on(geometry, head);
            if !self.pass(run, run.reached(time)) {
                return;
            }
        }
    }

    /// Reads on as far as it has to, whatever the time.
    pub(super) fn finish(
        &mut self,
        policy: &ReadAheadPolicy,
        geometry: &Geometry,
        head: &mut Head,
    ) {
        let least = Sector(self.from.0.saturating_add(policy.least)).min(self.goal);
        while self.next < least {
            let run = self.run_on(geometry, head);
            self.pass(run, least.min(run.range.end));
        }
    }

    /// Reads on to the end of `read`, which somebody has asked for. It has begun to, and there is
    /// more to read.
    pub(super) fn read_on(&mut self, geometry: &Geometry, head: &mut Head, read: Range) -> Pass {
        let first = self.run_on(geometry, head);
        let here = Range { first: self.next, end: first.range.end.min(read.end) };
        let begins = first.begins + first.each * real(here.first.0 - first.range.first.0);
        let here = Run { range: here, begins, each: first.each };
        let rest = Range { first: here.range.end, end: read.end };
        let mut pass = head.pass(geometry, rest, here.ends(), Access::Read, Begin::AtFirst);
        pass.runs.insert(0, here);
        (self.from, self.next, self.at, self.run) = (read.end, read.end, pass.ends, None);
        pass
    }

    /// Goes on in `run` up to `reached`. Returns whether that is its end.
    fn pass(&mut self, run: Run, reached: Sector) -> bool {
        self.next = reached.max(self.next);
        if self.next > run.range.first {
            self.at = run.begins + run.each * real(self.next.0 - run.range.first.0);
        }
        self.run = (self.next < run.range.end).then_some(run);
        self.run.is_none()
    }

    /// When the head is free, if reading ahead is stopped at `time`.
    pub(super) fn free_at(&self, policy: &ReadAheadPolicy, time: Millis) -> Millis {
        let in_sector = self.run.filter(|run| !policy.stops_in_sector && run.begins < time);
        let ends =
            in_sector.map(|run| run.begins + run.each * real(self.next.0 - run.range.first.0 + 1));
        self.at.max(ends.unwrap_or(Millis::ZERO))
    }

    /// What the head is reading; if it reads nothing, it is sent to what is next.
    fn run_on(&mut self, geometry: &Geometry, head: &mut Head) -> Run {
        if let Some(run) = self.run {
            return run;
        }
        let sectors = geometry.place(self.next).sectors;
        let end = self.goal.min(Sector(self.next.0 + sectors));
        let range = Range { first: self.next, end };
        let run = head.pass(geometry, range, self.at, Access::Read, Begin::AtFirst).runs[0];
        self.run = Some(run);
        run
    }
}
