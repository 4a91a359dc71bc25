//! The output of `ctl stat`: two lines and a table for each disk.

use std::fmt::Write as _;

use paternoster_server::stat::{Detail, DiskStat, GroupStat, OpStat, Stat};

use super::columns::Columns;
use super::lines::Line;
use super::units::{Bytes, average, mean, or_none, per_second, percent, plural};
use super::{are_nested, depth, far, group, lines, poll, queues, threads};

/// How counts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Whole,
    PerSecond,
}

/// What happened since start-up.
pub(super) fn show(stat: &Stat, detail: Detail) -> String {
    show_disks(stat, Counts::Whole, detail)
}

/// What happened in a second of the time that was measured.
pub(super) fn show_rates(stat: &Stat, detail: Detail) -> String {
    show_disks(stat, Counts::PerSecond, detail)
}

fn show_disks(stat: &Stat, counts: Counts, detail: Detail) -> String {
    let disks: Vec<_> = stat.disks.iter().map(|disk| show_disk(disk, counts, detail)).collect();
    disks.join("\n")
}

/// Two lines of the disk, its tenants, and what should be known of both.
fn show_disk(disk: &DiskStat, counts: Counts, detail: Detail) -> String {
    let DiskStat { name, scheduler, backend, queued, in_device, .. } = disk;
    let auto = if disk.scheduler_auto { " (auto)" } else { "" };
    let size = Bytes(disk.size_bytes);
    let cache = disk.cache.as_ref().map(|cache| format!(" ({})", cache.mode)).unwrap_or_default();
    // An older server does not say it.
    let engine = Some(&disk.engine).filter(|engine| !engine.is_empty());
    let engine = engine.map(|engine| format!(" by {engine}")).unwrap_or_default();
    let connections = plural(disk.connections, "connection");
    let mut text = format!(
        "disk {name}: {scheduler}{auto} over {backend}{cache}{engine}, {size}\n  {depth}, {queued} \
         queued, {in_device} in device, {connections}, {syncs}\n",
        depth = depth::shown(disk),
        syncs = plural(disk.syncs, "sync")
    );
    text.push_str(&tenants(disk, counts));
    for note in notes(disk) {
        let _ = writeln!(text, "  {note}");
    }
    if detail == Detail::Queues {
        for line in inner_state(disk) {
            let _ = writeln!(text, "  {line}");
        }
    }
    if let Some(queues) = &disk.queues {
        text.push_str(&queues::show(queues));
    }
    text
}

/// What should be known, the worst first.
fn notes(disk: &DiskStat) -> Vec<String> {
    let mut notes = Vec::new();
    if disk.sync_failed {
        notes.push("SYNC FAILED: flushes and FUA writes get errors until the restart".to_owned());
    }
    notes.extend(disk.far.as_ref().filter(|far| far.in_doubt || far.lost > 0).map(far::in_words));
    notes.extend(disk.warnings.iter().map(|warning| format!("WARNING: {warning}")));
    if !disk.weights_apply {
        notes.push(format!("weights have no effect under {}", disk.scheduler));
    }
    let groups = std::iter::once(&disk.root).chain(&disk.groups);
    let limited = groups.filter(|group| !group.limits.is_empty());
    notes.extend(limited.map(|group| limits(disk, group)));
    notes
}

/// What is asked for by `--verbose`: how the disk was found, and what it has learned.
fn inner_state(disk: &DiskStat) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(disk.devices.as_ref().map(|devices| {
        if devices.is_empty() {
            return "device unknown".to_owned();
        }
        let names: Vec<_> = devices.iter().map(String::as_str).collect();
        format!("device {}", names.join(", "))
    }));
    lines.extend(disk.learned_depth.as_ref().map(depth::in_words));
    lines.extend(poll::in_words(&disk.poll, disk.waits));
    lines.extend(disk.far.as_ref().filter(|far| !far.in_doubt && far.lost == 0).map(far::in_words));
    lines.extend(disk.threads.as_ref().map(threads::in_words));
    lines
}

/// A group's limits, and what came of them.
fn limits(disk: &DiskStat, group: &GroupStat) -> String {
    let mut text = format!("{}: {}", group.path, group::in_words(&group.limits));
    if !disk.limits_apply {
        let _ = write!(text, "; no effect under {}", disk.scheduler);
    }
    if let Some(&capped) = group.throttled_ns.get("cap") {
        let _ = write!(text, "; held by its caps {} of the time", percent(capped, disk.elapsed_ns));
    }
    if group.reserved > 0 {
        let _ = write!(text, "; {} requests by its reservation", group.reserved);
    }
    if let Some(target) = group.target.filter(|target| disk.limits_apply && target.requests > 0) {
        let _ = write!(text, "; {} later than its target", percent(target.late, target.requests));
        if let Some(held) = target.held {
            let _ = write!(text, ", others may have {held} in the disk");
        }
    }
    text
}

