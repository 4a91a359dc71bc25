//! A disk's elevator with what is set of its scheduler when the server starts: the core's values
//! for the back end, and over them what the configuration sets, by either name of a tunable that
//! has two. A scheduler that is switched to later gets the same.
//!
//! A file is rotational where its device says so; a modelled disk is not. A file on a tmpfs is
//! memory.

use anyhow::Result;
use paternoster::{Device, Elevator, Instant, Medium, RequestTime, TimeAccounts};
use paternoster_disk::is_in_memory;

use crate::config::{BackendConfig, DiskConfig};
use crate::connections::{Scheduler, scheduler_of};
use crate::recording::Sink;

/// Makes the disk's elevator. `device` is as its back end says.
pub(crate) fn elevator(disk: &DiskConfig, device: Device) -> Result<Elevator<Scheduler>> {
    let medium = match &disk.backend {
        BackendConfig::Memory { .. } => Medium::Memory,
        BackendConfig::File { path, .. } if is_in_memory(path) => Medium::Memory,
        _ if device.rotational => Medium::Rotational,
        _ => Medium::NotRotational,
    };
    let accounts = TimeAccounts::new(request_time(&disk.backend));
    let sink = Sink::new(accounts, disk.keys.record_ring);
    let scheduler = Scheduler::new(disk.scheduler.kind(), sink);
    let mut elevator = Elevator::fitted(scheduler, device, medium, Instant::START);
    for (name, value) in disk.tunables_to_set() {
        elevator.set_tunable(Instant::START, &name, value)?;
    }
    if let Some(hierarchy) = disk.keys.hierarchy {
        elevator.set_hierarchy(Instant::START, hierarchy)?;
    }
    let scheduler = scheduler_of(&elevator);
    if let Some(journal) = &mut elevator.trace().journal {
        journal.changed(Vec::new(), scheduler);
    }
    Ok(elevator)
}

/// How long a request keeps the device: known of a modelled disk, in nanoseconds.
fn request_time(backend: &BackendConfig) -> RequestTime {
    match backend {
        BackendConfig::Modelled { service, per_kib, .. } => {
            RequestTime { request: service.as_nanos(), per_kib: per_kib.as_nanos(), known: true }
        }
        BackendConfig::File { .. }
        | BackendConfig::Memory { .. }
        | BackendConfig::Device { .. }
        | BackendConfig::Nbd { .. }
        | BackendConfig::NbdPool => RequestTime::default(),
    }
}

#[cfg(test)]
mod tests {
    use paternoster::{Nanos, SchedulerKind, fitted_tunables};
    use paternoster_disk::CacheChoice;

    use super::*;
    use crate::config::{At, DiskKeys};

    const MODELLED: BackendConfig = BackendConfig::Modelled {
        size: 1,
        servers: 1,
        service: Nanos::from_micros(1),
        per_kib: Nanos::ZERO,
        sync: Nanos::ZERO,
    };

    fn file() -> BackendConfig {
        BackendConfig::File { path: "disk.img".into(), cache: CacheChoice::Auto }
    }

    fn disk(scheduler: SchedulerKind, backend: BackendConfig, set: &[(&str, i64)]) -> DiskConfig {
        let at = |&(name, value): &(&str, i64)| (At::from(name.to_owned()), At::from(value));
        let keys = DiskKeys { tunables: set.iter().map(at).collect(), ..DiskKeys::default() };
        DiskConfig::whole(String::new(), keys, backend, scheduler.into())
    }

    /// The disk's elevator on a device of that kind.
    fn elevator(disk: &DiskConfig, rotational: bool) -> Elevator<Scheduler> {
        let device = if rotational { Device::disk(1) } else { Device::solid_state(1) };
        super::elevator(disk, device).expect("its scheduler has the tunables")
    }

    /// What holds of CFQ's tunables that are fitted, in microseconds.
    fn in_force(backend: BackendConfig, rotational: bool, set: &[(&str, i64)]) -> [i64; 5] {
        let elevator = elevator(&disk(SchedulerKind::Cfq, backend, set), rotational);
        ["slice_idle_us", "group_idle_us", "slice_sync_us", "slice_async_us", "target_latency_us"]
            .map(|name| elevator.tunable(name).expect("CFQ has it"))
    }

    /// The same of BFQ's: `slice_idle` in microseconds, `timeout_sync` in ms, `low_latency`.
    fn in_force_of_bfq(backend: BackendConfig, rotational: bool, set: &[(&str, i64)]) -> [i64; 3] {
        let elevator = elevator(&disk(SchedulerKind::Bfq, backend, set), rotational);
        ["slice_idle_us", "timeout_sync", "low_latency"]
            .map(|name| elevator.tunable(name).expect("BFQ has it"))
    }

    #[test]
    fn cfq_idles_where_that_pays_and_takes_long_turns_on_a_rotational_device_alone() {
        let linux = [8_000, 8_000, 100_000, 40_000, 300_000];
        let solid_state = [0, 2_000, 10_000, 4_000, 30_000];
        let memory = [0, 0, 10_000, 4_000, 30_000];
        assert_eq!(in_force(file(), true, &[]), linux);
        assert_eq!(in_force(file(), false, &[]), solid_state);
        assert_eq!(in_force(MODELLED, false, &[]), solid_state);
        assert_eq!(in_force(BackendConfig::Memory { size: 1 }, false, &[]), memory);
    }

