//! The end of a slice: what the group is charged for it, and where the queue goes.
//!
//! The group is charged for time, or in IOPS mode for requests. BFQ charges for service as it
//! dispatches; at the end of a service it only adds what the time costs.

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::cfq::slice::{Slice, Usage};
use crate::parts::service_speed::Served;
use crate::scheduler::Cx;
use crate::time::{Nanos, Ticks};
use crate::trace::{CfqEvent, Event, SliceEnd, Trace};

const HAS_SLICE: &str = "the queue whose slice ends is active";

impl<T: Trace> Cfq<T> {
    /// Ends the slice of the active queue. What is left of it, or was used beyond it, moves the
    /// queue's next place.
    #[cold]
    #[inline(never)]
    pub(super) fn expire_with_residue(&mut self, cx: &Cx, why: SliceEnd) {
        let active = self.active.expect(HAS_SLICE);
        let slice = &self.queues[active].slice;
        let residue = if slice.is_fresh() {
            self.take_slice(cx, active).as_nanos().cast_signed()
        } else {
            slice.left(self.now)
        };
        self.queues[active].carry_over(residue);
        self.end_slice(cx, active, why, Some(residue));
    }

    /// Ends the slice of the active queue. Its group is charged, and the queue goes where its next
    /// slice is due, or off the trees if it is empty.
    #[cold]
    #[inline(never)]
    pub(super) fn expire(&mut self, cx: &Cx, why: SliceEnd) {
        let active = self.active.expect(HAS_SLICE);
        self.end_slice(cx, active, why, None);
    }

    #[cold]
    #[inline(never)]
    fn end_slice(&mut self, cx: &Cx, queue: QueueId, why: SliceEnd, residue: Option<i64>) {
        if self.queues[queue].slice.is_idling() {
            self.stop_idle_timer();
        }
        self.queues[queue].slice.expire();
        self.plan_split_of_seeky(cx, queue);
        self.charge(cx, queue, why, residue);
        if self.queues[queue].is_empty() {
            self.remove_busy(cx, queue);
        } else {
            self.place(cx, queue);
            self.index_position(cx, queue);
        }
        self.active = None;
        if let Some(ioc) = self.active_context.take() {
            self.free_context_if_unused(ioc);
        }
    }

    /// Charges the queue's group for the slice and moves the group on the tree.
    fn charge(&mut self, cx: &Cx, queue: QueueId, why: SliceEnd, residue: Option<i64>) {
        let state = &self.queues[queue];
        let (group, name, slice) = (state.group, state.name(), state.slice);
        let whole = self.tunables.charge_whole_turn();
        let Usage { used, unaccounted } = self.usage(cx, &slice);
        let iops_mode = self.iops_mode();
        let charge = if iops_mode {
            if whole { self.requests_due(queue) } else { slice.dispatched().into() }
        } else if whole {
            used.as_nanos()
        } else if !name.sync && self.sync_queues_of(group) == 0 {
            // A group with asynchronous queues alone is charged for the whole slice, even if it
            // ends early.
            slice.length().as_nanos()
        } else {
            used.as_nanos()
        };
        let standing = self.charge_share(cx, queue, group, charge);
        self.save_workload(cx, group);
        let state = &mut self.groups[group];
        state.stats.charged(self.now, used, unaccounted, state.queued);
        self.trace.event(
            cx.now,
            Event::Cfq(CfqEvent::SliceExpired {
                queue: name,
                group,
                why,
                residue,
                used,
                unaccounted,
                dispatched: slice.dispatched(),
                charge,
                iops_mode,
                sectors: slice.sectors(),
                vdisktime: standing.vdisktime.0,
                min_vdisktime: standing.min_vdisktime.0,
            }),
        );
        if self.kernel.has_slice_trace() {
            let used = Ticks::new(self.kernel.units(used).cast_signed());
            let (dispatched, sectors) = (slice.dispatched(), slice.sectors());
            let charge = self.charge_in_units(charge);
            let event = Event::Cfq(CfqEvent::SliceUsed {
                queue: name,
                used,
                dispatched,
                charge,
                iops_mode,
                sectors,
            });
            self.trace.event(cx.now, event);
        }
    }

    /// A charge in units of the clock, or in requests.
    pub(super) fn charge_in_units(&self, charge: u64) -> u64 {
        if self.iops_mode() { charge } else { self.kernel.units(Nanos::new(charge)) }
    }

    /// The time for which the slice is charged; where requests stand for ticks, that many ticks.
    fn usage(&self, cx: &Cx, slice: &Slice) -> Usage {
        if self.tunables.charge_whole_turn() {
            return slice.whole_usage(self.now);
        }
        if self.kernel.charges_ticks_for_requests()
            && self.hw_queueing.may_queue()
            && slice.measured_since(self.now).is_none()
        {
            let ticks = cx.device.hz.tick().as_nanos() * u64::from(slice.dispatched());
            return Usage { used: Nanos::new(ticks), unaccounted: Nanos::ZERO };
        }
        slice.usage(self.now, cx.device.hz)
    }

    /// Returns for how many requests a slice is charged: those that it dispatched, or if it held
    /// the device while it was empty, those that the device would have completed in its time.
    fn requests_due(&mut self, queue: QueueId) -> u64 {
        let state = &self.queues[queue];
        let slice = &state.slice;
        let served = self.service_speed.since(slice.since(), self.now);
        let (dispatched, short) = (u64::from(slice.dispatched()), slice.has_run_empty());
        let mut seen = served;
        if slice.is_over(self.now) && !short {
            // What it dispatched last completes after its slice, which began with a device that
            // might be empty.
            seen.amount = seen.amount.max(dispatched);
        }
        let of_group = &mut self.groups[state.group].unjudged;
        self.service_speed.learn(of_group, seen, short);
        let held = slice.was_held_while_empty();
        let own = Served { amount: dispatched, ..served };
        let lost = if held { self.service_speed.lost(own) } else { 0 };
        dispatched.saturating_add(lost)
    }

    /// Counts the busy queues of the group on trees that are neither asynchronous nor of the idle
    /// class.
    pub(super) fn sync_queues_of(&self, group: GroupId) -> u32 {
        let state = &self.groups[group];
        let queues = state.entities - state.share.child_groups();
        queues - state.trees.busy_async() - state.trees.busy_idle()
    }

    /// Returns whether groups are charged for requests instead of time: the device never idles for
    /// a queue, and it may queue requests itself.
    pub(super) fn iops_mode(&self) -> bool {
        self.tunables.slice_idle() == Nanos::ZERO
            && self.hw_queueing.may_queue()
            && self.kernel.may_charge_requests()
    }
}
