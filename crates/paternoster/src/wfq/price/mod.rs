//! What a request costs: an op, its bytes, and a factor for writes.
//!
//! ```text
//!   charge = (1 op + bytes / U) × ω        U  bytes that cost as much as one op
//!                                          ω  1 for reads, else the factor of writes, or of FUA
//! ```
//!
//! Trims and zeroes move no bytes. A read or write moves a page of 4 KiB at least: no device does
//! less for one byte, and its client would get more of the device than its weight. With U = 16 KiB
//! a read of 4 KiB costs 1.25 op, one of 1 MiB 65.
//!
//! U and ω are set, or learned (`learning.rs`): windows take turns with prices that are a little
//! higher or lower (`dither.rs`), and what the device does then tells which are wrong
//! (`estimate.rs`).

mod dither;
mod estimate;
mod learning;
mod tally;
#[cfg(test)]
mod tests;
mod turns;

pub(super) use learning::{Moved, Pricing};
pub(super) use tally::{Class, Tallies};

use super::service::Units;
use super::tunables::{CostMode, Tunables};
use crate::request::{Op, Request, SectorCount};
use dither::Signs;

/// The bits of a sector's price below one unit.
const SECTOR_BITS: u32 = 8;

/// The bits of a factor below 1.
const FACTOR_BITS: u32 = 16;

/// A factor of 1.
const ONE: u64 = 1 << FACTOR_BITS;

/// What a read or write moves at least.
const PAGE: SectorCount = SectorCount(8);

/// What is learned, or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    /// U, in bytes.
    op_bytes: u64,
    /// The factor of what changes the device, × 2¹⁶.
    write: u64,
    /// The factor of a write with FUA, × 2¹⁶.
    fua: u64,
}

impl Rates {
    fn set_by(tunables: &Tunables) -> Self {
        Self {
            op_bytes: tunables.cost_op_bytes.cast_unsigned(),
            write: percent(tunables.cost_write),
            fua: percent(tunables.cost_fua),
        }
    }
}

/// The prices in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prices {
    /// What a request costs beside its bytes.
    op: Units,
    /// Units × 2⁸ a sector.
    per_sector: u64,
    /// The factors of reads, writes and writes with FUA, × 2¹⁶.
    factors: [u64; Class::COUNT],
}

impl Prices {
    fn new(mode: CostMode, rates: Rates) -> Self {
        // 2⁹ bytes a sector × 2²⁰ units an op × 2⁸ / U
        let per_sector = (1 << 37) / rates.op_bytes;
        Self {
            op: if mode == CostMode::Bytes { Units::ZERO } else { Units::OP },
            per_sector: if mode == CostMode::Requests { 0 } else { per_sector },
            factors: [ONE, rates.write, rates.fua],
        }
    }

    /// Returns the prices with each part dearer or cheaper by its sign.
    fn dithered(self, signs: Signs) -> Self {
        let [read, write, fua] = self.factors;
        let factors = [read, signs.write.of(write), signs.fua.of(fua)];
        Self { per_sector: signs.bytes.of(self.per_sector), factors, ..self }
    }

    /// Returns the charge of a request, at least one unit.
    #[inline]
    fn charge(&self, rq: &Request) -> Units {
        let bytes = (u64::from(moved(rq).0) * self.per_sector) >> SECTOR_BITS;
        let plain = self.op.count() + bytes;
        let charge = match self.factors[Class::of(rq) as usize] {
            ONE => plain,
            factor => {
                let wide = (u128::from(plain) * u128::from(factor)) >> FACTOR_BITS;
                u64::try_from(wide).expect("2³² sectors at the highest prices are below 2⁵⁹ units")
            }
        };
        Units::new(charge.max(1))
    }
}

/// The sectors of a request that are moved.
#[inline]
pub(super) fn moved(rq: &Request) -> SectorCount {
    match rq.op {
        Op::Read | Op::Write => rq.sectors.max(PAGE),
        Op::Discard | Op::WriteZeroes | Op::Flush => SectorCount(0),
    }
}

fn percent(percent: i64) -> u64 {
    (percent.cast_unsigned() << FACTOR_BITS) / 100
}
