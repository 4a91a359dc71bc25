//! `ctl reload` and SIGHUP while clients are served.

use std::fs::{self, File};
use std::thread;
use std::time::{Duration, Instant};

use paternoster_server::ctl::{ReloadMode, fetch_stat, reload};
use paternoster_server::stat::{Detail, DiskStat};
use rustix::process::Signal;

use crate::settings::ctl;
use crate::support::{Place, Served, check_found, eventually, paternoster, temp_dir, tool_command};
use crate::wire::Wire;

const FILE: &str = "\
unix = \"nbd.sock\"
ctl = \"ctl.sock\"
[disks.d]
backend = \"modelled\"
size = \"128M\"
servers = 4
service_us = 200
scheduler = \"cfq\"
tunables = { slice_sync = 20 }
[groups.\"/gold\"]
weight = 400
[exports.a]
disk = \"d\"
size = \"64M\"
group = \"/gold\"
[exports.b]
disk = \"d\"
offset = \"64M\"
";

/// Another scheduler, a depth, a tunable that is gone and one that is new, weights of all kinds.
const CHANGED: [(&str, &str); 3] = [
    (
        "scheduler = \"cfq\"\ntunables = { slice_sync = 20 }",
        "scheduler = \"bfq\"\ndepth = 5\ntunables = { slice_idle = 3 }",
    ),
    ("weight = 400", "weight = 300\nleaf_weight = 50\nweight_device = { d = 77 }"),
    ("[exports.b]", "[exports.b]\nweight = 9"),
];

/// What these are, against what the server starts with. A modelled disk has twice as many requests
/// as servers in it, and CFQ does not idle for a queue there.
const DIFFERENCE: [&str; 8] = [
    "disk \"d\": scheduler \"cfq\" -> \"bfq\"",
    "disk \"d\": depth 8 -> 5",
    "disk \"d\": slice_idle_us 0 -> 3000",
    "group \"/gold\": weight 400 -> 300",
    "group \"/gold\": leaf_weight 400 -> 50",
    "group \"/gold\": weight_device.d none -> 77",
    "group \"/b\": weight 100 -> 9",
    "group \"/b\": leaf_weight 100 -> 9",
];

fn serve() -> Served {
    let dir = temp_dir();
    fs::write(dir.path().join("c.toml"), FILE).expect("a file");
    Served::start(dir, &["c.toml"], 2)
}

/// Writes the file with other text in these places.
fn write(served: &Served, replaced: &[(&str, &str)]) {
    let mut text = FILE.to_owned();
    for (old, new) in replaced {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    fs::write(served.path("c.toml"), text).expect("a file");
}

/// The lines with this before each.
fn lines(before: &str, lines: &[&str]) -> String {
    let whole: Vec<_> = lines.iter().map(|line| format!("{before}: {line}\n")).collect();
    whole.concat()
}

fn disk(served: &Served) -> DiskStat {
    let answer = fetch_stat(&served.path("ctl.sock"), Detail::Groups).expect("an answer");
    answer.stat.disks.into_iter().next().expect("a disk")
}

/// All that may change: what is set of the disk, and the weights of its groups.
fn in_force(served: &Served) -> (String, Vec<(String, u32, u32)>) {
    let groups = disk(served).groups.into_iter();
    let weights = groups.map(|group| (group.path, group.weight, group.leaf_weight)).collect();
    (ctl(served, &["get", "d"]).expect("a disk"), weights)
}

#[test]
fn file_that_has_changed_is_in_force_after_a_reload_and_not_after_a_dry_run() {
    let served = serve();
    let before = in_force(&served);
    assert_eq!(ctl(&served, &["reload"]).as_deref(), Ok("nothing changed\n"));
    assert_eq!(in_force(&served), before);

    write(&served, &CHANGED);
    let dry_run = ["reload", "--dry-run"];
    assert_eq!(ctl(&served, &dry_run), Ok(lines("would change", &DIFFERENCE)));
    assert_eq!(in_force(&served), before, "a dry run changes nothing");

    assert_eq!(ctl(&served, &["reload"]), Ok(lines("changed", &DIFFERENCE)));
    let (settings, weights) = in_force(&served);
    assert!(settings.starts_with("scheduler=bfq\ndepth=5\n"), "{settings}");
    assert!(settings.contains("\nslice_idle_us=3000\n"), "{settings}");
    assert_eq!(weights, [("/gold".to_owned(), 77, 50), ("/b".to_owned(), 9, 9)]);
    assert_eq!(ctl(&served, &dry_run).as_deref(), Ok("nothing would change\n"));
    // What the file said before is forgotten: CFQ has what fits the disk.
    ctl(&served, &["set", "d", "scheduler=cfq"]).expect("allowed");
    assert_eq!(ctl(&served, &["get", "d", "slice_sync"]).as_deref(), Ok("10\n"));
    assert_eq!(ctl(&served, &["get", "d", "slice_idle"]).as_deref(), Ok("3\n"));

    write(&served, &[]);
    ctl(&served, &["reload"]).expect("the first file");
    assert_eq!(in_force(&served), before, "as it was started");
    served.end();
}

#[test]
fn what_ctl_has_changed_goes_back_to_what_the_file_says() {
    let served = serve();
    let before = in_force(&served);
    for args in [
        &["set", "d", "quantum=3", "slice_sync=7", "depth=2"][..],
        &["weight", "/gold", "11", "--leaf", "12"],
        &["weight", "/b", "13", "--disk", "d"],
    ] {
        ctl(&served, args).expect("allowed");
    }
    // CFQ's quantum is Linux's 8; slice_sync is in the file.
    let difference = [
        "disk \"d\": depth 2 -> 8",
        "disk \"d\": quantum 3 -> 8",
        "disk \"d\": slice_sync_us 7000 -> 20000",
        "group \"/gold\": weight 11 -> 400",
        "group \"/gold\": leaf_weight 12 -> 400",
        "group \"/b\": weight_device.d 13 -> none",
    ];
    assert_eq!(ctl(&served, &["reload"]), Ok(lines("changed", &difference)));
    assert_eq!(in_force(&served), before);

    // Forgotten even where no difference shows it: deadlines have no quantum.
    let cfq = "scheduler = \"cfq\"\ntunables = { slice_sync = 20 }";
    write(&served, &[(cfq, "scheduler = \"mq-deadline\"")]);
    ctl(&served, &["set", "d", "quantum=3", "scheduler=cfq"]).expect("allowed");
    ctl(&served, &["set", "d", "scheduler=mq-deadline"]).expect("allowed");
    assert_eq!(ctl(&served, &["reload"]).as_deref(), Ok("nothing changed\n"));
    ctl(&served, &["set", "d", "scheduler=cfq"]).expect("allowed");
    assert_eq!(ctl(&served, &["get", "d", "quantum"]).as_deref(), Ok("8\n"));
    served.end();
}

#[test]
fn default_weights_are_those_of_the_file_that_was_read_last() {
    let served = serve();
    write(&served, &[("weight = 400", "weight = 250")]);
    ctl(&served, &["reload", "--dry-run"]).expect("a valid file");
    let default = ["weight", "/gold", "default"];
    let said = ctl(&served, &default).expect("allowed");
    assert!(said.contains("/gold has weight 400, "), "a dry run changes nothing: {said}");
    ctl(&served, &["reload"]).expect("a valid file");
    ctl(&served, &["weight", "/gold", "3"]).expect("allowed");
    let said = ctl(&served, &default).expect("allowed");
    assert!(said.contains("/gold has weight 250, "), "{said}");
    served.end();
}

#[test]
fn file_with_mistakes_changes_nothing_and_all_of_them_are_told() {
    let served = serve();
    let before = in_force(&served);
    write(
        &served,
        &[
            ("servers = 4", "servers = 4\ndepth = 0"),
            ("weight = 400", "weight = 1001"),
            ("offset = \"64M\"", "offset = \"999M\""),
        ],
    );
    let check = paternoster(served.dir.path())
        .args(["serve", "--check", "c.toml"])
        .output()
        .expect("it runs");
    let mistakes = String::from_utf8(check.stderr).expect("UTF-8");
    assert_eq!(mistakes.lines().count(), 3, "{mistakes}");
    for args in [&["reload"][..], &["reload", "--dry-run"]] {
        let refused = ctl(&served, args).expect_err("mistakes");
        let told = refused.split_once('\n').expect("more than a line").1;
        assert_eq!(told, mistakes, "as --check tells them: {refused}");
        assert!(refused.contains("says: nothing has changed"), "{refused}");
    }
    served.signal(Signal::HUP);
    eventually("the last mistake is logged", || {
        let told = |line: &str| served.log().contains(line.trim_start_matches("paternoster: "));
        mistakes.lines().all(told)
    });
    assert_eq!(in_force(&served), before);

    fs::remove_file(served.path("c.toml")).expect("it is there");
    let refused = ctl(&served, &["reload"]).expect_err("no file");
    assert!(refused.contains("cannot read c.toml: No such file"), "{refused}");
    assert_eq!(in_force(&served), before);
    served.end();
}

#[test]
fn what_needs_a_restart_is_named_and_left_while_the_rest_changes() {
    let served = serve();
    let before = in_force(&served);
    write(
        &served,
        &[
            (
                "[disks.d]",
                "payload_timeout = \"1m\"\n[disks.e]\nbackend = \"memory\"\nsize = 1\n[disks.d]",
            ),
            ("servers = 4", "servers = 2\ndepth = 6"),
            ("[exports.b]", "[exports.c]"),
        ],
    );
    let needs_restart = ["payload_timeout \"30s\" -> \"1m\"", "disk \"d\": servers 4 -> 2"];
    let changed = [
        "disk \"d\": depth 8 -> 6",
        "exports \"b\" -> none",
        "disks none -> \"e\"",
        "exports none -> \"c\"",
    ];
    let expected = lines("changed", &changed) + &lines("needs a restart", &needs_restart);
    assert_eq!(ctl(&served, &["reload"]), Ok(expected));
    let (settings, weights) = in_force(&served);
    assert_eq!(settings, before.0.replace("depth=8", "depth=6"));
    let [gold, b] = &before.1[..] else { panic!("{before:?}") };
    assert_eq!(weights, [gold.clone(), ("/c".to_owned(), b.1, b.2)]);
    for line in needs_restart {
        let line = format!("the file needs a restart for {line}");
        assert!(served.log().contains(&line), "{line}: {}", served.log());
    }
    // Named as long as there is no restart. The depth without a key is that of the four servers.
    write(&served, &[("servers = 4", "servers = 2")]);
    let again = "changed: disk \"d\": depth 6 -> 8\n\
                 changed: exports \"c\" -> none\n\
                 changed: disks \"e\" -> none\n\
                 changed: exports none -> \"b\"\n\
                 needs a restart: disk \"d\": servers 4 -> 2\n";
    assert_eq!(ctl(&served, &["reload"]).as_deref(), Ok(again));
    let mut wire = Wire::connect(&served, Place::Unix);
    wire.enter_by_name(3, "b");
    served.end();
}

#[test]
fn sighup_has_the_file_read_again_and_logs_the_difference() {
    let served = serve();
    write(&served, &CHANGED);
    served.signal(Signal::HUP);
    eventually("the file is in force", || disk(&served).scheduler == "bfq");
    for line in DIFFERENCE {
        let line = format!("the file changes {line}");
        eventually(&line, || served.log().contains(&line));
    }
    let shown = ctl(&served, &["reload", "--dry-run"]);
    assert_eq!(shown.as_deref(), Ok("nothing would change\n"));
    served.signal(Signal::HUP);
    eventually("that is logged", || served.log().contains("read again and changes nothing"));
    served.end();
}

#[test]
fn server_without_a_file_refuses() {
    let served = Served::empty_file(Place::Unix, 1 << 20, &["--ctl", "ctl.sock"]);
    let sentence = "the server was started without a file that could be read again";
    for args in [&["reload"][..], &["reload", "--dry-run"]] {
        let refused = ctl(&served, args).expect_err("there is no file");
        assert!(refused.contains(&format!("says: {sentence}")), "{refused}");
    }
    served.signal(Signal::HUP);
    eventually("that is logged", || served.log().contains(&format!("SIGHUP: {sentence}")));
    Wire::enter(&served, Place::Unix);
    served.end();
}

#[test]
fn reloads_under_load_lose_and_double_no_request() {
    let served = serve();
    let mut fio = tool_command("fio", served.dir.path());
    fio.args(["--ioengine=nbd", "--rw=randrw", "--bsrange=4k-32k", "--iodepth=16", "--thread"]);
    fio.args(["--size=8M", "--offset_increment=8M", "--numjobs=4", "--group_reporting"]);
    fio.args(["--time_based", "--runtime=6", "--verify=crc32c", "--verify_fatal=1"]);
    fio.args(["--verify_backlog=64", "--verify_state_save=0"]);
    for (name, uri) in ["a", "b"].iter().zip(&served.uris) {
        fio.arg(format!("--name={name}")).arg(format!("--uri={uri}"));
    }
    let log = File::create(served.path("fio.log")).expect("a log");
    let mut fio = fio.stdout(log.try_clone().expect("a log")).stderr(log).spawn().expect("it runs");

    let path = served.path("ctl.sock");
    let mut next = Instant::now();
    let mut reloads = 0;
    let status = loop {
        if let Some(status) = fio.try_wait().expect("a child") {
            break status;
        }
        write(&served, if reloads % 2 == 0 { &CHANGED } else { &[] });
        let answer = reload(&path, ReloadMode::Apply).expect("a valid file");
        // Back again, too: then it is CFQ's slice_sync that comes with the scheduler.
        assert_eq!(answer.changed.len(), DIFFERENCE.len(), "{:?}", answer.changed);
        reloads += 1;
        next += Duration::from_millis(200);
        thread::sleep(next.saturating_duration_since(Instant::now()));
    };
    check_found("fio", "fio", status);
    let said = fs::read_to_string(served.path("fio.log")).expect("a log");
    assert!(status.success() && said.contains("err= 0"), "{status}\n{said}");

    let DiskStat { switches, moved, queued, in_device, groups, .. } = disk(&served);
    println!("{reloads} reloads, {moved} requests moved");
    assert_eq!((queued, in_device), (0, 0));
    assert_eq!(switches, reloads, "each reload switches the scheduler");
    assert!(moved > 0, "requests waited at a reload");
    let ops = || groups.iter().flat_map(|group| group.ops.values());
    let [bios, merged] = [ops().map(|op| op.bios).sum::<u64>(), ops().map(|op| op.merged).sum()];
    let completed: u64 = ops().map(|op| op.completed).sum();
    assert_eq!(bios, merged + completed, "each bio is merged or completes as a request, once");
    served.end();
}
