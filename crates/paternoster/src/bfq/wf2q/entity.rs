//! An entity competes for service: a queue or a group, with its weight and its timestamps.

use std::cmp::Ordering;
use std::ops::{Index, IndexMut};

use slotmap::new_key_type;

use crate::arena::{Arena, GroupId, Linked, ListLinks, Slot};
use crate::io_context::{IoClass, IoPrio};
use crate::parts::red_black::{Branch, Nodes, TreeLinks};
use crate::request::SectorCount;

new_key_type! {
    /// Names an entity for as long as it exists. A queue goes by the name of its entity.
    pub(in crate::bfq) struct EntityId;
}

/// Virtual time: service in sectors × 2²² per unit of weight. It wraps, so the order is that of
/// signed differences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::bfq) struct Vtime(pub(super) u64);

/// By how many bits a sector is shifted in virtual time.
const SERVICE_SHIFT: u32 = 22;

impl Vtime {
    /// After `service` at that weight, or at that sum of weights.
    #[inline]
    pub(super) fn after(self, service: SectorCount, weight: u64) -> Self {
        Self(self.0.wrapping_add((u64::from(service.0) << SERVICE_SHIFT) / weight))
    }
}

impl Ord for Vtime {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.wrapping_sub(other.0).cast_signed().cmp(&0)
    }
}

impl PartialOrd for Vtime {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The weight of a queue: 10 for each level below the lowest.
const WEIGHT_PER_LEVEL: u32 = 10;
/// Weights that an entity may have, raised ones aside.
const MIN_WEIGHT: u32 = 1;
const MAX_WEIGHT: u32 = 1000;

/// The weight that an I/O priority gives a queue, before it is raised.
pub(super) fn weight_of(io_prio: IoPrio) -> u32 {
    u32::from(IoPrio::LEVELS - io_prio.level()) * WEIGHT_PER_LEVEL
}

/// On which of the trees of its class an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnTree {
    Neither,
    /// It waits for service.
    Active,
    /// It does not wait for service, but its finish is still ahead.
    Idle,
}

/// Where an entity competes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Membership {
    /// In this group.
    pub(super) parent: GroupId,
    /// The entity of that group; the empty one for the root.
    pub(super) above: Slot,
}

/// One entity. What trees and servers look at comes first, so that a step down a tree reads one
/// line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(in crate::bfq) struct Entity {
    pub(super) start: Vtime,
    pub(super) finish: Vtime,
    /// The least start below it in its tree, its own included.
    pub(super) least_start: Vtime,
    links: TreeLinks,

    /// What it has got of its budget.
    pub(super) service: SectorCount,
    /// What it may get in service; of a group, that of the child that would be served next.
    pub(super) budget: SectorCount,
    /// The weight by which its timestamps run.
    pub(super) weight: u32,
    /// The group in which it competes.
    pub(super) parent: GroupId,
    pub(super) class: IoClass,
    pub(super) on_tree: OnTree,
    /// It counts in its tree's sum of weights: it waits, is served, or is on the idle tree.
    pub(super) in_weight_sum: bool,
    /// Weight, raising or class have changed and are to be applied.
    pub(super) change_due: bool,

    pub(super) id: EntityId,
    /// The group that it stands for; none if it is a queue.
    pub(super) group: Option<GroupId>,
    /// The entity of the group in which it competes; the empty one on the root's level.
    pub(super) above: Slot,
    tree_links: ListLinks<EntityId>,

    /// Its weight without raising.
    pub(super) own_weight: u32,
    /// What that is to be, once it is applied.
    pub(super) new_weight: u32,
    /// The raising factor; 1 if its weight is not raised, as that of a group never is.
    pub(super) raising_factor: u32,
    /// What its class is to be, once it is applied.
    pub(super) new_class: IoClass,

    /// A group: counted as one that has I/O pending.
    pub(super) pending: bool,
    /// The weight under which it is counted among the active queues that are not raised.
    pub(super) counted: Option<u32>,
    /// Requests that exist in it or below.
    pub(super) requests: u32,
}

/// What trees and servers look at is one line of the cache.
const _: () = assert!(std::mem::offset_of!(Entity, id) <= 64);

impl Entity {
    fn new(group: Option<GroupId>, member: Membership, weight: u32, class: IoClass) -> Self {
        let Membership { parent, above } = member;
        Self {
            start: Vtime::default(),
            finish: Vtime::default(),
            least_start: Vtime::default(),
            links: TreeLinks::default(),
            service: SectorCount(0),
            budget: SectorCount(0),
            weight,
            parent,
            class,
            on_tree: OnTree::Neither,
            in_weight_sum: false,
            change_due: false,
            id: EntityId::default(),
            group,
            above,
            tree_links: ListLinks::default(),
            own_weight: weight,
            new_weight: weight,
            raising_factor: 1,
            new_class: class,
            pending: false,
            counted: None,
            requests: 0,
        }
    }

    /// Creates the entity of a queue. It starts with a change due that has no effect.
    pub(super) fn of_queue(member: Membership, io_prio: IoPrio) -> Self {
        let new = Self::new(None, member, weight_of(io_prio), io_prio.class());
        Self { change_due: true, ..new }
    }

    /// Creates the entity of a group. Groups compete in the BE class.
    pub(super) fn of_group(group: GroupId, member: Membership, weight: u32) -> Self {
        Self::new(Some(group), member, weight, IoClass::Be)
    }

    #[inline]
    pub(super) fn is_queue(&self) -> bool {
        self.group.is_none()
    }

