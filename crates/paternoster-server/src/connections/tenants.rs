//! The tenants of a disk: each is a group of the elevator, which comes with the first export in it
//! or below it, and goes with the last.
//!
//! ```text
//!   /org        no export of its own: below 2
//!   /org/db     exports db0, db1
//!   /org/web    exports web
//! ```
//!
//! A group whose exports are gone stays while clients are connected, as their requests are charged
//! to it.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

use paternoster::{Administration, GroupId, Instant};
use paternoster_disk::{VolumeId, VolumePlace};
use slotmap::SlotMap;

use super::{Door, Scheduler};
use crate::clients::{Export, HeldBack, Notices, Pool, TenantId};
use crate::config::parent_of;
use crate::messages::{GroupOnDisk, NewExport, NewTenant};

/// A tenant of the disk.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) path: String,
    pub(crate) group: GroupId,
    /// What its clients may hold.
    pub(super) memory: Arc<Pool>,
    /// Its exports of this disk, in the order in which they came.
    pub(super) exports: Vec<Arc<Export>>,
    /// Its clients that are connected.
    pub(super) connections: u32,
    /// Those of them that are virtual machines.
    pub(super) machines: u32,
    /// What holds its commands back, by NBD and by vhost-user.
    held_back: [HeldBack; 2],
    parent: Option<TenantId>,
    /// Tenants right below it.
    below: u32,
    /// Whether there were some, also ones that have gone.
    pub(super) had_below: bool,
    /// Its number in the order in which tenants came.
    number: u64,
}

impl Tenant {
    /// Notes what holds back what comes by a door. Returns what does at any.
    pub(super) fn hold_back(&mut self, door: Door, now: HeldBack) -> HeldBack {
        let [nbd, vhost_user] = &mut self.held_back;
        match door {
            Door::VhostUser => *vhost_user = now,
            Door::Nbd | Door::Own => *nbd = now,
        }
        nbd.or(*vhost_user)
    }

    fn is_unused(&self) -> bool {
        self.exports.is_empty() && self.connections == 0 && self.below == 0
    }
}

/// All tenants of the disk.
#[derive(Debug)]
pub(crate) struct Tenants {
    all: SlotMap<TenantId, Tenant>,
    by_path: BTreeMap<String, TenantId>,
    by_group: BTreeMap<GroupId, TenantId>,
    notices: Arc<Notices>,
    /// How many have come so far.
    came: u64,
}

type Elevator<'a> = Administration<'a, Scheduler>;

impl Tenants {
    /// None yet; these threads serve their clients.
    pub(crate) fn new(notices: &Arc<Notices>) -> Self {
        let (all, by_path) = (SlotMap::with_key(), BTreeMap::new());
        let by_group = BTreeMap::new();
        Self { all, by_path, by_group, notices: Arc::clone(notices), came: 0 }
    }

    /// The tenant of that path, which comes now unless it is here; those above it are.
    pub(crate) fn add(
        &mut self,
        elevator: &mut Elevator<'_>,
        now: Instant,
        new: &NewTenant,
    ) -> TenantId {
        let GroupOnDisk { path, weights, on_device, limits } = &new.group;
        if let Some(known) = self.find(path) {
            return known;
        }
        let parent = parent_of(path).map(|above| self.by_path[above]);
        let root = elevator.groups().root();
        let parent_group = parent.map_or(root, |parent| self.all[parent].group);
        let group = elevator.add_group(now, parent_group, weights.weight);
        elevator.set_weight(now, group, *weights);
        elevator.set_device_weights(now, group, *on_device);
        elevator.set_group_limits(now, group, *limits);
        if let Some(recording) = &mut elevator.trace().recording {
            recording.add_group(group, path.clone());
        }
        if let Some(parent) = parent {
            self.all[parent].below += 1;
            self.all[parent].had_below = true;
        }
        self.came += 1;
        let bytes = usize::try_from(new.memory).unwrap_or(usize::MAX);
        let id = self.all.insert(Tenant {
            path: path.clone(),
            group,
            memory: Pool::new(bytes, &self.notices),
            exports: Vec::new(),
            connections: 0,
            machines: 0,
            held_back: [HeldBack::default(); 2],
            parent,
            below: 0,
            had_below: false,
            number: self.came,
        });
        self.by_path.insert(path.clone(), id);
        self.by_group.insert(group, id);
        id
    }

