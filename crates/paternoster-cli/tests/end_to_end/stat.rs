//! What the control plane tells of a server that has worked.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Place, Served, eventually, paternoster, run, temp_dir};
use crate::wire::{Wire, request};

const MIB: u64 = 1 << 20;

/// The answer of `curl`, which must be what `paternoster ctl` says too but for what changes.
pub(crate) fn stat(served: &Served) -> Value {
    let dir = served.dir.path();
    let url = ["--silent", "--fail", "--unix-socket", "ctl.sock", "http://localhost/v1/stat"];
    let text = run("curl", "curl", &url, dir);
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn known_traffic_is_counted_by_group_and_operation() {
    let more = ["--scheduler", "cfq", "--set", "quantum=5", "--ctl", "ctl.sock"];
    let served = Served::empty_file(Place::Unix, MIB, &more);
    let mut wire = Wire::enter(&served, Place::Unix);
    let requests: [(u16, u64, u32); 7] = [
        (1, 0, 4096),
        (1, 65536, 4096),
        (0, 0, 4096),
        (0, 1000, 100),
        (4, 131_072, 4096),
        (6, 262_144, 8192),
        (3, 0, 0),
    ];
    for (cookie, (code, offset, len)) in (0..).zip(requests) {
        let payload = if code == 1 { vec![1; len as usize] } else { Vec::new() };
        wire.send(&[request(0, code, cookie, offset, len), payload].concat());
        assert_eq!(wire.simple_reply(cookie), 0);
        if code == 0 {
            wire.skip(len);
        }
    }
    let _idle = Wire::enter(&served, Place::Unix);
    eventually("two connections are counted", || stat(&served)["disks"][0]["connections"] == 2);

    let told = stat(&served);
    assert_eq!(told["version"], 1);
    let disk = &told["disks"][0];
    let expected = json!({
        "name": "disk0", "backend": "file", "size_bytes": MIB, "scheduler": "cfq", "depth": 16,
        "in_device": 0, "queued": 0, "sync_failed": false, "weights_apply": true,
        "modelled": null,
    });
    for (key, value) in expected.as_object().expect("an object") {
        assert_eq!(&disk[key], value, "{key}");
    }
    assert_eq!(disk["tunables"]["quantum"], 5);
    assert_eq!(disk["cache"]["mode"], "direct");
    assert!(disk["cache"]["block_bytes"].as_u64() >= Some(512), "{disk}");
    assert!(disk["rotational"].is_boolean(), "{disk}");
    assert!(disk["syncs"].as_u64().is_some_and(|syncs| syncs >= 1), "{disk}");
    let group = &disk["groups"][0];
    assert_eq!(group["path"], "/disk");
    assert_eq!(group["weight"], 100);
    assert_eq!(group["exports"], json!(["disk"]));
    assert_eq!(group["connections"], 2);
    let (elapsed, backlogged) = (disk["elapsed_ns"].as_u64(), group["backlogged_ns"].as_u64());
    assert!(elapsed > Some(0) && backlogged.is_some() && backlogged <= elapsed, "{disk}");
    assert!(group.get("device_ns").is_none(), "nobody knows that of a file: {group}");
    // The read of 100 bytes touches two sectors.
    for (op, bios, bytes) in
        [("read", 2, 5120), ("write", 2, 8192), ("discard", 1, 4096), ("write_zeroes", 1, 8192)]
    {
        let counted = &group["ops"][op];
        assert_eq!(counted["bios"], bios, "{op}: {group}");
        assert_eq!(counted["bytes"], bytes, "{op}: {group}");
        assert_eq!(counted["completed"], bios, "{op}: {group}");
    }
    let by_ctl: Value = serde_json::from_str(&ctl(&served, "--json")).expect("JSON");
    assert_eq!(by_ctl["disks"][0]["groups"][0]["ops"], group["ops"]);
    check_blkio(group, &ctl(&served, "--blkio"));
    served.end();
}

#[test]
fn server_and_ctl_find_each_other_untold() {
    let served = Served::empty_file(Place::Unix, MIB, &[]);
    let output = paternoster(served.dir.path()).args(["ctl", "stat"]).output().expect("it runs");
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    let by_auto =
        ["wfq", "cfq"].map(|taken| format!("disk disk0: {taken} (auto) over file (direct) by "));
    assert!(by_auto.iter().any(|start| table.starts_with(start)), "{table}");
    let socket = served.path("paternoster-ctl.sock");
    assert!(socket.exists());
    let mut served = served;
    served.terminate();
    served.wait(Duration::from_secs(10));
    assert!(!socket.exists());

    let served = Served::empty_file(Place::Unix, MIB, &["--ctl", "none"]);
    let output = paternoster(served.dir.path()).args(["ctl", "stat"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(said.contains("there is no control socket \"paternoster-ctl.sock\""), "{said}");
    served.end();
}

/// What `paternoster ctl stat` writes with this option.
fn ctl(served: &Served, option: &str) -> String {
    let mut ctl = paternoster(served.dir.path());
    let output = ctl.args(["ctl", "--ctl", "ctl.sock", "stat", option]).output().expect("it runs");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The traffic of [`known_traffic_is_counted_by_group_and_operation`] as `blkio` counts it.
fn check_blkio(group: &Value, text: &str) {
    let blkio = &group["blkio"];
    assert_eq!(blkio, &group["blkio_recursive"], "nothing is below");
    assert!(blkio["time"].as_u64().is_some_and(|time| time > 0), "{blkio}");
    assert_eq!(blkio["sectors"], (5120 + 8192 + 4096 + 8192) / 512);
    for (file, read, write, discard) in [
        ("io_serviced", 2, 3, 1),
        ("io_service_bytes", 5120, 8192 + 8192, 4096),
        ("io_merged", 0, 0, 0),
        ("io_queued", 0, 0, 0),
    ] {
        let split = &blkio[file];
        let (sync, total) = (split["sync"].as_u64(), read + write + discard);
        let sync = sync.expect("a number");
        let expected = json!({
            "read": read, "write": write, "discard": discard,
            "sync": sync, "async": total - sync, "total": total,
        });
        assert_eq!(*split, expected, "{file}");
    }
    // The root comes first, which has none of its own, and all that is below it.
    let (root, own) = text.split_once("\n\n").expect("two groups");
    assert!(root.starts_with("disk disk0, group /\n"), "{root}");
    assert!(own.starts_with("disk disk0, group /disk\n"), "{own}");
    let has = |of: &str, line: &str| of.lines().any(|shown| shown == line);
    for (file, number) in
        [("io_serviced", " Write 3"), ("io_serviced", " Total 6"), ("sectors", " 50")]
    {
        assert!(has(own, &format!("blkio.{file}{number}")), "no {file}{number}\n{own}");
        assert!(has(root, &format!("blkio.{file}_recursive{number}")), "no {file}{number}\n{root}");
    }
    assert!(!own.contains("_recursive"), "{own}");
}

#[test]
fn weights_without_effect_are_told_at_the_start_and_in_stat() {
    let dir = temp_dir();
    let toml = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n\
                [disks.m]\nbackend = \"modelled\"\nsize = \"1M\"\nservers = 3\nservice_us = 250\n\
                ns_per_kib = 7\nscheduler = \"none\"\n\
                [exports.disk]\ndisk = \"m\"\nweight = 300\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let served = Served::start(dir, &["c.toml"], 1);
    let warned = served.log();
    assert!(warned.contains("disk \"m\": weights have no effect under none"), "{warned}");
    let told = stat(&served);
    let disk = &told["disks"][0];
    assert_eq!(disk["weights_apply"], false);
    assert_eq!(disk["depth"], 6, "two for each server");
    let modelled = &disk["modelled"];
    assert_eq!(modelled["servers"], 3);
    assert_eq!(modelled["service_ns"], 250_000);
    assert_eq!(modelled["ns_per_kib"], 7);
    assert!(modelled["idle_ns"].as_u64().is_some_and(|idle| idle > 0), "{modelled}");
    let mut ctl = paternoster(served.dir.path());
    let output = ctl.args(["ctl", "--ctl", "ctl.sock", "stat"]).output().expect("it runs");
    let table = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(table.contains("no effect"), "{table}");
    served.end();
}

#[test]
fn modelled_disk_says_how_long_each_group_kept_it() {
    let dir = temp_dir();
    let toml = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n\
                [disks.m]\nbackend = \"modelled\"\nsize = \"1M\"\nservers = 2\nservice_us = 300\n\
                ns_per_kib = 1000\n\
                [exports.disk]\ndisk = \"m\"\nsize = \"512K\"\n\
                [exports.idle]\ndisk = \"m\"\noffset = \"512K\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let served = Served::start(dir, &["c.toml"], 2);
    let mut wire = Wire::enter(&served, Place::Unix);
    for (cookie, len) in [(1, 4096), (2, 512)] {
        wire.send(&request(0, 0, cookie, 0, len));
        assert_eq!(wire.simple_reply(cookie), 0);
        wire.skip(len);
    }
    let groups = &stat(&served)["disks"][0]["groups"];
    let kept = [0, 1].map(|group| (&groups[group]["path"], &groups[group]["device_ns"]));
    // 300 µs each, and 1 µs for each KiB: 4 and a half.
    assert_eq!(kept, [(&json!("/disk"), &json!(604_500)), (&json!("/idle"), &json!(0))]);
    served.end();
}
