//! The elevator's administration: I/O contexts, groups, weights and limits.

use super::{Elevator, Limits, NoMerges};
use crate::arena::{GroupId, IocId};
use crate::group::{DeviceWeights, GroupChange, Groups, Weight, Weights};
use crate::io_context::IoPrio;
use crate::scheduler::{Device, Scheduler};
use crate::time::Instant;

impl<S: Scheduler> Elevator<S> {
    /// Makes an I/O context of `group`.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone.
    pub fn io_context(&mut self, now: Instant, io_prio: IoPrio, group: GroupId) -> IocId {
        self.advance(now);
        self.groups.assert_exists(group);
        self.contexts.add(io_prio, group)
    }

    /// Has the context's next requests issued at `io_prio`.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the context is gone.
    pub fn set_io_priority(&mut self, now: Instant, ioc: IocId, io_prio: IoPrio) {
        self.advance(now);
        self.contexts[ioc].io_prio = io_prio;
    }

    /// Has the context's next requests belong to `group`.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the context or the group is gone.
    pub fn move_to_group(&mut self, now: Instant, ioc: IocId, group: GroupId) {
        self.advance(now);
        self.groups.assert_exists(group);
        self.contexts[ioc].group = group;
    }

    /// The context makes no more requests. Its key goes with the last of those it has.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the context has exited before.
    pub fn exit_io_context(&mut self, now: Instant, ioc: IocId) {
        self.advance(now);
        self.ask(now, |scheduler, cx| scheduler.exit_io_context(cx, ioc));
        self.contexts.exit(ioc);
    }

    /// Makes a group below `parent`; its leaf weight is its weight.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where `parent` is gone.
    pub fn add_group(&mut self, now: Instant, parent: GroupId, weight: Weight) -> GroupId {
        self.advance(now);
        let group = self.groups.add(parent, weight);
        self.stats.add_group(group);
        group
    }

    /// Removes a group without children, I/O contexts and requests.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone, is the root, or has any of
    /// these.
    pub fn remove_group(&mut self, now: Instant, group: GroupId) {
        self.advance(now);
        assert!(!self.contexts.any_in(group), "a group is removed when no context is in it");
        assert!(self.groups.is_unused(group), "a group is removed when nothing is in it");
        self.tell_group(now, group, GroupChange::Closing);
        let last = self.counted_below(group);
        self.tell_group(now, group, GroupChange::Removed);
        let parent = self.groups.remove(group);
        self.stats.remove_group(group, parent, &last);
    }

    /// Sets a group's weight against its siblings, and that of its own requests against its
    /// child groups.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone.
    pub fn set_weight(&mut self, now: Instant, group: GroupId, weight: Weight, leaf: Weight) {
        self.advance(now);
        self.groups[group].configured = Weights { weight, leaf };
        self.weights_changed(now, group);
    }

    /// Sets weights that hold on this device instead of the group's own, or with none those.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event. Where the group is gone.
    pub fn set_device_weights(&mut self, now: Instant, group: GroupId, weights: DeviceWeights) {
        self.advance(now);
        self.groups[group].device = weights;
        self.weights_changed(now, group);
    }

    fn weights_changed(&mut self, now: Instant, group: GroupId) {
        self.tell_group(now, group, GroupChange::Weight);
    }

    fn tell_group(&mut self, now: Instant, group: GroupId, change: GroupChange) {
        self.ask(now, |scheduler, cx| scheduler.group_changed(cx, group, change));
    }

    /// The group tree.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The device as the scheduler sees it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bounds what is in the device from now on; what is there stays. 0 holds everything back,
    /// until another bound is set.
    pub fn set_depth(&mut self, queue_depth: u32) {
        self.device.queue_depth = queue_depth;
    }

    /// Bounds the requests that exist (`queue/nr_requests`, at first 256, at least 1). At a bound
    /// submitters compete for admission instead of by weight: one who bounds them otherwise sets
    /// it out of reach, and the scheduler's own limits still hold. None is no admission at all, as
    /// in reference runs: the scheduler is not asked either.
    ///
    /// # Panics
    ///
    /// Where the bound is 0.
    pub fn set_nr_requests(&mut self, nr_requests: Option<u32>) {
        assert_ne!(nr_requests, Some(0), "at least one request may exist");
        self.admission.nr_requests = nr_requests;
        self.admission.limits_changed();
    }

    /// How large requests may grow.
    pub fn limits(&self) -> &Limits {
        &self.merging.limits
    }

    /// Sets how large requests may grow from now on.
    ///
    /// # Panics
    ///
    /// Where a limit on sectors is 0 or 2³² − 1, or that on segments is 0.
    pub fn set_limits(&mut self, limits: Limits) {
        limits.check();
        self.merging.limits = limits;
    }

    /// Sets how much merging looks for (`queue/nomerges`).
    pub fn set_nomerges(&mut self, nomerges: NoMerges) {
        self.merging.nomerges = nomerges;
    }

    /// Sets how many requests a list scan looks at; 8 in Linux.
    pub fn set_scan_depth(&mut self, requests: u32) {
        self.merging.scan_depth = requests;
    }
}
