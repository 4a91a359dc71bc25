//! Which scheduler a disk gets, and what of the rest of the file is wrong or vain under it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use paternoster::SchedulerKind;
use paternoster_disk::is_rotational;
use paternoster_server::config::{Config, Options};
use tempfile::TempDir;

fn read(toml: &str) -> Result<Config, String> {
    Config::from_toml(toml, Path::new("c.toml")).map_err(|error| error.to_string())
}

/// A disk of 1 MiB in a directory of its own.
fn image() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("disk.img");
    File::create(&path).and_then(|file| file.set_len(1 << 20)).expect("a disk");
    (dir, path)
}

const MEMORY: &str = "backend = \"memory\"\nsize = \"1M\"\n";
const MODELLED: &str = "backend = \"modelled\"\nsize = \"1M\"\nservers = 1\nservice_us = 1\n";

/// A disk of these lines, with an export.
fn with(disk: &str) -> String {
    format!("[disks.d]\n{disk}\n[exports.e]\ndisk = \"d\"\n")
}

/// The scheduler of that disk, and whether `auto` has taken it.
fn chosen(disk: &str) -> (SchedulerKind, bool) {
    let scheduler = read(&with(disk)).expect("valid").disks[0].scheduler;
    (scheduler.kind(), scheduler.is_auto())
}

#[test]
fn auto_is_the_default_and_takes_wfq_where_nothing_rotates() {
    for disk in [MEMORY, MODELLED] {
        assert_eq!(chosen(disk), (SchedulerKind::Wfq, true), "{disk}");
        let auto = format!("{disk}scheduler = \"auto\"");
        assert_eq!(chosen(&auto), (SchedulerKind::Wfq, true), "{disk}");
        for kind in SchedulerKind::ALL {
            assert_eq!(chosen(&format!("{disk}scheduler = \"{kind}\"")), (kind, false), "{disk}");
        }
    }
}

/// Which of the two this machine's disk is, nobody knows here: what follows is held for both.
#[test]
fn auto_takes_of_a_file_what_fits_the_device_that_it_is_on() {
    let (_dir, path) = image();
    let rotates = is_rotational(&path, &fs::metadata(&path).expect("it is there")).yes;
    let kind = if rotates { SchedulerKind::Cfq } else { SchedulerKind::Wfq };
    let line = format!("path = {path:?}\n");
    assert_eq!(chosen(&line), (kind, true));
    let options = Options { disk: path, exports: vec!["e".to_owned()], ..Options::default() };
    let config = Config::from_options(&options).expect("valid");
    assert_eq!(config.disks[0].scheduler.kind(), kind);
    for (has, needs, more) in [
        (!rotates, "cfq", "tunables.slice_idle = 1"),
        (!rotates, "cfq", "hierarchy = \"flat\""),
        (rotates, "wfq", "tunables.keep_slots = 1"),
        (rotates, "wfq", "[groups.\"/e\"]\nriops = 5"),
    ] {
        assert_eq!(read(&with(&format!("{line}{more}"))).is_err(), has, "{more} under {kind}");
        let named = format!("{line}scheduler = \"{needs}\"\n{more}");
        assert!(read(&with(&named)).is_ok(), "{named}");
    }
}

#[test]
fn what_the_scheduler_that_auto_takes_does_not_have_is_refused_with_why_it_is_taken() {
    let why = "; scheduler = \"auto\", the default, takes this one (auto: wfq, as the disk does \
               not rotate)";
    for (more, line, said) in [
        ("tunables = { slice_idle = 4 }", 4, "wfq has no tunable \"slice_idle\"; "),
        ("scheduler = \"auto\"\ntunables = { quantum = 4 }", 5, "wfq has no tunable \"quantum\"; "),
        ("hierarchy = \"flat\"", 4, "wfq has no hierarchy to choose; cfq has: "),
    ] {
        let refused = read(&with(&format!("{MEMORY}{more}"))).expect_err(more);
        assert!(refused.starts_with(&format!("c.toml:{line}: {said}")), "{refused}");
        assert!(refused.ends_with(why) && refused.lines().count() == 1, "{refused}");
    }
    let named = read(&with(&format!("{MEMORY}scheduler = \"wfq\"\nhierarchy = \"flat\"")));
    assert!(!named.expect_err("wfq has none").contains("auto"), "it was named");
}

