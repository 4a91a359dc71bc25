//! Reports the state of `wfq`.

use super::Wfq;
use super::depth::{Changed, ops};
use crate::dump::Dump;
use crate::trace::{Trace, TrialKind};

impl<T: Trace> Wfq<T> {
    pub(super) fn dump_all(&self, out: &mut dyn Dump) {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        out.number("queued", self.queued.into());
        out.number("depth_in_force", self.depth.in_force().into());
        out.number("depth_settled", self.depth.settled().into());
        out.number("depth_fair", self.contest.above().map_or(-1, i64::from));
        out.number("depth_trial", self.depth.in_trial().map_or(0, trial_number));
        self.dump_change(out);
        let trials = self.depth.trials();
        out.number("trials_accepted", trials.accepted.into());
        out.number("trials_rejected", trials.rejected.into());
        out.number("trials_dropped", trials.dropped.into());
        out.number("jolts", trials.jolts.into());
        out.number("speed_ops_per_s", number(self.depth.usual_speed().map_or(0, ops)));
        out.number("price_op_bytes", number(self.pricing.op_bytes()));
        let [write, fua] = self.pricing.factors();
        out.number("price_write_percent", number(write));
        out.number("price_fua_percent", number(fua));
        out.number("price_blocks", number(self.pricing.blocks()));
        out.number("windows", number(self.windows.number()));
        out.number("windows_starved", number(self.windows.starved()));
    }

    /// When and why the depth that holds was last another one.
    fn dump_change(&self, out: &mut dyn Dump) {
        let Some(Changed { at, from, trial, gain }) = self.depth.changed() else {
            return out.number("depth_changed_by", 0);
        };
        let at = at.since_start().as_nanos() / 1_000_000;
        out.number("depth_changed_by", trial.map_or(BOUNDS, trial_number));
        out.number("depth_changed_from", from.into());
        out.number("depth_changed_at_ms", i64::try_from(at).unwrap_or(i64::MAX));
        out.number("depth_changed_gain_ppm", gain);
    }
}

/// What stands for bounds where a trial has its number.
const BOUNDS: i64 = 4;

fn trial_number(kind: TrialKind) -> i64 {
    match kind {
        TrialKind::Up => 1,
        TrialKind::Down => 2,
        TrialKind::Soft => 3,
    }
}
