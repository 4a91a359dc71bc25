//! Who competes for service: a queue, or a group of them, with its weight and its timestamps.

use std::cmp::Ordering;
use std::ops::{Index, IndexMut};

use slotmap::{SlotMap, new_key_type};

use crate::arena::{GroupId, Linked, ListLinks, Slot};
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
pub(in crate::bfq) struct Vtime(pub(in crate::bfq) u64);

/// By how many bits a sector is shifted in virtual time.
const SERVICE_SHIFT: u32 = 22;

impl Vtime {
    /// After `service` at that weight, or at that sum of weights.
    #[inline]
    pub(in crate::bfq) fn after(self, service: SectorCount, weight: u64) -> Self {
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
pub(in crate::bfq) fn weight_of(io_prio: IoPrio) -> u32 {
    u32::from(IoPrio::LEVELS - io_prio.level()) * WEIGHT_PER_LEVEL
}

/// On which of the trees of its class an entity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On none.
    Off,
    /// Waits for service.
    Active,
    /// Wants none, but is remembered for the service it had.
    Idle,
}

/// One entity.
#[derive(Debug)]
pub(in crate::bfq) struct Entity {
    /// The group that it stands for; none if it is a queue.
    pub(in crate::bfq) group: Option<GroupId>,
    /// The group in which it competes.
    pub(in crate::bfq) above: GroupId,
    pub(super) place: Place,
    /// Counts in its tree's sum of weights: waits, is served, or is remembered.
    pub(in crate::bfq) known: bool,
    by_place: ListLinks<EntityId>,

    /// What it has got of its budget.
    pub(in crate::bfq) service: SectorCount,
    /// What it is to get in its turn; of a group, that of the child that would be served next.
    pub(in crate::bfq) budget: SectorCount,

    /// By which its timestamps run.
    pub(in crate::bfq) weight: u32,
    /// The same without raising.
    pub(in crate::bfq) own_weight: u32,
    /// What that is to be, once it is applied.
    pub(in crate::bfq) new_weight: u32,
    /// By which factor its weight is raised; 1 if it is not, as groups never are.
    pub(in crate::bfq) factor: u32,
    pub(in crate::bfq) class: IoClass,
    /// What that is to be, once it is applied.
    pub(in crate::bfq) new_class: IoClass,
    /// Weight, raising or class have changed and are to be applied.
    pub(in crate::bfq) change_due: bool,

    /// The weight under which it is counted among the active queues that are not raised.
    pub(super) counted: Option<u32>,
    /// A group: counted as one that has I/O pending.
    pub(super) pending: bool,
    /// Requests that exist in it or below.
    pub(in crate::bfq) requests: u32,
}

impl Entity {
    fn new(group: Option<GroupId>, above: GroupId, weight: u32, class: IoClass) -> Self {
        Self {
            group,
            above,
            place: Place::Off,
            known: false,
            by_place: ListLinks::default(),
            service: SectorCount(0),
            budget: SectorCount(0),
            weight,
            own_weight: weight,
            new_weight: weight,
            factor: 1,
            class,
            new_class: class,
            change_due: false,
            counted: None,
            pending: false,
            requests: 0,
        }
    }

    /// That of a queue. A change is due though there is none: it is applied without effect.
    pub(in crate::bfq) fn of_queue(above: GroupId, io_prio: IoPrio) -> Self {
        let new = Self::new(None, above, weight_of(io_prio), io_prio.class());
        Self { change_due: true, ..new }
    }

    /// That of a group; groups compete in the BE class.
    pub(in crate::bfq) fn of_group(group: GroupId, above: GroupId, weight: u32) -> Self {
        Self::new(Some(group), above, weight, IoClass::Be)
    }

    #[inline]
    pub(super) fn is_queue(&self) -> bool {
        self.group.is_none()
    }

    /// The level to which its weight amounts.
    pub(in crate::bfq) fn level(&self) -> u32 {
        u32::from(IoPrio::LEVELS).saturating_sub(self.own_weight / WEIGHT_PER_LEVEL)
    }

    /// The I/O priority to which a queue's class and weight amount.
    pub(in crate::bfq) fn io_prio(&self) -> IoPrio {
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
    pub(in crate::bfq) fn left(&self) -> i64 {
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
    links: TreeLinks<Slot>,
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
    slots: SlotMap<EntityId, Entity>,
    timestamps: Vec<Timestamps>,
}

impl Default for Entities {
    fn default() -> Self {
        let nobody = Timestamps::new(EntityId::default());
        Self { slots: SlotMap::default(), timestamps: vec![nobody] }
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

    pub(super) fn remove(&mut self, id: EntityId) -> Entity {
        self.slots.remove(id).expect("an entity goes once")
    }

    pub(in crate::bfq) fn iter(&self) -> impl Iterator<Item = (EntityId, &Entity)> {
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

    /// Has the entity finish when it has got `service` from its start.
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
impl Nodes<Slot> for Entities {
    const SUMMARIZED: bool = true;

    #[inline]
    fn links(&self, slot: Slot) -> &TreeLinks<Slot> {
        &self.timestamps[slot.index()].links
    }

    #[inline]
    fn links_mut(&mut self, slot: Slot) -> &mut TreeLinks<Slot> {
        &mut self.timestamps[slot.index()].links
    }

    #[inline]
    fn summarize(&mut self, slot: Slot) -> bool {
        let times = self.at(slot);
        let mut least = times.start;
        for branch in [Branch::Left, Branch::Right] {
            if let Some(child) = times.links.child(branch) {
                least = least.min(self.at(child).least_start);
            }
        }
        let before = &mut self.timestamps[slot.index()].least_start;
        std::mem::replace(before, least) != least
    }
}

/// The links by which a queue is on the list of those active or of those remembered.
#[derive(Debug)]
pub(super) enum ByPlace {}

impl Linked<EntityId, ByPlace> for Entities {
    #[inline]
    fn list_links(&self, id: EntityId) -> &ListLinks<EntityId> {
        &self.slots[id].by_place
    }
    #[inline]
    fn list_links_mut(&mut self, id: EntityId) -> &mut ListLinks<EntityId> {
        &mut self.slots[id].by_place
    }
}
