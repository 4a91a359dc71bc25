//! The elevator's administration: I/O contexts, groups, weights and limits.

use super::{Elevator, Limits, NoMerges};
use crate::arena::{GroupId, IocId};
use crate::device::Device;
use crate::group::{DeviceWeights, GroupEvent, Groups, Weight, Weights};
use crate::group_limits::GroupLimits;
use crate::io_context::IoPrio;
use crate::plug::PlugRules;
use crate::scheduler::Scheduler;
use crate::time::Instant;

impl<S: Scheduler> Elevator<S> {
    /// Adds an I/O context, which issues bios (a process in Linux, a connection in a server), with
    /// that priority and in `group`.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone.
    pub fn add_io_context(&mut self, now: Instant, io_prio: IoPrio, group: GroupId) -> IocId {
        self.advance(now);
        self.cx.groups.assert_exists(group);
        self.cx.contexts.add(io_prio, group)
    }

    /// Sets the I/O priority of the context's next requests.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the context is gone.
    pub fn set_io_priority(&mut self, now: Instant, ioc: IocId, io_prio: IoPrio) {
        self.advance(now);
        self.cx.contexts.get_mut(ioc).io_prio = io_prio;
    }

    /// Moves the context's next requests to `group`.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the context or the group is gone.
    pub fn move_to_group(&mut self, now: Instant, ioc: IocId, group: GroupId) {
        self.advance(now);
        self.cx.groups.assert_exists(group);
        self.cx.contexts.get_mut(ioc).group = group;
    }

    /// Ends an I/O context: it submits no more bios. Its key is freed with its last request.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the context has exited before.
    pub fn exit_io_context(&mut self, now: Instant, ioc: IocId) {
        self.advance(now);
        self.scheduler.exit_io_context(&mut self.cx, ioc);
        self.cx.contexts.exit(ioc);
    }

    /// Adds a group below `parent`. Its leaf weight is the same as its weight.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where `parent` is gone.
    pub fn add_group(&mut self, now: Instant, parent: GroupId, weight: Weight) -> GroupId {
        self.advance(now);
        let group = self.cx.groups.add(parent, weight);
        self.stats.add_group(group);
        group
    }

    /// Removes a group that has no child groups, I/O contexts and requests.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone, is the root, or has any of
    /// these.
    pub fn remove_group(&mut self, now: Instant, group: GroupId) {
        self.advance(now);
        assert!(!self.cx.contexts.any_in(group), "a group is removed when no context is in it");
        assert!(self.cx.groups.is_unused(group), "a group is removed when nothing is in it");
        self.notify_group(group, GroupEvent::Closing);
        let last = self.counted_below(group);
        self.notify_group(group, GroupEvent::Removed);
        let parent = self.cx.groups.remove(group);
        self.stats.remove_group(group, parent, &last);
    }

    /// Sets a group's weight against its siblings, and the leaf weight of its own requests against
    /// its child groups.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone.
    pub fn set_weight(&mut self, now: Instant, group: GroupId, weights: Weights) {
        self.advance(now);
        self.cx.groups.get_mut(group).configured = weights;
        self.weights_changed(group);
    }

    /// Sets weights that hold on this device instead of the group's own; with none the own hold.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone.
    pub fn set_device_weights(&mut self, now: Instant, group: GroupId, weights: DeviceWeights) {
        self.advance(now);
        self.cx.groups.get_mut(group).device = weights;
        self.weights_changed(group);
    }

    /// Sets what a group, with all groups below it, may have at most and has at least, in place of
    /// what was set before. It holds for the scheduler, and for each that is switched to, that
    /// [has such limits](crate::SchedulerKind::has_group_limits); others ignore it. The root, which
    /// is everybody, takes caps alone.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone. Where the root would
    /// have a reservation or a latency target.
    pub fn set_group_limits(&mut self, now: Instant, group: GroupId, limits: GroupLimits) {
        self.advance(now);
        let is_root = group == self.cx.groups.root();
        assert!(!is_root || limits.are_caps(), "there is nobody beside the root");
        if self.cx.groups[group].limits != limits {
            self.cx.groups.get_mut(group).limits = limits;
            self.notify_group(group, GroupEvent::Limits);
        }
    }

    fn weights_changed(&mut self, group: GroupId) {
        self.notify_group(group, GroupEvent::Weight);
    }

    pub(super) fn notify_group(&mut self, group: GroupId, event: GroupEvent) {
        self.scheduler.group_event(&mut self.cx, group, event);
    }

    /// The group of an I/O context's next requests.
    ///
    /// # Panics
    ///
    /// Where the context is gone.
    pub fn group_of(&self, ioc: IocId) -> GroupId {
        self.cx.contexts[ioc].group
    }

    /// The group tree.
    pub fn groups(&self) -> &Groups {
        &self.cx.groups
    }

    /// The device as the scheduler sees it.
    pub fn device(&self) -> &Device {
        &self.cx.device
    }

    /// Bounds the requests in flight from now on; those in flight stay. With 0 nothing is
    /// dispatched until another bound is set.
    pub fn set_depth(&mut self, queue_depth: u32) {
        self.cx.device.queue_depth = queue_depth;
    }

    /// Bounds the requests that exist (`queue/nr_requests`, at first 256, at least 1). At the bound
    /// submitters compete for admission instead of by weight. A caller that bounds them itself sets
    /// it out of reach; the scheduler's own limits still hold. With none there is no admission, as
    /// in reference runs, and the scheduler is not asked either.
    ///
    /// # Panics
    ///
    /// Where the bound is 0.
    pub fn set_nr_requests(&mut self, nr_requests: Option<u32>) {
        assert_ne!(nr_requests, Some(0), "at least one request may exist");
        self.admission.nr_requests = nr_requests;
        self.admission.limits_changed();
    }

    /// The limits of the size of requests.
    pub fn limits(&self) -> &Limits {
        &self.merging.limits
    }

    /// Sets the limits of the size of requests from now on.
    ///
    /// # Panics
    ///
    /// Where a limit on sectors is 0 or 2³² − 1, or that on segments is 0.
    pub fn set_limits(&mut self, limits: Limits) {
        limits.check();
        self.merging.limits = limits;
    }

    /// Returns what its submitters' plugs have to know of merging.
    pub fn plug_rules(&self) -> PlugRules {
        PlugRules::new(self.merging.limits, self.merging.nomerges)
    }

    /// Sets how much merging is turned off (`queue/nomerges`).
    pub fn set_nomerges(&mut self, nomerges: NoMerges) {
        self.merging.nomerges = nomerges;
    }

    /// Sets how many requests a list scan looks at; 8 in Linux.
    pub fn set_scan_depth(&mut self, requests: u32) {
        self.merging.scan_depth = requests;
    }
}