    #[test]
    fn what_the_configuration_sets_wins_by_either_name() {
        let coarse = [("group_idle", 3), ("slice_sync", 70), ("slice_idle", 2)];
        assert_eq!(in_force(file(), false, &coarse), [2_000, 3_000, 70_000, 4_000, 30_000]);
        let fine = [("group_idle_us", 300), ("slice_async_us", 1), ("target_latency_us", 9)];
        assert_eq!(in_force(file(), false, &fine), [0, 300, 10_000, 1, 9]);
        assert_eq!(in_force(file(), true, &[("slice_idle_us", 0)])[..2], [0, 8_000]);
    }

    #[test]
    fn bfq_raises_nothing_unless_told_and_takes_long_turns_on_a_rotational_device_alone() {
        let solid_state = [1_000, 5, 0];
        assert_eq!(in_force_of_bfq(file(), true, &[]), [8_000, 125, 0]);
        assert_eq!(in_force_of_bfq(file(), false, &[]), solid_state);
        assert_eq!(in_force_of_bfq(MODELLED, false, &[]), solid_state);
        assert_eq!(in_force_of_bfq(BackendConfig::Memory { size: 1 }, false, &[]), [0, 5, 0]);
        let set = [("slice_idle", 8), ("timeout_sync", 125), ("low_latency", 1)];
        assert_eq!(in_force_of_bfq(file(), false, &set), [8_000, 125, 1]);
    }

    /// What holds of our own tunables; each scheduler is told of `set` what it has.
    fn charges(backend: &BackendConfig, rotational: bool, set: &[(&str, i64)]) -> [i64; 3] {
        [
            (SchedulerKind::Cfq, "charge_whole_turn"),
            (SchedulerKind::Bfq, "charge_waiting"),
            (SchedulerKind::Bfq, "least_charge"),
        ]
        .map(|(kind, name)| {
            let set: Vec<_> = set.iter().filter(|(set, _)| *set == name).copied().collect();
            let elevator = elevator(&disk(kind, backend.clone(), &set), rotational);
            elevator.tunable(name).expect("the scheduler has it")
        })
    }

    #[test]
    fn idle_time_and_small_requests_are_charged_unless_the_configuration_says_as_in_linux() {
        assert_eq!(charges(&file(), true, &[]), [1, 1, 0]);
        assert_eq!(charges(&file(), false, &[]), [1, 1, 8]);
        assert_eq!(charges(&MODELLED, false, &[]), [1, 1, 8]);
        assert_eq!(charges(&BackendConfig::Memory { size: 1 }, false, &[]), [0, 0, 8]);
        let as_in_linux = [("charge_whole_turn", 0), ("charge_waiting", 0), ("least_charge", 0)];
        assert_eq!(charges(&MODELLED, false, &as_in_linux), [0, 0, 0]);
    }

    /// How much `wfq` may have in the disk, keeps a place for, and serves of one client at a time.
    #[test]
    fn wfq_keeps_places_and_serves_in_runs_where_nothing_rotates() {
        let in_force = |backend, rotational| {
            let elevator = elevator(&disk(SchedulerKind::Wfq, backend, &[]), rotational);
            let value = |name| elevator.tunable(name).expect("wfq has it");
            ["min_depth", "grace_us", "run_us"].map(value)
        };
        assert_eq!(in_force(file(), true), [1, 0, 0]);
        assert_eq!(in_force(file(), false), [1, 500, 50]);
        assert_eq!(in_force(MODELLED, false), [1, 500, 50]);
        assert_eq!(in_force(BackendConfig::Memory { size: 1 }, false), [16, 500, 50]);
    }

    #[test]
    fn other_schedulers_have_what_linux_gives_them() {
        for scheduler in [SchedulerKind::None, SchedulerKind::MqDeadline, SchedulerKind::Kyber] {
            assert_eq!(fitted_tunables(scheduler, Medium::NotRotational), []);
        }
        let disk = disk(SchedulerKind::MqDeadline, MODELLED, &[("read_expire", 20)]);
        let elevator = elevator(&disk, false);
        let in_force = ["read_expire", "write_expire"].map(|name| elevator.tunable(name));
        assert_eq!(in_force, [Ok(20), Ok(5000)]);
    }

    /// `ctl set DISK scheduler=…` does this.
    #[test]
    fn scheduler_that_is_switched_to_is_fitted_too_and_has_what_the_configuration_sets() {
        let disk = disk(SchedulerKind::Cfq, MODELLED, &[("slice_idle", 3)]);
        let mut elevator = elevator(&disk, false);
        elevator.switch(Instant::START, Scheduler::new(SchedulerKind::Bfq, Sink::default()));
        let in_force = ["slice_idle", "timeout_sync"].map(|name| elevator.tunable(name));
        assert_eq!(in_force, [Ok(3), Ok(5)]);
    }
}
