//! What the look-up finds on any tree, against a walk over all entities.

use crate::arena::Arena;
use proptest::prelude::*;

use crate::arena::{GroupId, Slot};
use crate::bfq::wf2q::entity::{Entities, Entity, EntityId, Membership, Vtime};
use crate::bfq::wf2q::tree::{ClassTree, Greedy, Lookup};
use crate::io_context::IoPrio;
use crate::parts::red_black::{Branch, Nodes as _, Tree};
use crate::request::SectorCount;

/// Exactly: of all that may start, the one that finishes first; of equals the one put there first.
#[derive(Debug)]
pub(super) enum Exact {}

impl Lookup for Exact {
    fn eligible(entities: &Entities, root: Slot, vtime: Vtime) -> Slot {
        let some = |node: Slot| node.is_some().then_some(node);
        let left = |&node: &Slot| some(entities.links(node).child(Branch::Left));
        let first = std::iter::successors(Some(root), left).last();
        let right = |&node: &Slot| some(Tree::neighbour(entities, node, Branch::Right));
        let found = std::iter::successors(first, right).find(|&node| entities[node].start <= vtime);
        found.unwrap_or(Slot::NONE)
    }
}

/// Time is counted from here, so that it wraps on the way.
const ORIGIN: u64 = u64::MAX - 20;

fn at(time: u64) -> Vtime {
    Vtime(ORIGIN.wrapping_add(time))
}

struct Field {
    entities: Entities,
    tree: ClassTree,
    group: GroupId,
}

impl Field {
    fn new() -> Self {
        let group = Arena::<GroupId, ()>::default().insert(());
        Self { entities: Entities::default(), tree: ClassTree::default(), group }
    }

    fn insert(&mut self, start: u64, finish: u64) -> EntityId {
        let id = self.entities.add(Entity::of_queue(
            Membership { parent: self.group, above: Slot::NONE },
            IoPrio::default(),
        ));
        let entity = &mut self.entities[id];
        entity.start = at(start);
        entity.finish = at(finish);
        self.tree.insert_active(&mut self.entities, Slot::of(id));
        id
    }

    fn finish(&self, id: EntityId) -> u64 {
        self.entities[id].finish.0.wrapping_sub(ORIGIN)
    }

    fn all(&self) -> Vec<EntityId> {
        self.tree.iter(&self.entities).collect()
    }

    fn root(&self) -> Slot {
        let any = self.all().first().copied();
        any.map_or(Slot::NONE, |id| Tree::root_above(&self.entities, Slot::of(id)))
    }

    /// The least start of `node` and all below it, by looking at all; each on the way knows that.
    fn checked_least_start(&self, node: Slot) -> Vtime {
        let children = [Branch::Left, Branch::Right]
            .map(|branch| self.entities.links(node).child(branch))
            .into_iter()
            .filter(|child| child.is_some());
        let starts = children.map(|child| self.checked_least_start(child));
        let least = starts.chain([self.entities[node].start]).min().expect("its own at least");
        assert_eq!(self.entities[node].least_start, least, "the least start below an entity");
        least
    }
}

/// The picture in `tree.rs`.
#[test]
fn greedy_look_up_misses_what_is_right_of_an_ineligible_left_child() {
    let mut field = Field::new();
    for (start, finish) in [(0, 30), (5, 10), (0, 40), (0, 20)] {
        field.insert(start, finish);
    }
    let root = field.root();
    let finish = |slot: Slot| field.finish(field.entities[slot].id);
    assert_eq!(finish(root), 30);
    assert_eq!(finish(Greedy::eligible(&field.entities, root, at(0))), 30);
    assert_eq!(finish(Exact::eligible(&field.entities, root, at(0))), 20);
    // Once the left child may start it is found.
    assert_eq!(finish(Greedy::eligible(&field.entities, root, at(5))), 10);
}

/// As in Linux, where a queue that comes then starts earlier than it would have.
#[test]
fn time_turns_back_to_the_last_finish_where_nothing_waits() {
    let mut field = Field::new();
    let idle = field.entities.add(Entity::of_queue(
        Membership { parent: field.group, above: Slot::NONE },
        IoPrio::default(),
    ));
    field.entities[idle].finish = at(60);
    field.tree.insert_idle(&mut field.entities, Slot::of(idle));
    field.tree.weight_sum = 40;
    field.tree.vtime = at(100);
    assert_eq!(field.tree.advance(&field.entities, SectorCount(0)), Slot::of(idle));
    assert_eq!(field.tree.vtime, at(60));
    // With one that waits it stays.
    field.insert(0, 200);
    field.tree.vtime = at(100);
    assert_eq!(field.tree.advance(&field.entities, SectorCount(0)), Slot::of(idle));
    assert_eq!(field.tree.vtime, at(100));
}

proptest! {
    #[test]
    fn look_up_finds_an_entity_that_may_start(
        steps in proptest::collection::vec((0_u64..60, 1_u64..40, 0_usize..3), 1..120),
        vtime in 0_u64..80,
    ) {
        let mut field = Field::new();
        for (start, length, gone) in steps {
            let id = field.insert(start, start + length);
            if gone == 0 {
                let all = field.all();
                let other = all[usize::try_from(start).expect("small") % all.len()];
                field.tree.remove_active(&mut field.entities, Slot::of(other));
                field.entities.remove(other);
            } else if gone == 1 {
                field.tree.remove_active(&mut field.entities, Slot::of(id));
                field.entities[id].start = at(length);
                field.tree.insert_active(&mut field.entities, Slot::of(id));
            }
            if field.root().is_some() {
                field.checked_least_start(field.root());
            }
        }
        let root = field.root();
        if root.is_none() {
            return Ok(());
        }
        let vtime = at(vtime).max(field.entities[root].least_start);
        let greedy = Greedy::eligible(&field.entities, root, vtime);
        let exact = Exact::eligible(&field.entities, root, vtime);
        prop_assert!(greedy.is_some() && exact.is_some(), "one may start");
        prop_assert!(field.entities[greedy].start <= vtime, "it may start");
        let start = |&id: &EntityId| field.entities[id].start;
        let may_start = field.all().into_iter().filter(|id| start(id) <= vtime);
        let least = may_start.map(|id| field.finish(id)).min();
        let finish = |slot: Slot| field.finish(field.entities[slot].id);
        prop_assert_eq!(Some(finish(exact)), least, "the first finish of all");
        prop_assert!(finish(exact) <= finish(greedy));
    }
}
