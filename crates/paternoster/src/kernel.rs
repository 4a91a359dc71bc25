//! The Linux versions whose CFQ decisions can be chosen, by name.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::any::SchedulerKind;

/// The kernel whose CFQ decides.
///
/// What differs from v4.20 in kernels 2.6.35 to 2.6.37:
///
/// - The clock counts ticks. Each span is a whole number of them, and so is each quotient of spans.
///   Defaults are parts of a second: `slice_async` is HZ / 25 ticks, truncated, at least one.
/// - The root, of weight 1000, and all groups compete side by side, whatever their depth:
///   `vdisktime += ticks × 2¹² × 500 / weight`. There is no [`Hierarchy`](crate::Hierarchy) to
///   choose, and leaf weights mean nothing. No group is above another, so a request of the root
///   preempts a queue of another group only if that queue is of the idle class or asynchronous.
/// - The tunable `group_isolation`, 0 at first: a queue without an idle window competes in the root
///   instead of its group. With 1 it stays, as in v4.20.
/// - Asynchronous queues belong to the device, and compete in the root.
/// - A group whose only queue has used its slice is waited for while it has requests in flight,
///   however long it thinks.
/// - A fast device never idles for a group. Others do however long the think time on the queue's
///   tree is, which v4.20 asks for.
///
/// | | 2.6.35-seed | 2.6.36 | 2.6.37 |
/// |---|---|---|---|
/// | the device may idle | only for one of three reasons | the same | always, as in v4.20 |
/// | IOPS mode | never | as in v4.20 | as in v4.20 |
/// | charge of a slice that has not begun | a tick a request | its time | its time |
///
/// The device may idle after a completion. The reasons: the served workload is SYNC; or since it
/// was chosen a synchronous request that left its queue empty was not a no-idle write; or the queue
/// is the only busy one of its group.
///
/// A tick a request: unless the device is known not to queue requests; the time is at least a tick,
/// as in v4.20.
///
/// All else is as in v4.20, where those kernels differ in details too. They are for scenarios: to
/// set what was measured then beside what the same rules decide here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Linux 2.6.35 with the patches that brought `group_idle`, as they were first posted.
    V2_6_35Seed,
    /// Linux 2.6.36, which has them in another form.
    V2_6_36,
    /// Linux 2.6.37.
    V2_6_37,
    /// Linux v4.20, the last one with CFQ.
    #[default]
    V4_20,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::V2_6_35Seed, Self::V2_6_36, Self::V2_6_37, Self::V4_20];

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V2_6_35Seed => "2.6.35-seed",
            Self::V2_6_36 => "2.6.36",
            Self::V2_6_37 => "2.6.37",
            Self::V4_20 => "4.20",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kernel {
    type Err = UnknownKernel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kernel| kernel.name() == name);
        found.ok_or_else(|| UnknownKernel { name: name.to_owned() })
    }
}

/// The error for a name that no kernel has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no kernel {name:?}; there are: {}", known())]
pub struct UnknownKernel {
    name: String,
}

/// The error for a scheduler whose kernel cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{scheduler} has no kernel to choose; {} has: {}", SchedulerKind::Cfq, known())]
pub struct NoKernel {
    scheduler: SchedulerKind,
}

impl NoKernel {
    /// Makes the error of that scheduler.
    pub(crate) const fn new(scheduler: SchedulerKind) -> Self {
        Self { scheduler }
    }
}

fn known() -> String {
    Kernel::ALL.map(Kernel::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_and_errors_name_what_is_allowed() {
        for kernel in Kernel::ALL {
            assert_eq!(kernel.name().parse(), Ok(kernel));
        }
        let allowed = "2.6.35-seed, 2.6.36, 2.6.37, 4.20";
        let unknown = "2.6.38".parse::<Kernel>().expect_err("there is none").to_string();
        assert_eq!(unknown, format!("there is no kernel \"2.6.38\"; there are: {allowed}"));
        let none = NoKernel::new(SchedulerKind::Bfq).to_string();
        assert_eq!(none, format!("bfq has no kernel to choose; cfq has: {allowed}"));
    }
}
