//! Groups are entities as queues are: a child group is on a tree of its parent's, beside the queues
//! of the parent, and all compete there by weight and vdisktime. Leaf weights mean nothing.
//!
//! ```text
//!   root   BE/SYNC:  q1:7   /a:9   q4:12                 q1 and q4 are queues of the root
//!                           │
//!   /a     BE/SYNC:  q2:3   /a/b:5                       a slice of q5 charges q5, /a/b and /a,
//!                           │                            each by its own weight
//!   /a/b   BE/SYNC:  q5:1
//! ```
//!
//! A group is on its parent's tree while there is a busy queue in it or below it; the root is on no
//! tree. The tree is that of best-effort queues with an idle window, `BE/SYNC`. Where `slice_idle`
//! is 0, a queue loses its idle window with its first request and moves to `BE/SYNC_NOIDLE` at its
//! next placing; so that is the groups' tree there. Weights count among the entities of one tree:
//! two trees have time by how many are on them.
//!
//! The next queue is found on the way down from the root: in each group a class, a workload and its
//! first entity, until that is a queue. So each group has a served workload of its own.
//!
//! A changed weight takes effect when the group becomes busy, or after its next charge.

use super::weights::{scaled, weight_of};
use super::{Standing, WHOLE, part_of_span, vdisktime};
use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::hierarchy::Vdisktime;
use crate::cfq::queue_id::QueueId;
use crate::cfq::select::ServedWorkload;
use crate::cfq::service_tree::{Entity, TreeId, TreePlace};
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{Trace, Workload};

/// What a group has in this hierarchy alone.
#[derive(Debug)]
pub(super) struct GroupEntity {
    /// Its place on a tree of its parent's, while a queue in it or below it is busy.
    place: Option<TreePlace>,
    /// When it was last placed there, or moved by a charge.
    pub(super) placed_at: Instant,
    /// Child groups on its trees.
    pub(super) children: u32,
    /// The workload with which it was last on the way to a queue.
    served: ServedWorkload,
}

impl GroupEntity {
    pub(super) fn new(now: Instant) -> Self {
        Self { place: None, placed_at: now, children: 0, served: ServedWorkload::new(now) }
    }
}

/// The group has its first entity: it goes right behind the last one on its parent's tree. Its
/// former vdisktime is lost.
pub(super) fn join<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId, delay: u64) {
    let Some(parent) = cx.groups[group].parent else { return };
    put_behind_last(cfq, cx, group, delay);
    cfq.groups[parent].share.entity.children += 1;
    cfq.groups[group].share.counted_weight = cx.groups[group].weight().value();
    cfq.join_behind(cx, parent, delay);
}

/// Puts the group so far behind the last entity of the tree on which it should be. It may be on
/// another tree.
fn put_behind_last<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId, delay: u64) {
    let parent = cx.groups[group].parent.expect("the root is on no tree");
    let wanted = wanted_tree(cfq);
    let old = cfq.groups[group].share.entity.place;
    let trees = &mut cfq.groups[parent].trees;
    let tree = trees.tree(wanted);
    let key = tree.last_key().map_or(tree.min(), |last| last.advanced(delay.cast_signed()));
    let place = trees.put(Entity::Group(group), wanted, key, old);
    let entity = &mut cfq.groups[group].share.entity;
    entity.place = Some(place);
    entity.placed_at = cfq.now;
}

/// The tree on which child groups are to be: where `slice_idle` is 0, the one to which queues move.
fn wanted_tree<T: Trace>(cfq: &Cfq<T>) -> TreeId {
    let never_idles = cfq.tunables.slice_idle() == Nanos::ZERO;
    TreeId::new(IoClass::Be, if never_idles { Workload::SyncNoIdle } else { Workload::Sync })
}

/// The group has no entity any more.
pub(super) fn leave<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId) {
    let Some(parent) = cx.groups[group].parent else { return };
    let place = cfq.groups[group].share.entity.place.take();
    let parent_state = &mut cfq.groups[parent];
    parent_state.trees.remove(place.expect("a group leaves the tree once"));
    parent_state.share.entity.children -= 1;
    cfq.note_group_left(cx, group);
    cfq.leave_group(cx, parent);
}

