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

/// The tunables of that kernel.
pub(crate) const fn tunables_of(kernel: Kernel) -> &'static [TunableInfo] {
    match kernel {
        Kernel::V2_6_35Seed | Kernel::V2_6_36 | Kernel::V2_6_37 => BEFORE_2_6_38,
        Kernel::V4_20 => Tunables::TABLE,
    }
}

/// Makes the error for a name that the kernel has no tunable of.
pub(crate) fn unknown_tunable(kernel: Kernel, name: &str) -> TunableError {
    if name != GROUP_ISOLATION.name {
        return TunableError::unknown(NAME, name, tunables_of(kernel));
    }
    let has_it = |of: &Kernel| tunables_of(*of).iter().any(|info| info.name == name);
    let kernels: Vec<&str> =
        Kernel::ALL.iter().filter(|of| has_it(of)).map(|of| of.name()).collect();
    let kernels = kernels.join(", ");
    let allowed = format!("kernel {kernel} decides as with 1; these have it: {kernels}");
    TunableError::Unknown { scheduler: NAME, name: name.to_owned(), allowed }
}

impl<T: Trace> Cfq<T> {
    /// The tunables that the kernel has.
    pub(in crate::cfq) fn tunables_of_kernel(&self) -> &'static [TunableInfo] {
        tunables_of(self.kernel.kernel())
    }

    /// Returns the value of a tunable.
    pub(in crate::cfq) fn read_tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.check_name(name)?;
        if name == GROUP_ISOLATION.name {
            return Ok(self.isolation.queues_stay.into());
        }
        self.tunables.get(name)
    }

    /// Sets a tunable, and returns its value.
    pub(in crate::cfq) fn write_tunable(
        &mut self,
        name: &str,
        value: i64,
    ) -> Result<(), TunableError> {
        self.check_name(name)?;
        if name == GROUP_ISOLATION.name {
            self.isolation.queues_stay = value > 0;
            return Ok(());
        }
        self.tunables.set(name, value)?;
        if self.kernel.counts_ticks() {
            self.tunables.round_up(self.kernel.unit());
        }
        Ok(())
    }

    /// Attaches to a device whose clock has such ticks.
    pub(in crate::cfq) fn attach_kernel(&mut self, cx: &Cx) {
        self.kernel.attach(cx.device.hz.tick());
        if self.kernel.counts_ticks() {
            self.tunables.attach_to_ticks(cx.device.hz);
        }
    }

    /// Returns an error if the kernel has no tunable of that name.
    fn check_name(&self, name: &str) -> Result<(), TunableError> {
        let found = self.tunables_of_kernel().iter().any(|info| info.name == name);
        found.then_some(()).ok_or_else(|| unknown_tunable(self.kernel.kernel(), name))
    }
}
