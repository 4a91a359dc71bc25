//! What `ctl stat` shows to people: a line and a table for each disk.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ColumnConstraint, Table, presets};
use paternoster_server::stat::{BlkioStat, DiskStat, GroupStat, OpStat, Stat};

use super::{are_nested, queues};

/// The whole answer.
pub(super) fn show(stat: &Stat) -> String {
    let disks: Vec<_> = stat.disks.iter().map(show_disk).collect();
    disks.join("\n")
}

fn show_disk(disk: &DiskStat) -> String {
    let DiskStat { name, scheduler, backend, depth, queued, in_device, .. } = disk;
    let size = Bytes(disk.size_bytes);
    let connections = plural(disk.connections, "connection");
    let mut text = format!(
        "disk {name}: {scheduler} over {backend}, {size}; depth {depth}, {queued} queued, \
         {in_device} in device, {connections}, {syncs}\n",
        syncs = plural(disk.syncs, "sync")
    );
    if disk.sync_failed {
        text.push_str("  SYNC FAILED: flushes and FUA writes get errors until the restart\n");
    }
    if !disk.weights_apply {
        let _ = writeln!(text, "  weights have no effect under {scheduler}");
    }
    for line in table(&disk.groups).lines() {
        let _ = writeln!(text, " {}", line.trim_end());
    }
    if let Some(told) = &disk.queues {
        text.push_str(&queues::show(told));
    }
    text
}

/// The column of the leaf weight, which means something where groups are nested.
const LEAF: usize = 2;

/// The column of the time of turns, which there is under a scheduler that gives groups turns.
const TIME: usize = 3;

fn table(groups: &[GroupStat]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "GROUP",
        "WEIGHT",
        "LEAF",
        "TIME",
        "CONNS",
        "READS",
        "BYTES",
        "WRITES",
        "BYTES",
        "WAIT",
        "SERVICE",
        "QUEUED",
        "IN DEVICE",
    ]);
    let all_turns: u64 = groups.iter().filter_map(turns_ns).sum();
    for group in groups {
        let op = |name: &str| group.ops.get(name).copied().unwrap_or_default();
        let (read, write) = (op("read"), op("write"));
        let sum =
            |count: fn(&OpStat) -> u64| group.ops.values().map(count).fold(0, u64::saturating_add);
        table.add_row([
            group.path.clone(),
            group.weight.to_string(),
            group.leaf_weight.to_string(),
            percent(turns_ns(group).unwrap_or(0), all_turns),
            group.connections.to_string(),
            read.completed.to_string(),
            Bytes(read.bytes).to_string(),
            write.completed.to_string(),
            Bytes(write.bytes).to_string(),
            mean_us(sum(|op| op.wait_ns), sum(|op| op.completed)),
            mean_us(sum(|op| op.service_ns), sum(|op| op.completed)),
            group.queued.to_string(),
            group.in_device.to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let hidden =
        [(LEAF, !are_nested(groups)), (TIME, groups.iter().all(|group| turns_ns(group).is_none()))];
    for (column, _) in hidden.into_iter().filter(|(_, hidden)| *hidden) {
        let column = table.column_mut(column).expect("the header has it");
        column.set_constraint(ColumnConstraint::Hidden);
    }
    table
}

/// The time of the group's turns, without those of the groups below it.
fn turns_ns(group: &GroupStat) -> Option<u64> {
    match group.blkio.get("time")? {
        BlkioStat::Number(nanos) => Some(*nanos),
        BlkioStat::Split(_) => None,
    }
}

/// A part of a whole with one digit behind the point.
fn percent(part: u64, whole: u64) -> String {
    match (u128::from(part) * 1000).checked_div(whole.into()) {
        Some(tenths) => format!("{}.{} %", tenths / 10, tenths % 10),
        None => "-".to_owned(),
    }
}

/// A mean of nanoseconds, in microseconds with one digit behind the point.
fn mean_us(sum_ns: u64, count: u64) -> String {
    match sum_ns.checked_div(count) {
        Some(mean) => format!("{}.{} µs", mean / 1000, mean % 1000 / 100),
        None => "-".to_owned(),
    }
}

fn plural(count: impl Into<u64>, noun: &str) -> String {
    let count = count.into();
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Shown in the largest binary unit of which there is at least one.
pub(super) struct Bytes(pub(super) u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [(60, "EiB"), (50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        let Some((shift, unit)) = units.into_iter().find(|(shift, _)| self.0 >> shift > 0) else {
            return write!(f, "{} B", self.0);
        };
        let tenths = (u128::from(self.0) * 10) >> shift;
        match tenths % 10 {
            0 => write!(f, "{} {unit}", tenths / 10),
            tenth => write!(f, "{}.{tenth} {unit}", tenths / 10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_a_line_its_flags_and_its_tenants() {
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
            size_bytes: 10 << 30,
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
disk d: none over file, 10 GiB; depth 16, 7 queued, 2 in device, 2 connections, 1 sync
  SYNC FAILED: flushes and FUA writes get errors until the restart
  weights have no effect under none
  GROUP  WEIGHT  CONNS  READS    BYTES  WRITES  BYTES      WAIT   SERVICE  QUEUED  IN DEVICE
  /gold     400      2      8  1.5 MiB       0    0 B  123.4 µs  100.0 µs       7          2
  /f          1      0      0      0 B       0    0 B         -         -       0          0
";
        assert_eq!(show(&Stat::new(vec![disk])), expected);
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
        assert!(!table(&flat).to_string().contains("LEAF"));
        let nested = [group("/org", 100, 30), group("/org/db", 1000, 1000)];
        let shown = table(&nested).to_string();
        let starts: Vec<_> = shown.lines().map(|line| &line[..31]).collect();
        let expected = [
            " GROUP    WEIGHT  LEAF  CONNS  ",
            " /org        100    30      0  ",
            " /org/db    1000  1000      0  ",
        ];
        assert_eq!(starts, expected);
    }

    #[test]
    fn the_part_of_the_time_is_shown_where_groups_have_turns() {
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
            table(groups).to_string().lines().map(|line| line[..31].to_owned()).collect()
        };
        let turns = [
            group("/a", &[("time", 2_000_000_000)]),
            group("/b", &[("time", 998_000_000)]),
            group("/c", &[("time", 2_000_000)]),
        ];
        let expected = [
            " GROUP  WEIGHT    TIME  CONNS  ",
            " /a        100  66.6 %      0  ",
            " /b        100  33.2 %      0  ",
            " /c        100   0.0 %      0  ",
        ];
        assert_eq!(starts(&turns), expected);
        let idle = starts(&[group("/a", &[("time", 0)])]);
        assert!(idle[1].starts_with(" /a        100     -      0"), "{idle:?}");
        let none = starts(&[group("/a", &[("sectors", 8)])]);
        assert!(!none[0].contains("TIME"), "{none:?}");
    }

    #[test]
    fn bytes_are_shown_in_their_unit() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), shown);
        }
    }
}
