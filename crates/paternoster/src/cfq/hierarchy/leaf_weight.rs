//! The hierarchy of Linux v4.20: queues are placed by time, and groups by vdisktime.
//! `side_by_side.rs` shares its placing of queues.
//!
//! A queue's key is the time at which it is placed, plus an offset, less the residue of its last
//! slice. The offset is greater for a lower level and for a group with more queues.
//!
//! All groups with a busy queue are on the group tree, whatever their depth. The hierarchy enters
//! by the *fraction*: the group's part, in 1/4096, of its parent's part, and so on up to the root.
//! Only active members count at each level: the child groups that are on the group tree or have a
//! descendant on it, and the group itself.
//!
//! ```text
//!   fraction = 4096 × leaf weight / Σ of the group's leaf weight and its active children's weights
//!                   × weight / Σ of the parent's  …  up to the root
//!   vdisktime += time (or requests) of the slice × 2²⁴ / fraction
//! ```
//!
//! A fraction is computed when its group is put on the tree, as every charge does. The fractions
//! of other groups stay as they are.

use super::members::Members;
use super::{FRACTION_SHIFT, Standing, WHOLE, part_of_span};
use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::cfq::service_tree::{Key, ServiceTree};
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::time::Nanos;
use crate::trace::{Trace, Workload};

/// A queue of the idle class is placed this far from now, so its tree is a fifo.
const IDLE_KEY_DELAY: Nanos = Nanos::from_millis(200);
/// A queue that preempts is placed this far before the first one.
const FRONT_KEY_STEP: Nanos = Nanos::from_millis(1000);

/// What a group has in this hierarchy alone.
#[derive(Debug, Default)]
pub(super) struct Fraction {
    /// Its part of the device in 1/4096, from when it was last put on the tree.
    fraction: u32,
    /// Its leaf weight as its own sum counts it.
    counted_leaf: u32,
}

/// Puts the queue where its slice is due, on the tree on which it should be. The residue of its
/// last slice is used up.
#[inline]
pub(super) fn place<T: Trace>(cfq: &mut Cfq<T>, queue: QueueId) {
    let key = if cfq.queues[queue].class() == IoClass::Idle {
        Key::at(cfq.now + IDLE_KEY_DELAY)
    } else {
        let offset = slice_offset(cfq, queue);
        let residue = cfq.queues[queue].take_residue();
        Key::at(cfq.now).later(offset.wrapping_sub(residue))
    };
    cfq.put_on_tree(queue, key);
}

/// Puts the busy queue before all others of its tree. A queue of the idle class is placed as usual.
#[inline]
pub(super) fn place_first<T: Trace>(cfq: &mut Cfq<T>, queue: QueueId) {
    let state = &cfq.queues[queue];
    let key = if state.class() == IoClass::Idle {
        Key::at(cfq.now + IDLE_KEY_DELAY)
    } else {
        let tree = cfq.groups[state.group].trees.tree(state.wanted_tree());
        tree.first_key().unwrap_or(Key::at(cfq.now)).earlier(FRONT_KEY_STEP)
    };
    cfq.put_on_tree(queue, key);
}

/// By how much a queue's slice is due later than that of a synchronous queue of level 0:
///
/// `(queues of the group − 1) × (slice of level 0 − its own slice)`
///
/// An oddity of Linux: a queue that becomes busy does not count itself, so the first one of a
/// group is due the *earlier* the lower its level is.
#[inline]
fn slice_offset<T: Trace>(cfq: &Cfq<T>, queue: QueueId) -> i64 {
    let state = &cfq.queues[queue];
    let others = i64::from(cfq.groups[state.group].entities) - 1;
    let top = cfq.nominal_slice(Synchrony::Sync, 0).as_nanos();
    let own = cfq.nominal_slice(state.synchrony, state.io_prio().level()).as_nanos();
    others.wrapping_mul(top.wrapping_sub(own).cast_signed())
}

/// The group has its first busy queue: it goes right behind the last one.
#[inline]
pub(super) fn join<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId, delay: u64) {
    cfq.group_tree.join(group, &mut cfq.groups[group].share.place, delay);
    activate(cfq, cx, group);
}

