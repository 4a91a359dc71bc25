//! What `GET /metrics` answers: what `stat` says, for Prometheus.
//!
//! Most families are figures of `stat`, and declared there; the others are below. Names have their
//! unit at their end and `_total` where they only grow, as Prometheus asks for. Counts are since
//! start-up.

mod readings;
mod text;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use self::readings::Readings;
use self::text::{Seconds, Text};
use crate::ctl::{Control, StatError};
use crate::stat::{DiskStat, Figure, GroupStat, Kind, Share, Stat, Value as _, figures};

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

    /// The text of now. Takes as long as `Control::stat_in_parts`.
    pub(crate) fn text(&self) -> Result<String, StatError> {
        let mut stat = self.server.stat_in_parts()?;
        // Whoever panicked has left a reading or none.
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = readings.take(Instant::now(), &stat);
        drop(readings);
        // Of these no reading is kept.
        self.server.add_volumes(&mut stat)?;
        Ok(write(&stat, &recent))
    }
}

/// Writes what `stat` says, and the shares of the time that `recent` is of.
fn write(stat: &Stat, recent: &Stat) -> String {
    let mut text = Text::new(families());
    text.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    stat.tell(Stat::FIGURES, &[], &mut |figure, labels, number| {
        text.number(figure, labels, number);
    });
    for disk in &stat.disks {
        scheduler(&mut text, disk);
        disk.groups.iter().for_each(|group| tenant(&mut text, disk, group));
    }
    recent.disks.iter().for_each(|disk| shares(&mut text, disk));
    text.into_string()
}

/// Returns each family: a figure of `stat`, or one of metrics alone; and the label that tells the
/// samples of one disk or tenant apart.
pub fn families() -> Vec<(&'static Figure, &'static str)> {
    let mut families = vec![];
    add_families(&mut families, Stat::FIGURES, "");
    families.extend(OTHERS.iter().map(|other| (other, other.label)));
    families
}

fn add_families(
    families: &mut Vec<(&'static Figure, &'static str)>,
    figure: &'static Figure,
    label: &'static str,
) {
    let label = if figure.label.is_empty() { label } else { figure.label };
    // A disk and a volume may have the same.
    let is_there = || families.iter().any(|(known, _)| std::ptr::eq(*known, figure));
    if !figure.metric.is_empty() && !is_there() {
        families.push((figure, label));
    }
    // The root's are those of every group.
    if figure.kind != Kind::Untold {
        figure.parts.iter().for_each(|part| add_families(families, part, label));
    }
}

figures! {
    /// The families that are no figures of `stat`, or no simple ones.
    const OTHERS;
    /// 1; the server's version is a label.
    Gauge by "version", metric "build_info";
    /// 1; the disk's back end, its scheduler and the scheduler's tunables are labels.
    Gauge by "scheduler", metric "scheduler_info";
    /// Internal state of the scheduler, by the name that it has in the JSON of stat.
    Gauge by "name", metric "scheduler_internal";
    /// Caps and reservations that are set, in ops or bytes a second, by their keys in the file,
    /// such as `riops`; they hold under `wfq`.
    Gauge by "limit", metric "tenant_limit";
    /// Latency target that is set; it holds under `wfq`.
    Gauge, metric "tenant_latency_target_seconds";
    /// All of the tenant's time, by what `ctl why` says: `turn`, `busy`, `idle_window`, `cap`,
    /// `target`, `server`, `memory`, `unread`, `too_few`, `nothing`. The first six are
    /// `tenant_backlogged_seconds_total`.
    Counter by "cause", metric "tenant_time_seconds_total";
    /// Part of the disk that the tenant is due by its weight among those that asked for something
    /// since the last scrape, or in the last second; absent if it asked for nothing, and under a
    /// scheduler without weights.
    Gauge, metric "tenant_entitled_ratio";
    /// Part that the tenant had of what was done in that time, where a request costs as much as 16
    /// KiB.
    Gauge, metric "tenant_achieved_ratio";
}

