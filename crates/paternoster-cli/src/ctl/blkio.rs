//! The output of `ctl stat --blkio`: the files of Linux's `blkio` controller, a line a number.
//!
//! ```text
//!   disk vda, group /org/db
//!   blkio.weight 300
//!   blkio.weight_device vda 500
//!   blkio.io_serviced Read 12
//!   blkio.time 123456
//! ```
//!
//! Under BFQ their names begin with `blkio.bfq.`, as there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use paternoster::SchedulerKind;
use paternoster_server::stat::{BlkioStat, DiskStat, GroupStat, Stat};

use super::are_nested;
use super::settings::use_hierarchy;

/// The files of every disk and group, an empty line between two groups.
pub(super) fn show(stat: &Stat) -> String {
    let groups: Vec<_> = stat.disks.iter().flat_map(show_disk).collect();
    groups.join("\n")
}

fn show_disk(disk: &DiskStat) -> Vec<String> {
    let nested = are_nested(&disk.groups);
    let prefix = if disk.scheduler == "bfq" { "blkio.bfq" } else { "blkio" };
    let show = |group: &GroupStat, has_others_below| {
        let mut text = format!("disk {}, group {}\n", disk.name, group.path);
        for (name, value) in weights(disk, group) {
            let _ = writeln!(text, "{prefix}.{name} {value}");
        }
        show_files(&mut text, prefix, &group.blkio, "");
        if has_others_below {
            show_files(&mut text, prefix, &group.blkio_recursive, "_recursive");
        }
        text
    };
    // A server of an older version tells of no root.
    let root = Some(&disk.root).filter(|root| !root.path.is_empty());
    let root = root.filter(|root| disk.groups.iter().all(|group| group.path != root.path));
    let others = disk.groups.iter().map(|group| show(group, nested));
    root.map(|root| show(root, true)).into_iter().chain(others).collect()
}

/// The files of weights that the scheduler has, and the root's of the hierarchy. Those of a device
/// name the disk, where Linux has its numbers.
fn weights(disk: &DiskStat, group: &GroupStat) -> Vec<(&'static str, String)> {
    let mut files = vec![];
    let hierarchy = disk.hierarchy.as_deref().filter(|_| group.path == "/");
    if let Some(is_used) = hierarchy.and_then(use_hierarchy) {
        files.push(("use_hierarchy", is_used.to_string()));
    }
    if !disk.weights_apply {
        return files;
    }
    let here = |weight: u32| format!("{} {weight}", disk.name);
    let own = &group.weights;
    // A server of an older version says the weight in force alone.
    let known = |own: u32, in_force: u32| if own == 0 { in_force } else { own }.to_string();
    files.push(("weight", known(own.weight, group.weight)));
    files.extend(own.weight_device.map(|weight| ("weight_device", here(weight))));
    if disk.scheduler.parse().is_ok_and(SchedulerKind::has_leaf_weights) {
        files.push(("leaf_weight", known(own.leaf_weight, group.leaf_weight)));
        files.extend(own.leaf_weight_device.map(|weight| ("leaf_weight_device", here(weight))));
    }
    files
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
    use paternoster_server::stat::{BlkioSplit, WeightsStat};

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
            let weights = WeightsStat { weight: 300, leaf_weight: 400, ..WeightsStat::default() };
            let group = GroupStat { weights, ..group("/gold", 5) };
            let scheduler = scheduler.to_owned();
            let groups = vec![group];
            let disk = DiskStat { scheduler, weights_apply, groups, ..DiskStat::default() };
            show(&Stat::new(vec![disk]))
        };
        let bfq = "disk , group /gold\nblkio.bfq.weight 300\nblkio.bfq.time 5\n";
        assert_eq!(shown("bfq", true), bfq);
        let cfq = "disk , group /gold\nblkio.weight 300\nblkio.leaf_weight 400\nblkio.time 5\n";
        assert_eq!(shown("cfq", true), cfq);
        assert_eq!(shown("none", false), "disk , group /gold\nblkio.time 5\n");
    }

    /// Post 3: the root has the hierarchy, and all that is below it.
    #[test]
    fn root_comes_first_with_the_hierarchy_and_weights_of_a_disk_are_named() {
        let root = GroupStat {
            weight: 1000,
            leaf_weight: 1000,
            blkio_recursive: group("/", 9).blkio,
            ..group("/", 2)
        };
        let weights = WeightsStat {
            weight: 300,
            leaf_weight: 400,
            weight_device: Some(500),
            leaf_weight_device: Some(600),
        };
        let groups = vec![GroupStat { weights, ..group("/gold", 7) }];
        let disk = |hierarchy: &str| DiskStat {
            name: "d".to_owned(),
            scheduler: "cfq".to_owned(),
            weights_apply: true,
            hierarchy: Some(hierarchy.to_owned()),
            root: root.clone(),
            groups: groups.clone(),
            ..DiskStat::default()
        };
        let shown = |hierarchy| show(&Stat::new(vec![disk(hierarchy)]));
        let expected = "\
disk d, group /
blkio.use_hierarchy 1
blkio.weight 1000
blkio.leaf_weight 1000
blkio.time 2
blkio.time_recursive 9

disk d, group /gold
blkio.weight 300
blkio.weight_device d 500
blkio.leaf_weight 400
blkio.leaf_weight_device d 600
blkio.time 7
";
        assert_eq!(shown("entities"), expected);
        assert_eq!(shown("flat"), expected.replace("use_hierarchy 1", "use_hierarchy 0"));
        let neither = expected.replace("blkio.use_hierarchy 1\n", "");
        assert_eq!(shown("leaf-weight"), neither);
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
