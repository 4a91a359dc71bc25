//! What `stat` reports of a disk, its groups, and its scheduler's queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use paternoster::scheduler::{QueueDump, Scheduler as _};
use paternoster::{Elevator, GroupId, GroupTimes, Instant, Nanos, QueueName, TimeAccounts};
use paternoster_disk::{Backend, Granules, VolumeId};

use super::quiesce::far;
use super::settings::shown_tunables;
use super::{Connections, DiskOwner, Scheduler, Tenant};
use crate::announce;
use crate::clients::Export;
use crate::config::limits_in_numbers;
use crate::depth;
use crate::messages::StatPart;
use crate::stat::{
    CacheStat, Detail, DiskStat, FarStat, GroupStat, Internals, LearnedDepth, ModelledStat,
    PollStat, QueueFormatter, QueueStat, TimeStat, VolumeStat, WeightsStat, blkio_files,
};

/// A tenant's times, and what was served of others while it waited for its turn.
type Account = (GroupTimes, Vec<(GroupId, u64)>);

impl Connections {
    /// Answers with what is asked for.
    pub(super) fn tell_stat(&self, owner: &mut DiskOwner, part: StatPart) {
        // Whoever asked may have gone.
        match part {
            StatPart::Whole(detail, sender) => _ = sender.send(self.stat(owner, detail)),
            StatPart::WithoutGroups(sender) => _ = sender.send(self.stat_without_groups(owner)),
            StatPart::Groups(paths, sender) => _ = sender.send(self.group_stats(owner, &paths)),
            StatPart::Volumes(volumes, sender) => {
                let _ = sender.send(self.volume_stats(owner, &volumes));
            }
        }
    }

    /// All of it.
    fn stat(&self, owner: &mut DiskOwner, detail: Detail) -> DiskStat {
        // One look at the clock: all causes together are then all time.
        let at = owner.now();
        let mut stat = self.stat_at(owner, at, detail);
        let tenants = self.tenants.in_order();
        stat.groups = self.groups_at(owner, at, &tenants, TimeAccounts::behind);
        let elevator = owner.engine().elevator();
        let recursive = |group| blkio_files(&elevator.blkio_recursive(group));
        stat.root.blkio_recursive = recursive(elevator.groups().root());
        for (stat, tenant) in stat.groups.iter_mut().zip(&tenants) {
            // Where none was ever below, all of it is its own. To ask for each would cost the owner
            // a walk through all groups a group.
            stat.blkio_recursive =
                if tenant.had_below { recursive(tenant.group) } else { stat.blkio.clone() };
        }
        stat
    }

    /// The same without groups, and without what all of them together have. Only their limits are
    /// looked at, for warnings.
    fn stat_without_groups(&self, owner: &DiskOwner) -> DiskStat {
        self.stat_at(owner, owner.now(), Detail::Groups)
    }

    /// Those groups of it, without what is of all groups below them, or of more others than are
    /// counted one by one.
    fn group_stats(&self, owner: &mut DiskOwner, paths: &[String]) -> Vec<GroupStat> {
        let tenants = paths.iter().filter_map(|path| self.tenants.find(path));
        let tenants: Vec<_> = tenants.map(|id| &self.tenants[id]).collect();
        self.groups_at(owner, owner.now(), &tenants, TimeAccounts::behind_first)
    }

    /// Those volumes that there still are.
    fn volume_stats(&self, owner: &DiskOwner, volumes: &[VolumeId]) -> Vec<VolumeStat> {
        let (all, engine) = (&self.label.volumes, owner.engine());
        let here = volumes.iter().copied().filter_map(|id| Some((id, all.name(id)?.to_owned())));
        let stats = here.map(|(id, name)| {
            let (asked, syncs) = (engine.volume_stats(id), engine.sync_stats(id));
            VolumeStat::of(name, asked, syncs, all.clients(id), far(owner, id))
        });
        stats.collect()
    }

