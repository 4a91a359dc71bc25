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
    /// The entity of that group; none for the root.
    pub(super) above: Option<EntityId>,
}

/// One entity.
#[derive(Debug)]
pub(in crate::bfq) struct Entity {
    /// The group that it stands for; none if it is a queue.
    pub(super) group: Option<GroupId>,
    /// The group in which it competes.
    pub(super) parent: GroupId,
    /// The entity of that group; none for the root.
    pub(super) above: Option<EntityId>,
    pub(super) on_tree: OnTree,
    /// It counts in its tree's sum of weights: it waits, is served, or is on the idle tree.
    pub(super) in_weight_sum: bool,
    tree_links: ListLinks<EntityId>,

    /// What it has got of its budget.
    pub(super) service: SectorCount,
    /// What it may get in service; of a group, that of the child that would be served next.
    pub(super) budget: SectorCount,

    /// The weight by which its timestamps run.
    pub(super) weight: u32,
    /// The same without raising.
    pub(super) own_weight: u32,
    /// What that is to be, once it is applied.
    pub(super) new_weight: u32,
    /// The raising factor; 1 if its weight is not raised, as that of a group never is.
    pub(super) raising_factor: u32,
    pub(super) class: IoClass,
    /// What that is to be, once it is applied.
    pub(super) new_class: IoClass,
    /// Weight, raising or class have changed and are to be applied.
    pub(super) change_due: bool,

    /// The weight under which it is counted among the active queues that are not raised.
    pub(super) counted: Option<u32>,
    /// A group: counted as one that has I/O pending.
    pub(super) pending: bool,
    /// Requests that exist in it or below.
    pub(super) requests: u32,
}

impl Entity {
    fn new(group: Option<GroupId>, member: Membership, weight: u32, class: IoClass) -> Self {
        let Membership { parent, above } = member;
        Self {
            group,
            parent,
            above,
            on_tree: OnTree::Neither,
            in_weight_sum: false,
            tree_links: ListLinks::default(),
            service: SectorCount(0),
            budget: SectorCount(0),
            weight,
            own_weight: weight,
            new_weight: weight,
            raising_factor: 1,
            class,
            new_class: class,
            change_due: false,
            counted: None,
            pending: false,
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

    /// Makes the weight that was asked for its own.
    pub(super) fn take_new_weight(&mut self) {
        if self.new_weight != self.own_weight {
            self.new_weight = self.new_weight.clamp(MIN_WEIGHT, MAX_WEIGHT);
            self.own_weight = self.new_weight;
        }
    }
}

/// What a tree looks at of an entity. On the way down nothing else is read: a cache line a level.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Timestamps {
    pub(super) start: Vtime,
    pub(super) finish: Vtime,
    /// The least start below it in its tree, its own included.
    pub(super) least_start: Vtime,
    pub(super) id: EntityId,
    links: TreeLinks,
}

impl Timestamps {
    fn new(id: EntityId) -> Self {
        Self {
            start: Vtime::default(),
            finish: Vtime::default(),
            least_start: Vtime::default(),
            id,
            links: TreeLinks::default(),
        }
    }
}

/// The entities of one device, and beside them their timestamps, by slot. The first slot is no
/// entity's.
#[derive(Debug)]
pub(in crate::bfq) struct Entities {
    slots: Arena<EntityId, Entity>,
    timestamps: Vec<Timestamps>,
}

impl Default for Entities {
    fn default() -> Self {
        let nobody = Timestamps::new(EntityId::default());
        Self { slots: Arena::default(), timestamps: vec![nobody] }
    }
}

impl Entities {
    pub(super) fn add(&mut self, entity: Entity) -> EntityId {
        let id = self.slots.insert(entity);
        let index = Slot::of(id).index();
        if index >= self.timestamps.len() {
            self.timestamps.resize(index + 1, self.timestamps[0]);
        }
        self.timestamps[index] = Timestamps::new(id);
        id
    }

    pub(super) fn remove(&mut self, id: EntityId) -> &mut Entity {
        self.slots.remove(id).expect("an entity goes once")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EntityId, &Entity)> {
        self.slots.iter()
    }

    #[inline]
    pub(super) fn times(&self, id: EntityId) -> &Timestamps {
        debug_assert_eq!(self.at(Slot::of(id)).id, id, "an entity exists while it is looked at");
        self.at(Slot::of(id))
    }

    #[inline]
    pub(super) fn times_mut(&mut self, id: EntityId) -> &mut Timestamps {
        &mut self.timestamps[Slot::of(id).index()]
    }

    #[inline]
    pub(super) fn at(&self, slot: Slot) -> &Timestamps {
        &self.timestamps[slot.index()]
    }

    /// The entity in that slot, if it is not the empty one.
    #[inline]
    pub(super) fn id_at(&self, slot: Slot) -> Option<EntityId> {
        slot.is_some().then(|| self.at(slot).id)
    }

    /// Sets the finish to where the entity has got `service` from its start on.
    #[inline]
    pub(super) fn finish_after(&mut self, id: EntityId, service: SectorCount) {
        let weight = self.slots[id].weight;
        let times = self.times_mut(id);
        times.finish = times.start.after(service, weight.into());
    }
}

impl Index<EntityId> for Entities {
    type Output = Entity;
    #[inline]
    fn index(&self, id: EntityId) -> &Entity {
        &self.slots[id]
    }
}

impl IndexMut<EntityId> for Entities {
    #[inline]
    fn index_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut self.slots[id]
    }
}

/// The links by which an entity is on one of the trees of its class, where each knows the least
/// start below it.
impl Nodes for Entities {
    const SUMMARIZED: bool = true;

    #[inline]
    fn links(&self, slot: Slot) -> &TreeLinks {
        &self.timestamps[slot.index()].links
    }

    #[inline]
    fn links_mut(&mut self, slot: Slot) -> &mut TreeLinks {
        &mut self.timestamps[slot.index()].links
    }

    #[inline]
    fn summarize(&mut self, slot: Slot) -> bool {
        let times = self.at(slot);
        let mut least = times.start;
        for branch in [Branch::Left, Branch::Right] {
            let child = times.links.child(branch);
            if child.is_some() {
                least = least.min(self.at(child).least_start);
            }
        }
        let before = &mut self.timestamps[slot.index()].least_start;
        std::mem::replace(before, least) != least
    }
}

/// The links by which a queue is on the list of those on active trees or of those on idle trees.
#[derive(Debug)]
pub(super) enum ByTree {}

impl Linked<EntityId, ByTree> for Entities {
    #[inline]
    fn list_links(&self, id: EntityId) -> &ListLinks<EntityId> {
        &self.slots[id].tree_links
    }
    #[inline]
    fn list_links_mut(&mut self, id: EntityId) -> &mut ListLinks<EntityId> {
        &mut self.slots[id].tree_links
    }
}
