//! What may be changed of an elevator that a driver drives, apart from events.

use std::ops::Deref;

use crate::arena::{GroupId, IocId};
use crate::elevator::{Elevator, Limits, NoMerges};
use crate::group::{DeviceWeights, Weight, Weights};
use crate::group_limits::GroupLimits;
use crate::hierarchy::{Hierarchy, NoHierarchy};
use crate::io_context::IoPrio;
use crate::scheduler::{Scheduler, Work};
use crate::time::Instant;
use crate::tunable::TunableError;

/// An elevator in the hands of [`Driver::administer`](crate::Driver::administer): all that may be
/// asked of it, and all that may be changed but by events. Those are the driver's: it keeps the
/// bios that were told [`Later`](crate::Submitted::Later), and has to see every wake-up.
///
/// ```compile_fail,E0596
/// # use paternoster::{AnyScheduler, Driver, Instant, NoTrace};
/// fn lose_a_wake_up(driver: &mut Driver<AnyScheduler<NoTrace>>, now: Instant) {
///     driver.administer(|elevator| elevator.cancel_queued(now));
/// }
/// ```
#[derive(Debug)]
pub struct Administration<'a, S> {
    elevator: &'a mut Elevator<S>,
}

impl<'a, S> Administration<'a, S> {
    pub(crate) fn new(elevator: &'a mut Elevator<S>) -> Self {
        Self { elevator }
    }
}

impl<S> Deref for Administration<'_, S> {
    type Target = Elevator<S>;

    fn deref(&self) -> &Elevator<S> {
        self.elevator
    }
}

/// The methods of an elevator that administer it, under their own names.
macro_rules! administrative {
    ($($method:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        impl<S: Scheduler> Administration<'_, S> {
            $(
                #[doc = concat!("As [`Elevator::", stringify!($method), "`].")]
                pub fn $method(&mut self $(, $argument: $type)*) $(-> $result)? {
                    self.elevator.$method($($argument),*)
                }
            )*
        }
    };
}

administrative! {
    add_io_context(now: Instant, io_prio: IoPrio, group: GroupId) -> IocId;
    set_io_priority(now: Instant, ioc: IocId, io_prio: IoPrio);
    move_to_group(now: Instant, ioc: IocId, group: GroupId);
    exit_io_context(now: Instant, ioc: IocId);
    add_group(now: Instant, parent: GroupId, weight: Weight) -> GroupId;
    remove_group(now: Instant, group: GroupId);
    set_weight(now: Instant, group: GroupId, weights: Weights);
    set_device_weights(now: Instant, group: GroupId, weights: DeviceWeights);
    set_group_limits(now: Instant, group: GroupId, limits: GroupLimits);
    set_tunable(now: Instant, name: &str, value: i64) -> Result<i64, TunableError>;
    reset_tunables(now: Instant, set: &[(String, i64)]);
    begin_at_depth(now: Instant, depth: u32);
    set_hierarchy(now: Instant, to: Hierarchy) -> Result<(), NoHierarchy>;
    charge(now: Instant, group: GroupId, work: Work);
    switch(now: Instant, to: S) -> S;
    set_depth(queue_depth: u32);
    set_nr_requests(nr_requests: Option<u32>);
    set_limits(limits: Limits);
    set_nomerges(nomerges: NoMerges);
    set_scan_depth(requests: u32);
    trace() -> &mut S::Trace;
}
