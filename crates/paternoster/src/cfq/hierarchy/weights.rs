//! What a level is worth where queues are served by vdisktime: its weight, and the jump of a queue
//! that joins a tree. Both are decided here and nowhere else.
//!
//! ```text
//!   level     0     1     2     3     4     5     6     7
//!   weight 1000   868   740   612   484   356   228   100
//!   jump      0    20    40    60    80   100   120   140 ms   of a synchronous queue, × 4096
//! ```
//!
//! Linux never had this hierarchy, so nobody's numbers are to be met. The weights are linear, in
//! whole steps, and end at the range that groups had then.

use crate::io_context::IoPrio;
use crate::time::Nanos;

/// The weight of a queue by its level, in every class.
const WEIGHTS: [u32; IoPrio::LEVELS as usize] = [1000, 868, 740, 612, 484, 356, 228, 100];

/// One of this weight is charged `amount × 2¹²`.
const NORMAL_WEIGHT: u32 = 500;
const SHIFT: u32 = 12;

/// The most that one charge may move an entity, so that no vdisktime overflows. At weight 1 it
/// takes a slice of nine minutes.
const MAX_STEP: u64 = 1 << 60;

/// The weight of a queue of that level.
pub(super) fn weight_of(io_prio: IoPrio) -> u32 {
    WEIGHTS[usize::from(io_prio.level())]
}

/// How far `amount`, in ns or requests, moves an entity of that weight:
///
/// `amount × 2¹² × 500 / weight`
pub(super) fn scaled(amount: u64, weight: u32) -> u64 {
    let step = (u128::from(amount) << SHIFT) * u128::from(NORMAL_WEIGHT) / u128::from(weight);
    u64::try_from(step).map_or(MAX_STEP, |step| step.min(MAX_STEP))
}

/// How far behind the minimum of its tree a queue of that nominal slice joins: what one competitor
/// of weight 500 is charged for the rest of the longest slice.
///
/// `(slice of level 0 − its own slice) × 2¹²`
pub(super) fn jump(longest: Nanos, slice: Nanos) -> i64 {
    let step = |from: Nanos, to: Nanos| {
        let rest = scaled(from.saturating_sub(to).as_nanos(), NORMAL_WEIGHT);
        i64::try_from(rest).expect("a step is at most 2⁶⁰")
    };
    // An asynchronous slice may be the longer one; then its queue joins before the minimum.
    step(longest, slice) - step(slice, longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(level: u8) -> IoPrio {
        format!("be/{level}").parse().expect("a priority")
    }

    /// 100 + (7 − level) × 128, but for level 0, which would be 996.
    #[test]
    fn weights_are_linear_from_100_to_1000() {
        for p in 1..IoPrio::LEVELS {
            assert_eq!(weight_of(level(p)), 100 + u32::from(7 - p) * 128, "level {p}");
        }
        assert_eq!(weight_of(level(0)), 1000);
        assert_eq!(weight_of("idle".parse().expect("a priority")), 100, "level 7");
    }

    /// A slice of 100 ms: 10⁸ × 4096 × 500 = 204 800 000 000 000, by the weight.
    #[test]
    fn charge_moves_an_entity_by_the_inverse_of_its_weight() {
        let rows = [
            (1000, 204_800_000_000),
            (484, 423_140_495_867),
            (100, 2_048_000_000_000),
            (500, 409_600_000_000),
            (250, 819_200_000_000),
        ];
        for (weight, by) in rows {
            assert_eq!(scaled(100_000_000, weight), by, "{weight}");
        }
        assert_eq!(scaled(12, 484), 50_776, "12 requests of be/4");
        assert_eq!(scaled(12, 500), 49_152, "12 requests of a group");
        assert_eq!(scaled(u64::MAX, 1), MAX_STEP);
    }

    /// Level 0 of a synchronous queue has 180 ms at the defaults, each level 20 ms less;
    /// asynchronous slices are 72 ms and 8 ms less.
    #[test]
    fn jump_is_the_difference_from_the_longest_slice() {
        let longest = Nanos::from_millis(180);
        let rows = [
            (180, 0),
            (160, 81_920_000_000),
            (100, 327_680_000_000),
            (40, 573_440_000_000),
            (72, 442_368_000_000),
            (16, 671_744_000_000),
            (200, -81_920_000_000),
        ];
        for (slice, by) in rows {
            assert_eq!(jump(longest, Nanos::from_millis(slice)), by, "{slice} ms");
        }
    }
}
