//! The output of `ctl stat --blkio`: the files of Linux's `blkio` controller, a line a number.
//!
//! ```text
//!   disk vda, group /org/db
//!   blkio.io_serviced Read 12
//!   blkio.time 123456
//! ```
//!
//! Under BFQ their names begin with `blkio.bfq.`, as there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use paternoster_server::stat::{BlkioStat, DiskStat, GroupStat, Stat};

use super::are_nested;

/// The files of every disk and group, an empty line between two groups.
pub(super) fn show(stat: &Stat) -> String {
    let groups: Vec<_> = stat.disks.iter().flat_map(show_disk).collect();
    groups.join("\n")
}

fn show_disk(disk: &DiskStat) -> Vec<String> {
    let nested = are_nested(&disk.groups);
    let prefix = if disk.scheduler == "bfq" { "blkio.bfq" } else { "blkio" };
    let show = |group: &GroupStat| {
        let mut text = format!("disk {}, group {}\n", disk.name, group.path);
        if disk.weights_apply {
            let _ = writeln!(text, "{prefix}.weight {}", group.weight);
        }
        show_files(&mut text, prefix, &group.blkio, "");
        if nested {
            show_files(&mut text, prefix, &group.blkio_recursive, "_recursive");
        }
        text
    };
    disk.groups.iter().map(show).collect()
}

fn show_files(text: &mut String, prefix: &str, files: &BTreeMap<String, BlkioStat>, suffix: &str) {
    for (name, value) in files {
        let _ = match value {
            BlkioStat::Number(number) => writeln!(text, "{prefix}.{name}{suffix} {number}"),
            BlkioStat::Split(split) => split.named().into_iter().try_for_each(|(which, number)| {
                writeln!(text, "{prefix}.{name}{suffix} {which} {number}")
            }),
        };
    }
}

#[cfg(test)]
mod tests {
    use paternoster_server::stat::BlkioSplit;

    use super::*;

    fn group(path: &str, time: u64) -> GroupStat {
        let time = ("time".to_owned(), BlkioStat::Number(time));
        GroupStat { path: path.to_owned(), blkio: [time].into(), ..GroupStat::default() }
    }

    fn shown(disk: &str, groups: Vec<GroupStat>) -> String {
        show(&Stat::new(vec![DiskStat { name: disk.to_owned(), groups, ..DiskStat::default() }]))
    }

    #[test]
    fn each_number_is_a_line_under_its_disk_and_group() {
        let split =
            BlkioSplit { read: 5, write: 3, discard: 1, sync: 7, asynchronous: 2, total: 9 };
        let mut gold = group("/gold", 123_456);
        gold.blkio.insert("io_serviced".to_owned(), BlkioStat::Split(split));
        let expected = "\
disk d, group /gold
blkio.io_serviced Read 5
blkio.io_serviced Write 3
blkio.io_serviced Discard 1
blkio.io_serviced Sync 7
blkio.io_serviced Async 2
blkio.io_serviced Total 9
blkio.time 123456

disk d, group /free
blkio.time 0
";
        assert_eq!(shown("d", vec![gold, group("/free", 0)]), expected);
    }

    #[test]
    fn files_are_named_as_the_scheduler_names_them_in_linux() {
        let shown = |scheduler: &str, weights_apply| {
            let group = GroupStat { weight: 300, ..group("/gold", 5) };
            let scheduler = scheduler.to_owned();
            let groups = vec![group];
            let disk = DiskStat { scheduler, weights_apply, groups, ..DiskStat::default() };
            show(&Stat::new(vec![disk]))
        };
        let bfq = "disk , group /gold\nblkio.bfq.weight 300\nblkio.bfq.time 5\n";
        assert_eq!(shown("bfq", true), bfq);
        assert_eq!(shown("cfq", true), bfq.replace("bfq.", ""));
        assert_eq!(shown("none", false), "disk , group /gold\nblkio.time 5\n");
    }

    #[test]
    fn files_of_all_that_is_below_are_shown_where_groups_are_nested() {
        let with_all_below = |path, own, all| GroupStat {
            blkio_recursive: group(path, all).blkio,
            ..group(path, own)
        };
        let flat = shown("d", vec![with_all_below("/org", 1, 1), with_all_below("/lab", 2, 2)]);
        assert!(!flat.contains("recursive"), "{flat}");
        let nested =
            shown("d", vec![with_all_below("/org", 1, 8), with_all_below("/org/db", 7, 7)]);
        let expected = "\
disk d, group /org
blkio.time 1
blkio.time_recursive 8

disk d, group /org/db
blkio.time 7
blkio.time_recursive 7
";
        assert_eq!(nested, expected);
    }
}