    fn stat_at(&self, owner: &DiskOwner, at: Instant, detail: Detail) -> DiskStat {
        let now = owner.engine().elevator().clock().elevator_time(at);
        let elevator = owner.engine().elevator();
        // Of a pool, what is one back end's is one of its volumes'.
        let backend = self.label.volumes.any().map(|volume| owner.backend(volume));
        let switches = elevator.stats().switches();
        let mut internals = Internals::default();
        elevator.scheduler().dump(&mut internals);
        let config = &self.label.config;
        DiskStat {
            name: config.name.clone(),
            backend: config.backend.kind().to_owned(),
            engine: owner.io_engine().name().to_owned(),
            size_bytes: owner.engine().bytes(),
            elapsed_ns: at.since_start().as_nanos(),
            rotational: elevator.device().rotational,
            cache: backend.and_then(cache_stat),
            devices: self.label.devices.clone(),
            discard_granularity_bytes: backend
                .and_then(|backend| backend.capabilities().granules)
                .map(Granules::bytes),
            scheduler: elevator.scheduler().name().to_owned(),
            scheduler_auto: config.scheduler.is_auto(),
            hierarchy: elevator.hierarchy().map(|hierarchy| hierarchy.name().to_owned()),
            depth: elevator.device().queue_depth,
            learned_depth: depth_in(&internals, owner),
            in_device: elevator.in_flight(),
            queued: elevator.queued(),
            syncs: owner.engine().all_syncs().succeeded,
            sync_failed: owner.engine().all_syncs().failed,
            switches: switches.switches,
            moved: switches.moved,
            weights_apply: elevator.scheduler().kind().has_weights(),
            limits_apply: elevator.scheduler().kind().has_group_limits(),
            warnings: self.warnings(owner),
            tunables: shown_tunables(elevator),
            internals: internals.numbers,
            far: backend
                .filter(|_| !config.is_pool)
                .and_then(|backend| backend.far(at))
                .map(FarStat::of),
            modelled: backend.and_then(|backend| backend.modelled(at)).map(|stats| ModelledStat {
                model: stats.name,
                servers: stats.servers.map(|servers| servers.servers),
                service_ns: stats.servers.map(|servers| servers.fixed.as_nanos()),
                ns_per_kib: stats.servers.map(|servers| servers.per_kib.as_nanos()),
                idle_ns: stats.idle.as_nanos(),
            }),
            waits: owner.waits(),
            poll: PollStat::of(
                config.keys.polling,
                &owner.wait_stats(),
                owner.done(),
                owner.cpu_time().as_nanos(),
            ),
            threads: self.doors.nbd.stats(),
            connections: u32::try_from(self.register.len()).unwrap_or(u32::MAX),
            machines: u32::try_from(self.doors.devices.len()).unwrap_or(u32::MAX),
            root: root_stat(elevator, now),
            groups: Vec::new(),
            volumes: Vec::new(),
            queues: match detail {
                Detail::Groups => None,
                Detail::Queues => Some(self.queue_stats(owner, &internals.queues)),
            },
        }
    }

    /// In the order of their groups and connections.
    fn queue_stats(&self, owner: &DiskOwner, queues: &[QueueDump]) -> Vec<QueueStat> {
        let connections = self.register.by_io_context();
        let formatter = QueueFormatter {
            now: elevator_now(owner),
            hz: owner.engine().elevator().device().hz,
            path: &|queue| {
                let tenant = self.tenants.of_group(queue.group);
                tenant.map_or("/", |tenant| &tenant.path).to_owned()
            },
            connection: &|QueueName { ioc, .. }| match connections.get(&ioc) {
                Some(client) => client.name(),
                None => "gone".to_owned(),
            },
        };
        let mut sorted: Vec<_> = queues.iter().collect();
        let tenants = self.tenants.in_order();
        let places = tenants.iter().enumerate().map(|(place, tenant)| (tenant.group, place));
        let places: BTreeMap<_, _> = places.collect();
        let place = |queue: &QueueDump| (places.get(&queue.group), queue.name.sync);
        let of_client = |queue: &QueueDump| {
            let client = connections.get(&queue.name.ioc)?;
            let is_of_client = |export: &Arc<Export>| Arc::ptr_eq(export, &client.export);
            let exports = &self.tenants[client.export.tenant].exports;
            Some((exports.iter().position(is_of_client), client.number))
        };
        sorted.sort_by_key(|queue| (place(queue), of_client(queue)));
        sorted.into_iter().map(|queue| QueueStat::of(queue, &formatter)).collect()
    }

    /// What is to be said of weights that do not bind all, and of limits that cannot hold, a
    /// sentence each; nothing of limits that the scheduler does not have.
    fn warnings(&self, owner: &DiskOwner) -> Vec<String> {
        let elevator = owner.engine().elevator();
        let backend = self.label.volumes.any().map(|volume| owner.backend(volume));
        let cache = backend.and_then(Backend::cache);
        let unbound = cache.filter(|cache| !cache.binds).map(announce::unbound);
        let is_far = self.label.config.backend.kind() == "nbd";
        let far = if is_far { self.label.volumes.warnings(owner) } else { Vec::new() };
        let mut warnings: Vec<_> = unbound.into_iter().chain(far).collect();
        warnings.extend(self.greatest_rate.warnings(elevator));
        if !elevator.scheduler().kind().has_group_limits() {
            return warnings;
        }
        warnings.extend(self.given_up(owner).into_iter().map(|given_up| given_up.sentence));
        warnings
    }

