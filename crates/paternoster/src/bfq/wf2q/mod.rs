//! B-WF2Q+: in what order queues and groups are served, each in proportion to its weight.
//!
//! Every group has a *server*: a tree for each class, of the queues and child groups directly in
//! it. A group that has an active child is an entity in the server of the group above, where its
//! budget is that of the child that would be served next. So a queue is chosen from the root down:
//!
//! ```text
//!   root    RT [ ]   BE [a  b  q1]   IDLE [ ]        next ──▶ a
//!                        │
//!   a       RT [ ]   BE [q2  q3]     IDLE [ ]        next ──▶ q3, served next
//! ```
//!
//! `next` caches the choice of a server, as if the entity in service, if there is one, were to go
//! idle. It is brought up to date as entities come, go and change, from the bottom up, for as long
//! as that may matter to the level above.
//!
//! Linux's oddities are kept. A group that is put anew while a child of it is served is charged
//! for the same service again. A group whose only child is served stays the candidate of the level
//! above. Whether somebody may take the device is looked at on the root's level only.

mod candidate;
mod check;
mod counters;
mod entity;
#[cfg(test)]
mod tests;
mod tree;

pub(super) use entity::{Entity, EntityId, weight_of};

use counters::WeightCounters;
use entity::{ByPlace, Entities, Place};
use smallvec::SmallVec;
use std::marker::PhantomData;
use tree::{ClassTree, Greedy, Lookup};

use crate::arena::{GroupId, List, SideTable};
use crate::io_context::IoClass;
use crate::request::SectorCount;
use crate::time::{Hz, Jiffies, Ticks};

/// A waiting idle class is looked at first again after this part of a second.
const IDLE_CLASS_GUARD_PARTS: u32 = 5;

/// The server of one group.
#[derive(Debug)]
struct Server {
    /// What the group is in the server of the group above; none for the root.
    entity: Option<EntityId>,
    classes: [ClassTree; IoClass::COUNT],
    /// Who is served, or the child of it that is.
    in_service: Option<EntityId>,
    /// Who would be served if the one in service went idle.
    next: Option<EntityId>,
    /// When the idle class was last given its chance.
    idle_class_last: Jiffies,
    /// Entities on active trees.
    active: u32,
}

impl Server {
    fn new(entity: Option<EntityId>, idle_class_last: Jiffies) -> Self {
        Self {
            entity,
            classes: Default::default(),
            in_service: None,
            next: None,
            idle_class_last,
            active: 0,
        }
    }
}

/// How an entity becomes active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comeback {
    /// It begins anew.
    Anew,
    /// It was empty for a moment only and goes on with the timestamps it had.
    InTime,
}

/// Whether the turn of the entity in service goes on, or is just ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    GoesOn,
    Ends,
}

/// What becomes of an entity that wants no service any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    /// It is remembered while its finish is ahead.
    Remembered,
    /// It is forgotten at once.
    Forgotten,
}

/// The entities of one device and the servers in which they compete.
#[derive(Debug)]
pub(super) struct Wf2q<L = Greedy> {
    pub(super) entities: Entities,
    servers: SideTable<GroupId, Server>,
    /// Queues on active trees, and queues on idle trees; the newest there first.
    active: List<EntityId, ByPlace>,
    idle: List<EntityId, ByPlace>,
    pub(super) counters: WeightCounters,
    /// Groups below the root that have I/O pending.
    pub(super) groups_pending: u32,
    /// Queues that were forgotten since that was asked last: who holds them no more is to be told.
    forgotten: SmallVec<[EntityId; 4]>,
    idle_class_guard: Ticks,
    lookup: PhantomData<L>,
}

impl<L: Lookup> Wf2q<L> {
    pub(super) fn new() -> Self {
        Self {
            entities: Entities::default(),
            servers: SideTable::new(),
            active: List::default(),
            idle: List::default(),
            counters: WeightCounters::default(),
            groups_pending: 0,
            forgotten: SmallVec::new(),
            idle_class_guard: Ticks::new(0),
            lookup: PhantomData,
        }
    }