#[test]
fn what_auto_would_take_is_not_told_where_nobody_knows_the_disk() {
    let gone = read(&with("path = \"/nowhere/d.img\"\ntunables.slice_idle = 4"));
    let gone = gone.expect_err("there is no such file");
    assert!(gone.contains("disk file") && gone.lines().count() == 1, "{gone}");
    let unknown = read(&with(&format!("{MEMORY}scheduler = \"Auto\""))).expect_err("no such");
    let said = "scheduler = \"Auto\": \"auto\", \"none\", \"mq-deadline\", \"kyber\", \"cfq\", ";
    assert!(unknown.contains(said) && unknown.ends_with("or \"wfq\" is allowed"), "{unknown}");
}

#[test]
fn weights_and_leaf_weights_hold_under_whatever_auto_takes() {
    let toml = format!(
        "[disks.d]\n{MEMORY}[groups.\"/org\"]\nweight = 5\nleaf_weight = 7\n\
         [exports.a]\ndisk = \"d\"\ngroup = \"/org/db\"\n"
    );
    assert_eq!(read(&toml).expect("valid").notices(), [""; 0]);
}

#[test]
fn depth_is_a_key_of_the_disk_and_no_tunable() {
    for disk in [MEMORY.to_owned(), format!("{MEMORY}scheduler = \"wfq\"\n")] {
        let refused = read(&with(&format!("{disk}tunables.depth = 4"))).expect_err("a tunable");
        assert!(
            refused.contains("the disk's own depth = N, or --depth N, is allowed"),
            "{refused}"
        );
        assert!(read(&with(&format!("{disk}depth = 4"))).is_ok());
        let unknown =
            read(&with(&format!("{disk}tunables.deep = 4"))).expect_err("no such tunable");
        assert!(unknown.contains("wfq has no tunable \"deep\"; it has: "), "{unknown}");
        assert!(unknown.contains(" min_depth, ") && !unknown.contains(" depth, "), "{unknown}");
    }
}

#[test]
fn weights_under_a_scheduler_without_weights_are_noticed() {
    let (dir, disk) = image();
    let notices = |scheduler: Option<&str>, export: &str| {
        let options = Options {
            disk: disk.clone(),
            scheduler: scheduler.map(str::to_owned),
            exports: vec![export.to_owned()],
            ..Options::default()
        };
        Config::from_options(&options).expect("valid").notices()
    };
    let told = ["disk \"disk0\": weights have no effect under none"];
    assert_eq!(notices(Some("none"), "a,weight=300"), told);
    assert_eq!(notices(Some("none"), "a"), [""; 0]);
    assert_eq!(notices(None, "a,weight=300"), [""; 0]);
    drop(dir);
    for above in ["weight = 5", "leaf_weight = 5", "weight_device.d = 5"] {
        let toml = format!(
            "[disks.d]\nbackend = \"memory\"\nsize = 1\nscheduler = \"none\"\n\
             [groups.\"/org\"]\n{above}\n[exports.a]\ndisk = \"d\"\ngroup = \"/org/db\"\n"
        );
        let notices = read(&toml).expect("valid").notices();
        assert_eq!(notices, ["disk \"d\": weights have no effect under none"], "{above}");
    }
}

#[test]
fn leaf_weights_under_bfq_are_told() {
    let notices = |group: &str| {
        let toml = format!(
            "[disks.d]\nbackend = \"memory\"\nsize = 1\nscheduler = \"bfq\"\n\
             [groups.\"/org\"]\n{group}\n[exports.a]\ndisk = \"d\"\ngroup = \"/org/db\"\n"
        );
        read(&toml).expect("valid").notices()
    };
    let told = ["disk \"d\": leaf weights have no effect under bfq"];
    assert_eq!(notices("leaf_weight = 5"), told);
    assert_eq!(notices("leaf_weight_device.d = 5"), told);
    assert_eq!(notices("weight = 5\nweight_device.d = 7"), [""; 0]);
}