/// The group has no busy queue any more.
#[inline]
pub(super) fn leave<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId) {
    cfq.group_tree.leave(&mut cfq.groups[group].share.place);
    deactivate(cfq, cx, group);
    cfq.note_group_left(cx, group);
}

/// Charges the group and moves it on the tree, where it gets a new fraction by the present weights.
#[inline]
pub(super) fn charge<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId, charge: u64) -> Standing {
    let share = &mut cfq.groups[group].share;
    let by = (charge << (2 * FRACTION_SHIFT)) / u64::from(share.leaf_weight.fraction);
    let vdisktime = cfq.group_tree.charge(&mut share.place, by);
    deactivate(cfq, cx, group);
    activate(cfq, cx, group);
    Standing { vdisktime, min_vdisktime: cfq.group_tree.min_vdisktime() }
}

/// The workload of `class` whose first queue is due first.
#[inline]
pub(super) fn due_workload<T: Trace>(cfq: &Cfq<T>, group: GroupId, class: IoClass) -> Workload {
    cfq.groups[group].trees.least_workload(class, ServiceTree::first_key)
}

/// The group's part of `span`, by the fraction that it had when it was last put on the tree.
#[inline]
pub(super) fn part_of<T: Trace>(cfq: &Cfq<T>, group: GroupId, span: Nanos) -> Nanos {
    part_of_span(span, cfq.groups[group].share.leaf_weight.fraction)
}

/// Counts the group as active, and computes its fraction from the present weights.
///
/// A changed leaf weight takes effect here. A changed weight of the group, or of a group above it,
/// takes effect when that group becomes active: not while a member of it is active already.
#[inline]
fn activate<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId) {
    let leaf_weight = cx.groups[group].leaf_weight().value();
    let share = &mut cfq.groups[group].share;
    share.leaf_weight.counted_leaf = leaf_weight;
    let mut was_inactive = share.members.is_empty();
    share.members.add(leaf_weight);
    let mut fraction = share.members.part(WHOLE, leaf_weight);

    let mut node = group;
    while let Some(parent) = cx.groups[node].parent {
        if was_inactive {
            let weight = cx.groups[node].weight().value();
            cfq.groups[node].share.counted_weight = weight;
            let members = &mut cfq.groups[parent].share.members;
            was_inactive = members.is_empty();
            members.add(weight);
        }
        let weight = cfq.groups[node].share.counted_weight;
        fraction = cfq.groups[parent].share.members.part(fraction, weight);
        node = parent;
    }
    cfq.groups[group].share.leaf_weight.fraction = fraction.max(1);
}

/// Counts the group as inactive. A group above it without another active member becomes inactive
/// too.
#[inline]
fn deactivate<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId) {
    let mut weight = cfq.groups[group].share.leaf_weight.counted_leaf;
    let mut node = group;
    loop {
        let share = &mut cfq.groups[node].share;
        share.members.remove(weight);
        if !share.members.is_empty() {
            return;
        }
        share.leaf_weight.fraction = 0;
        let Some(parent) = cx.groups[node].parent else { return };
        weight = share.counted_weight;
        node = parent;
    }
}

/// Asserts that a group is on the tree while it has busy queues, and that its sum is that over
/// itself and its active children.
pub(super) fn check<T: Trace>(cfq: &Cfq<T>, cx: &Cx, group: GroupId) {
    let state = &cfq.groups[group];
    let share = &state.share;
    let on_tree = share.place.is_on_tree();
    assert_eq!(on_tree, state.entities > 0, "on the tree if it has busy queues");
    let children = cfq.groups.iter().filter(|(it, _)| cx.groups[*it].parent == Some(group));
    let active = children.filter(|(_, child)| !child.share.members.is_empty());
    let own = on_tree.then_some(share.leaf_weight.counted_leaf);
    let weights = own.into_iter().chain(active.map(|(_, child)| child.share.counted_weight));
    assert_eq!(share.members, weights.collect::<Members>(), "sums of the active members");
    if on_tree {
        assert!((1..=WHOLE).contains(&share.leaf_weight.fraction), "a part of the whole");
    }
}
