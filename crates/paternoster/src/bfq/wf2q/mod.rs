//! B-WF2Q+: in what order queues and groups are served, each in proportion to its weight.
//!
//! Every group has a *server*: a tree for each class, of the queues and child groups directly in
//! it. A group that has an active child is an entity in the server of its parent. Its budget there
//! is that of the child that would be served next. So a queue is chosen from the root down:
//!
//! ```text
//!   root    RT [ ]   BE [a  b  q1]   IDLE [ ]        next ──▶ a
//!                        │
//!   a       RT [ ]   BE [q2  q3]     IDLE [ ]        next ──▶ q3, served next
//! ```
//!
//! `next` caches the choice of a server, as if the entity in service went idle. When entities are
//! activated, deactivated or changed, it is updated from the bottom up, as far as that may matter
//! to the parent.
//!
//! Linux's oddities are kept. A group that is reinserted while a child of it is served is charged
//! for the same service again. A group whose only child is served stays the candidate of its
//! parent. Whether a queue may preempt another depends on the root's server only.
//!
//! The files: `entity.rs` is an entity with its timestamps, `tree.rs` the trees of one class of a
//! server, `server.rs` the server and its entity in service, `candidate.rs` the entity that is
//! next. `activate.rs` puts entities on the active trees; `deactivate.rs` removes them, to the idle
//! tree or for good. `changes.rs` says when changes of weight, class and raising count, and
//! `counters.rs` counts the weights. `queues.rs` is what the rest of BFQ may ask and change of a
//! queue, `share.rs` which part of the tags is a queue's own, `check.rs` what always holds.

mod activate;
mod candidate;
mod changes;
mod check;
mod counters;
mod deactivate;
mod entity;
mod queues;
mod server;
mod share;
#[cfg(test)]
mod tests;
mod tree;

use std::marker::PhantomData;

use crate::arena::{GroupId, List, Parallel, Slot};
use crate::bfq::wf2q::counters::WeightCounters;
use crate::bfq::wf2q::entity::{ByTree, Entities, Entity, EntityId, Membership, OnTree};
use crate::bfq::wf2q::server::Server;
use crate::bfq::wf2q::tree::{ClassTree, Greedy, Lookup};
use crate::time::{Hz, Jiffies, Ticks};

/// Names a queue. It is the name of its entity, so one name leads to two tables: this one says how
/// a queue competes, and `Queues` what it holds and how it behaves. Only here an entity may be a
/// group as well.
pub(super) type QueueId = EntityId;

/// A waiting idle class is looked at first again after this part of a second.
const IDLE_CLASS_GUARD_PARTS: u32 = 5;

/// With which timestamps an entity becomes active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActivationKind {
    /// With new ones.
    New,
    /// With those that it had: it was empty for a moment only.
    InTime,
}

/// Whether the entity in service stays there, or is just leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    GoesOn,
    Ends,
}

/// What becomes of an entity that is deactivated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The idle tree keeps it while its finish is ahead.
    KeepOnIdleTree,
    /// It retires at once.
    Retire,
}

/// Says that queues may have retired; each verb returns it by which that may happen. The caller
/// frees the queues that [`Wf2q::next_retired`] returns, unless something else keeps them.
#[derive(Debug)]
#[must_use = "queues that have retired are to be freed"]
pub(super) struct Retired(());

/// The entities of one device and the servers in which they compete.
#[derive(Debug)]
pub(super) struct Wf2q<L = Greedy> {
    entities: Entities,
    servers: Parallel<GroupId, Server>,
    /// Queues on active trees, and queues on idle trees; the newest there first.
    active: List<EntityId, ByTree>,
    idle: List<EntityId, ByTree>,
    counters: WeightCounters,
    /// Groups below the root that have I/O pending.
    groups_pending: u32,
    /// Queues that have retired and that `next_retired` has not returned yet.
    retired: Vec<EntityId>,
    idle_class_guard: Ticks,
    lookup: PhantomData<L>,
}

