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

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue::{ASYNC_QUEUES, QueueId};
use crate::cfq::service_tree::ServiceTrees;
use crate::parts::keyed_tree::{KeyedTree, PlaceId};
use crate::scheduler::Cx;
use crate::trace::{ExpireReason, Trace};

/// Fractions are in 1/4096.
const WHOLE: u32 = 1 << 12;

/// A group's service, scaled by its fraction; comparable between groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Vdisktime(pub(super) u64);

impl Vdisktime {
    /// After `amount` was served to a group of this fraction.
    pub(super) fn charged(self, amount: u32, fraction: u32) -> Self {
        Self(self.0 + (u64::from(amount) << 24) / u64::from(fraction))
    }
}

/// What CFQ keeps of a group.
#[derive(Debug)]
pub(super) struct GroupState {
    pub(super) vdisktime: Vdisktime,
    /// The group's part of the device in 1/4096, as of when it was last put on the tree.
    pub(super) fraction: u32,
    /// Its place on the group tree, while it has listed queues.
    place: Option<PlaceId>,
    pub(super) trees: ServiceTrees,
    /// The shared queues of asynchronous requests, by class and level.
    pub(super) async_queues: [Option<QueueId>; ASYNC_QUEUES],
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
    fn new() -> Self {
        Self {
            vdisktime: Vdisktime::default(),
            fraction: 0,
            place: None,
            trees: ServiceTrees::default(),
            async_queues: [None; ASYNC_QUEUES],
            active_members: 0,
            active_weight: 0,
            counted_weight: 0,
            counted_leaf: 0,
        }
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

    /// The group to serve next.
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
        self.groups.insert(group, GroupState::new());
    }

    /// A queue of the group was listed.
    ///
    /// Linux has a group that comes back forget its vdisktime and go behind the last one, and
    /// keeps busy groups from leaving by idling. Without idling a group leaves for the moment
    /// between two requests, so it keeps what it was charged and gains nothing by leaving.
    pub(super) fn join_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if self.groups[group].place.is_none() {
            let state = &mut self.groups[group];
            state.vdisktime = state.vdisktime.max(self.group_tree.min_vdisktime);
            self.put_group(cx, group);
        }
    }

    /// A queue of the group was unlisted.
    pub(super) fn leave_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if self.groups[group].trees.is_empty() {
            self.pull_group(cx, group);
        }
    }

    /// Puts the group on the tree and computes its fraction from the weights as they are now.
    pub(super) fn put_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        let leaf_weight = cx.groups[group].leaf_weight.value();
        let state = &mut self.groups[group];
        state.counted_leaf = leaf_weight;
        state.place = Some(self.group_tree.tree.insert(state.vdisktime, group));
        let mut was_idle = activate_member(state, leaf_weight);
        let mut fraction = WHOLE * leaf_weight / state.active_weight;

        let mut node = group;
        while let Some(parent) = cx.groups[node].parent {
            if was_idle {
                let weight = cx.groups[node].weight.value();
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

    /// The group is about to go; no I/O context and no request is in it.
    pub(super) fn remove_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if !self.groups.contains_key(group) {
            return;
        }
        if self.active.is_some_and(|queue| self.queues[queue].group == group) {
            self.expire_active(cx, ExpireReason::Exit);
        }
        // What is left are its async queues, and sync ones of contexts that moved on.
        self.queues.retain(|_, queue| queue.group != group);
        let queues = &self.queues;
        self.sync_queues.retain(|_, queue| queues.contains_key(*queue));
        self.groups.remove(group);
    }

    pub(super) fn check_groups(&self) {
        for (id, state) in &self.groups {
            assert_eq!(state.place.is_some(), !state.trees.is_empty(), "on the tree if it wants");
            let members = self.queues.values().filter(|queue| queue.group == id);
            let listed = members.filter(|queue| queue.place.is_some()).count();
            assert_eq!(listed, state.trees.len(), "listed queues are on the group's trees");
            assert_eq!(state.active_members == 0, state.active_weight == 0, "sum of the weights");
        }
    }
}

/// Counts one more active member of that weight. Whether it is the first.
fn activate_member(state: &mut GroupState, weight: u32) -> bool {
    state.active_members += 1;
    state.active_weight += weight;
    state.active_members == 1
}
