//! What I/O costs the processors, and the lock that the scheduler's work is done under.

use paternoster::Nanos;

/// What one I/O costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Time of the core to submit it, but for the scheduler's work.
    pub submit: Nanos,
    /// Time of the core to complete it, but for the scheduler's work.
    pub complete: Nanos,
    /// Further time of the core to wake its task, if that waits.
    pub wake: Nanos,
    /// By how many percent these vary around their mean, at most 100.
    pub varies_percent: u32,
    /// How long the scheduler holds its lock for it, half of it when it comes and half when it
    /// completes.
    pub hold: Nanos,
    /// The same where the lock was waited for.
    pub hold_after_wait: Nanos,
}

impl Costs {
    /// Whether I/O costs nothing.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What the cores did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time of all cores in which they worked, or spun.
    pub busy: Nanos,
    /// Time of all cores in which they waited for the lock.
    pub spinning: Nanos,
    /// How long the lock was held.
    pub held: Nanos,
}
