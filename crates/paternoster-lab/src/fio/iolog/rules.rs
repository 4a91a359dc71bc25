//! How a log is replayed: `replay_*`.

use paternoster::Nanos;

use crate::fio::IoOp;

/// How a log is replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::fio) struct Rules {
    /// Nothing waits for its time, `replay_no_stall`.
    pub(in crate::fio) no_stall: bool,
    /// How fast time goes, in percent, `replay_time_scale`.
    pub(in crate::fio) time_scale: u32,
    /// What positions are divided by, `replay_scale`.
    pub(in crate::fio) scale: u64,
    /// What they are rounded down to multiples of then, `replay_align`.
    pub(in crate::fio) align: u64,
    /// What is left out, `replay_skip`.
    pub(in crate::fio) skips: Skips,
    /// The file that all I/O goes to, `replay_redirect`.
    pub(in crate::fio) redirect: Option<String>,
}

/// What is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a word of fio's")]
pub(in crate::fio) struct Skips {
    pub(in crate::fio) reads: bool,
    pub(in crate::fio) writes: bool,
    pub(in crate::fio) trims: bool,
    pub(in crate::fio) syncs: bool,
}

impl Default for Rules {
    fn default() -> Self {
        let skips = Skips::default();
        Self { no_stall: false, time_scale: 100, scale: 1, align: 1, skips, redirect: None }
    }
}

impl Rules {
    /// Where an I/O at that offset of the log is.
    pub(super) fn position(&self, offset: u64) -> u64 {
        let scaled = offset / self.scale;
        scaled - scaled % self.align
    }

    /// How long so many microseconds of the log take, as far as a time reaches:
    ///
    /// `us × 1000 × 100 / time_scale`
    pub(super) fn time(&self, us: u64) -> Nanos {
        let nanos = u128::from(us) * 1000 * 100 / u128::from(self.time_scale);
        Nanos::new(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whether that is left out.
    pub(super) fn skips(&self, op: IoOp) -> bool {
        match op {
            IoOp::Read => self.skips.reads,
            IoOp::Write => self.skips.writes,
            IoOp::Trim => self.skips.trims,
            IoOp::Sync | IoOp::DataSync => self.skips.syncs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fio 3.33 was seen to do: `tests/data/fio-3.33/replay.txt`.
    #[test]
    fn position_is_divided_and_then_rounded_down() {
        let rules = |scale, align| Rules { scale, align, ..Rules::default() };
        let positions = |rules: Rules| [1000, 10_000, 20_001].map(|at| rules.position(at));
        assert_eq!(positions(rules(2, 4096)), [0, 4096, 8192]);
        assert_eq!(positions(rules(3, 1)), [333, 3333, 6667]);
        assert_eq!(positions(rules(1, 512)), [512, 9728, 19_968]);
    }

    #[test]
    fn time_goes_faster_by_the_scale() {
        let time = |time_scale| Rules { time_scale, ..Rules::default() }.time(3000).as_nanos();
        assert_eq!([50, 100, 200].map(time), [6_000_000, 3_000_000, 1_500_000]);
        assert_eq!(Rules::default().time(u64::MAX).as_nanos(), u64::MAX);
    }
}
