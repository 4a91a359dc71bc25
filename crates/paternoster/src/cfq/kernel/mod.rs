//! Each difference of kernels 2.6.35 to 2.6.37 from v4.20 that CFQ reproduces has a method here.
//! `Kernel` says which differences are left out. The rest of CFQ asks these methods, and never
//! which kernel it is.
//!
//! ```text
//!   clock        unit, tick_of, whole, portion          ticks instead of nanoseconds
//!                clock.rs                               where they begin and end
//!                tunables.rs                            defaults, and what is set by name
//!   groups       has_groups_side_by_side                hierarchy/side_by_side.rs
//!                may_move_queues                        isolation.rs: group_isolation
//!                has_async_queues_in_root
//!   charge       charges_ticks_for_requests, may_charge_requests, has_slice_trace
//!   idling       waits_for_group_that_thinks_long, may_idle_for_group_on_fast_device,
//!                idles_only_if_asked
//! ```

mod clock;
mod isolation;
mod tunables;

pub(in crate::cfq) use isolation::Isolation;
pub(crate) use tunables::{tunables_of, unknown_tunable};

use crate::kernel::Kernel;
use crate::time::{Instant, Nanos};

/// A nanosecond, in which v4.20 counts.
const NANOSECOND: Nanos = Nanos::new(1);

/// Returns whether the kernel is one of 2.6.35 to 2.6.37.
#[inline]
fn is_before_2_6_38(kernel: Kernel) -> bool {
    kernel != Kernel::V4_20
}

/// The kernel, and the unit of its clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelRules {
    kernel: Kernel,
    /// What its clock counts: nanoseconds, or from when the scheduler is attached ticks.
    unit: Nanos,
}

impl KernelRules {
    pub(super) fn new(kernel: Kernel) -> Self {
        Self { kernel, unit: NANOSECOND }
    }

    /// The kernel.
    pub(super) fn kernel(self) -> Kernel {
        self.kernel
    }

    #[inline]
    fn is_before_2_6_38(self) -> bool {
        is_before_2_6_38(self.kernel)
    }

    // The clock

    /// Counts ticks of that length from now on, if this kernel counts ticks.
    fn attach(&mut self, tick: Nanos) {
        if self.is_before_2_6_38() {
            self.unit = tick;
        }
    }

    /// What spans are whole multiples of.
    #[inline]
    pub(super) fn unit(self) -> Nanos {
        self.unit
    }

    /// Returns whether its clock counts ticks.
    #[inline]
    pub(super) fn counts_ticks(self) -> bool {
        self.is_before_2_6_38()
    }

    /// The moment that its clock shows: when the tick began.
    #[inline]
    pub(super) fn tick_of(self, moment: Instant) -> Instant {
        if self.counts_ticks() { self.begin_of_tick(moment) } else { moment }
    }

    /// The span without what is less than a unit, as a quotient of spans in units is truncated.
    #[inline]
    pub(super) fn whole(self, span: Nanos) -> Nanos {
        if self.counts_ticks() { self.whole_ticks(span) } else { span }
    }

    /// `span × part / of`, truncated. In nanoseconds the product wraps in 64 bits, as in Linux; in
    /// ticks it is too small for that.
    #[inline]
    pub(super) fn portion(self, span: Nanos, part: u64, of: u64) -> Nanos {
        if self.counts_ticks() {
            self.portion_in_ticks(span, part, of)
        } else {
            Nanos::new(span.as_nanos().wrapping_mul(part) / of)
        }
    }

    // What only kernels 2.6.35 to 2.6.37 compute is out of the way of v4.20.

    #[cold]
    fn begin_of_tick(self, moment: Instant) -> Instant {
        Instant::from_nanos(self.whole_ticks(Nanos::new(moment.as_nanos())).as_nanos())
    }

    #[cold]
    fn whole_ticks(self, span: Nanos) -> Nanos {
        Nanos::new(span.as_nanos() - span.as_nanos() % self.unit.as_nanos())
    }

    #[cold]
    fn portion_in_ticks(self, span: Nanos, part: u64, of: u64) -> Nanos {
        let exact = u128::from(span.as_nanos()) * u128::from(part) / u128::from(of);
        self.whole_ticks(Nanos::new(u64::try_from(exact).unwrap_or(u64::MAX)))
    }

    /// How many units there are in the span.
    pub(super) fn units(self, span: Nanos) -> u64 {
        span.as_nanos() / self.unit.as_nanos()
    }

    // Groups

    /// All groups compete at one level, whatever their depth. A hierarchy came years later.
    #[inline]
    pub(super) fn has_groups_side_by_side(self) -> bool {
        self.is_before_2_6_38()
    }

    /// A queue may be in the root instead of its group: small slices of many seeking queues were to
    /// be given together, not group by group.
    #[inline]
    pub(super) fn may_move_queues(self) -> bool {
        self.is_before_2_6_38()
    }

    /// Groups share the asynchronous queues, as nobody knew for which group a page is written.
    #[inline]
    pub(super) fn has_async_queues_in_root(self) -> bool {
        self.is_before_2_6_38()
    }

    // The charge

    /// Groups are charged for requests in IOPS mode, which came with 2.6.36.
    #[inline]
    pub(super) fn may_charge_requests(self) -> bool {
        self.kernel != Kernel::V2_6_35Seed
    }

    /// A slice that ends before it begins is charged a tick for each request, if the device may
    /// queue requests: their time is then not known.
    #[inline]
    pub(super) fn charges_ticks_for_requests(self) -> bool {
        self.kernel == Kernel::V2_6_35Seed
    }

    /// Each charge is also reported as those kernels trace it:
    /// `sl_used=%u disp=%u charge=%u iops=%u sect=%u`, in ticks.
    #[inline]
    pub(super) fn has_slice_trace(self) -> bool {
        self.is_before_2_6_38()
    }

    // Idling

    /// The device waits for a group's requests in flight however long the group's think time is,
    /// and idles for a group however long the think time on the queue's tree is.
    #[inline]
    pub(super) fn waits_for_group_that_thinks_long(self) -> bool {
        self.is_before_2_6_38()
    }

    /// A non-rotational device that may queue requests can still idle for a group.
    #[inline]
    pub(super) fn may_idle_for_group_on_fast_device(self) -> bool {
        !self.is_before_2_6_38()
    }

    /// After a completion the device idles only if the workload or a request of it asks for that,
    /// or the queue is the only busy one of its group.
    #[inline]
    pub(super) fn idles_only_if_asked(self) -> bool {
        matches!(self.kernel, Kernel::V2_6_35Seed | Kernel::V2_6_36)
    }
}
