//! Groups below others, as the server has them on each disk.

use std::collections::BTreeMap;

use paternoster_server::stat::{BlkioStat, DiskStat, GroupStat};

use crate::support::Rig;

const TWO_DISKS: &str = r#"
[disks.d]
backend = "memory"
size = "1M"
[disks.e]
backend = "memory"
size = "1M"
[groups."/org"]
weight = 700
leaf_weight = 50
weight_device.e = 30
leaf_weight_device.e = 20
[groups."/org/db"]
weight = 300
[exports.db]
disk = "d"
size = "512K"
group = "/org/db"
[exports.org]
disk = "d"
offset = "512K"
[exports.web]
disk = "e"
size = "512K"
group = "/org/web/front"
[exports.lab]
disk = "e"
offset = "512K"
group = "/lab/x"
"#;

/// The two disks under that scheduler.
fn under(scheduler: &str) -> String {
    let disk = "size = \"1M\"\n";
    TWO_DISKS.replace(disk, &format!("{disk}scheduler = \"{scheduler}\"\n"))
}

/// A line a group: path, weight, leaf weight, its exports.
fn lines(disk: &DiskStat) -> Vec<String> {
    let line = |group: &GroupStat| {
        let GroupStat { path, weight, leaf_weight, exports, .. } = group;
        format!("{path} {weight} {leaf_weight} {}", exports.join(","))
    };
    disk.groups.iter().map(line).collect()
}

#[test]
fn disk_has_the_groups_of_its_exports_and_those_above() {
    let rig = Rig::start(TWO_DISKS);
    let stat = rig.stat();
    assert_eq!(lines(&stat.disks[0]), ["/org 700 50 org", "/org/db 300 300 db"]);
    let expected = [
        "/org 30 20 ",
        "/org/web 100 100 ",
        "/org/web/front 100 100 web",
        "/lab 100 100 ",
        "/lab/x 100 100 lab",
    ];
    assert_eq!(lines(&stat.disks[1]), expected);
    rig.end();
}

#[test]
fn group_is_told_its_own_work_and_not_that_of_those_below() {
    let rig = Rig::start(TWO_DISKS);
    for round in 1..=3 {
        rig.client("web").check_served(round);
        rig.client("db").check_served(round);
        rig.client("org").check_served(round);
        // Its clients have gone; the next ones find it as it was.
        rig.until_empty();
    }
    let stat = rig.stat();
    let groups = stat.disks.iter().flat_map(|disk| &disk.groups);
    let written: Vec<_> = groups.map(|group| group.ops["write"].bios).collect();
    assert_eq!(written, [3, 3, 0, 0, 3, 0, 0]);
    rig.end();
}

#[test]
fn blkio_files_are_a_groups_own_and_with_all_below_it() {
    let rig = Rig::start(&under("cfq"));
    for export in ["web", "db", "org"] {
        rig.client(export).check_served(1);
    }
    rig.until_empty();
    let stat = rig.stat();
    let groups: Vec<_> = stat.disks.iter().flat_map(|disk| &disk.groups).collect();
    let writes = |files: fn(&GroupStat) -> &BTreeMap<String, BlkioStat>| -> Vec<u64> {
        let write = |group: &&GroupStat| match files(group)["io_serviced"] {
            BlkioStat::Split(split) => split.write,
            BlkioStat::Number(_) => panic!("it is split by operation"),
        };
        groups.iter().map(write).collect()
    };
    assert_eq!(writes(|group| &group.blkio), [1, 1, 0, 0, 1, 0, 0]);
    assert_eq!(writes(|group| &group.blkio_recursive), [2, 1, 1, 1, 1, 0, 0]);
    for group in groups {
        let names = |files: &BTreeMap<_, _>| files.keys().cloned().collect::<Vec<String>>();
        assert_eq!(names(&group.blkio), names(&group.blkio_recursive), "{}", group.path);
        assert!(group.blkio.contains_key("time"), "CFQ gives turns, to {} too", group.path);
    }
    rig.end();
}

/// In Linux they are there without debug options too.
#[test]
fn bfq_counts_for_blkio_what_was_served() {
    let rig = Rig::start(&under("bfq"));
    rig.client("db").check_served(1);
    rig.until_empty();
    let stat = rig.stat();
    let [org, db] = [0, 1].map(|index| &stat.disks[0].groups[index]);
    for file in ["io_serviced", "io_service_bytes"] {
        assert_eq!(org.blkio_recursive[file], db.blkio[file]);
        let BlkioStat::Split(split) = db.blkio[file] else { panic!("it is split by operation") };
        assert!(split.write > 0, "{file}: {split:?}");
    }
    assert!(!db.blkio.contains_key("time"), "what BFQ shares is sectors");
    rig.end();
}
