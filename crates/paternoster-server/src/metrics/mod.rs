//! What `GET /metrics` answers: what `stat` says, for Prometheus.
//!
//! Names have their unit at their end and `_total` where they only grow, as Prometheus asks for.
//! Counts are since start-up. Each family is written for all disks before the next one.

mod readings;
mod text;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use self::readings::Readings;
use self::text::{Kind, Seconds, Text};
use crate::ctl::{Control, StatError};
use crate::stat::{Detail, DiskStat, GroupStat, OpStat, Stat, TargetStat, Times};

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers with the metrics of a server.
pub(crate) struct Metrics {
    server: Arc<dyn Control>,
    readings: Mutex<Readings>,
}

impl Metrics {
    pub(crate) fn new(server: Arc<dyn Control>) -> Self {
        Self { server, readings: Mutex::default() }
    }

    /// The text of now. Takes as long as `Control::stat`.
    pub(crate) fn text(&self) -> Result<String, StatError> {
        let stat = self.server.stat(Detail::Groups)?;
        // Whoever panicked has left a reading or none.
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = readings.take(Instant::now(), &stat);
        Ok(write(&stat, &recent))
    }
}

/// Writes what `stat` says, and the shares of the time that `recent` is of.
fn write(stat: &Stat, recent: &Stat) -> String {
    let mut text = Text::default();
    let build = [("version", env!("CARGO_PKG_VERSION"))];
    text.family("paternoster_build_info", Kind::Gauge, "The server's version, as a label.")
        .sample(&build, 1);
    infos(&mut text, stat);
    internals(&mut text, stat);
    for (name, kind, help, value) in OF_DISKS {
        let mut family = text.family(name, *kind, help);
        for disk in &stat.disks {
            family.sample(&[("disk", &disk.name)], value(disk));
        }
    }
    learned_depths(&mut text, stat);
    for (name, kind, help, value) in OF_TENANTS {
        let mut family = text.family(name, *kind, help);
        for (disk, group) in groups(stat) {
            family.sample(&[("disk", &disk.name), ("tenant", &group.path)], value(group));
        }
    }
    let demand = "Time in which at least one request of the tenant waited for the disk.";
    let mut family = text.family("paternoster_tenant_backlogged_seconds_total", COUNTER, demand);
    for (disk, group) in groups(stat) {
        let labels = [("disk", disk.name.as_str()), ("tenant", &group.path)];
        family.sample(&labels, Seconds(group.backlogged_ns));
    }
    outstanding(&mut text, stat);
    limits(&mut text, stat);
    causes(&mut text, stat);
    operations(&mut text, stat);
    histograms(&mut text, stat);
    shares(&mut text, recent);
    text.into_string()
}

const COUNTER: Kind = Kind::Counter;
const GAUGE: Kind = Kind::Gauge;

/// A family: its name, type and help, and the number that it has of each `T`.
type Row<T> = (&'static str, Kind, &'static str, fn(&T) -> u64);

const OF_DISKS: &[Row<DiskStat>] = &[
    ("paternoster_disk_size_bytes", GAUGE, "Size of the disk.", |disk| disk.size_bytes),
    ("paternoster_disk_depth_requests", GAUGE, "The most requests in the disk at once.", |disk| {
        disk.depth.into()
    }),
    ("paternoster_disk_in_flight_requests", GAUGE, "Requests in the disk.", |disk| {
        disk.in_device.into()
    }),
    ("paternoster_disk_queued_requests", GAUGE, "Requests that the scheduler holds.", |disk| {
        disk.queued.into()
    }),
    ("paternoster_disk_connections", GAUGE, "Clients of the disk.", |disk| disk.connections.into()),
    ("paternoster_disk_syncs_total", COUNTER, "Syncs of the disk that ended well.", |disk| {
        disk.syncs
    }),
    (
        "paternoster_disk_sync_failed",
        GAUGE,
        "1 after a sync has failed: flushes and FUA writes get errors until the restart.",
        |disk| disk.sync_failed.into(),
    ),
    (
        "paternoster_disk_scheduler_switches_total",
        COUNTER,
        "Switches to another scheduler.",
        |disk| disk.switches,
    ),
];

const OF_TENANTS: &[Row<GroupStat>] = &[
    ("paternoster_tenant_weight", GAUGE, "Weight against its siblings.", |group| {
        group.weight.into()
    }),
    (
        "paternoster_tenant_leaf_weight",
        GAUGE,
        "Weight of the tenant's own requests against the groups below it.",
        |group| group.leaf_weight.into(),
    ),
    ("paternoster_tenant_connections", GAUGE, "Clients of the tenant on the disk.", |group| {
        group.connections.into()
    }),
    ("paternoster_tenant_queued_requests", GAUGE, "Requests that wait.", |group| {
        group.queued.into()
    }),
    ("paternoster_tenant_in_flight_requests", GAUGE, "Requests in the disk.", |group| {
        group.in_device.into()
    }),
];

/// The key of latency targets among limits.
const LATENCY_TARGET: &str = "latency_target";

