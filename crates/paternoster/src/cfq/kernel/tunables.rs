//! The tunables of kernels 2.6.35 to 2.6.37: those of v4.20 with times in ticks, and
//! `group_isolation`.
//!
//! Their defaults are parts of a second, truncated to ticks but never none: at 100 ticks a second
//! `slice_idle` is one tick, 10 ms. What is set is rounded up to whole ticks.

use crate::cfq::tunables::Tunables;
use crate::cfq::{Cfq, NAME};
use crate::kernel::Kernel;
use crate::scheduler::Cx;
use crate::trace::Trace;
use crate::tunable::{TunableError, TunableInfo};

/// What these kernels have beside the tunables of v4.20.
const GROUP_ISOLATION: TunableInfo = TunableInfo {
    name: "group_isolation",
    unit: "bool",
    default: 0,
    min: 0,
    max: 1,
    words: &[],
    doc: "Of the kernels 2.6.35-seed, 2.6.36 and 2.6.37 alone: whether a queue for which the \
          device does not idle stays in its group, instead of competing in the root.",
};

/// The tunables of these kernels.
const BEFORE_2_6_38: &[TunableInfo] = &{
    let mut table = [GROUP_ISOLATION; Tunables::TABLE.len() + 1];
    let mut at = 0;
    while at < Tunables::TABLE.len() {
        table[at] = Tunables::TABLE[at];
        at += 1;
    }
    table
};

impl<T: Trace> Cfq<T> {
    /// The tunables that the kernel has.
    pub(in crate::cfq) fn tunables_of_kernel(&self) -> &'static [TunableInfo] {
        if self.kernel.may_move_queues() { BEFORE_2_6_38 } else { Tunables::TABLE }
    }

    /// Returns the value of a tunable.
    pub(in crate::cfq) fn read_tunable(&self, name: &str) -> Result<i64, TunableError> {
        if name == GROUP_ISOLATION.name {
            self.check_group_isolation()?;
            return Ok(self.isolation.queues_stay.into());
        }
        self.check_name(name)?;
        self.tunables.get(name)
    }

    /// Sets a tunable, and returns its value.
    pub(in crate::cfq) fn write_tunable(
        &mut self,
        name: &str,
        value: i64,
    ) -> Result<i64, TunableError> {
        if name == GROUP_ISOLATION.name {
            self.check_group_isolation()?;
            self.isolation.queues_stay = value > 0;
            return Ok(self.isolation.queues_stay.into());
        }
        self.check_name(name)?;
        let set = self.tunables.set(name, value)?;
        if !self.kernel.counts_ticks() {
            return Ok(set);
        }
        self.tunables.round_up(self.kernel.unit());
        self.tunables.get(name)
    }

    /// Attaches to a device whose clock has such ticks.
    pub(in crate::cfq) fn attach_kernel(&mut self, cx: &Cx<'_>) {
        self.kernel.attach(cx.device.hz.tick());
        if self.kernel.counts_ticks() {
            self.tunables.attach_to_ticks(cx.device.hz);
        }
    }

    /// Returns an error if the kernel has no tunable of that name.
    fn check_name(&self, name: &str) -> Result<(), TunableError> {
        let table = self.tunables_of_kernel();
        let found = table.iter().any(|info| info.name == name);
        found.then_some(()).ok_or_else(|| TunableError::unknown(NAME, name, table))
    }

    /// Returns an error if the kernel has no `group_isolation`.
    fn check_group_isolation(&self) -> Result<(), TunableError> {
        if self.kernel.may_move_queues() {
            return Ok(());
        }
        let kernels = Kernel::ALL.iter().filter(|kernel| super::is_before_2_6_38(**kernel));
        let kernels: Vec<&str> = kernels.map(|kernel| kernel.name()).collect();
        Err(TunableError::Unknown {
            scheduler: NAME,
            name: GROUP_ISOLATION.name.to_owned(),
            allowed: format!(
                "kernel {} does not have it; these have: {}",
                self.kernel.kernel(),
                kernels.join(", ")
            ),
        })
    }
}
