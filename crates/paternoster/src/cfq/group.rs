//! Groups on the group tree: which one is served next, and how fast its vdisktime runs.
//!
//! All groups with a busy queue are on one tree in order of vdisktime, whatever their depth in the
//! hierarchy. The hierarchy enters by the *fraction*: the group's part, in 1/4096, of its parent's
//! part, and so on up to the root. Only active members count at each level. BFQ has a tree for each
//! parent instead (`bfq/wf2q/`); its `group.rs` has only what a group keeps.
//!
//! ```text
//!   fraction = 4096 × leaf weight / Σ of the group's leaf weight and its active children's weights
//!                   × weight / Σ of the parent's  …  up to the root
//! ```
//!
//! A fraction is computed when its group is put on the tree, as every charge does. The fractions
//! of other groups stay as they are.

use std::cmp::Ordering;

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::cfq::select::SavedWorkload;
use crate::cfq::service_tree::ServiceTrees;
use crate::io_context::IoPrio;
use crate::parts::keyed_tree::{KeyedTree, PlaceId};
use crate::parts::think_time::ThinkTime;
use crate::scheduler::Cx;
use crate::stats::SliceStats;
use crate::time::Instant;
use crate::trace::{Event, SliceEnd, Trace};

/// Fractions are in 1/4096.
pub(super) const FRACTION_SHIFT: u32 = 12;
pub(super) const WHOLE: u32 = 1 << FRACTION_SHIFT;

/// How far a group that becomes busy is put behind the last one, if groups are charged in time. It
/// is not scaled as charges are, so it stands for some 50 µs of a lone group.
const GROUP_DELAY: u64 = 200_000_000;
/// In IOPS mode it is the number of ticks in a second, divided by this.
const GROUP_DELAY_IOPS_PARTS: u64 = 5;

/// What a group was charged, scaled by its fraction, so that groups can be compared:
///
/// `ns (or requests) × 2²⁴ / fraction`
///
/// It wraps, so the order is that of signed differences. Linux takes differences from the minimum;
/// here they are taken between two groups. Both orders are equal while groups are less than 2⁶³
/// apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Vdisktime(pub(super) u64);

impl Vdisktime {
    /// Returns the vdisktime after a group of this fraction is charged `amount`.
    #[inline]
    pub(super) fn charged(self, amount: u64, fraction: u32) -> Self {
        Self(self.0.wrapping_add((amount << (2 * FRACTION_SHIFT)) / u64::from(fraction)))
    }
}

impl Ord for Vdisktime {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.wrapping_sub(other.0).cast_signed().cmp(&0)
    }
}

impl PartialOrd for Vdisktime {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The members of a group that are on the group tree or have a descendant on it. Members are the
/// child groups and the group itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ActiveMembers {
    count: u32,
    /// The sum of their weights; that of the group itself is its leaf weight.
    weight_sum: u32,
}

impl ActiveMembers {
    #[inline]
    fn is_empty(self) -> bool {
        self.count == 0
    }

    #[inline]
    fn add(&mut self, weight: u32) {
        self.count += 1;
        self.weight_sum += weight;
    }

    #[inline]
    fn remove(&mut self, weight: u32) {
        self.count -= 1;
        self.weight_sum -= weight;
    }

    /// The part of `whole` that a member of that weight has.
    #[inline]
    fn part(self, whole: u32, weight: u32) -> u32 {
        whole * weight / self.weight_sum
    }
}