impl<L: Lookup> Wf2q<L> {
    pub(super) fn new() -> Self {
        Self {
            entities: Entities::default(),
            servers: Parallel::default(),
            active: List::default(),
            idle: List::default(),
            counters: WeightCounters::default(),
            groups_pending: 0,
            retired: Vec::new(),
            idle_class_guard: Ticks::new(0),
            lookup: PhantomData,
        }
    }

    /// Makes the server of the root.
    pub(super) fn set_root(&mut self, root: GroupId, now: Jiffies, hz: Hz) {
        self.idle_class_guard = hz.part_of_second(IDLE_CLASS_GUARD_PARTS);
        self.servers.add(root, || Server::new(Slot::NONE, now));
    }

    /// Makes the server of a group, and its entity in that of its parent.
    pub(super) fn add_group(&mut self, group: GroupId, parent: GroupId, weight: u32) {
        let member = self.membership_in(parent);
        let entity = self.entities.add(Entity::of_group(group, member, weight));
        self.servers.add(group, || Server::new(Slot::of(entity), Jiffies::LONG_AGO));
    }

    /// Removes the server of a group that has no entities left.
    pub(super) fn remove_group(&mut self, group: GroupId) {
        let Some(server) = self.servers.remove(group) else { return };
        let entity = self.entities.id_at(server.entity).expect("the root stays");
        debug_assert_ne!(self.entities[entity].on_tree, OnTree::Active, "no child is active");
        // Only queues are to be freed.
        let Retired(()) = self.remove_idle(entity);
        let entity = self.entities.remove(entity);
        self.groups_pending -= u32::from(entity.pending);
    }

    /// Moves a queue that is on no tree to another group.
    pub(super) fn set_group(&mut self, queue: QueueId, group: GroupId) {
        debug_assert_eq!(self.entities[queue].on_tree, OnTree::Neither, "it was deactivated");
        let Entity { requests, above: before, .. } = self.entities[queue];
        let Membership { parent, above } = self.membership_in(group);
        self.count_from(before, -requests.cast_signed());
        self.count_from(above, requests.cast_signed());
        let entity = &mut self.entities[queue];
        (entity.parent, entity.above) = (parent, above);
    }

    /// Where an entity competes that is in `group`.
    fn membership_in(&self, group: GroupId) -> Membership {
        Membership { parent: group, above: self.servers[group].entity }
    }

    /// Adds `change` to the number of requests of the queue and of its parents.
    #[inline]
    pub(super) fn count_request(&mut self, queue: QueueId, change: i32) {
        self.count_from(Slot::of(queue), change);
    }

    #[inline]
    fn count_from(&mut self, mut node: Slot, change: i32) {
        while node.is_some() {
            let entity = &mut self.entities[node];
            entity.requests = entity.requests.wrapping_add_signed(change);
            node = entity.above;
        }
    }

    /// Returns an entity directly in `group` that is active or in service, or else one on an idle
    /// tree, in the order in which Linux empties a group that is removed.
    pub(super) fn any_member(&self, group: GroupId) -> Option<QueueId> {
        let server = &self.servers[group];
        let active = server.classes.iter().map(|tree| tree.first_active(&self.entities));
        let idle = server.classes.iter().map(ClassTree::first_idle);
        let mut members = active.chain([server.in_service]).chain(idle);
        members.find_map(|node| self.entities.id_at(node))
    }

    /// Queues on active trees, the newest there first.
    pub(super) fn active_queues(&self) -> impl Iterator<Item = QueueId> {
        let next = |&id: &EntityId| List::<_, ByTree>::after(&self.entities, id);
        std::iter::successors(self.active.first(), next)
    }

    /// Queues on idle trees, the newest there first.
    pub(super) fn idle_queues(&self) -> impl Iterator<Item = QueueId> {
        let next = |&id: &EntityId| List::<_, ByTree>::after(&self.entities, id);
        std::iter::successors(self.idle.first(), next)
    }
}
