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
//!      10 [5..]                       first  last               passed retire, one at a time
//!         \   least start 0
//!          20 [0..]
//! ```

use crate::arena::Slot;
use crate::bfq::wf2q::entity::{Entities, Entity, EntityId, OnIdle, OnTree, Vtime};
use crate::parts::red_black::{Branch, Nodes as _, Place, Tree};
use crate::request::SectorCount;

/// Which of the eligible entities is served.
pub(in crate::bfq) trait Lookup {
    /// One of the entities below `root` that may start by `vtime`; at least one of them may.
    fn eligible(entities: &Entities, root: Slot, vtime: Vtime) -> Slot;
}

/// As Linux looks: greedily, keeping to the left. It remembers the last eligible entity that it
/// passed and never turns right once it has one, so it misses a better one that is to the right of
/// an ineligible left child: in the picture above, at time 0, it finds 30 where 20 finishes first.
#[derive(Debug)]
pub(in crate::bfq) enum Greedy {}

impl Lookup for Greedy {
    #[inline]
    fn eligible(entities: &Entities, root: Slot, vtime: Vtime) -> Slot {
        let mut found = Slot::NONE;
        let (mut node, mut entity) = (root, &entities[root]);
        loop {
            if entity.start <= vtime {
                found = node;
            }
            let left = entities.links(node).child(Branch::Left);
            let below = &entities[left];
            if left.is_some() && below.least_start <= vtime {
                (node, entity) = (left, below);
                continue;
            }
            if found.is_some() {
                return found;
            }
            node = entities.links(node).child(Branch::Right);
            if node.is_none() {
                return Slot::NONE;
            }
            entity = &entities[node];
        }
    }
}

/// What happens to the time of a tree as it is asked for the entity to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeTime {
    /// It moves up to where an entity is eligible.
    MovesUp,
    /// It stays, as another is being served; only the look-up goes by that time.
    Stays,
}

/// The answer of a tree that is asked for the entity to serve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) next: Slot,
    /// An entity on the idle tree whose finish the time has passed by that.
    pub(super) overdue: Slot,
}

/// The entities of one class in one group.
#[derive(Debug, Default)]
pub(super) struct ClassTree {
    /// Those that wait for service.
    active: Tree,
    /// Those that are not active, but whose finish is still ahead.
    idle: Tree,
    /// Of these the one that finishes first, and nearly the one that finishes last.
    first_idle: Slot,
    last_idle: Slot,
    pub(super) vtime: Vtime,
    /// The weights of all that wait, are served or are on the idle tree.
    pub(super) weight_sum: u64,
}

impl ClassTree {
    #[inline]
    pub(super) fn has_active(&self) -> bool {
        self.active.root().is_some()
    }

    /// The active entity that finishes first, eligible or not.
    pub(super) fn first_active(&self, entities: &Entities) -> Slot {
        self.active.outermost(entities, Branch::Left)
    }

    pub(super) fn first_idle(&self) -> Slot {
        self.first_idle
    }

    #[inline]
    pub(super) fn insert_active(&mut self, entities: &mut Entities, node: Slot) {
        debug_assert_eq!(entities[node].on_tree, OnTree::Neither, "an entity is on one tree");
        let Entity { start, finish, .. } = entities[node];
        entities[node].on_tree = OnTree::Active;
        entities[node].least_start = start;
        // On the way down those above learn of its start.
        let visit = |entity: &mut Entity| entity.least_start = entity.least_start.min(start);
        let place = place_of(&self.active, entities, finish, visit);
        self.active.insert_below(entities, node, place);
    }

    #[inline]
    pub(super) fn remove_active(&mut self, entities: &mut Entities, node: Slot) {
        debug_assert_eq!(entities[node].on_tree, OnTree::Active, "it is on the active tree");
        entities[node].on_tree = OnTree::Neither;
        self.active.remove(entities, node);
    }

