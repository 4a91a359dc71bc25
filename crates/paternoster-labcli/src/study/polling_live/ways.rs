//! The policies that are measured, by name.

use paternoster::Nanos;
use paternoster::poll::{AutoTunables, Completions, OfMean, PollPolicy, Ppm};

/// A way to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) policy: PollPolicy,
    /// Whether it knows the device's own moments, as on a queue with interrupts.
    pub(super) completions: Completions,
}

const fn of_mean(part: u32, use_min: bool, adjust: Nanos) -> PollPolicy {
    PollPolicy::OfMean(OfMean { part: Ppm(part), use_min, adjust })
}

pub(super) const INTERRUPT: &str = "interrupt";
pub(super) const CLASSIC: &str = "classic";
pub(super) const AUTO: &str = "auto";

/// All of them. The post's queue had interrupts, so its two policies know the device's moments;
/// without these what they sleep grows from window to window. `adjust` is what they subtract.
pub(super) fn ways(adjust: Nanos) -> [Way; 9] {
    let noticed = |name, policy| Way { name, policy, completions: Completions::Noticed };
    let stamped = |name, policy| Way { name, policy, completions: Completions::Stamped };
    [
        noticed(INTERRUPT, PollPolicy::Interrupt),
        noticed(CLASSIC, PollPolicy::Classic),
        noticed("mean/2", of_mean(500_000, false, Nanos::ZERO)),
        noticed("0.6 mean", of_mean(600_000, false, Nanos::ZERO)),
        noticed("3/4 mean", of_mean(750_000, false, Nanos::ZERO)),
        stamped("use_min", of_mean(500_000, true, Nanos::ZERO)),
        stamped("use_min adjust", of_mean(500_000, true, adjust)),
        noticed("io_uring", PollPolicy::IoUring),
        noticed(AUTO, PollPolicy::Auto(AutoTunables::DEFAULT)),
    ]
}
