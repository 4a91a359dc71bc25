//! The arm and its heads: how they get to a sector, and what a pass over some sectors takes.
//!
//! ```text
//!   ├─ seek, or head switch ─┼─ rotation ─┼──── transfer ────┼─ next track: seek, rotation, …
//!   start                                 run begins         run ends
//! ```
//!
//! A write is only on the medium when its sectors were in the buffer as they passed: those that
//! were not cost a revolution each time the buffer runs dry.

use paternoster::Sector;

use super::geometry::{Geometry, Place};
use super::link::Arrival;
use super::rotation::Spindle;
use super::seek::SeekCurve;
use super::units::{Millis, real, whole};

/// A range of sectors, of which there is at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: Sector,
    /// The sector behind its last.
    pub(super) end: Sector,
}

impl Range {
    pub(super) fn sectors(self) -> u64 {
        self.end.0 - self.first.0
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.first < other.end && other.first < self.end
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.first <= other.first && other.end <= self.end
    }
}

/// What the heads do on their pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Access {
    /// Read.
    Read,
    /// Write what arrives in the buffer then.
    Write(Arrival),
}

/// Whether a pass may begin in the middle of what it is to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// It waits for the first sector.
    AtFirst,
    /// It begins with any sector of the first track, and covers what it missed a revolution later.
    Anywhere,
}

/// Sectors that passed below a head one behind the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) range: Range,
    pub(super) begins: Millis,
    /// The time that each takes.
    pub(super) each: Millis,
}

impl Run {
    pub(super) fn ends(&self) -> Millis {
        self.begins + self.each * real(self.range.sectors())
    }

    /// The first sector that has not passed by `time`.
    pub(super) fn reached(&self, time: Millis) -> Sector {
        /// A sector that is so near to its end has passed: a few nanoseconds.
        const ALMOST: f64 = 1e-4;
        let passed = whole(((time - self.begins).0 / self.each.0 + ALMOST).floor());
        Sector(self.range.first.0 + passed.min(self.range.sectors()))
    }
}

/// A pass over some sectors.
#[derive(Clone, Debug, Default)]
pub(super) struct Pass {
    /// In the order of the sectors.
    pub(super) runs: Vec<Run>,
    pub(super) ends: Millis,
    pub(super) seek: Millis,
    pub(super) rotation: Millis,
}

/// What moves.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) spindle: Spindle,
    pub(super) seek: SeekCurve,
    pub(super) switch: Millis,
    /// What a write's seek or switch takes longer.
    pub(super) write_settle: Millis,
    pub(super) cylinder: u32,
    pub(super) surface: u32,
}

impl Head {
    /// How long the head takes from a cylinder and surface to the track of `place`.
    pub(super) fn reach(&self, from: (u32, u32), place: &Place, access: Access) -> Millis {
        let (cylinder, surface) = from;
        let switch = if place.surface == surface { Millis::ZERO } else { self.switch };
        let reach = match place.cylinder.abs_diff(cylinder) {
            0 if place.surface == surface => return Millis::ZERO,
            0 => switch,
            distance => self.seek.time(distance).max(switch),
        };
        match access {
            Access::Read => reach,
            Access::Write(_) => (reach + self.write_settle).max(Millis::ZERO),
        }
    }

    /// On which cylinder and surface the head is.
    pub(super) fn track(&self) -> (u32, u32) {
        (self.cylinder, self.surface)
    }

    /// How long after `start` the data of `sector` begin to pass below the head, if it went there.
    pub(super) fn positioning(
        &self,
        geometry: &Geometry,
        sector: Sector,
        start: Millis,
        access: Access,
    ) -> Millis {
        let place = geometry.place(sector);
        let reach = self.reach(self.track(), &place, access);
        reach + self.spindle.wait(start + reach, place.angle)
    }

    /// Passes over `range` from `start` on.
    pub(super) fn pass(
        &mut self,
        geometry: &Geometry,
        range: Range,
        start: Millis,
        access: Access,
        begin: Begin,
    ) -> Pass {
        let mut pass = Pass { ends: start, ..Pass::default() };
        let mut next = range.first;
        while next < range.end {
            let place = geometry.place(next);
            let end = Sector(range.end.0.min(next.0 + place.sectors));
            let piece = Range { first: next, end };
            self.go_to(&place, access, &mut pass);
            let anywhere = begin == Begin::Anywhere && next == range.first;
            if !(anywhere && self.wrap(&place, piece, access, &mut pass)) {
                match access {
                    Access::Read => self.run(&place, piece, &mut pass),
                    Access::Write(arrival) => self.write(&place, piece, arrival, &mut pass),
                }
            }
            next = end;
        }
        pass
    }

    /// Moves to the track of `place`.
    fn go_to(&mut self, place: &Place, access: Access, pass: &mut Pass) {
        let reach = self.reach(self.track(), place, access);
        pass.seek += reach;
        pass.ends += reach;
        self.cylinder = place.cylinder;
        self.surface = place.surface;
    }

    /// Passes over `piece` from its first sector to its last.
    fn run(&self, place: &Place, piece: Range, pass: &mut Pass) {
        let wait = self.spindle.wait(pass.ends, place.angle);
        pass.rotation += wait;
        self.add(place, piece, pass.ends + wait, pass);
    }

    fn add(&self, place: &Place, piece: Range, begins: Millis, pass: &mut Pass) {
        let run = Run { range: piece, begins, each: self.each(place) };
        pass.ends = run.ends();
        pass.runs.push(run);
    }

    fn each(&self, place: &Place) -> Millis {
        self.spindle.period * (1.0 / real(place.per_track.into()))
    }

    /// Writes `piece`; a sector that has not arrived when it passes is written when it passes
    /// again.
    fn write(&self, place: &Place, piece: Range, arrival: Arrival, pass: &mut Pass) {
        let wait = self.spindle.wait(pass.ends, place.angle);
        pass.rotation += wait;
        let each = self.each(place);
        let mut begins = pass.ends + wait;
        let mut next = piece.first;
        while next < piece.end {
            let again = self.spindle.again(begins, arrival.of(next));
            pass.rotation += again - begins;
            let rest = Range { first: next, end: piece.end };
            let end = arrival.first_late(rest, again, each);
            self.add(place, Range { first: next, end }, again, pass);
            begins = pass.ends;
            next = end;
        }
    }

    /// Passes over `piece` from where the head is on the track, if it is within `piece` and
    /// everything that is to be written has arrived. Returns whether it has.
    fn wrap(&self, place: &Place, piece: Range, access: Access, pass: &mut Pass) -> bool {
        let each = self.each(place);
        let to_first = self.spindle.wait(pass.ends, place.angle);
        let since_first = self.spindle.period - to_first;
        let passed = (since_first.0 / each.0).ceil();
        let here = Sector(piece.first.0 + whole(passed));
        if to_first == Millis::ZERO || here >= piece.end {
            return false;
        }
        let wait = each * passed - since_first;
        if let Access::Write(arrival) = access
            && arrival.of(Sector(piece.end.0 - 1)) > pass.ends + wait
        {
            return false;
        }
        let arrived = pass.ends;
        pass.rotation += wait;
        let head = Range { first: piece.first, end: here };
        let tail = Range { first: here, end: piece.end };
        self.add(place, head, arrived + to_first, pass);
        let ends = pass.ends;
        // Between the end of the piece and its beginning the head waits, too.
        let whole_run = each * real(piece.sectors());
        pass.rotation += ends - arrived - wait - whole_run;
        self.add(place, tail, arrived + wait, pass);
        pass.ends = ends;
        true
    }
}