    #[inline]
    pub(super) fn insert_idle(&mut self, entities: &mut Entities, node: Slot) {
        debug_assert_eq!(entities[node].on_tree, OnTree::Neither, "an entity is on one tree");
        let finish = entities[node].finish;
        let is_first = self.first_idle.is_none() || entities[self.first_idle].finish > finish;
        let is_last = self.last_idle.is_none() || finish > entities[self.last_idle].finish;
        if is_first {
            self.first_idle = node;
        }
        if is_last {
            self.last_idle = node;
        }
        entities[node].on_tree = OnTree::Idle;
        let place = place_of(&self.idle, entities, finish, |_| ());
        self.idle.insert_below(&mut OnIdle(entities), node, place);
    }

    /// Removes an entity from the idle tree. As in Linux, `last_idle` may not be the last one among
    /// equal finishes, and may become none though others remain.
    #[inline]
    pub(super) fn remove_idle(&mut self, entities: &mut Entities, node: Slot) {
        debug_assert_eq!(entities[node].on_tree, OnTree::Idle, "it is on the idle tree");
        if self.first_idle == node {
            self.first_idle = Tree::neighbour(entities, node, Branch::Right);
        }
        if self.last_idle == node {
            self.last_idle = Tree::neighbour(entities, node, Branch::Left);
        }
        entities[node].on_tree = OnTree::Neither;
        self.idle.remove(&mut OnIdle(entities), node);
    }

    /// The entity to serve, and one that retires as the time has moved up.
    #[inline]
    pub(super) fn choose<L: Lookup>(&mut self, entities: &Entities, time: TreeTime) -> Choice {
        let root = self.active.root();
        if root.is_none() {
            return Choice { next: Slot::NONE, overdue: Slot::NONE };
        }
        let vtime = self.vtime.max(entities[root].least_start);
        let mut overdue = Slot::NONE;
        // A plain comparison, unlike all others.
        if time == TreeTime::MovesUp && vtime.0 > self.vtime.0 {
            self.vtime = vtime;
            overdue = self.overdue_idle(entities);
        }
        Choice { next: L::eligible(entities, root, vtime), overdue }
    }

    /// Moves the time on by `service`. Returns the entity that is to retire then.
    #[inline]
    pub(super) fn advance(&mut self, entities: &Entities, service: SectorCount) -> Slot {
        self.vtime = self.vtime.after(service, self.weight_sum);
        self.overdue_idle(entities)
    }

    /// The idle entity whose finish the time has passed: the first, one at a time. With nothing
    /// active, the time is first set to the last finish, which may turn it back: as in Linux.
    #[inline]
    fn overdue_idle(&mut self, entities: &Entities) -> Slot {
        if !self.has_active() && self.last_idle.is_some() {
            self.vtime = self.vtime.min(entities[self.last_idle].finish);
        }
        let first = self.first_idle;
        let is_overdue = first.is_some() && entities[first].finish <= self.vtime;
        if is_overdue { first } else { Slot::NONE }
    }

    /// All entities on the active and on the idle tree, each in order.
    pub(super) fn iter<'a>(&self, entities: &'a Entities) -> impl Iterator<Item = EntityId> + 'a {
        let some = |node: Slot| node.is_some().then_some(node);
        let next = move |&node: &Slot| some(Tree::neighbour(entities, node, Branch::Right));
        let firsts = [&self.active, &self.idle].map(|tree| tree.outermost(entities, Branch::Left));
        let of_tree = move |first| std::iter::successors(some(first), next);
        firsts.into_iter().flat_map(of_tree).map(|node| entities[node].id)
    }
}

/// Returns the place of an entity with that finish, behind those of an equal one. Calls `visit` for
/// all above that place.
#[inline]
fn place_of(
    tree: &Tree,
    entities: &mut Entities,
    finish: Vtime,
    visit: impl Fn(&mut Entity),
) -> Place {
    let mut place = Place::ROOT;
    let mut above = tree.root();
    while above.is_some() {
        let entity = &mut entities[above];
        visit(entity);
        place = Place { parent: above, side: Branch::right_if(entity.finish <= finish) };
        above = entities.links(above).child(place.side);
    }
    place
}