    /// Makes the server of the root.
    pub(super) fn set_root(&mut self, root: GroupId, now: Jiffies, hz: Hz) {
        self.idle_class_guard = hz.part_of_second(IDLE_CLASS_GUARD_PARTS);
        self.servers.insert(root, Server::new(None, now));
    }

    /// Makes the server of a group, and its entity in that of the group above.
    pub(super) fn add_group(&mut self, group: GroupId, above: GroupId, weight: u32) {
        let entity = self.entities.add(Entity::of_group(group, above, weight));
        self.servers.insert(group, Server::new(Some(entity), Jiffies::LONG_AGO));
    }

    /// Removes the server of a group that has no entities left.
    pub(super) fn remove_group(&mut self, group: GroupId) {
        let Some(server) = self.servers.remove(group) else { return };
        let entity = server.entity.expect("the root stays");
        debug_assert_ne!(self.entities[entity].place, Place::Active, "it went with its last child");
        self.forget_idle(entity);
        let entity = self.entities.remove(entity);
        self.groups_pending -= u32::from(entity.pending);
    }

    pub(super) fn add_queue(&mut self, entity: Entity) -> EntityId {
        self.entities.add(entity)
    }

    pub(super) fn remove_queue(&mut self, queue: EntityId) {
        let entity = self.entities.remove(queue);
        debug_assert!(!entity.known && entity.counted.is_none(), "nothing holds it");
    }

    /// The entity of a group; none for the root.
    pub(super) fn entity_of(&self, group: GroupId) -> Option<EntityId> {
        self.servers[group].entity
    }

    /// The entity of the group in which `id` competes; none on the root's level.
    #[inline]
    pub(super) fn above(&self, id: EntityId) -> Option<EntityId> {
        self.servers[self.entities[id].above].entity
    }

    /// The weights of all that wait, are served or are remembered in a class of a group.
    pub(super) fn weight_sum(&self, group: GroupId, class: IoClass) -> u64 {
        self.servers[group].classes[class as usize].weight_sum
    }

    /// Queues on active trees, the newest there first.
    pub(super) fn active_queues(&self) -> impl Iterator<Item = EntityId> {
        let next = |&id: &EntityId| List::<_, ByPlace>::after(&self.entities, id);
        std::iter::successors(self.active.first(), next)
    }

    /// Queues on idle trees, the newest there first.
    pub(super) fn idle_queues(&self) -> impl Iterator<Item = EntityId> {
        let next = |&id: &EntityId| List::<_, ByPlace>::after(&self.entities, id);
        std::iter::successors(self.idle.first(), next)
    }

    /// A queue that was forgotten and of which that has not been told.
    #[inline]
    pub(super) fn poll_forgotten(&mut self) -> Option<EntityId> {
        self.forgotten.pop()
    }

    /// Whether, on the root's level, another entity than the one being served is next. No other
    /// level is looked at: between two queues of one child group nobody may preempt.
    pub(super) fn may_preempt(&self, root: GroupId) -> bool {
        let server = &self.servers[root];
        server.next != server.in_service
    }

    /// A queue that wanted no service does now.
    pub(super) fn activate(&mut self, queue: EntityId, comeback: Comeback, now: Jiffies) {
        let mut node = Some(queue);
        while let Some(id) = node {
            self.activate_or_put_anew(id, comeback);
            if !self.update_next(self.entities[id].above, Some(id), Turn::GoesOn, now) {
                return;
            }
            node = self.above(id);
        }
    }

    /// Puts a queue that wants service anew, by the budget and the weight that it has now.
    pub(super) fn requeue(&mut self, queue: EntityId, turn: Turn, now: Jiffies) {
        let whole_path = self.is_in_service(queue);
        let mut node = Some(queue);
        while let Some(id) = node {
            self.activate_or_put_anew(id, Comeback::Anew);
            let above = self.entities[id].above;
            if !self.update_next(above, Some(id), turn, now) && !whole_path {
                return;
            }
            node = self.above(id);
        }
    }