    /// The groups of tenants, with their accounts up to that moment.
    fn groups_at(
        &self,
        owner: &mut DiskOwner,
        at: Instant,
        tenants: &[&Tenant],
        behind: fn(&TimeAccounts, GroupId) -> Vec<(GroupId, u64)>,
    ) -> Vec<GroupStat> {
        let now = owner.engine().elevator().clock().elevator_time(at);
        let accounts = &mut owner.trace().accounts;
        accounts.close(now, tenants.iter().map(|tenant| tenant.group));
        let with_account =
            |&tenant: &&'_ Tenant| (accounts.times(tenant.group), behind(accounts, tenant.group));
        let of: Vec<Account> = tenants.iter().map(with_account).collect();
        let elevator = owner.engine().elevator();
        let path_of = |group: &GroupId| Some(self.tenants.of_group(*group)?.path.clone());
        let tenants = tenants.iter().zip(&of).map(|(tenant, (times, behind))| {
            let exports = tenant.exports.iter().filter(|export| export.is_offered);
            let group = &elevator.groups()[tenant.group];
            let mut stat = GroupStat {
                path: tenant.path.clone(),
                weight: group.weight().value(),
                leaf_weight: group.leaf_weight().value(),
                weights: WeightsStat::of(group),
                limits: limits_in_numbers(group.limits()),
                exports: exports.map(|export| export.name.clone()).collect(),
                connections: tenant.connections,
                machines: tenant.machines,
                time: TimeStat::of(times),
                behind: behind
                    .iter()
                    .filter_map(|(group, served)| Some((path_of(group)?, *served)))
                    .collect(),
                blkio: blkio_files(&elevator.blkio(tenant.group)),
                ..GroupStat::default()
            };
            stat.count(elevator.stats().group(tenant.group), now);
            let own = elevator.scheduler().own_stats(now, tenant.group);
            if let Some(share) = own.share {
                stat.count_share(share, now);
            }
            if let Some(demand) = own.demand {
                stat.count_demand(demand);
            }
            stat.device_ns = owner.device_time(tenant.group).map(Nanos::as_nanos);
            stat
        });
        tenants.collect()
    }
}

/// How a file goes past the page cache, if it is one.
fn cache_stat(backend: &dyn Backend) -> Option<CacheStat> {
    let cache = backend.cache()?;
    Some(CacheStat {
        mode: cache.name().to_owned(),
        because: cache.because.clone(),
        block_bytes: backend.capabilities().block,
    })
}

/// What the root group's files have, as far as they are shown, and its caps.
fn root_stat(elevator: &Elevator<Scheduler>, now: Instant) -> GroupStat {
    let root = elevator.groups().root();
    let group = &elevator.groups()[root];
    let mut stat = GroupStat {
        path: "/".to_owned(),
        weight: group.weight().value(),
        leaf_weight: group.leaf_weight().value(),
        weights: WeightsStat::of(group),
        limits: limits_in_numbers(group.limits()),
        blkio: blkio_files(&elevator.blkio(root)),
        ..GroupStat::default()
    };
    if let Some(share) = elevator.scheduler().own_stats(now, root).share {
        stat.count_share(share, now);
    }
    stat
}

/// The depth that the scheduler has learned; none where it is set, or learns none.
pub(super) fn learned_depth(owner: &DiskOwner) -> Option<LearnedDepth> {
    let mut internals = Internals::default();
    owner.engine().elevator().scheduler().dump(&mut internals);
    depth_in(&internals, owner)
}

/// The same of what a scheduler has dumped.
fn depth_in(dump: &Internals, owner: &DiskOwner) -> Option<LearnedDepth> {
    let elevator = owner.engine().elevator();
    let is_learned = elevator.tunable(depth::TUNABLE) == Ok(0);
    let busy = owner.depth().unshared;
    let now = elevator_now(owner).since_start().as_nanos();
    is_learned.then(|| LearnedDepth::of(&dump.numbers, busy, now)).flatten()
}

/// The moment now on the elevator's own clock, in which its counts and dumps are.
pub(super) fn elevator_now(owner: &DiskOwner) -> Instant {
    owner.engine().elevator().clock().elevator_time(owner.now())
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use crate::connections::faulty::Faulty;
    use crate::connections::shutdown::{Patience, flush};
    use crate::stat::Detail;

    /// What `stat` says of syncs after one flush: how many succeeded, and whether one failed. The
    /// owner answers after the flush has ended, as the device is done with it before it asks.
    fn after_a_flush(sync: Result<u64, Errno>) -> (u64, bool) {
        let disk = Faulty::serve(sync, Patience::default(), |owner| _ = flush(owner));
        let stat = disk.handle.stat(Detail::Groups).recv().expect("it answers");
        drop(disk.end());
        (stat.syncs, stat.sync_failed)
    }

    #[test]
    fn sync_that_failed_is_not_counted_among_those_that_ended_well() {
        assert_eq!(after_a_flush(Ok(0)), (1, false));
        assert_eq!(after_a_flush(Err(Errno::IO)), (0, true));
    }
}
