//! What completed in a window, so that its cost can be told at any prices: at those that hold, not
//! at those that were higher or lower for the window, and part by part.

use super::{FACTOR_BITS, Prices, SECTOR_BITS};
use crate::request::{BioFlags, Direction, Request, SectorCount};

/// What has a factor of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Class {
    Read,
    Write,
    /// A write with FUA.
    Fua,
}

impl Class {
    pub(super) const COUNT: usize = 3;

    #[inline]
    pub(in super::super) fn of(rq: &Request) -> Self {
        match rq.direction() {
            Direction::Read => Self::Read,
            Direction::Write if rq.flags.contains(BioFlags::FUA) => Self::Fua,
            Direction::Write => Self::Write,
        }
    }
}

/// Requests of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// How many there are.
    requests: u64,
    /// Sectors that they moved.
    sectors: u64,
}

/// Requests by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Tallies([Tally; Class::COUNT]);

impl Tallies {
    /// Counts a request that moved so many sectors.
    #[inline]
    pub(in super::super) fn count(&mut self, class: Class, sectors: SectorCount) {
        let tally = &mut self.0[class as usize];
        tally.requests += 1;
        tally.sectors += u64::from(sectors.0);
    }

    /// Counts requests that moved so many sectors each.
    #[cfg(test)]
    pub(super) fn add(&mut self, class: Class, requests: u64, sectors: u32) {
        let tally = &mut self.0[class as usize];
        tally.requests += requests;
        tally.sectors += requests * u64::from(sectors);
    }

    /// Returns whether there are requests of several classes.
    pub(in super::super) fn is_mixed(&self) -> bool {
        self.0.iter().filter(|tally| tally.requests > 0).count() > 1
    }
}

/// What the requests of a window cost, in units, and which parts of it are whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost {
    /// Of all requests, at least one unit each.
    pub(super) all: u128,
    /// Of bytes, of writes, of writes with FUA: in the order of `PARTS` (`learning.rs`).
    pub(super) parts: [u128; 3],
}

impl Prices {
    /// Returns what the requests cost, at least one unit each.
    pub(in super::super) fn cost(&self, tallies: &Tallies) -> u128 {
        self.cost_by_part(tallies).all
    }

    pub(super) fn cost_by_part(&self, tallies: &Tallies) -> Cost {
        let mut cost = Cost { all: 0, parts: [0; 3] };
        for (index, (tally, factor)) in tallies.0.iter().zip(self.factors).enumerate() {
            let with_factor = |plain: u128| (plain * u128::from(factor)) >> FACTOR_BITS;
            let bytes = (u128::from(tally.sectors) * u128::from(self.per_sector)) >> SECTOR_BITS;
            let ops = u128::from(tally.requests) * u128::from(self.op.count());
            let all = with_factor(ops + bytes).max(tally.requests.into());
            cost.all += all;
            cost.parts[0] += with_factor(bytes);
            if index > 0 {
                cost.parts[index] += all;
            }
        }
        cost
    }
}
