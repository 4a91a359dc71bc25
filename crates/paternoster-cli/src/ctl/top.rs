//! `paternoster top`: tenants as they share the disks now, refreshed, in 80 columns.
//!
//! ```text
//!   disk fast: cfq, depth 8, 8 in the disk, 115 waiting; 1.0 s
//!   TENANT             DUE   HAD DEMAND   IOPS    P50    P99  WAITS FOR
//!   /gold            80.0% 80.1%  99.8%   9700  3.1ms  9.9ms  disk 80%, /vm2 19%
//! ```

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use paternoster::Nanos;
use paternoster_server::Picture;
use paternoster_server::stat::{Detail, DiskStat, GroupStat, OpStat, Share, Stat, ratio};

use paternoster_cli::output::alarming;

use super::units::{Time, or_none, per_second};
use super::watch;
use super::{Place, depth};

/// Watch how tenants share the disks of a running server, and why they wait
///
/// DUE is the part of the disk that a tenant is due by its weight among those that ask for
/// something; HAD is its part of what was done, a request counting as 16 KiB on top of its bytes.
/// DEMAND is the part of the time in which a request of it waited. P50 and P99 are of the time from
/// a request's arrival to its completion, to within its power of two. WAITS FOR has the greatest
/// causes, as far as there is room, each with its part of the interval: a tenant whose requests the
/// disk serves, `disk` (busy with its own requests), `idle` (the disk idles for the next request of
/// a queue), `cap` (a cap holds it), `target` (held back for the latency target of another),
/// `server` (at work), `memory` (used up), `reading` (replies are not read), `more` (too few
/// outstanding: all of them are in the disk). `ctl why` says it in sentences. On a terminal q
/// quits, and space refreshes now; a tenant that is short of its share is red: HAD is less than 0.9
/// of DUE, though a request of it waited for 95 % of the time, without what its own cap held.
/// Without colours if `NO_COLOR` is set.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,

    /// Seconds between two screens
    #[arg(long, short = 'd', value_name = "SECONDS", default_value = "1",
          value_parser = watch::interval)]
    interval: Duration,

    /// Show this many screens and end [default: until q or Ctrl-C]
    #[arg(long, short = 'n', value_name = "COUNT",
          value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Show one screen and end, as -n 1
    #[arg(long, conflicts_with = "count")]
    once: bool,

    /// Write a page for browsers of one interval to FILE, and end; `GET /` at `metrics` is one that
    /// renews itself
    #[arg(long, value_name = "FILE", conflicts_with_all = ["count", "once"])]
    html: Option<PathBuf>,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.html {
        let stat = watch::one(&args.place.socket(), args.interval)?;
        fs::write(file, Picture::of(&stat).page())
            .with_context(|| format!("cannot write {}", file.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let count = if args.once { Some(1) } else { args.count };
    let watching =
        watch::Watching { detail: Detail::Groups, interval: args.interval, screens: count };
    watch::run(&args.place.socket(), &watching, show)?;
    Ok(ExitCode::SUCCESS)
}

/// The screen of what happened between two readings.
fn show(stat: &Stat) -> String {
    stat.disks.iter().map(show_disk).collect::<Vec<_>>().join("\n")
}

fn show_disk(disk: &DiskStat) -> String {
    let DiskStat { name, scheduler, in_device, queued, elapsed_ns, .. } = disk;
    let depth = depth::shown(disk);
    let mut text = format!(
        "disk {name}: {scheduler}, {depth}, {in_device} in the disk, {queued} waiting; {}\n",
        Time(*elapsed_ns)
    );
    let _ = writeln!(
        text,
        "{:<16} {:>5} {:>5} {:>6} {:>6} {:>6} {:>6}  WAITS FOR",
        "TENANT", "DUE", "HAD", "DEMAND", "IOPS", "P50", "P99"
    );
    let rows = disk.groups.iter().zip(disk.shares()).zip(disk.waits());
    let (active, idle): (Vec<_>, Vec<_>) = rows.partition(|((group, _), _)| has_asked(group));
    for ((group, share), waits) in active {
        text.push_str(&row(disk, group, share, &waits));
    }
    match idle.len() {
        0 => {}
        1 => text.push_str("1 tenant has asked for nothing\n"),
        more => {
            let _ = writeln!(text, "{more} tenants have asked for nothing");
        }
    }
    text
}

/// Whether there was a request, or one that was held back.
fn has_asked(group: &GroupStat) -> bool {
    let asked = group.time.causes().iter().any(|&(cause, nanos)| cause != "nothing" && nanos > 0);
    asked || group.ops.values().any(|op| op.completed > 0)
}

fn row(disk: &DiskStat, group: &GroupStat, share: Share, waits: &[(&str, u64)]) -> String {
    let GroupStat { path, backlogged_ns, .. } = group;
    let part = |share: Option<f64>| or_none(share.map(percent));
    let OpStat { completed, total, .. } = group.all_ops();
    let latency = |per_mille| or_none(total.quantile(per_mille).map(short_time));
    let line = format!(
        "{:<16} {:>5} {:>5} {:>6} {:>6} {:>6} {:>6}  {}",
        shortened(path, 16),
        part(share.entitled),
        part(share.achieved),
        percent(ratio(*backlogged_ns, disk.elapsed_ns)),
        or_none(per_second(completed, disk.elapsed_ns).map(short_count)),
        latency(500),
        latency(990),
        causes(waits, disk.elapsed_ns),
    );
    let line = line.trim_end();
    let is_short = disk.is_short(group, share);
    (if is_short { alarming(line) } else { line.to_owned() }) + "\n"
}

/// What is left of 80 columns for the causes.
const CAUSES: usize = 23;

/// The first causes of a tenant's time, as many as there is room for.
fn causes(waits: &[(&str, u64)], elapsed_ns: u64) -> String {
    let mut text = String::new();
    for &(name, nanos) in waits {
        let lead = if text.is_empty() { "" } else { ", " };
        let part =
            format!("{lead}{} {:.0}%", shortened(name, 16), ratio(nanos, elapsed_ns) * 100.0);
        if text.chars().count() + part.chars().count() > CAUSES {
            break;
        }
        text.push_str(&part);
    }
    text
}

/// At most so many characters of a path: its end, which tells siblings apart.
fn shortened(path: &str, room: usize) -> String {
    let len = path.chars().count();
    if len <= room {
        return path.to_owned();
    }
    std::iter::once('…').chain(path.chars().skip(len + 1 - room)).collect()
}

/// Up to five characters.
fn percent(share: f64) -> String {
    if share >= 0.9995 {
        format!("{:.0}%", share * 100.0)
    } else {
        format!("{:.1}%", share * 100.0)
    }
}

/// Up to six characters, in µs, ms or s.
fn short_time(time: Nanos) -> String {
    let micros = time.as_nanos() / 1000;
    match micros {
        0..=999 => format!("{micros}µs"),
        1000..=999_999 => format!("{}.{}ms", micros / 1000, micros % 1000 / 100),
        _ => format!("{}.{}s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

/// Up to six characters.
fn short_count(count: u64) -> String {
    match count {
        0..=9999 => count.to_string(),
        10_000..=999_999 => format!("{}.{}k", count / 1000, count % 1000 / 100),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use paternoster_server::stat::TimeStat;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn group(path: &str, reads: u64, time: TimeStat) -> GroupStat {
        let total = [(900_000, reads)].into_iter().collect();
        let read = OpStat { completed: reads, bytes: reads << 12, total, ..OpStat::default() };
        GroupStat {
            path: path.to_owned(),
            weight: 100,
            leaf_weight: 100,
            backlogged_ns: time.waited_ns(),
            ops: [("read".to_owned(), read)].into(),
            time,
            ..GroupStat::default()
        }
    }

    #[test]
    fn screen_has_eighty_columns_and_the_first_causes() {
        let waits = TimeStat { turn_ns: SECOND / 2, busy_ns: SECOND / 2, ..TimeStat::default() };
        let light = TimeStat { turn_ns: SECOND / 4, too_few_ns: SECOND / 2, ..TimeStat::default() };
        let first = |time: TimeStat| TimeStat { went_first_ns: 1, ..time };
        let nothing = TimeStat { nothing_ns: SECOND, ..TimeStat::default() };
        let disk = DiskStat {
            name: "fast".to_owned(),
            scheduler: "cfq".to_owned(),
            depth: 8,
            elapsed_ns: SECOND,
            weights_apply: true,
            groups: vec![
                group("/gold", 30_000, first(waits)),
                group("/a-long-name-of-a-tenant", 10_000, first(light)),
                group("/idle", 0, nothing),
            ],
            ..DiskStat::default()
        };
        let expected = "\
disk fast: cfq, depth 8, 0 in the disk, 0 waiting; 1.0 s
TENANT             DUE   HAD DEMAND   IOPS    P50    P99  WAITS FOR
/gold            50.0% 75.0%   100%  30.0k  786µs  1.0ms  disk 50%
…ame-of-a-tenant 50.0% 25.0%  25.0%  10.0k  786µs  1.0ms  more 50%, /gold 25%
1 tenant has asked for nothing
";
        let shown = show(&Stat::new(vec![disk]));
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert_eq!(shown, expected);
    }

    #[test]
    fn numbers_keep_to_their_columns() {
        for (micros, shown) in [(0, "0µs"), (999, "999µs"), (1000, "1.0ms"), (61_250_000, "61.2s")]
        {
            assert_eq!(short_time(Nanos::from_micros(micros)), shown);
        }
        for (count, shown) in [(9999, "9999"), (10_000, "10.0k"), (1_234_567, "1.2M")] {
            assert_eq!(short_count(count), shown);
        }
        assert_eq!((percent(1.0).as_str(), percent(0.999).as_str()), ("100%", "99.9%"));
    }
}