/// What a disk is served by, with every tunable as a label, and what its scheduler tells of itself.
fn scheduler(text: &mut Text, disk: &DiskStat) {
    let values = disk.tunables.iter().map(|(name, value)| (name.as_str(), value.to_string()));
    let values: Vec<_> = values.collect();
    let labels = [
        ("disk", disk.name.as_str()),
        ("backend", disk.backend.as_str()),
        ("scheduler", disk.scheduler.as_str()),
    ];
    let tunables = values.iter().map(|(name, value)| (*name, value.as_str()));
    let labels: Vec<_> = labels.into_iter().chain(tunables).collect();
    text.sample("scheduler_info", &labels, 1);
    for (name, value) in &disk.internals {
        let labels = [("disk", disk.name.as_str()), ("scheduler", &disk.scheduler), ("name", name)];
        text.sample("scheduler_internal", &labels, value);
    }
}

/// The limits that are set, and where the tenant's time went.
fn tenant(text: &mut Text, disk: &DiskStat, group: &GroupStat) {
    let labels @ [of_disk, of_tenant] =
        [("disk", disk.name.as_str()), ("tenant", group.path.as_str())];
    for (key, limit) in &group.limits {
        if key == "latency_target" {
            let target = Seconds(limit.saturating_mul(1000));
            text.sample("tenant_latency_target_seconds", &labels, target);
        } else {
            text.sample("tenant_limit", &[of_disk, of_tenant, ("limit", key)], limit);
        }
    }
    for (cause, nanos) in group.time.causes() {
        let labels = [of_disk, of_tenant, ("cause", cause)];
        text.sample("tenant_time_seconds_total", &labels, Seconds(nanos));
    }
}

/// What tenants were due and had; where there is no such number, there is no sample.
fn shares(text: &mut Text, disk: &DiskStat) {
    for (group, Share { entitled, achieved }) in disk.groups.iter().zip(disk.shares()) {
        let labels = [("disk", disk.name.as_str()), ("tenant", group.path.as_str())];
        for (family, part) in
            [("tenant_entitled_ratio", entitled), ("tenant_achieved_ratio", achieved)]
        {
            if let Some(part) = part {
                text.sample(family, &labels, part);
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
    fn every_metric_that_the_dashboard_asks_for_is_there() {
        const DASHBOARD: &str = include_str!("../../../../packaging/grafana/paternoster.json");
        let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let asked = DASHBOARD.split("paternoster_").skip(1).map(|rest| {
            let end = rest.find(|letter| !is_of_name(letter)).unwrap_or(rest.len());
            rest[..end].trim_end_matches("_bucket")
        });
        let asked: std::collections::BTreeSet<_> = asked.collect();
        let there: Vec<_> = families().into_iter().map(|(figure, _)| figure.metric).collect();
        let missing: Vec<_> = asked.iter().filter(|name| !there.contains(name)).collect();
        assert!(missing.is_empty() && asked.len() > 10, "{missing:?} of {asked:?}");
    }

    /// As Prometheus asks for: a counter ends in `_total`, and what is in nanoseconds here in
    /// seconds there. Two figures with one name would be one family.
    #[test]
    fn names_of_metrics_tell_their_type_and_their_unit() {
        let mut names = std::collections::BTreeSet::new();
        for (Figure { name, kind, metric, doc, .. }, _) in families() {
            assert!(names.insert(metric), "{metric} is there twice");
            let is_counter = matches!(kind, Kind::Counter | Kind::Total);
            assert_eq!(metric.ends_with("_total"), is_counter, "{metric}");
            let is_time = name.ends_with("_ns") || *kind == Kind::Histogram;
            assert!(!is_time || metric.contains("_seconds"), "{metric} of {name}");
            assert!(doc.ends_with('.') && !doc.contains(['\n', '\\']), "{doc}");
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