    /// A queue wants no service any more; nor do the groups that have no other child then.
    pub(super) fn deactivate(&mut self, queue: EntityId, past: Past, turn: Turn, now: Jiffies) {
        let (mut id, mut past) = (queue, past);
        loop {
            let group = self.entities[id].above;
            if !self.deactivate_one(id, past) {
                return;
            }
            if self.servers[group].next == Some(id) {
                self.update_next(group, None, turn, now);
            }
            let server = &self.servers[group];
            let Some(above) = server.entity else { return };
            id = above;
            if server.next.is_some() || server.in_service.is_some() {
                break;
            }
            past = Past::Remembered;
        }
        let mut node = Some(id);
        while let Some(id) = node {
            // Even a group in service, which then is on a tree while it is served.
            self.put_anew(id);
            let above = self.entities[id].above;
            if !self.update_next(above, Some(id), turn, now) && turn == Turn::GoesOn {
                return;
            }
            node = self.above(id);
        }
    }

    /// Puts in service the queue that is due; there is one.
    pub(super) fn serve_next(&mut self, root: GroupId, now: Jiffies) -> EntityId {
        let mut group = root;
        let queue = loop {
            let server = &mut self.servers[group];
            let id = server.next.expect("a server with active entities has a candidate");
            server.in_service = Some(id);
            let child = self.entities[id].group;
            // A group that keeps another child stays on its tree.
            if child.is_none_or(|child| self.servers[child].active == 1) {
                self.take_off_active(id);
            }
            match child {
                None => break id,
                Some(child) => group = child,
            }
        };
        let mut node = Some(queue);
        while let Some(id) = node {
            if !self.update_next(self.entities[id].above, None, Turn::GoesOn, now) {
                break;
            }
            node = self.above(id);
        }
        queue
    }

    /// The queue and the groups above it are in service no more.
    pub(super) fn leave_service(&mut self, queue: EntityId) {
        let mut node = Some(queue);
        while let Some(id) = node {
            self.servers[self.entities[id].above].in_service = None;
            node = self.above(id);
        }
    }

    /// Charges a queue, and the groups above it, for service.
    #[inline]
    pub(super) fn charge(&mut self, queue: EntityId, service: SectorCount) {
        let mut node = Some(queue);
        while let Some(id) = node {
            let entity = &mut self.entities[id];
            entity.service = entity.service + service;
            let (above, class) = (entity.above, entity.class);
            let tree = &mut self.servers[above].classes[class as usize];
            if let Some(overdue) = tree.advance(&self.entities, service) {
                self.forget(overdue, false);
            }
            node = self.servers[above].entity;
        }
    }

    /// The groups above a queue begin a new turn.
    pub(super) fn reset_service_above(&mut self, queue: EntityId) {
        let mut node = self.above(queue);
        while let Some(id) = node {
            self.entities[id].service = SectorCount(0);
            node = self.above(id);
        }
    }

    /// Counts a request of the queue, in it and above, or takes it back.
    #[inline]
    pub(super) fn count_request(&mut self, queue: EntityId, change: i32) {
        let mut node = Some(queue);
        while let Some(id) = node {
            let entity = &mut self.entities[id];
            entity.requests = entity.requests.wrapping_add_signed(change);
            node = self.servers[entity.above].entity;
        }
    }

    /// Has the queue compete in another group; it is on no tree.
    pub(super) fn set_group(&mut self, queue: EntityId, group: GroupId) {
        debug_assert_eq!(self.entities[queue].place, Place::Off, "it was deactivated");
        let requests = self.entities[queue].requests;
        for (group, gone) in [(self.entities[queue].above, true), (group, false)] {
            let mut node = self.servers[group].entity;
            while let Some(id) = node {
                let entity = &mut self.entities[id];
                entity.requests =
                    if gone { entity.requests - requests } else { entity.requests + requests };
                node = self.above(id);
            }
        }
        self.entities[queue].above = group;
    }

    /// An entity that wants no service is not remembered any more.
    pub(super) fn forget_idle(&mut self, id: EntityId) {
        if self.entities[id].known {
            self.forget(id, false);
        }
    }

    /// Some entity directly in `group` that wants service or is being served, or else one that is
    /// remembered, in the order in which Linux empties a group that goes.
    pub(super) fn any_member(&self, group: GroupId) -> Option<EntityId> {
        let server = &self.servers[group];
        let trees = || server.classes.iter();
        let active = trees().find_map(|tree| tree.first_active(&self.entities));
        active.or(server.in_service).or_else(|| trees().find_map(ClassTree::first_idle))
    }