/// Of tenants that have a latency target. Another one begins to count at 0.
const OF_TARGETS: &[Row<TargetStat>] = &[
    (
        "paternoster_tenant_target_requests_total",
        COUNTER,
        "Requests of tenants with a latency target, and of groups below them, that were served.",
        |target| target.requests,
    ),
    (
        "paternoster_tenant_late_requests_total",
        COUNTER,
        "Of them, those that took longer than the target.",
        |target| target.late,
    ),
    (
        "paternoster_tenant_target_given_up",
        GAUGE,
        "1 while the target is given up, as it cannot be met.",
        |target| target.given_up.into(),
    ),
];

/// The depths that schedulers have learned.
fn learned_depths(text: &mut Text, stat: &Stat) {
    let help = "The depth that the scheduler has learned; of a disk whose depth is learned.";
    let mut family = text.family("paternoster_disk_learned_depth_requests", GAUGE, help);
    for disk in &stat.disks {
        if let Some(learned) = &disk.learned_depth {
            family.sample(&[("disk", &disk.name)], learned.depth);
        }
    }
}

/// Each tenant of each disk.
fn groups(stat: &Stat) -> impl Iterator<Item = (&DiskStat, &GroupStat)> {
    stat.disks.iter().flat_map(|disk| disk.groups.iter().map(move |group| (disk, group)))
}

