//! What differs between the hierarchies: who is on which tree, how it is placed, what it is
//! charged, and how the next one is found.

mod entities;
mod flat;
mod group_tree;
mod leaf_weight;
mod members;
mod side_by_side;
mod switch;
mod vdisktime;
mod weights;

pub(in crate::cfq) use group_tree::{GroupTree, Vdisktime};

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::kernel::KernelRules;
use crate::cfq::queue_id::QueueId;
use crate::cfq::service_tree::{Entity, TreeId};
use crate::hierarchy::Hierarchy;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{CfqEvent, Event, Trace, Workload};
use entities::GroupEntity;
use group_tree::GroupPlace;
use leaf_weight::Fraction;
use members::Members;

/// How far a group that becomes busy is put behind the last one, if groups are charged in time. It
/// is not scaled as charges are, so it stands for some 50 µs of a lone group.
const GROUP_DELAY: u64 = 200_000_000;
/// In IOPS mode, and where time is counted in ticks, it is the number of ticks in a second, divided
/// by this.
const GROUP_DELAY_PARTS_OF_SECOND: u64 = 5;

/// Fractions are in 1/4096.
const FRACTION_SHIFT: u32 = 12;
const WHOLE: u32 = 1 << FRACTION_SHIFT;

/// In what way groups share the device: a hierarchy that can be chosen, or what kernels 2.6.35
/// to 2.6.37 have instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cfq) enum Sharing {
    LeafWeight,
    SideBySide,
    Flat,
    Entities,
}

impl Sharing {
    /// What that kernel has at first.
    pub(in crate::cfq) fn of_kernel(kernel: KernelRules) -> Self {
        if kernel.has_groups_side_by_side() { Self::SideBySide } else { Self::LeafWeight }
    }

    /// The hierarchy that it is, if it can be chosen.
    pub(in crate::cfq) fn hierarchy(self) -> Option<Hierarchy> {
        match self {
            Self::LeafWeight => Some(Hierarchy::LeafWeight),
            Self::Flat => Some(Hierarchy::Flat),
            Self::Entities => Some(Hierarchy::Entities),
            Self::SideBySide => None,
        }
    }
}

impl From<Hierarchy> for Sharing {
    fn from(hierarchy: Hierarchy) -> Self {
        match hierarchy {
            Hierarchy::LeafWeight => Self::LeafWeight,
            Hierarchy::Flat => Self::Flat,
            Hierarchy::Entities => Self::Entities,
        }
    }
}

/// What a group's share depends on.
#[derive(Debug)]
pub(super) struct GroupShare {
    /// Its place on the group tree.
    place: GroupPlace,
    /// Those that compete inside the group.
    members: Members,
    /// Its weight as the sum of its competitors counts it.
    counted_weight: u32,
    leaf_weight: Fraction,
    entity: GroupEntity,
}

impl GroupShare {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            place: GroupPlace::default(),
            members: Members::default(),
            counted_weight: 0,
            leaf_weight: Fraction::default(),
            entity: GroupEntity::new(now),
        }
    }

    /// How many child groups are on its trees, beside queues.
    pub(super) fn child_groups(&self) -> u32 {
        self.entity.children
    }
}

/// What a queue's share depends on, where queues are served by vdisktime.
#[derive(Debug)]
pub(super) struct QueueShare {
    /// When it was last placed.
    placed_at: Instant,
}

impl QueueShare {
    pub(super) fn new(now: Instant) -> Self {
        Self { placed_at: now }
    }
}

#[inline]
fn part_of_span(span: Nanos, fraction: u32) -> Nanos {
    Nanos::new((span.as_nanos() * u64::from(fraction)) >> FRACTION_SHIFT)
}

/// Where a group stands after a charge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) vdisktime: Vdisktime,
    pub(super) min_vdisktime: Vdisktime,
}

impl<T: Trace> Cfq<T> {
    /// Puts the queue where its slice is due, on the tree on which it should be.
    #[inline]
    pub(super) fn place(&mut self, cx: &Cx, queue: QueueId) {
        let moved = self.begin_move(cx, queue);
        match self.sharing {
            Sharing::LeafWeight | Sharing::SideBySide => leaf_weight::place(self, queue),
            Sharing::Flat | Sharing::Entities => vdisktime::place(self, queue),
        }
        self.end_move(cx, queue, moved);
    }

    /// Puts the busy queue before all others of its tree.
    #[inline]
    pub(super) fn place_first(&mut self, cx: &Cx, queue: QueueId) {
        let moved = self.begin_move(cx, queue);
        match self.sharing {
            Sharing::LeafWeight | Sharing::SideBySide => leaf_weight::place_first(self, queue),
            Sharing::Flat | Sharing::Entities => vdisktime::place_first(self, queue),
        }
        self.end_move(cx, queue, moved);
    }

    /// Counts an entity that came on a tree of the group: a queue that became busy, or a child
    /// group.
    #[inline]
    pub(super) fn join_group(&mut self, cx: &Cx, group: GroupId) {
        let state = &mut self.groups[group];
        state.entities += 1;
        if state.entities == 1 {
            let delay = self.group_delay(cx);
            self.join_tree(cx, group, delay);
        }
    }

    /// The same, with the distance at which the group is to be behind the last one of the tree that
    /// it joins, if it joins one.
    fn join_behind(&mut self, cx: &Cx, group: GroupId, delay: u64) {
        let state = &mut self.groups[group];
        state.entities += 1;
        if state.entities == 1 {
            self.join_tree(cx, group, delay);
        }
    }

