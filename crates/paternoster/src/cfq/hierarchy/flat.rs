//! No hierarchy: the root and all groups compete side by side, each by its weight, whatever their
//! depth. Leaf weights mean nothing.
//!
//! ```text
//!   group tree, by vdisktime       ──▶ service trees of the group, by vdisktime
//!   /:12  /a:17  /a/b:21  /c:40
//!
//!   vdisktime += time (or requests) of the slice × 2¹² × 500 / the group's weight; the root's is
//!                1000
//! ```
//!
//! A changed weight takes effect when the group becomes busy, or after its next charge.

use super::weights::scaled;
use super::{Standing, vdisktime};
use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::scheduler::Cx;
use crate::time::Nanos;
use crate::trace::Trace;

/// The group has its first busy queue: it goes right behind the last one.
pub(super) fn join<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId, delay: u64) {
    cfq.group_tree.join(group, &mut cfq.groups[group].share.place, delay);
    count(cfq, cx, group);
}

/// The group has no busy queue any more.
pub(super) fn leave<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId) {
    let share = &mut cfq.groups[group].share;
    cfq.group_tree.leave(&mut share.place);
    cfq.group_tree.members.remove(share.counted_weight);
    cfq.note_group_left(cx, group);
}

/// Charges the queue and its group, and moves both on their trees.
pub(super) fn charge<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, queue: QueueId, charge: u64) -> Standing {
    vdisktime::charge_queue(cfq, queue, charge);
    charge_group(cfq, cx, cfq.queues[queue].group, charge)
}

/// Charges the group and moves it on the tree.
pub(super) fn charge_group<T: Trace>(
    cfq: &mut Cfq<T>,
    cx: &Cx,
    group: GroupId,
    charge: u64,
) -> Standing {
    let share = &mut cfq.groups[group].share;
    let by = scaled(charge, share.counted_weight);
    let vdisktime = cfq.group_tree.charge(&mut share.place, by);
    cfq.group_tree.members.remove(share.counted_weight);
    count(cfq, cx, group);
    Standing { vdisktime, min_vdisktime: cfq.group_tree.min_vdisktime() }
}

/// The group's part of `span`, by weight among the groups with busy queues.
pub(super) fn part_of<T: Trace>(cfq: &Cfq<T>, group: GroupId, span: Nanos) -> Nanos {
    cfq.group_tree.members.part_of_span(span, cfq.groups[group].share.counted_weight)
}

/// Counts the group, which is on the tree, with its present weight.
fn count<T: Trace>(cfq: &mut Cfq<T>, cx: &Cx, group: GroupId) {
    let weight = cx.groups[group].weight().value();
    cfq.groups[group].share.counted_weight = weight;
    cfq.group_tree.members.add(weight);
}

/// Asserts that a group is on the tree while it has busy queues, and that the tree's sum is that
/// over such groups.
pub(super) fn check<T: Trace>(cfq: &Cfq<T>, group: GroupId) {
    let state = &cfq.groups[group];
    assert_eq!(state.share.place.is_on_tree(), state.entities > 0, "on the tree if it is busy");
    let busy = cfq.groups.values().filter(|group| group.entities > 0);
    let members = busy.map(|group| group.share.counted_weight).collect();
    assert_eq!(cfq.group_tree.members, members, "sums of the groups on the tree");
}