/// What a disk is served by, with every tunable as a label.
fn infos(text: &mut Text, stat: &Stat) {
    let help = "The disk's back end, its scheduler and the scheduler's tunables, as labels.";
    let mut family = text.family("paternoster_scheduler_info", GAUGE, help);
    for disk in &stat.disks {
        let values: Vec<_> =
            disk.tunables.iter().map(|(name, value)| (name, value.to_string())).collect();
        let mut labels = vec![
            ("disk", disk.name.as_str()),
            ("backend", disk.backend.as_str()),
            ("scheduler", disk.scheduler.as_str()),
        ];
        labels.extend(values.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        family.sample(&labels, 1);
    }
}

/// The numbers that a scheduler tells of itself.
fn internals(text: &mut Text, stat: &Stat) {
    let help = "What the scheduler knows, by the name that it has in the JSON of stat.";
    let mut family = text.family("paternoster_scheduler_internal", GAUGE, help);
    for disk in &stat.disks {
        for (name, value) in &disk.internals {
            let labels =
                [("disk", disk.name.as_str()), ("scheduler", &disk.scheduler), ("name", name)];
            family.sample(&labels, value);
        }
    }
}

/// What tenants have outstanding, and need; where there is no such number, there is no sample.
fn outstanding(text: &mut Text, stat: &Stat) {
    let help = "Time for which requests of the tenant were outstanding, summed over requests: its \
                rate is their mean number.";
    let name = "paternoster_tenant_outstanding_seconds_total";
    let mut family = text.family(name, COUNTER, help);
    for (disk, group) in groups(stat) {
        if let Some(nanos) = group.outstanding_ns {
            let labels = [("disk", disk.name.as_str()), ("tenant", &group.path)];
            family.sample(&labels, Seconds(nanos));
        }
    }
    let help = "How many requests the tenant has to keep outstanding for its weight to hold.";
    let mut family = text.family("paternoster_tenant_needs_outstanding_requests", GAUGE, help);
    for (disk, group) in groups(stat) {
        if let Some(needs) = group.needs_outstanding {
            family.sample(&[("disk", &disk.name), ("tenant", &group.path)], needs);
        }
    }
}

/// The caps and reservations that there are, and what has become of latency targets.
fn limits(text: &mut Text, stat: &Stat) {
    let help = "Caps and reservations that are set, in ops or bytes a second, by their keys in the \
                file; they hold under wfq.";
    let mut family = text.family("paternoster_tenant_limit", GAUGE, help);
    for (disk, group) in groups(stat) {
        for (key, limit) in group.limits.iter().filter(|(key, _)| *key != LATENCY_TARGET) {
            let labels = [("disk", disk.name.as_str()), ("tenant", &group.path), ("limit", key)];
            family.sample(&labels, limit);
        }
    }
    let help = "Latency target that is set; it holds under wfq.";
    let mut family = text.family("paternoster_tenant_latency_target_seconds", GAUGE, help);
    for (disk, group) in groups(stat) {
        if let Some(us) = group.limits.get(LATENCY_TARGET) {
            let labels = [("disk", disk.name.as_str()), ("tenant", &group.path)];
            family.sample(&labels, Seconds(us.saturating_mul(1000)));
        }
    }
    for (name, kind, help, value) in OF_TARGETS {
        let mut family = text.family(name, *kind, help);
        for (disk, group) in groups(stat) {
            if let Some(target) = &group.target {
                family.sample(&[("disk", &disk.name), ("tenant", &group.path)], value(target));
            }
        }
    }
}

/// Where the time of tenants went.
fn causes(text: &mut Text, stat: &Stat) {
    let help = "All of the tenant's time, by why it waited or did not.";
    let mut family = text.family("paternoster_tenant_time_seconds_total", COUNTER, help);
    for (disk, group) in groups(stat) {
        for (cause, nanos) in group.time.causes() {
            let labels = [("disk", disk.name.as_str()), ("tenant", &group.path), ("cause", cause)];
            family.sample(&labels, Seconds(nanos));
        }
    }
}

fn operations(text: &mut Text, stat: &Stat) {
    let rows: [Row<OpStat>; 4] = [
        (
            "paternoster_tenant_operations_total",
            COUNTER,
            "Operations of clients that arrived, in pieces as large as the disk takes them.",
            |op| op.bios,
        ),
        ("paternoster_tenant_bytes_total", COUNTER, "Their bytes, in whole sectors.", |op| {
            op.bytes
        }),
        (
            "paternoster_tenant_merges_total",
            COUNTER,
            "Of them, those that became part of another request.",
            |op| op.merged,
        ),
        ("paternoster_tenant_requests_total", COUNTER, "Requests that the disk has done.", |op| {
            op.completed
        }),
    ];
    for (name, kind, help, value) in rows {
        let mut family = text.family(name, kind, help);
        for (disk, group) in groups(stat) {
            for (op, counts) in &group.ops {
                let labels = [("disk", disk.name.as_str()), ("tenant", &group.path), ("op", op)];
                family.sample(&labels, value(counts));
            }
        }
    }
}

/// How long requests took; of operations that there have been, as a histogram has many lines.
fn histograms(text: &mut Text, stat: &Stat) {
    type Row = (&'static str, &'static str, fn(&OpStat) -> (&Times, u64));
    let rows: [Row; 2] = [
        (
            "paternoster_tenant_wait_seconds",
            "From a request's arrival to its dispatch to the disk.",
            |op| (&op.wait, op.wait_ns),
        ),
        (
            "paternoster_tenant_service_seconds",
            "From a request's dispatch to its completion.",
            |op| (&op.service, op.service_ns),
        ),
    ];
    for (name, help, value) in rows {
        let mut family = text.family(name, Kind::Histogram, help);
        for (disk, group) in groups(stat) {
            for (op, counts) in group.ops.iter().filter(|(_, counts)| counts.completed > 0) {
                let labels = [("disk", disk.name.as_str()), ("tenant", &group.path), ("op", op)];
                let (times, sum_ns) = value(counts);
                family.histogram(&labels, times, sum_ns);
            }
        }
    }
}

/// What tenants were due and had; where there is no such number, there is no sample.
fn shares(text: &mut Text, recent: &Stat) {
    let entitled = "Part of the disk that the tenant is due by weight among those that asked for \
                    something since the last scrape, or in the last second.";
    let achieved = "Part that the tenant had of what was done in that time, where a request costs \
                    as much as 16 KiB.";
    let all: Vec<_> = recent.disks.iter().map(|disk| (disk, disk.shares())).collect();
    for (name, help, is_due) in [
        ("paternoster_tenant_entitled_ratio", entitled, true),
        ("paternoster_tenant_achieved_ratio", achieved, false),
    ] {
        let mut family = text.family(name, GAUGE, help);
        for (disk, shares) in &all {
            for (group, share) in disk.groups.iter().zip(shares) {
                let value = if is_due { share.entitled } else { share.achieved };
                if let Some(value) = value {
                    family.sample(&[("disk", &disk.name), ("tenant", &group.path)], value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::stat::DiskStat;

    use super::*;

    const OPERATIONS: &str = include_str!("../../../../docs/operations.md");

    #[test]
    fn every_metric_and_every_cause_is_in_the_documents() {
        let written = write(&Stat::default(), &Stat::default());
        let families: Vec<_> = written
            .lines()
            .filter_map(|line| line.strip_prefix("# HELP paternoster_")?.split_once(' '))
            .map(|(name, _)| name)
            .collect();
        assert!(families.len() > 20, "{families:?}");
        let is_missing = |name: &&str| !OPERATIONS.contains(&format!("`{name}`"));
        let missing: Vec<_> = families.into_iter().filter(is_missing).collect();
        assert_eq!(missing, [""; 0], "docs/operations.md has no row for them");
        let row = OPERATIONS.lines().find(|line| line.starts_with("| `tenant_time_seconds_total`"));
        let row = row.expect("it has a row");
        for (cause, _) in GroupStat::default().time.causes() {
            assert!(row.contains(&format!("`{cause}`")), "{cause} is not in: {row}");
        }
    }

    #[test]
    fn learned_depth_is_a_number_of_its_own_beside_the_bound() {
        let learned = crate::stat::LearnedDepth { depth: 12, ..Default::default() };
        let name = "d".to_owned();
        let disk =
            DiskStat { name, depth: 1024, learned_depth: Some(learned), ..DiskStat::default() };
        let written = write(&Stat::new(vec![disk]), &Stat::default());
        assert!(
            written.contains("paternoster_disk_depth_requests{disk=\"d\"} 1024\n"),
            "{written}"
        );
        let line = "paternoster_disk_learned_depth_requests{disk=\"d\"} 12\n";
        assert!(written.contains(line), "{written}");
    }
}