    /// The level to which its weight amounts.
    pub(super) fn level(&self) -> u32 {
        u32::from(IoPrio::LEVELS).saturating_sub(self.own_weight / WEIGHT_PER_LEVEL)
    }

    /// The I/O priority to which a queue's class and weight amount.
    pub(super) fn io_prio(&self) -> IoPrio {
        let level = u8::try_from(self.level()).unwrap_or(IoPrio::LEVELS).min(IoPrio::LEVELS - 1);
        let leveled = match self.class {
            IoClass::Rt => IoPrio::rt(level),
            IoClass::Be => IoPrio::be(level),
            IoClass::Idle => Some(IoPrio::IDLE),
        };
        leveled.expect("it is one of the levels")
    }

    /// What is left of its budget; less than 0 if it got more.
    #[inline]
    pub(super) fn left(&self) -> i64 {
        i64::from(self.budget.0) - i64::from(self.service.0)
    }

    /// Sets the finish to where it has got `service` from its start on.
    #[inline]
    pub(super) fn finish_after(&mut self, service: SectorCount) {
        self.finish = self.start.after(service, self.weight.into());
    }

    /// Makes the weight that was asked for its own.
    pub(super) fn take_new_weight(&mut self) {
        if self.new_weight != self.own_weight {
            self.new_weight = self.new_weight.clamp(MIN_WEIGHT, MAX_WEIGHT);
            self.own_weight = self.new_weight;
        }
    }
}

/// The entities of one device by slot. The first is the empty one; its links are written by the
/// trees, and are never read.
#[derive(Debug)]
pub(in crate::bfq) struct Entities {
    table: Vec<Entity>,
    ids: Arena<EntityId, ()>,
}

impl Default for Entities {
    fn default() -> Self {
        let nowhere = Membership { parent: GroupId::default(), above: Slot::NONE };
        let empty = Entity::new(None, nowhere, MIN_WEIGHT, IoClass::Be);
        Self { table: vec![empty], ids: Arena::default() }
    }
}

impl Entities {
    pub(super) fn add(&mut self, entity: Entity) -> EntityId {
        let id = self.ids.insert(());
        let index = Slot::of(id).index();
        if index >= self.table.len() {
            self.table.resize(index + 1, entity);
        }
        self.table[index] = Entity { id, ..entity };
        id
    }

    pub(super) fn remove(&mut self, id: EntityId) -> &mut Entity {
        self.ids.remove(id).expect("an entity goes once");
        &mut self[Slot::of(id)]
    }

    pub(super) fn exists(&self, id: EntityId) -> bool {
        self.ids.contains_key(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EntityId, &Entity)> {
        self.ids.iter().map(|(id, ())| (id, &self[id]))
    }

    /// The entity in that slot, if it is not the empty one.
    #[inline]
    pub(super) fn id_at(&self, slot: Slot) -> Option<EntityId> {
        slot.is_some().then(|| self[slot].id)
    }
}

impl Index<Slot> for Entities {
    type Output = Entity;
    #[inline]
    fn index(&self, slot: Slot) -> &Entity {
        &self.table[slot.index()]
    }
}

impl IndexMut<Slot> for Entities {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut Entity {
        &mut self.table[slot.index()]
    }
}

impl Index<EntityId> for Entities {
    type Output = Entity;
    #[inline]
    fn index(&self, id: EntityId) -> &Entity {
        debug_assert!(self.ids.contains_key(id), "an entity exists while it is looked at");
        &self[Slot::of(id)]
    }
}

impl IndexMut<EntityId> for Entities {
    #[inline]
    fn index_mut(&mut self, id: EntityId) -> &mut Entity {
        debug_assert!(self.ids.contains_key(id), "an entity exists while it is looked at");
        &mut self[Slot::of(id)]
    }
}

/// The links by which an entity is on the active tree of its class, where each knows the least
/// start below it.
impl Nodes for Entities {
    const SUMMARIZED: bool = true;

    #[inline]
    fn links(&self, slot: Slot) -> &TreeLinks {
        &self[slot].links
    }

    #[inline]
    fn links_mut(&mut self, slot: Slot) -> &mut TreeLinks {
        &mut self[slot].links
    }

    #[inline]
    fn summarize(&mut self, slot: Slot) -> bool {
        let Entity { start, least_start: before, links, .. } = self[slot];
        let mut least = start;
        for branch in [Branch::Left, Branch::Right] {
            let child = links.child(branch);
            let below = self[child].least_start;
            if child.is_some() && below < least {
                least = below;
            }
        }
        self[slot].least_start = least;
        least != before
    }

    #[inline]
    fn inherit_summary(&mut self, heir: Slot, node: Slot) {
        self[heir].least_start = self[node].least_start;
    }
}

/// The same links, by which an entity is on the idle tree of its class. That tree needs no least
/// starts, because it is never searched by start.
pub(super) struct OnIdle<'a>(pub(super) &'a mut Entities);

impl Nodes for OnIdle<'_> {
    #[inline]
    fn links(&self, slot: Slot) -> &TreeLinks {
        &self.0[slot].links
    }

    #[inline]
    fn links_mut(&mut self, slot: Slot) -> &mut TreeLinks {
        &mut self.0[slot].links
    }
}

/// The links by which a queue is on the list of those on active trees or of those on idle trees.
#[derive(Debug)]
pub(super) enum ByTree {}

impl Linked<EntityId, ByTree> for Entities {
    #[inline]
    fn list_links(&self, id: EntityId) -> &ListLinks<EntityId> {
        &self[id].tree_links
    }
    #[inline]
    fn list_links_mut(&mut self, id: EntityId) -> &mut ListLinks<EntityId> {
        &mut self[id].tree_links
    }
}