    /// Another export, and its tenant with those above it, as far as they are not here.
    pub(crate) fn add_export(
        &mut self,
        elevator: &mut Elevator<'_>,
        now: Instant,
        new: NewExport,
        place: VolumePlace,
    ) -> Arc<Export> {
        let NewExport { name, volume, offset, io_prio, is_offered, lineage } = new;
        let lineage: Vec<_> = lineage.iter().map(|new| self.add(elevator, now, new)).collect();
        let tenant = *lineage.last().expect("an export is in a group");
        let memory = Arc::clone(&self.all[tenant].memory);
        let export = Export { name, volume, place, offset, io_prio, is_offered, tenant, memory };
        let export = Arc::new(export);
        self.all[tenant].exports.push(Arc::clone(&export));
        export
    }

    /// The exports of a volume are gone, which were all of that tenant; and those tenants of which
    /// nothing is left.
    pub(super) fn remove_exports(
        &mut self,
        elevator: &mut Elevator<'_>,
        now: Instant,
        volume: VolumeId,
    ) {
        let having = self.all.iter_mut().filter_map(|(id, tenant)| {
            let before = tenant.exports.len();
            tenant.exports.retain(|export| export.volume != volume);
            (tenant.exports.len() < before).then_some(id)
        });
        for id in having.collect::<Vec<_>>() {
            self.remove_unused(elevator, now, id);
        }
    }

    /// Returns whether clients may enter that export.
    pub(super) fn has_export(&self, export: &Arc<Export>) -> bool {
        let tenant = self.all.get(export.tenant);
        tenant.is_some_and(|tenant| tenant.exports.iter().any(|one| Arc::ptr_eq(one, export)))
    }

    /// No client enters an export any more; its tenant stays as long as there are some.
    pub(super) fn close_export(&mut self, export: &Arc<Export>) {
        if let Some(tenant) = self.all.get_mut(export.tenant) {
            tenant.exports.retain(|one| !Arc::ptr_eq(one, export));
        }
    }

    /// A client of the tenant has connected.
    pub(super) fn connected(&mut self, id: TenantId, door: Door) {
        self.all[id].connections += 1;
        self.all[id].machines += u32::from(door == Door::VhostUser);
    }

    /// A client of the tenant has left.
    pub(super) fn disconnected(&mut self, id: TenantId, door: Door) {
        self.all[id].connections -= 1;
        self.all[id].machines -= u32::from(door == Door::VhostUser);
    }

    /// Removes the tenant, and then those above it, as far as they are of no use. The I/O contexts
    /// of clients that have left are gone.
    pub(super) fn remove_unused(
        &mut self,
        elevator: &mut Elevator<'_>,
        now: Instant,
        id: TenantId,
    ) {
        let mut next = Some(id);
        while let Some(id) = next.filter(|&id| self.all.get(id).is_some_and(Tenant::is_unused)) {
            let tenant = self.all.remove(id).expect("it was found");
            self.by_path.remove(&tenant.path);
            self.by_group.remove(&tenant.group);
            elevator.remove_group(now, tenant.group);
            next = tenant.parent;
            if let Some(parent) = next {
                self.all[parent].below -= 1;
            }
        }
    }

    /// The tenant of that path.
    pub(super) fn find(&self, path: &str) -> Option<TenantId> {
        self.by_path.get(path).copied()
    }

    /// The tenant that is that group.
    pub(super) fn of_group(&self, group: GroupId) -> Option<&Tenant> {
        self.by_group.get(&group).map(|&id| &self.all[id])
    }

    /// The tenant, unless it has gone.
    pub(super) fn get(&self, id: TenantId) -> Option<&Tenant> {
        self.all.get(id)
    }

    pub(super) fn get_mut(&mut self, id: TenantId) -> Option<&mut Tenant> {
        self.all.get_mut(id)
    }

    /// All of them, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TenantId, &Tenant)> {
        self.all.iter()
    }

    /// All of them in the order in which they came: each behind its parent.
    pub(super) fn in_order(&self) -> Vec<&Tenant> {
        let mut tenants: Vec<_> = self.all.values().collect();
        tenants.sort_unstable_by_key(|tenant| tenant.number);
        tenants
    }
}

impl Index<TenantId> for Tenants {
    type Output = Tenant;

    fn index(&self, id: TenantId) -> &Tenant {
        &self.all[id]
    }
}
