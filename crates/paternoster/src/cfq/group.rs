//! Groups on the group tree: who is served next, and how fast its vdisktime runs.
//!
//! Groups with at least one listed queue are on one tree, whatever their depth in the hierarchy,
//! in order of vdisktime. The hierarchy is in the *fraction*: the group's part, in 1/4096, of its
//! parent's part and so on up to the root, among those active at each level.
//!
//! ```text
//!   fraction = 4096 × leaf weight / Σ of the group's leaf weight and its active children's weights
//!                   × weight / Σ of the parent's  …  up to the root
//! ```
//!
//! A fraction is computed when its own group is put on the tree, which every charge does; those
//! of other groups do not change then.

use std::cmp::Ordering;

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue::QueueId;
use crate::cfq::service_tree::ServiceTrees;
use crate::io_context::{IoClass, IoPrio};
use crate::parts::keyed_tree::{KeyedTree, PlaceId};
use crate::parts::think_time::ThinkTime;
use crate::scheduler::Cx;
use crate::stats::TurnStats;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, ExpireReason, Trace, Workload};

/// Fractions are in 1/4096.
pub(super) const FRACTION_SHIFT: u32 = 12;
pub(super) const WHOLE: u32 = 1 << FRACTION_SHIFT;

/// By how much a group that joins is behind the last one, where groups are charged in time. The
/// span is not scaled as charges are, so it stands for some 50 µs of a lone group.
const GROUP_DELAY: u64 = 200_000_000;
/// The same in IOPS mode: so many parts of a second in ticks, a bare number.
const GROUP_DELAY_IOPS_PARTS: u64 = 5;

/// A group's service, scaled by its fraction; comparable between groups:
///
/// `ns (or requests) × 2²⁴ / fraction`
///
/// It wraps, so the order is that of signed differences. Linux takes them from the minimum and here
/// they are taken pairwise: the same as long as groups are less than 2⁶³ apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Vdisktime(pub(super) u64);

impl Vdisktime {
    /// After `amount` was served to a group of this fraction.
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

/// What a group was being served with when its last turn ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct SavedWorkload {
    /// What was left of its time; more than 0.
    pub(super) span: Nanos,
    pub(super) class: IoClass,
    pub(super) workload: Workload,
}

/// What CFQ keeps of a group.
#[derive(Debug)]
pub(super) struct GroupState {
    pub(super) vdisktime: Vdisktime,
    /// The group's part of the device in 1/4096, as of when it was last put on the tree.
    pub(super) fraction: u32,
    /// Its place on the group tree, while it has listed queues.
    place: Option<PlaceId>,
    /// Its listed queues, but for one that is being listed.
    pub(super) listed: u32,
    pub(super) trees: ServiceTrees,
    /// Decaying numbers of busy queues of RT and of BE.
    pub(super) average_busy: [u32; 2],
    pub(super) saved: Option<SavedWorkload>,
    /// Requests of its queues that wait.
    pub(super) queued: u32,
    /// Requests of its queues that were sent and have not completed.
    pub(super) in_flight: u32,
    pub(super) think: ThinkTime,
    /// The shared queues of asynchronous requests, by class and level.
    pub(super) async_queues: [Option<QueueId>; IoPrio::KINDS],
    pub(super) stats: TurnStats,
    /// Members that are on the tree or have a descendant there: child groups, and itself.
    active_members: u32,
    /// The sum of those members' weights; its own counts as the leaf weight.
    active_weight: u32,
    /// The weight that its parent's sum holds for it.
    counted_weight: u32,
    /// The leaf weight that its own sum holds for it.
    counted_leaf: u32,
}

impl GroupState {
    fn new(now: Instant) -> Self {
        Self {
            vdisktime: Vdisktime::default(),
            fraction: 0,
            place: None,
            listed: 0,
            trees: ServiceTrees::new(now),
            average_busy: [0; 2],
            saved: None,
            queued: 0,
            in_flight: 0,
            think: ThinkTime::new(now),
            async_queues: [None; IoPrio::KINDS],
            stats: TurnStats::default(),
            active_members: 0,
            active_weight: 0,
            counted_weight: 0,
            counted_leaf: 0,
        }
    }

    /// Whether it has listed queues, but for one that is being listed.
    pub(super) fn is_on_tree(&self) -> bool {
        self.place.is_some()
    }

    /// Asserts that its sums are those of itself and of its active children.
    pub(super) fn check_sums<'a>(&self, children: impl Iterator<Item = &'a Self>) {
        let own = (u32::from(self.is_on_tree()), u32::from(self.is_on_tree()) * self.counted_leaf);
        let sums = children
            .filter(|child| child.active_members > 0)
            .fold(own, |sums, child| (sums.0 + 1, sums.1 + child.counted_weight));
        assert_eq!((self.active_members, self.active_weight), sums, "sums of the active members");
    }
}