    /// Puts the group, which has its first entity, on the tree of its competitors.
    #[inline]
    fn join_tree(&mut self, cx: &Cx, group: GroupId, delay: u64) {
        match self.sharing {
            Sharing::LeafWeight => leaf_weight::join(self, cx, group, delay),
            Sharing::Flat | Sharing::SideBySide => flat::join(self, cx, group, delay),
            Sharing::Entities => entities::join(self, cx, group, delay),
        }
    }

    /// Counts an entity that left the trees of the group. With the last one the group leaves the
    /// tree on which it is.
    #[inline]
    pub(super) fn leave_group(&mut self, cx: &Cx, group: GroupId) {
        let state = &mut self.groups[group];
        state.entities -= 1;
        if state.entities > 0 {
            return;
        }
        state.saved = None;
        match self.sharing {
            Sharing::LeafWeight => leaf_weight::leave(self, cx, group),
            Sharing::Flat | Sharing::SideBySide => flat::leave(self, cx, group),
            Sharing::Entities => entities::leave(self, cx, group),
        }
    }

    /// Charges for a slice of `queue`, which is of `group`. Returns where the group stands.
    #[inline]
    pub(super) fn charge_share(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        group: GroupId,
        charge: u64,
    ) -> Standing {
        match self.sharing {
            Sharing::LeafWeight => leaf_weight::charge(self, cx, group, charge),
            Sharing::Flat => flat::charge(self, cx, queue, charge),
            Sharing::Entities => entities::charge(self, cx, queue, charge),
            Sharing::SideBySide => side_by_side::charge(self, cx, group, charge),
        }
    }

    /// Saves the workload that is served, as a slice of a queue of `group` ends.
    #[inline]
    pub(super) fn save_workload(&mut self, cx: &Cx, group: GroupId) {
        match self.sharing {
            Sharing::LeafWeight | Sharing::Flat | Sharing::SideBySide => {
                self.groups[group].saved = self.serving.served().save(self.now);
            }
            Sharing::Entities => entities::save_workloads(self, cx, group),
        }
    }

    /// Finds the queue to serve next: the first of the workload that is chosen for its group. Where
    /// a child group is first, the way goes on in that.
    #[inline]
    pub(super) fn find_queue(&mut self, cx: &Cx) -> Option<QueueId> {
        let mut group = self.choose_group(cx)?;
        loop {
            let tree = self.choose_workload_of(cx, group);
            let first = self.choose_first(group, tree);
            match first.expect("a workload is chosen for its entities") {
                Entity::Queue(queue) => return Some(queue),
                Entity::Group(child) => group = child,
            }
        }
    }

    /// Finds the queue that a drain takes next.
    pub(super) fn find_to_drain(&mut self, cx: &Cx) -> Option<QueueId> {
        let mut group = self.choose_group(cx)?;
        loop {
            match self.groups[group].trees.any_first()? {
                Entity::Queue(queue) => return Some(queue),
                Entity::Group(child) => group = child,
            }
        }
    }

    /// Chooses the group from which the way to the next queue begins.
    #[inline]
    fn choose_group(&mut self, cx: &Cx) -> Option<GroupId> {
        match self.sharing {
            Sharing::LeafWeight | Sharing::SideBySide | Sharing::Flat => self.group_tree.choose(),
            Sharing::Entities => entities::choose_group(self, cx),
        }
    }

    /// Chooses the first entity of `tree`, whose workload was chosen for the group.
    #[inline]
    fn choose_first(&mut self, group: GroupId, tree: TreeId) -> Option<Entity> {
        match self.sharing {
            Sharing::LeafWeight | Sharing::SideBySide => {
                self.groups[group].trees.tree(tree).first()
            }
            Sharing::Flat => self.groups[group].trees.tree_mut(tree).choose(),
            Sharing::Entities => entities::choose_first(self, group, tree),
        }
    }

    /// The workload of `class` that the group is served with next, if none is resumed. The class
    /// has something to serve.
    #[inline]
    pub(super) fn due_workload(&self, group: GroupId, class: IoClass) -> Workload {
        match self.sharing {
            Sharing::LeafWeight | Sharing::SideBySide => {
                leaf_weight::due_workload(self, group, class)
            }
            Sharing::Flat | Sharing::Entities => vdisktime::due_workload(self, group, class),
        }
    }

    /// The group's part of `target_latency`.
    #[inline]
    pub(super) fn group_span(&self, cx: &Cx, group: GroupId) -> Nanos {
        let span = self.tunables.target_latency();
        match self.sharing {
            Sharing::LeafWeight => leaf_weight::part_of(self, group, span),
            Sharing::Flat => flat::part_of(self, group, span),
            Sharing::Entities => entities::part_of(self, cx, group, span),
            Sharing::SideBySide => side_by_side::part_of(self, group, span),
        }
    }

    /// Asserts what holds of a group between events.
    pub(super) fn check_share(&self, cx: &Cx, group: GroupId) {
        match self.sharing {
            Sharing::LeafWeight => leaf_weight::check(self, cx, group),
            Sharing::Flat | Sharing::SideBySide => flat::check(self, group),
            Sharing::Entities => entities::check(self, cx, group),
        }
    }

    #[inline]
    fn note_group_left(&mut self, cx: &Cx, group: GroupId) {
        self.groups[group].stats.dequeue += 1;
        self.trace.event(cx.now, Event::Cfq(CfqEvent::GroupLeft { group }));
    }

    #[inline]
    fn group_delay(&self, cx: &Cx) -> u64 {
        if self.iops_mode() || self.kernel.counts_ticks() {
            u64::from(cx.device.hz.ticks_per_s()) / GROUP_DELAY_PARTS_OF_SECOND
        } else {
            GROUP_DELAY
        }
    }
}