/// The tenants: a line each, and before one with others below it a line for all of it.
fn tenants(disk: &DiskStat, counts: Counts) -> String {
    let elapsed_ns = disk.elapsed_ns;
    let shown = |count: u64, show: fn(u64) -> String| match counts {
        Counts::Whole => show(count),
        Counts::PerSecond => or_none(per_second(count, elapsed_ns).map(show)),
    };
    let bytes = |op: &OpStat| shown(op.bytes, |bytes| Bytes(bytes).to_string());
    let requests = |op: &OpStat| shown(op.completed, |count| count.to_string());
    let [reads, writes, bytes_of] = match counts {
        Counts::Whole => ["READS", "WRITES", "BYTES"],
        Counts::PerSecond => ["READS/S", "WRITES/S", "BYTES/S"],
    };
    let lines = lines::of(&disk.groups);
    let has =
        |figure: fn(&GroupStat) -> Option<u64>| disk.groups.iter().any(|g| figure(g).is_some());
    let mut table = Columns::of(&lines);
    table.words("GROUP", |line| line.name.clone());
    table.numbers("WEIGHT", |line| line.group.weight);
    if are_nested(&disk.groups) {
        table.numbers("LEAF", |line| or_none(line.own(line.group.leaf_weight)));
    }
    if has(lines::time_ns) {
        let all_time: u64 = disk.groups.iter().filter_map(lines::time_ns).sum();
        let time = |line: &Line| lines::time_ns(&line.group).unwrap_or(0);
        table.numbers("TIME", |line| percent(time(line), all_time));
    }
    table
        .numbers("DEMAND", |line| or_none(line.own(percent(line.group.backlogged_ns, elapsed_ns))));
    table.numbers("CONNS", |line| line.group.connections);
    table.numbers(reads, |line| requests(&line.op("read")));
    table.numbers(bytes_of, |line| bytes(&line.op("read")));
    table.numbers(writes, |line| requests(&line.op("write")));
    table.numbers(bytes_of, |line| bytes(&line.op("write")));
    let mean = |line: &Line, sum_ns: fn(&OpStat) -> u64| {
        let all = line.group.all_ops();
        mean(sum_ns(&all), all.completed)
    };
    table.numbers("WAIT", |line| mean(line, |op| op.wait_ns));
    table.numbers("SERVICE", |line| mean(line, |op| op.service_ns));
    table.numbers("QUEUED", |line| line.group.queued);
    table.numbers("IN DEVICE", |line| line.group.in_device);
    if has(|group| group.outstanding_ns) {
        table.numbers("OUTSTANDING", |line| {
            or_none(line.group.outstanding_ns.map(|sum| average(sum, elapsed_ns)))
        });
        table.numbers("NEEDS", |line| or_none(line.own(line.group.needs_outstanding).flatten()));
    }
    let shares = disk.groups.iter().zip(disk.shares());
    let short = shares.filter(|(group, share)| disk.is_short(group, *share));
    let short: Vec<_> = short.map(|(group, _)| group.path.as_str()).collect();
    table.show(|line| short.contains(&line.name.as_str()))
}

#[cfg(test)]
mod tests {
    use paternoster_server::stat::{BlkioStat, LearnedDepth, PollStat, ThreadsStat};

    use super::*;

    /// The table of these groups on a disk, since start-up.
    fn shown(groups: &[GroupStat]) -> String {
        let disk = DiskStat { groups: groups.to_vec(), ..DiskStat::default() };
        let shown = tenants(&disk, Counts::Whole);
        shown.lines().map(|line| line[1..].to_owned() + "\n").collect()
    }