/// The groups that want the device, by vdisktime.
#[derive(Debug, Default)]
pub(super) struct GroupTree {
    tree: KeyedTree<Vdisktime, GroupId>,
    /// The vdisktime of the group last chosen; never goes back.
    min_vdisktime: Vdisktime,
}

impl GroupTree {
    pub(super) fn len(&self) -> usize {
        self.tree.len()
    }

    /// The group to serve next; the minimum moves up to it.
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
    /// Makes the state of a group and, before it, of those above.
    pub(super) fn ensure_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if self.groups.contains_key(group) {
            return;
        }
        if let Some(parent) = cx.groups[group].parent {
            self.ensure_group(cx, parent);
        }
        self.groups.insert(group, GroupState::new(cx.now));
    }

    /// A queue of the group was listed. Whatever vdisktime the group had before it left is
    /// forgotten: it goes right behind the last one.
    pub(super) fn join_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        self.groups[group].listed += 1;
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

    /// A queue of the group was unlisted.
    pub(super) fn leave_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let state = &mut self.groups[group];
        state.listed -= 1;
        if state.listed > 0 {
            return;
        }
        state.saved = None;
        state.stats.dequeue += 1;
        self.pull_group(cx, group);
        self.trace.event(cx.now, Event::GroupLeft { group });
    }

    /// Charges the group: it goes to another place on the tree, with the fraction and the weights
    /// as they are now.
    pub(super) fn charge_group(&mut self, cx: &Cx<'_>, group: GroupId, charge: u64) -> Vdisktime {
        let state = &self.groups[group];
        let vdisktime = state.vdisktime.charged(charge, state.fraction);
        self.pull_group(cx, group);
        self.groups[group].vdisktime = vdisktime;
        self.put_group(cx, group);
        vdisktime
    }

    /// Puts the group on the tree and computes its fraction from the weights as they are now.
    ///
    /// A leaf weight takes effect here. A weight does where the group, or the one above it through
    /// which this goes, becomes active: not while another member of it is.
    pub(super) fn put_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let leaf_weight = cx.groups[group].leaf_weight().value();
        let state = &mut self.groups[group];
        state.counted_leaf = leaf_weight;
        state.place = Some(self.group_tree.tree.insert(state.vdisktime, group));
        let mut was_idle = activate_member(state, leaf_weight);
        let mut fraction = WHOLE * leaf_weight / state.active_weight;

        let mut node = group;
        while let Some(parent) = cx.groups[node].parent {
            if was_idle {
                let weight = cx.groups[node].weight().value();
                self.groups[node].counted_weight = weight;
                was_idle = activate_member(&mut self.groups[parent], weight);
            }
            let weight = self.groups[node].counted_weight;
            fraction = fraction * weight / self.groups[parent].active_weight;
            node = parent;
        }
        self.groups[group].fraction = fraction.max(1);
    }

    /// Takes the group off the tree; a group above without another active member goes idle too.
    pub(super) fn pull_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let state = &mut self.groups[group];
        let place = state.place.take().expect("a group leaves the tree once");
        self.group_tree.tree.remove(place);
        let mut weight = state.counted_leaf;
        let mut node = group;
        loop {
            let state = &mut self.groups[node];
            state.active_members -= 1;
            state.active_weight -= weight;
            if state.active_members > 0 {
                return;
            }
            state.fraction = 0;
            let Some(parent) = cx.groups[node].parent else { return };
            weight = state.counted_weight;
            node = parent;
        }
    }

    /// The group is about to go; no request of it exists, and no I/O context is in it. Contexts
    /// that moved on may still hold queues of it: they leave them now. Linux lets the group live
    /// until they do so at their next request; here its turn ends at once, if it has one.
    pub(super) fn close_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if !self.groups.contains_key(group) {
            return;
        }
        if self.active.is_some_and(|queue| self.queues[queue].group == group) {
            self.expire(cx, ExpireReason::Gone);
        }
        self.abandon_queues_of(cx, group);
        for queue in self.groups[group].async_queues.into_iter().flatten() {
            self.drop_holder(cx, queue);
        }
        self.groups[group].async_queues = [None; IoPrio::KINDS];
        if self.serving.group == Some(group) {
            self.serving.group = None;
        }
    }
}

/// Counts one more active member of that weight. Whether it is the first.
fn activate_member(state: &mut GroupState, weight: u32) -> bool {
    state.active_members += 1;
    state.active_weight += weight;
    state.active_members == 1
}