    /// The queue has neither requests in the device nor wants service: the groups above it may have
    /// nothing pending any more.
    pub(super) fn drop_pending(&mut self, queue: EntityId) {
        let mut node = self.above(queue);
        while let Some(id) = node {
            let group = self.entities[id].group.expect("above a queue are groups");
            let server = &self.servers[group];
            if server.next.is_some() || server.in_service.is_some() {
                break;
            }
            if std::mem::take(&mut self.entities[id].pending) {
                self.groups_pending -= 1;
            }
            node = self.above(id);
        }
        self.uncount(queue);
    }

    /// Counts the queue among the active ones that are not raised, under its weight.
    pub(super) fn count(&mut self, queue: EntityId) {
        let entity = &mut self.entities[queue];
        if entity.counted.is_none() {
            entity.counted = Some(entity.weight);
            self.counters.add(entity.weight);
        }
    }

    fn uncount(&mut self, queue: EntityId) {
        if let Some(weight) = self.entities[queue].counted.take() {
            self.counters.remove(weight);
        }
    }

    /// Whether the queue is counted, and under the least weight of all.
    pub(super) fn has_least_weight(&self, queue: EntityId) -> bool {
        let counted = self.entities[queue].counted;
        counted.is_some() && counted == self.counters.least()
    }

    pub(super) fn is_counted(&self, queue: EntityId) -> bool {
        self.entities[queue].counted.is_some()
    }

    /// Applies a change of weight at once, in the middle of a turn; past timestamps stay.
    pub(super) fn apply_weight(&mut self, queue: EntityId) {
        self.apply_changes(queue, false);
    }

    #[inline]
    fn is_in_service(&self, id: EntityId) -> bool {
        self.servers[self.entities[id].above].in_service == Some(id)
    }

    fn tree_of(&mut self, id: EntityId) -> &mut ClassTree {
        let Entity { above, class, .. } = self.entities[id];
        &mut self.servers[above].classes[class as usize]
    }

    fn activate_or_put_anew(&mut self, id: EntityId, comeback: Comeback) {
        if self.is_in_service(id) || self.entities[id].place == Place::Active {
            self.put_anew(id);
        } else {
            self.become_active(id, comeback);
        }
    }

    /// An entity that wanted no service begins at its tree's time; one that was remembered does
    /// not gain by having left.
    fn become_active(&mut self, id: EntityId, comeback: Comeback) {
        let vtime = self.tree_of(id).vtime;
        let finish = self.entities.times(id).finish;
        let goes_on = comeback == Comeback::InTime && vtime > finish;
        let floor = if goes_on { finish } else { vtime };
        if self.entities[id].place == Place::Idle {
            self.take_off_idle(id);
            self.entities.times_mut(id).start = floor.max(finish);
        } else {
            let weight = self.entities[id].weight;
            self.tree_of(id).weight_sum += u64::from(weight);
            self.entities.times_mut(id).start = floor;
            self.entities[id].known = true;
        }
        let entity = &mut self.entities[id];
        if !entity.is_queue() && !std::mem::replace(&mut entity.pending, true) {
            self.groups_pending += 1;
        }
        self.put_on_active(id, goes_on);
    }

    /// An entity that wants service goes to another place on its tree: one that is being served
    /// starts where its service so far ends.
    fn put_anew(&mut self, id: EntityId) {
        if self.is_in_service(id) {
            self.entities.finish_after(id, self.entities[id].service);
            let times = self.entities.times_mut(id);
            times.start = times.finish;
        }
        if self.entities[id].place == Place::Active {
            self.take_off_active(id);
        }
        self.put_on_active(id, false);
    }

