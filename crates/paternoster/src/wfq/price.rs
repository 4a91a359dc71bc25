//! What a request costs: an op, its bytes, and a factor for writes.
//!
//! ```text
//!   charge = (1 op + bytes / U) × ω        U  bytes that cost as much as one op
//!                                          ω  1 for reads, else the factor of writes, or of FUA
//! ```
//!
//! Trims and zeroes move no bytes. With U = 16 KiB a read of 4 KiB costs 1.25 op, one of 1 MiB 65.

use super::service::Units;
use super::tunables::{CostMode, Tunables};
use crate::request::{BioFlags, Direction, Op, Request};

/// The bits of a sector's price below one unit.
const SECTOR_BITS: u32 = 8;

/// The bits of a factor below 1.
const FACTOR_BITS: u32 = 16;

/// A factor of 1.
const ONE: u64 = 1 << FACTOR_BITS;

/// The prices in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prices {
    /// What a request costs beside its bytes.
    op: Units,
    /// Units × 2⁸ a sector.
    per_sector: u64,
    /// The factor of what changes the device, × 2¹⁶.
    write: u64,
    /// The factor of a write with FUA, × 2¹⁶.
    fua: u64,
}

impl Prices {
    /// Returns the prices that are set.
    pub(super) fn set_by(tunables: &Tunables) -> Self {
        let mode = tunables.cost_mode();
        // 2⁹ bytes a sector × 2²⁰ units an op × 2⁸ / U
        let per_sector = (1 << 37) / tunables.cost_op_bytes.cast_unsigned();
        Self {
            op: if mode == CostMode::Bytes { Units::ZERO } else { Units::OP },
            per_sector: if mode == CostMode::Requests { 0 } else { per_sector },
            write: percent(tunables.cost_write),
            fua: percent(tunables.cost_fua),
        }
    }

    /// Returns the charge of a request, at least one unit.
    #[inline]
    pub(super) fn charge(&self, rq: &Request) -> Units {
        let bytes = match rq.op {
            Op::Read | Op::Write => (u64::from(rq.sectors.0) * self.per_sector) >> SECTOR_BITS,
            Op::Discard | Op::WriteZeroes | Op::Flush => 0,
        };
        let plain = self.op.count() + bytes;
        let charge = match self.factor(rq) {
            ONE => plain,
            factor => {
                let wide = (u128::from(plain) * u128::from(factor)) >> FACTOR_BITS;
                u64::try_from(wide).expect("2³² sectors at the highest prices are below 2⁵⁹ units")
            }
        };
        Units::new(charge.max(1))
    }

    #[inline]
    fn factor(&self, rq: &Request) -> u64 {
        match rq.direction() {
            Direction::Read => ONE,
            Direction::Write if rq.flags.contains(BioFlags::FUA) => self.fua,
            Direction::Write => self.write,
        }
    }
}

fn percent(percent: i64) -> u64 {
    (percent.cast_unsigned() << FACTOR_BITS) / 100
}