/// What CFQ keeps of a group.
#[derive(Debug)]
pub(super) struct GroupState {
    pub(super) vdisktime: Vdisktime,
    /// The group's part of the device in 1/4096, from when it was last put on the tree.
    pub(super) fraction: u32,
    /// Its place on the group tree, while it has busy queues.
    place: Option<PlaceId>,
    /// Its busy queues. A queue that becomes busy is counted after it is placed.
    pub(super) busy: u32,
    pub(super) trees: ServiceTrees,
    /// Decaying means of the number of busy queues, of RT and of BE.
    pub(super) average_busy: [u32; 2],
    /// The workload that was served when its last slice ended, if time of that was left.
    pub(super) saved: Option<SavedWorkload>,
    /// Waiting requests of its queues.
    pub(super) queued: u32,
    /// Requests of its queues in flight.
    pub(super) in_flight: u32,
    pub(super) think: ThinkTime,
    /// The queues of asynchronous requests, by async slot: class and level.
    pub(super) async_queues: [Option<QueueId>; IoPrio::ASYNC_SLOTS],
    pub(super) stats: SliceStats,
    members: ActiveMembers,
    /// Its weight as its parent's sum counts it.
    counted_weight: u32,
    /// Its leaf weight as its own sum counts it.
    counted_leaf: u32,
}

impl GroupState {
    fn new(now: Instant) -> Self {
        Self {
            vdisktime: Vdisktime::default(),
            fraction: 0,
            place: None,
            busy: 0,
            trees: ServiceTrees::new(now),
            average_busy: [0; 2],
            saved: None,
            queued: 0,
            in_flight: 0,
            think: ThinkTime::new(now),
            async_queues: [None; IoPrio::ASYNC_SLOTS],
            stats: SliceStats::default(),
            members: ActiveMembers::default(),
            counted_weight: 0,
            counted_leaf: 0,
        }
    }

    /// Returns whether it is on the group tree.
    pub(super) fn is_on_tree(&self) -> bool {
        self.place.is_some()
    }

    /// Asserts that its sums are those over itself and its active children.
    pub(super) fn check_sums<'a>(&self, children: impl Iterator<Item = &'a Self>) {
        let own = self.is_on_tree().then_some(self.counted_leaf);
        let active = children.filter(|child| !child.members.is_empty());
        let mut members = ActiveMembers::default();
        for weight in own.into_iter().chain(active.map(|child| child.counted_weight)) {
            members.add(weight);
        }
        assert_eq!(self.members, members, "sums of the active members");
    }
}

/// The groups with busy queues, by vdisktime.
#[derive(Debug, Default)]
pub(super) struct GroupTree {
    tree: KeyedTree<Vdisktime, GroupId>,
    /// The greatest vdisktime that a chosen group had.
    min_vdisktime: Vdisktime,
}

impl GroupTree {
    pub(super) fn len(&self) -> usize {
        self.tree.len()
    }

    /// Chooses the group to serve next; the minimum moves up to its vdisktime.
    pub(super) fn choose(&mut self) -> Option<GroupId> {
        let (vdisktime, group) = self.tree.first()?;
        self.min_vdisktime = self.min_vdisktime.max(vdisktime);
        Some(group)
    }

    pub(super) fn min_vdisktime(&self) -> Vdisktime {
        self.min_vdisktime
    }
}

