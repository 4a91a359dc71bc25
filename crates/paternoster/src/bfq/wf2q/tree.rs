//! The entities of one class in one group: a weighted fair-queueing server in the service domain.
//!
//! An entity of weight w that is to receive s sectors occupies `[start, finish)` of virtual time,
//! `finish = start + s × 2²² / w`. It is *eligible* once the tree's time has come to its start; of
//! the eligible ones the one that finishes first is served.
//!
//! ```text
//!   active tree, by finish            idle tree, by finish      vtime += s × 2²² / weight sum
//!          30 [0..]                     12   15
//!         /   least start 0              ▲    ▲                 those whose finish the time has
//!      10 [5..]                       first  last               passed are forgotten, one at a
//!         \   least start 0                                     time
//!          20 [0..]
//! ```

use crate::arena::Slot;
use crate::bfq::wf2q::entity::{Entities, EntityId, Place, Vtime};
use crate::parts::red_black::{Branch, Tree};
use crate::request::SectorCount;

/// Which of the eligible entities is served.
pub(in crate::bfq) trait Lookup {
    /// One of the entities below `root` that may start by `vtime`; at least one of them may.
    fn eligible(entities: &Entities, root: Slot, vtime: Vtime) -> Option<Slot>;
}

/// As Linux looks: greedily, keeping to the left. It remembers the last eligible entity that it
/// passed and never turns right once it has one, so it misses a better one that is to the right of
/// an ineligible left child: in the picture above, at time 0, it finds 30 where 20 finishes first.
#[derive(Debug)]
pub(in crate::bfq) enum Greedy {}

impl Lookup for Greedy {
    fn eligible(entities: &Entities, root: Slot, vtime: Vtime) -> Option<Slot> {
        let mut found = None;
        let mut node = Some(root);
        while let Some(here) = node {
            if entities.at(here).start <= vtime {
                found = Some(here);
            }
            let left = Tree::child(entities, here, Branch::Left);
            if let Some(left) = left
                && entities.at(left).least_start <= vtime
            {
                node = Some(left);
                continue;
            }
            if found.is_some() {
                return found;
            }
            node = Tree::child(entities, here, Branch::Right);
        }
        None
    }
}

/// The entities of one class in one group.
#[derive(Debug, Default)]
pub(super) struct ClassTree {
    /// Those that wait for service.
    active: Tree<Slot>,
    /// Those that are remembered for their past service.
    idle: Tree<Slot>,
    /// Of these the one that finishes first, and nearly the one that finishes last.
    first_idle: Option<EntityId>,
    last_idle: Option<EntityId>,
    pub(super) vtime: Vtime,
    /// The weights of all that wait, are served or are remembered.
    pub(super) weight_sum: u64,
}

impl ClassTree {
    #[inline]
    pub(super) fn has_active(&self) -> bool {
        self.active.root().is_some()
    }

    /// The active entity that finishes first, eligible or not.
    pub(super) fn first_active(&self, entities: &Entities) -> Option<EntityId> {
        self.active.outermost(entities, Branch::Left).map(|slot| entities.at(slot).id)
    }

    pub(super) fn first_idle(&self) -> Option<EntityId> {
        self.first_idle
    }

    pub(super) fn insert_active(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].place, Place::Off, "an entity is on one tree");
        entities[id].place = Place::Active;
        insert_by_finish(&mut self.active, entities, id);
    }

    pub(super) fn remove_active(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].place, Place::Active, "it is on the active tree");
        self.active.remove(entities, Slot::of(id));
        entities[id].place = Place::Off;
    }

    pub(super) fn insert_idle(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].place, Place::Off, "an entity is on one tree");
        let finish = entities.times(id).finish;
        if self.first_idle.is_none_or(|first| entities.times(first).finish > finish) {
            self.first_idle = Some(id);
        }
        if self.last_idle.is_none_or(|last| finish > entities.times(last).finish) {
            self.last_idle = Some(id);
        }
        entities[id].place = Place::Idle;
        insert_by_finish(&mut self.idle, entities, id);
    }

    /// Takes an entity off the idle tree. Among equal finishes the last known may not be the last,
    /// and its predecessor none, though others remain: as in Linux.
    pub(super) fn remove_idle(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].place, Place::Idle, "it is on the idle tree");
        if self.first_idle == Some(id) {
            self.first_idle = neighbour(entities, id, Branch::Right);
        }
        if self.last_idle == Some(id) {
            self.last_idle = neighbour(entities, id, Branch::Left);
        }
        self.idle.remove(entities, Slot::of(id));
        entities[id].place = Place::Off;
    }

    /// The entity to serve. Unless `held`, the time moves up to where one is eligible, and the
    /// entity is told that is to be forgotten then. With `held`, as another is being served, only
    /// the look-up goes by that time.
    pub(super) fn choose<L: Lookup>(
        &mut self,
        entities: &Entities,
        held: bool,
    ) -> (Option<EntityId>, Option<EntityId>) {
        let Some(root) = self.active.root() else { return (None, None) };
        let vtime = self.vtime.max(entities.at(root).least_start);
        let mut forgotten = None;
        // A plain comparison, unlike all others.
        if !held && vtime.0 > self.vtime.0 {
            self.vtime = vtime;
            forgotten = self.overdue_idle(entities);
        }
        let next = L::eligible(entities, root, vtime).map(|slot| entities.at(slot).id);
        (next, forgotten)
    }

    /// The time moves on by `service`: the entity that is to be forgotten then.
    #[inline]
    pub(super) fn advance(
        &mut self,
        entities: &Entities,
        service: SectorCount,
    ) -> Option<EntityId> {
        self.vtime = self.vtime.after(service, self.weight_sum);
        self.overdue_idle(entities)
    }

    /// The idle entity whose finish the time has passed: the first, one at a time. With nothing
    /// active, the time is first set to the last finish, which may turn it back: as in Linux.
    #[inline]
    fn overdue_idle(&mut self, entities: &Entities) -> Option<EntityId> {
        if !self.has_active()
            && let Some(last) = self.last_idle
            && entities.times(last).finish <= self.vtime
        {
            self.vtime = entities.times(last).finish;
        }
        self.first_idle.filter(|&first| entities.times(first).finish <= self.vtime)
    }

    /// All entities on the active and on the idle tree, each in order.
    pub(super) fn iter<'a>(&self, entities: &'a Entities) -> impl Iterator<Item = EntityId> + 'a {
        let next = |&slot: &Slot| Tree::neighbour(entities, slot, Branch::Right);
        let firsts = [&self.active, &self.idle].map(|tree| tree.outermost(entities, Branch::Left));
        let slots = firsts.into_iter().flat_map(move |first| std::iter::successors(first, next));
        slots.map(|slot| entities.at(slot).id)
    }
}

fn neighbour(entities: &Entities, id: EntityId, branch: Branch) -> Option<EntityId> {
    Tree::neighbour(entities, Slot::of(id), branch).map(|slot| entities.at(slot).id)
}

/// Equal finishes in order of insertion.
fn insert_by_finish(tree: &mut Tree<Slot>, entities: &mut Entities, id: EntityId) {
    let finish = entities.times(id).finish;
    let mut below = None;
    let mut node = tree.root();
    while let Some(parent) = node {
        let branch = if entities.at(parent).finish > finish { Branch::Left } else { Branch::Right };
        below = Some((parent, branch));
        node = Tree::child(entities, parent, branch);
    }
    tree.insert_below(entities, Slot::of(id), below);
}
