//! Reports the state of `wfq`.

use super::Wfq;
use super::depth::ops;
use crate::dump::Dump;
use crate::trace::{Trace, TrialKind};

impl<T: Trace> Wfq<T> {
    pub(super) fn dump_all(&self, out: &mut dyn Dump) {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        out.number("queued", self.queued.into());
        out.number("depth_in_force", self.depth_now.into());
        out.number("depth_settled", self.depth.settled().into());
        out.number("depth_fair", self.fair_depth.map_or(-1, i64::from));
        out.number(
            "depth_trial",
            match self.depth.in_trial() {
                None => 0,
                Some(TrialKind::Up) => 1,
                Some(TrialKind::Down) => 2,
                Some(TrialKind::Soft) => 3,
            },
        );
        let trials = self.depth.trials;
        out.number("trials_accepted", trials.accepted.into());
        out.number("trials_rejected", trials.rejected.into());
        out.number("trials_dropped", trials.dropped.into());
        out.number("jolts", trials.jolts.into());
        out.number("speed_ops_per_s", number(self.depth.speed().map_or(0, ops)));
        out.number("windows", number(self.windows.number()));
        out.number("windows_starved", number(self.starved_windows));
    }
}
