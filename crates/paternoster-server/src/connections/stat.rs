//! What `stat` tells of a disk and its groups.

use std::collections::BTreeSet;

use paternoster::Scheduler as _;

use super::{Connections, DiskOwner};
use crate::stat::{DiskStat, GroupStat, Internals, ModelledStat, blkio_files};

impl Connections {
    pub(super) fn stat(&self, owner: &DiskOwner) -> DiskStat {
        let elevator = owner.engine().elevator();
        let scheduler = elevator.scheduler();
        let syncs = owner.engine().sync_stats();
        let mut internals = Internals::default();
        scheduler.dump(&mut internals);
        let value = |name| elevator.tunable(name).expect("a scheduler has its own tunables");
        let tunables = scheduler.tunables().iter();
        DiskStat {
            name: self.label.name.clone(),
            backend: self.label.backend.to_owned(),
            size_bytes: owner.backend().capabilities().size,
            scheduler: scheduler.name().to_owned(),
            depth: elevator.device().queue_depth,
            in_device: elevator.in_device(),
            queued: elevator.queued(),
            syncs: syncs.begun,
            sync_failed: syncs.failed,
            weights_apply: self.label.weights_apply,
            tunables: tunables.map(|info| (info.name.to_owned(), value(info.name))).collect(),
            internals: internals.0,
            modelled: owner.backend().modelled(owner.now()).map(|stats| ModelledStat {
                servers: stats.model.servers,
                service_ns: stats.model.service.as_nanos(),
                ns_per_kib: stats.model.per_kib.as_nanos(),
                idle_ns: stats.idle.as_nanos(),
            }),
            connections: u32::try_from(self.clients.len()).unwrap_or(u32::MAX),
            groups: self.group_stats(owner),
        }
    }

    fn group_stats(&self, owner: &DiskOwner) -> Vec<GroupStat> {
        let now = owner.now();
        let elevator = owner.engine().elevator();
        let parents: BTreeSet<_> =
            elevator.groups().iter().filter_map(|(_, group)| group.parent).collect();
        let tenants = self.tenants.iter().enumerate().map(|(index, tenant)| {
            let exports = self.exports.iter().filter(|export| export.tenant == index);
            let group = &elevator.groups()[tenant.group];
            let mut stat = GroupStat {
                path: tenant.path.clone(),
                weight: group.weight().value(),
                leaf_weight: group.leaf_weight().value(),
                exports: exports.map(|export| export.name.clone()).collect(),
                connections: tenant.connections,
                blkio: blkio_files(&elevator.blkio(tenant.group)),
                ..GroupStat::default()
            };
            stat.count(elevator.stats().group(tenant.group), now);
            // Groups stay as long as the server: with none below, all of it is its own. To ask
            // for each would cost the owner a walk through all groups a group.
            stat.blkio_recursive = if parents.contains(&tenant.group) {
                blkio_files(&elevator.blkio_recursive(tenant.group))
            } else {
                stat.blkio.clone()
            };
            stat
        });
        tenants.collect()
    }
}