    #[test]
    fn disk_is_two_lines_its_tenants_and_what_should_be_known() {
        let read = OpStat {
            bytes: 3 << 19,
            dispatched: 10,
            completed: 8,
            wait_ns: 987_200,
            service_ns: 800_000,
            ..OpStat::default()
        };
        let gold = GroupStat {
            path: "/gold".to_owned(),
            weight: 400,
            backlogged_ns: 3_000_000_000,
            connections: 2,
            queued: 7,
            in_device: 2,
            ops: [("read".to_owned(), read)].into(),
            ..GroupStat::default()
        };
        let free = GroupStat { path: "/f".to_owned(), weight: 1, ..GroupStat::default() };
        let disk = DiskStat {
            name: "d".to_owned(),
            backend: "file".to_owned(),
            engine: "io_uring".to_owned(),
            size_bytes: 10 << 30,
            elapsed_ns: 4_000_000_000,
            scheduler: "none".to_owned(),
            depth: 16,
            queued: 7,
            in_device: 2,
            syncs: 1,
            sync_failed: true,
            connections: 2,
            groups: vec![gold, free],
            ..DiskStat::default()
        };
        let expected = "\
disk d: none over file by io_uring, 10 GiB
  depth 16, 7 queued, 2 in device, 2 connections, 1 sync
  GROUP  WEIGHT  DEMAND  CONNS  READS    BYTES  WRITES  BYTES      WAIT   SERVICE  QUEUED  IN DEVICE
  /gold     400  75.0 %      2      8  1.5 MiB       0    0 B  123.4 µs  100.0 µs       7          2
  /f          1   0.0 %      0      0      0 B       0    0 B         -         -       0          0
  SYNC FAILED: flushes and FUA writes get errors until the restart
  weights have no effect under none
";
        let stat = Stat::new(vec![disk]);
        assert_eq!(show(&stat, Detail::Groups), expected);
        let rates = show_rates(&stat, Detail::Groups);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<_> = rates.lines().skip(2).take(2).map(words).collect();
        let expected = [
            "GROUP WEIGHT DEMAND CONNS READS/S BYTES/S WRITES/S BYTES/S WAIT SERVICE QUEUED \
             IN DEVICE",
            "/gold 400 75.0 % 2 2 384 KiB 0 0 B 123.4 µs 100.0 µs 7 2",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn what_the_disk_has_learned_is_shown_to_who_asks_for_more() {
        let poll = PollStat { mode: "auto".to_owned(), commands: 1, ..PollStat::default() };
        let learned = LearnedDepth { depth: 5, ..LearnedDepth::default() };
        let disk = DiskStat {
            poll,
            learned_depth: Some(learned),
            threads: Some(ThreadsStat::default()),
            devices: Some(["sda".to_owned()].into()),
            weights_apply: true,
            ..DiskStat::default()
        };
        let stat = Stat::new(vec![disk]);
        let lines = |detail| show(&stat, detail).lines().count();
        assert_eq!(lines(Detail::Groups), 3, "two, and the header of the tenants");
        let more = show(&stat, Detail::Queues);
        for start in ["device sda", "learned depth: 5", "poll=auto: ", "0 connection threads: "] {
            assert!(more.contains(&format!("\n  {start}")), "no {start}: {more}");
        }
        let mut unknown = stat.clone();
        unknown.disks[0].devices = Some([].into());
        assert!(show(&unknown, Detail::Queues).contains("\n  device unknown\n"));
    }

    #[test]
    fn leaf_weights_are_shown_where_groups_are_nested() {
        let group = |path: &str, weight, leaf_weight| GroupStat {
            path: path.to_owned(),
            weight,
            leaf_weight,
            ..GroupStat::default()
        };
        let flat = [group("/org", 100, 30), group("/lab", 100, 100)];
        assert!(!shown(&flat).contains("LEAF"));
        let nested = [group("/org", 100, 30), group("/org/db", 1000, 1000)];
        let shown = shown(&nested);
        let starts: Vec<_> = shown.lines().map(|line| &line[..31]).collect();
        let expected = [
            " GROUP    WEIGHT  LEAF  DEMAND ",
            " /org/       100     -       - ",
            " /org        100    30       - ",
            " /org/db    1000  1000       - ",
        ];
        assert_eq!(starts, expected);
    }

    #[test]
    fn the_part_of_the_time_is_shown_where_groups_are_charged_for_time() {
        let group = |path: &str, files: &[(&str, u64)]| GroupStat {
            path: path.to_owned(),
            weight: 100,
            blkio: files
                .iter()
                .map(|&(name, value)| (name.to_owned(), BlkioStat::Number(value)))
                .collect(),
            ..GroupStat::default()
        };
        let starts = |groups: &[GroupStat]| -> Vec<String> {
            shown(groups).lines().map(|line| line[..31].to_owned()).collect()
        };
        let charged = [
            group("/a", &[("time", 2_000_000_000)]),
            group("/b", &[("time", 998_000_000)]),
            group("/c", &[("time", 2_000_000)]),
        ];
        let expected = [
            " GROUP  WEIGHT    TIME  DEMAND ",
            " /a        100  66.6 %       - ",
            " /b        100  33.2 %       - ",
            " /c        100   0.0 %       - ",
        ];
        assert_eq!(starts(&charged), expected);
        let idle = starts(&[group("/a", &[("time", 0)])]);
        assert!(idle[1].starts_with(" /a        100     -       -"), "{idle:?}");
        let none = starts(&[group("/a", &[("sectors", 8)])]);
        assert!(!none[0].contains("TIME"), "{none:?}");
    }
}
