//! Where the platters are: the angle at any time, and how long until an angle is below the head.
//!
//! Angles are in revolutions, from 0 to 1. The angle at time 0 is 0.

use super::units::Millis;

/// Angles nearer than this are the same. A head that goes on with the next sector of a track must
/// not miss it by a rounding error: this is a few nanoseconds, and less than a thousandth of a
/// sector.
const SAME_ANGLE: f64 = 1e-6;

/// The platters, which turn at constant speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spindle {
    /// The time of a revolution.
    pub(super) period: Millis,
}

impl Spindle {
    pub(super) fn from_rpm(rpm: f64) -> Self {
        Self { period: Millis(60_000.0 / rpm) }
    }

    /// The angle at `time`.
    pub(super) fn angle(self, time: Millis) -> f64 {
        let revolutions = time.0 / self.period.0;
        revolutions - revolutions.floor()
    }

    /// How long after `time` the angle is next below the head.
    pub(super) fn wait(self, time: Millis, angle: f64) -> Millis {
        let ahead = angle - self.angle(time);
        let ahead = if ahead < -SAME_ANGLE { ahead + 1.0 } else { ahead };
        // Just short of a whole revolution is now.
        let ahead = if ahead > 1.0 - SAME_ANGLE { 0.0 } else { ahead };
        self.period * ahead.max(0.0)
    }

    /// The first moment from `from` on, in whole revolutions, that is not before `needed`.
    pub(super) fn again(self, from: Millis, needed: Millis) -> Millis {
        let missing = ((needed - from).0 / self.period.0 - SAME_ANGLE).ceil();
        from + self.period * missing.max(0.0)
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "worked out by hand, and exact")]
mod tests {
    use super::*;

    const SPINDLE: Spindle = Spindle { period: Millis(8.0) };

    #[test]
    fn angle_comes_back_after_a_revolution() {
        assert_eq!(SPINDLE.angle(Millis(2.0)), 0.25);
        assert_eq!(SPINDLE.angle(Millis(8.0 * 1e6 + 2.0)), 0.25);
    }

    #[test]
    fn wait_is_what_is_left_of_the_revolution() {
        assert_eq!(SPINDLE.wait(Millis(2.0), 0.5), Millis(2.0));
        assert_eq!(SPINDLE.wait(Millis(6.0), 0.5), Millis(6.0));
        assert_eq!(SPINDLE.wait(Millis(6.0), 0.75), Millis(0.0));
    }

    #[test]
    fn rounding_error_does_not_cost_a_revolution() {
        for (time, angle) in [(4.0 + 1e-9, 0.5), (8.0 - 1e-9, 0.0), (8.0 + 1e-9, 0.0)] {
            assert!(SPINDLE.wait(Millis(time), angle) < Millis(1e-8), "{time}");
        }
        assert!(SPINDLE.wait(Millis(4.01), 0.5) > Millis(7.9));
    }

    #[test]
    fn what_comes_too_late_is_written_whole_revolutions_later() {
        assert_eq!(SPINDLE.again(Millis(1.0), Millis(0.5)), Millis(1.0));
        assert_eq!(SPINDLE.again(Millis(1.0), Millis(2.0)), Millis(9.0));
        assert_eq!(SPINDLE.again(Millis(1.0), Millis(17.0)), Millis(17.0));
    }
}