/// Charges the queue, its group, and each group above that but the root, and moves all of them on
/// their trees. A group that should be on another tree goes behind all that are there.
pub(super) fn charge<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, queue: QueueId, charge: u64) -> Standing {
    vdisktime::charge_queue(cfq, queue, charge);
    let group = cfq.queues[queue].group;
    let mut node = group;
    while let Some(parent) = cx.groups[node].parent {
        let share = &mut cfq.groups[node].share;
        let by = scaled(charge, share.counted_weight);
        share.counted_weight = cx.groups[node].weight().value();
        share.entity.placed_at = cfq.now;
        let place = share.entity.place.expect("a group that is charged is on its parent's tree");
        if place.tree == wanted_tree(cfq) {
            cfq.groups[parent].trees.charge(place, by);
        } else {
            let delay = cfq.group_delay(cx);
            put_behind_last(cfq, cx, node, delay);
        }
        node = parent;
    }
    standing(cfq, cx, group)
}

/// Where the group stands on its parent's tree. The root stands nowhere.
fn standing<T: Trace>(cfq: &Cfq<T>, cx: &Cx, group: GroupId) -> Standing {
    let place = cfq.groups[group].share.entity.place;
    let Some((parent, place)) = cx.groups[group].parent.zip(place) else {
        return Standing { vdisktime: Vdisktime(0), min_vdisktime: Vdisktime(0) };
    };
    let trees = &cfq.groups[parent].trees;
    Standing {
        vdisktime: Vdisktime(trees.key(place).vdisktime()),
        min_vdisktime: Vdisktime(trees.tree(place.tree).min().vdisktime()),
    }
}

/// Saves the workload of the group, and of each group above it, with what is left of its time.
pub(super) fn save_workloads<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId) {
    let mut link = Some(group);
    while let Some(node) = link {
        let state = &mut cfq.groups[node];
        state.saved = state.share.entity.served.save(cfq.now);
        link = cx.groups[node].parent;
    }
}

/// The root, from which the way goes down, if there is a queue to find.
pub(super) fn choose_group<T: Trace>(cfq: &Cfq<T>, cx: &Cx) -> Option<GroupId> {
    let root = cx.groups.root();
    (cfq.groups[root].entities > 0).then_some(root)
}

/// Chooses the first entity of `tree`, and keeps for the group that its workload is served.
pub(super) fn choose_first<T: Trace>(
    cfq: &mut Cfq<T>,
    group: GroupId,
    tree: TreeId,
) -> Option<Entity> {
    let state = &mut cfq.groups[group];
    state.share.entity.served = cfq.serving.served();
    state.trees.tree_mut(tree).choose()
}

/// The group's part of `span`: the product, from the root down, of each group's part by weight
/// among the entities of its parent.
pub(super) fn part_of<T: Trace>(cfq: &Cfq<T>, cx: &Cx, group: GroupId, span: Nanos) -> Nanos {
    part_of_span(span, fraction(cfq, cx, group).max(1))
}

fn fraction<T: Trace>(cfq: &Cfq<T>, cx: &Cx, group: GroupId) -> u32 {
    let Some(parent) = cx.groups[group].parent else { return WHOLE };
    let weights = cfq.groups[parent].trees.entities().map(|entity| match entity {
        Entity::Queue(queue) => weight_of(cfq.queues[queue].io_prio()),
        Entity::Group(group) => cfq.groups[group].share.counted_weight,
    });
    let sum: u32 = weights.sum();
    fraction(cfq, cx, parent) * cfq.groups[group].share.counted_weight / sum
}

/// Asserts that a group but the root is on its parent's tree while it has entities, and that its
/// child groups are counted.
pub(super) fn check<T: Trace>(cfq: &Cfq<T>, cx: &Cx, group: GroupId) {
    let state = &cfq.groups[group];
    let on_tree = state.share.entity.place.is_some();
    let is_root = group == cx.groups.root();
    assert_eq!(on_tree, state.entities > 0 && !is_root, "on the tree if it has entities");
    let groups = state.trees.entities().filter(|entity| matches!(entity, Entity::Group(_)));
    assert_eq!(groups.count(), state.share.entity.children as usize, "child groups on its trees");
}