impl<T: Trace> Cfq<T> {
    /// Creates the state of a group, and that of its parents before.
    pub(super) fn ensure_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if self.groups.contains_key(group) {
            return;
        }
        if let Some(parent) = cx.groups[group].parent {
            self.ensure_group(cx, parent);
        }
        self.groups.insert(group, GroupState::new(cx.now));
    }

    /// Counts a queue of the group that became busy. A group that was not on the tree goes right
    /// behind the last one; its former vdisktime is lost.
    pub(super) fn join_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        self.groups[group].busy += 1;
        if self.groups[group].place.is_some() {
            return;
        }
        self.groups[group].vdisktime = match self.group_tree.tree.last() {
            Some((last, _)) => Vdisktime(last.0.wrapping_add(self.group_delay(cx))),
            None => self.group_tree.min_vdisktime,
        };
        self.put_group(cx, group);
    }

    fn group_delay(&self, cx: &Cx<'_>) -> u64 {
        if self.iops_mode() {
            u64::from(cx.device.hz.ticks_per_s()) / GROUP_DELAY_IOPS_PARTS
        } else {
            GROUP_DELAY
        }
    }

    /// Counts a queue of the group that is no longer busy. With the last one the group leaves the
    /// tree.
    pub(super) fn leave_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let state = &mut self.groups[group];
        state.busy -= 1;
        if state.busy > 0 {
            return;
        }
        state.saved = None;
        state.stats.dequeue += 1;
        self.pull_group(cx, group);
        self.trace.event(cx.now, Event::GroupLeft { group });
    }

    /// Charges the group and moves it on the tree, where it gets a new fraction by the present
    /// weights. Returns its vdisktime.
    pub(super) fn charge_group(&mut self, cx: &Cx<'_>, group: GroupId, charge: u64) -> Vdisktime {
        let state = &mut self.groups[group];
        state.vdisktime = state.vdisktime.charged(charge, state.fraction);
        let vdisktime = state.vdisktime;
        let place = state.place.expect("a group that is charged is on the tree");
        self.group_tree.tree.set_key(place, vdisktime);
        self.deactivate_group(cx, group);
        self.activate_group(cx, group);
        vdisktime
    }

    /// Puts the group, which becomes active, on the tree.
    fn put_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let state = &mut self.groups[group];
        state.place = Some(self.group_tree.tree.insert(state.vdisktime, group));
        self.activate_group(cx, group);
    }

    /// Takes the group, which becomes inactive, off the tree.
    fn pull_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let place = self.groups[group].place.take().expect("a group leaves the tree once");
        self.group_tree.tree.remove(place);
        self.deactivate_group(cx, group);
    }

    /// Counts the group as active, and computes its fraction from the present weights.
    ///
    /// A changed leaf weight takes effect here. A changed weight of the group, or of a group above
    /// it, takes effect when that group becomes active: not while a member of it is active already.
    fn activate_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let leaf_weight = cx.groups[group].leaf_weight().value();
        let state = &mut self.groups[group];
        state.counted_leaf = leaf_weight;
        let mut was_inactive = state.members.is_empty();
        state.members.add(leaf_weight);
        let mut fraction = state.members.part(WHOLE, leaf_weight);

        let mut node = group;
        while let Some(parent) = cx.groups[node].parent {
            if was_inactive {
                let weight = cx.groups[node].weight().value();
                self.groups[node].counted_weight = weight;
                let members = &mut self.groups[parent].members;
                was_inactive = members.is_empty();
                members.add(weight);
            }
            let weight = self.groups[node].counted_weight;
            fraction = self.groups[parent].members.part(fraction, weight);
            node = parent;
        }
        self.groups[group].fraction = fraction.max(1);
    }

    /// Counts the group as inactive. A group above it without another active member becomes
    /// inactive too.
    fn deactivate_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let mut weight = self.groups[group].counted_leaf;
        let mut node = group;
        loop {
            let state = &mut self.groups[node];
            state.members.remove(weight);
            if !state.members.is_empty() {
                return;
            }
            state.fraction = 0;
            let Some(parent) = cx.groups[node].parent else { return };
            weight = state.counted_weight;
            node = parent;
        }
    }

    /// Prepares for the removal of a group, which has no requests and no I/O contexts. I/O contexts
    /// that moved to other groups may still use queues of it and leave them now; an active queue of
    /// the group expires. Linux keeps the group until such contexts make their next request.
    pub(super) fn close_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if !self.groups.contains_key(group) {
            return;
        }
        if self.active.is_some_and(|queue| self.queues[queue].group == group) {
            self.expire(cx, SliceEnd::Gone);
        }
        self.abandon_queues_of(cx, group);
        for queue in self.groups[group].async_queues.into_iter().flatten() {
            self.drop_user(cx, queue);
        }
        self.groups[group].async_queues = [None; IoPrio::ASYNC_SLOTS];
        self.serving.forget(group);
    }
}