    /// Puts the entity on the active tree of its class, after due changes. What `goes_on` and
    /// would finish in the past is shifted to finish now; raised queues by a part of it.
    fn put_on_active(&mut self, id: EntityId, goes_on: bool) {
        self.apply_changes(id, true);
        let vtime = self.tree_of(id).vtime;
        self.entities.finish_after(id, self.entities[id].budget);
        let entity = &self.entities[id];
        let (above, class, is_queue) = (entity.above, entity.class, entity.is_queue());
        let raising = u64::from(entity.factor);
        let times = self.entities.times_mut(id);
        if goes_on && vtime > times.finish {
            let behind = vtime.0.wrapping_sub(times.finish.0) / raising;
            times.start.0 = times.start.0.wrapping_add(behind);
            times.finish.0 = times.finish.0.wrapping_add(behind);
        }
        let server = &mut self.servers[above];
        server.active += 1;
        server.classes[class as usize].insert_active(&mut self.entities, id);
        if is_queue {
            self.active.push_front(&mut self.entities, id);
        }
    }

    fn take_off_active(&mut self, id: EntityId) {
        let entity = &self.entities[id];
        let (above, class, is_queue) = (entity.above, entity.class, entity.is_queue());
        let server = &mut self.servers[above];
        server.active -= 1;
        server.classes[class as usize].remove_active(&mut self.entities, id);
        if is_queue {
            self.active.remove(&mut self.entities, id);
        }
    }

    fn put_on_idle(&mut self, id: EntityId) {
        let Entity { above, class, .. } = self.entities[id];
        self.servers[above].classes[class as usize].insert_idle(&mut self.entities, id);
        if self.entities[id].is_queue() {
            self.idle.push_front(&mut self.entities, id);
        }
    }

    fn take_off_idle(&mut self, id: EntityId) {
        let Entity { above, class, .. } = self.entities[id];
        self.servers[above].classes[class as usize].remove_idle(&mut self.entities, id);
        if self.entities[id].is_queue() {
            self.idle.remove(&mut self.entities, id);
        }
    }

    /// The entity counts no more. Who is being served is held by that for a while yet.
    fn forget(&mut self, id: EntityId, in_service: bool) {
        if self.entities[id].place == Place::Idle {
            self.take_off_idle(id);
        }
        let weight = self.entities[id].weight;
        self.tree_of(id).weight_sum -= u64::from(weight);
        let entity = &mut self.entities[id];
        entity.known = false;
        if entity.is_queue() && !in_service {
            self.forgotten.push(id);
        }
    }

    /// The entity wants no service any more. It is charged for what it got, not for its budget.
    /// Whether it was known at all.
    fn deactivate_one(&mut self, id: EntityId, past: Past) -> bool {
        if !self.entities[id].known {
            return false;
        }
        let in_service = self.is_in_service(id);
        self.entities.finish_after(id, self.entities[id].service);
        let entity = &mut self.entities[id];
        if in_service {
            self.servers[entity.above].in_service = None;
        } else {
            entity.service = SectorCount(0);
        }
        match self.entities[id].place {
            Place::Active => self.take_off_active(id),
            Place::Idle if !in_service => self.take_off_idle(id),
            Place::Idle | Place::Off => {}
        }
        let vtime = self.tree_of(id).vtime;
        if past == Past::Remembered && self.entities.times(id).finish > vtime {
            self.put_on_idle(id);
        } else {
            self.forget(id, in_service);
        }
        true
    }

    /// Applies the changes of weight, and with `class_too` of class, that were asked for: from now
    /// on timestamps run by them. The class changes only off every tree.
    fn apply_changes(&mut self, id: EntityId, class_too: bool) {
        if !self.entities[id].change_due {
            return;
        }
        let entity = &mut self.entities[id];
        let (before, old_class) = (entity.weight, entity.class);
        entity.take_new_weight();
        if entity.is_queue() && class_too {
            entity.class = entity.new_class;
        }
        entity.change_due = entity.class != entity.new_class;
        let (above, class) = (entity.above, entity.class);
        let weight = entity.own_weight * entity.factor;
        let recount = weight != before && entity.is_queue();
        let raised = entity.factor > 1;
        if recount {
            self.uncount(id);
        }
        self.entities[id].weight = weight;
        if recount && !raised {
            self.count(id);
        }
        let classes = &mut self.servers[above].classes;
        classes[old_class as usize].weight_sum -= u64::from(before);
        classes[class as usize].weight_sum += u64::from(weight);
        if class != old_class {
            self.entities.times_mut(id).start = classes[class as usize].vtime;
        }
    }
}
