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
use crate::bfq::wf2q::entity::{Entities, EntityId, OnTree, Vtime};
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
        let mut node = root;
        while node.is_some() {
            if entities.at(node).start <= vtime {
                found = node;
            }
            let left = entities.links(node).child(Branch::Left);
            if left.is_some() && entities.at(left).least_start <= vtime {
                node = left;
                continue;
            }
            if found.is_some() {
                return found;
            }
            node = entities.links(node).child(Branch::Right);
        }
        Slot::NONE
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
    pub(super) next: Option<EntityId>,
    /// An entity on the idle tree whose finish the time has passed by that.
    pub(super) overdue: Option<EntityId>,
}

/// The entities of one class in one group.
#[derive(Debug, Default)]
pub(super) struct ClassTree {
    /// Those that wait for service.
    active: Tree,
    /// Those that are not active, but whose finish is still ahead.
    idle: Tree,
    /// Of these the one that finishes first, and nearly the one that finishes last.
    first_idle: Option<EntityId>,
    last_idle: Option<EntityId>,
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
    pub(super) fn first_active(&self, entities: &Entities) -> Option<EntityId> {
        entities.id_at(self.active.outermost(entities, Branch::Left))
    }

    pub(super) fn first_idle(&self) -> Option<EntityId> {
        self.first_idle
    }

    pub(super) fn insert_active(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].on_tree, OnTree::Neither, "an entity is on one tree");
        entities[id].on_tree = OnTree::Active;
        insert_by_finish(&mut self.active, entities, id);
    }

    pub(super) fn remove_active(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].on_tree, OnTree::Active, "it is on the active tree");
        self.active.remove(entities, Slot::of(id));
        entities[id].on_tree = OnTree::Neither;
    }

    pub(super) fn insert_idle(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].on_tree, OnTree::Neither, "an entity is on one tree");
        let finish = entities.times(id).finish;
        if self.first_idle.is_none_or(|first| entities.times(first).finish > finish) {
            self.first_idle = Some(id);
        }
        if self.last_idle.is_none_or(|last| finish > entities.times(last).finish) {
            self.last_idle = Some(id);
        }
        entities[id].on_tree = OnTree::Idle;
        insert_by_finish(&mut self.idle, entities, id);
    }

    /// Removes an entity from the idle tree. As in Linux, `last_idle` may not be the last one among
    /// equal finishes, and may become none though others remain.
    pub(super) fn remove_idle(&mut self, entities: &mut Entities, id: EntityId) {
        debug_assert_eq!(entities[id].on_tree, OnTree::Idle, "it is on the idle tree");
        if self.first_idle == Some(id) {
            self.first_idle = neighbour(entities, id, Branch::Right);
        }
        if self.last_idle == Some(id) {
            self.last_idle = neighbour(entities, id, Branch::Left);
        }
        self.idle.remove(entities, Slot::of(id));
        entities[id].on_tree = OnTree::Neither;
    }

    /// The entity to serve, and one that retires as the time has moved up.
    pub(super) fn choose<L: Lookup>(&mut self, entities: &Entities, time: TreeTime) -> Choice {
        let root = self.active.root();
        if root.is_none() {
            return Choice { next: None, overdue: None };
        }
        let vtime = self.vtime.max(entities.at(root).least_start);
        let mut overdue = None;
        // A plain comparison, unlike all others.
        if time == TreeTime::MovesUp && vtime.0 > self.vtime.0 {
            self.vtime = vtime;
            overdue = self.overdue_idle(entities);
        }
        Choice { next: entities.id_at(L::eligible(entities, root, vtime)), overdue }
    }

    /// Moves the time on by `service`. Returns the entity that is to retire then.
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
        let next = |&id: &EntityId| neighbour(entities, id, Branch::Right);
        let first = |tree: &Tree| entities.id_at(tree.outermost(entities, Branch::Left));
        let firsts = [&self.active, &self.idle].map(first);
        firsts.into_iter().flat_map(move |first| std::iter::successors(first, next))
    }
}

fn neighbour(entities: &Entities, id: EntityId, branch: Branch) -> Option<EntityId> {
    entities.id_at(Tree::neighbour(entities, Slot::of(id), branch))
}

/// Equal finishes in order of insertion.
fn insert_by_finish(tree: &mut Tree, entities: &mut Entities, id: EntityId) {
    let finish = entities.times(id).finish;
    let mut place = Place::ROOT;
    let mut node = tree.root();
    while node.is_some() {
        let side = Branch::right_if(entities.at(node).finish <= finish);
        place = Place { parent: node, side };
        node = entities.links(node).child(side);
    }
    tree.insert_below(entities, Slot::of(id), place);
}
