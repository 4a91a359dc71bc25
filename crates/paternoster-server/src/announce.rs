//! The log lines of a disk or pool when the server begins to serve it.

use paternoster::scheduler::Scheduler as _;
use paternoster::{Elevator, Hierarchy, SchedulerKind, TunableInfo};
use paternoster_disk::{Backend, Cache, Granules, IoEngine};

use crate::config::{BackendConfig, DiskConfig, claims_to_rotate};
use crate::connections::Scheduler;

/// Logs what is in force. Of a pool, what is said of a back end is its first volume's.
pub(crate) fn disk(
    disk: &DiskConfig,
    backends: &[Box<dyn Backend>],
    engine: IoEngine,
    elevator: &Elevator<Scheduler>,
) {
    let path = match (disk.is_pool, &disk.backend) {
        (true, _) => disk.keys.path.as_ref(),
        (false, BackendConfig::File { path, .. }) => Some(path),
        (
            false,
            BackendConfig::Memory { .. }
            | BackendConfig::Modelled { .. }
            | BackendConfig::Device { .. }
            | BackendConfig::Nbd { .. }
            | BackendConfig::NbdPool,
        ) => None,
    };
    let path = path.map(tracing::field::debug);
    let uri = disk.backend.uri().map(tracing::field::display);
    let backend = backends.first().map(|backend| &**backend);
    let cache = backend.and_then(Backend::cache);
    let granules = backend.and_then(|backend| backend.capabilities().granules);
    let bytes = backends.iter().map(|backend| backend.capabilities().size);
    tracing::info!(
        disk = disk.name,
        backend = disk.backend.kind(),
        path,
        uri,
        volumes = disk.is_pool.then_some(disk.volumes.len()),
        bytes = bytes.sum::<u64>(),
        engine = engine.name(),
        scheduler = elevator.scheduler().name(),
        chosen = disk.scheduler.because(),
        hierarchy = elevator.hierarchy().map(Hierarchy::name),
        depth = elevator.device().queue_depth,
        rotational = elevator.device().rotational,
        because = match disk.keys.rotational {
            Some(_) => "it is set".to_owned(),
            None =>
                backend.map_or_else(|| "of its directory".to_owned(), Backend::rotational_because),
        },
        discard_granularity = granules.map(Granules::bytes),
        cache = cache.map(Cache::name),
        cache_because = cache.map(|cache| &*cache.because),
        tunables = tunables(elevator),
        "a {} is served",
        disk.what()
    );
    if let Some(claim) = claims_to_rotate(disk) {
        tracing::warn!("{claim}");
    }
    if let Some(cache) = cache.filter(|cache| !cache.binds) {
        tracing::warn!("{} {:?}: {}", disk.what(), disk.name, unbound(cache));
    }
}

/// That weights do not bind all that the kernel does to the disk, and why.
pub(crate) fn unbound(cache: &Cache) -> String {
    format!(
        "the page cache is in between ({}): weights bind what reaches the disk's queue here, not \
         what the kernel reads ahead and writes back",
        cache.because
    )
}

/// The tunables that are not as in Linux, which has no wfq; of one with two names the finer.
fn tunables(elevator: &Elevator<Scheduler>) -> String {
    let all = elevator.scheduler().tunables();
    let changed = all.iter().filter(|info| !has_finer(all, info.name)).filter_map(|info| {
        let value = elevator.tunable(info.name).ok()?;
        (value != info.default).then(|| format!("{}={}", info.name, info.shown(value)))
    });
    let changed: Vec<_> = changed.collect();
    match elevator.scheduler().kind() {
        _ if !changed.is_empty() => changed.join(" "),
        SchedulerKind::Wfq => "defaults".to_owned(),
        _ => "all as in Linux".to_owned(),
    }
}

/// Returns whether the same tunable has a name in a finer unit too.
pub(crate) fn has_finer(all: &[TunableInfo], name: &str) -> bool {
    all.iter().any(|info| info.name.strip_suffix("_us") == Some(name))
}

#[cfg(test)]
mod tests {
    use paternoster::{AnyScheduler, Device, Instant};

    use super::*;
    use crate::recording::Sink;

    #[test]
    fn tunables_that_are_not_as_in_linux_are_logged_by_their_finer_names() {
        let device = Device::disk(1);
        let mut elevator = Elevator::new(
            AnyScheduler::new(SchedulerKind::Cfq, Sink::default()),
            device,
            Instant::START,
        );
        assert_eq!(tunables(&elevator), "all as in Linux");
        for (name, value) in [("slice_sync", 10), ("quantum", 5)] {
            elevator.set_tunable(Instant::START, name, value).expect("CFQ has it");
        }
        assert_eq!(tunables(&elevator), "quantum=5 slice_sync_us=10000");
    }
}
