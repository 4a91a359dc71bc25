//! Queues by vdisktime, as `flat.rs` and `entities.rs` have them.
//!
//! On each service tree the one with the least vdisktime is first. A queue has a weight by its
//! level, and moves back by what it is charged, scaled by the inverse of that. Each tree has a
//! minimum: the greatest vdisktime at which something was chosen from it. A queue that joins the
//! tree begins there, behind a jump that is greater the lower its level is. What it was charged
//! before it left is lost.
//!
//! ```text
//!   minimum        q3              q1        q7        a queue of level 4 joins
//!   ──┼────────────┼───────────────┼─────────┼──▶      at minimum + jump (4)
//!                  first: served, then moves right
//! ```
//!
//! Vdisktimes of two trees have nothing to do with each other. So the workload is that of the tree
//! whose first entity has waited longest since it was placed.

use super::weights::{jump, scaled, weight_of};
use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::cfq::service_tree::{Entity, Key, ServiceTree};
use crate::io_context::IoClass;
use crate::synchrony::Synchrony;
use crate::time::{Instant, Nanos};
use crate::trace::{Trace, Workload};

/// A queue that preempts counts as placed so long before the first one, or the workload of the
/// queue that it preempts would go on: that one is placed at the same moment.
const FRONT_PLACING_STEP: Nanos = Nanos::from_millis(1000);

/// Puts the queue where its slice is due, on the tree on which it should be. One that stays on its
/// tree has its place: its charge has moved it.
pub(super) fn place<T: Trace>(cfq: &mut Cfq<T>, queue: QueueId) {
    cfq.queues[queue].share.placed_at = cfq.now;
    let state = &cfq.queues[queue];
    let wanted = state.wanted_tree();
    let tree = cfq.groups[state.group].trees.tree(wanted);
    if state.class() == IoClass::Idle {
        // All others of its tree go first, even where none was charged for anything.
        let key = tree.last_key().unwrap_or(tree.min());
        move_to(cfq, queue, key);
    } else if state.place.is_none_or(|place| place.tree != wanted) {
        let key = tree.min().advanced(queue_jump(cfq, queue));
        move_to(cfq, queue, key);
    }
}

/// Puts the busy queue before all others of its tree. A queue of the idle class is placed as usual.
pub(super) fn place_first<T: Trace>(cfq: &mut Cfq<T>, queue: QueueId) {
    let state = &cfq.queues[queue];
    if state.class() == IoClass::Idle {
        return place(cfq, queue);
    }
    let tree = cfq.groups[state.group].trees.tree(state.wanted_tree());
    let key = tree.first_key().unwrap_or(tree.min()).advanced(-1);
    let first_placed = tree.first().map_or(cfq.now, |first| placed_at(cfq, first));
    cfq.queues[queue].share.placed_at = first_placed.saturating_sub(FRONT_PLACING_STEP);
    move_to(cfq, queue, key);
}

/// Puts the queue, which is on no tree, at the minimum of the tree on which it should be.
pub(super) fn place_at_minimum<T: Trace>(cfq: &mut Cfq<T>, queue: QueueId) {
    cfq.queues[queue].share.placed_at = cfq.now;
    let state = &cfq.queues[queue];
    let key = cfq.groups[state.group].trees.tree(state.wanted_tree()).min();
    cfq.put_on_tree(queue, key);
}

/// Takes the queue off its tree, if it is on one, and puts it on the tree on which it should be,
/// behind those with the same key.
fn move_to<T: Trace>(cfq: &mut Cfq<T>, queue: QueueId, key: Key) {
    if cfq.queues[queue].is_busy() {
        cfq.take_off_tree(queue);
    }
    cfq.put_on_tree(queue, key);
}

/// How far behind the minimum of its tree the queue joins it.
///
/// There is no jump in IOPS mode, as it is in ns. A queue that is charged for requests would pass
/// 80 ms only after more than a hundred million of them, and a newcomer starve that long.
fn queue_jump<T: Trace>(cfq: &Cfq<T>, queue: QueueId) -> i64 {
    if cfq.iops_mode() {
        return 0;
    }
    let state = &cfq.queues[queue];
    let longest = cfq.nominal_slice(Synchrony::Sync, 0);
    jump(longest, cfq.nominal_slice(state.synchrony, state.io_prio().level()))
}

/// Charges the queue, and moves it on its tree. A slice that was free leaves it in its place.
pub(super) fn charge_queue<T: Trace>(cfq: &mut Cfq<T>, queue: QueueId, charge: u64) {
    let state = &cfq.queues[queue];
    let place = state.place.expect("a queue that is charged is busy");
    if charge > 0 {
        let by = scaled(charge, weight_of(state.io_prio()));
        cfq.groups[state.group].trees.charge(place, by);
    }
}

/// The workload of `class` whose first entity was placed first.
pub(super) fn due_workload<T: Trace>(cfq: &Cfq<T>, group: GroupId, class: IoClass) -> Workload {
    let first_placed = |tree: &ServiceTree| tree.first().map(|first| placed_at(cfq, first));
    cfq.groups[group].trees.least_workload(class, first_placed)
}

fn placed_at<T: Trace>(cfq: &Cfq<T>, entity: Entity) -> Instant {
    match entity {
        Entity::Queue(queue) => cfq.queues[queue].share.placed_at,
        Entity::Group(group) => cfq.groups[group].share.entity.placed_at,
    }
}
