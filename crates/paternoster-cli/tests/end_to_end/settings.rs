//! `ctl get` and `ctl set` while clients are served.

use std::fs::{self, File};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use paternoster::{Hierarchy, SchedulerKind};
use paternoster_server::ctl::{
    DiskChange, GroupChange, Settings, change_settings, fetch_stat, set_group,
};
use paternoster_server::stat::{Detail, DiskStat};
use serde_json::Value;

use crate::support::{Served, check_found, paternoster, run, temp_dir, tool_command};

/// How long a scheduler is in force.
const PERIOD: Duration = Duration::from_millis(200);

/// How long a request takes on the modelled disk.
const SERVICE: Duration = Duration::from_micros(200);

/// So many switches have to find requests that wait, without connection threads and with two.
const LOADED_SWITCHES: u32 = 50;

/// Sixteen connections of two tenants on a modelled disk of 20,000 requests a second.
fn serve() -> Served {
    serve_on(1, SERVICE)
}

/// The same with so many connection threads, and requests that take so long.
fn serve_on(threads: usize, service: Duration) -> Served {
    let dir = temp_dir();
    let toml = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\nthreads = THREADS\n\
                [disks.d]\nbackend = \"modelled\"\nsize = \"128M\"\n\
                servers = 4\nservice_us = SERVICE\nscheduler = \"cfq\"\n\
                [exports.a]\ndisk = \"d\"\nsize = \"64M\"\n\
                [exports.b]\ndisk = \"d\"\noffset = \"64M\"\n";
    let toml = toml.replace("THREADS", &threads.to_string());
    let toml = toml.replace("SERVICE", &service.as_micros().to_string());
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    Served::start(dir, &["c.toml"], 2)
}

/// What `paternoster ctl ARGS` says on standard output, or else on standard error.
pub(crate) fn ctl(served: &Served, args: &[&str]) -> Result<String, String> {
    let mut command = paternoster(served.dir.path());
    let output = command.args(["ctl", "--ctl", "ctl.sock"]).args(args).output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn settings_are_shown_changed_and_refused() {
    let served = serve();
    let shown = ctl(&served, &["get", "d"]).expect("a disk");
    assert!(
        shown.starts_with(
            "scheduler=cfq\nhierarchy=leaf-weight\ndepth=8\npoll=auto\nback_seek_max="
        ),
        "{shown}"
    );
    let set = ["set", "d", "scheduler=bfq", "depth=4", "slice_idle_us=700"];
    let shown = ctl(&served, &set).expect("allowed");
    assert!(shown.starts_with("scheduler=bfq\ndepth=4\npoll=auto\n"), "{shown}");
    assert!(shown.contains("\nslice_idle_us=700\n"), "{shown}");
    // What fits the disk, not Linux's 125.
    assert_eq!(ctl(&served, &["get", "d", "timeout_sync"]), Ok("5\n".to_owned()));

    let before = ctl(&served, &["get", "d"]).expect("a disk");
    for (settings, said) in [
        (&["depth=9", "quantum=8"][..], "\"quantum\" cannot be set under bfq; what can be set is"),
        (&["depth=9", "slice_idle=-1"], "slice_idle = -1: 0 to "),
        (&["depth=9", "scheduler=deadline"], "scheduler = \"deadline\": \"auto\", \"none\", "),
        (&["depth=9", "depth=9"], "depth is set twice"),
        (&["depth=0"], "depth = 0: 1 to 1024 requests, or \"learned\" under wfq, is allowed"),
        (&["depth"], "\"depth\": NAME=VALUE is allowed"),
    ] {
        let refused = ctl(&served, &[&["set", "d"], settings].concat()).expect_err("refused");
        assert!(refused.contains(said), "{settings:?}: {refused}");
    }
    assert_eq!(ctl(&served, &["get", "d"]), Ok(before), "nothing of what is refused is done");
    let unknown = ctl(&served, &["set", "e", "depth=1"]).expect_err("no such disk");
    assert!(unknown.contains("there is no disk \"e\"; there are: \"d\""), "{unknown}");
    let unknown = ctl(&served, &["get", "d", "quantum"]).expect_err("CFQ's");
    assert!(unknown.contains("disk \"d\" has no \"quantum\" under bfq; it has: "), "{unknown}");
    served.end();
}

/// `poll`, and the tunables of `hybrid`, which it has only while that is in force.
#[test]
fn way_to_wait_changes_while_clients_are_served() {
    // Longer than a busy machine keeps one waiting that has slept.
    const READ: Duration = Duration::from_millis(8);
    // They take more than the 100 ms after which there is a mean.
    const READS: usize = 25;
    let served = serve_on(1, READ);
    let read = || {
        let uri = format!("nbd+unix:///a?socket={}/nbd.sock", served.dir.path().display());
        let reads = ["-c", "read 0 4k"].into_iter().cycle().take(2 * READS);
        let args: Vec<_> = ["-f", "raw"].into_iter().chain(reads).chain([&*uri]).collect();
        run("qemu-utils", "qemu-io", &args, served.dir.path());
    };
    let counts = |mode: &str| {
        let stat = ctl(&served, &["stat", "--json"]).expect("it answers");
        let stat: Value = serde_json::from_str(&stat).expect("JSON");
        let poll = &stat["disks"][0]["poll"];
        assert_eq!(poll["mode"], mode, "{poll}");
        ["sleeps", "polls"].map(|name| poll[name].as_u64().expect("a count"))
    };
    let hybrid = "hybrid\nio_poll_delay";
    // Which of the two each of the reads is to have.
    for (set, shown, [sleeps, polls]) in [
        (&["poll=hybrid", "io_poll_delay=50"][..], format!("{hybrid}=50\n"), [true, true]),
        (&["io_poll_delay=0"], format!("{hybrid}=0\n"), [true, true]),
        (&["poll=classic"], "classic\nback_seek_max=".to_owned(), [false, true]),
        (&["poll=interrupt"], "interrupt\nback_seek_max=".to_owned(), [false, false]),
    ] {
        let said = ctl(&served, &[&["set", "d"], set].concat()).expect("allowed");
        assert!(said.contains(&format!("\npoll={shown}")), "{said}");
        let mode = shown.split('\n').next().expect("a word");
        let before = counts(mode);
        read();
        let after = counts(mode);
        let grown = [after[0] - before[0], after[1] - before[1]];
        // Whatever else comes ends a wait, too.
        let most = [sleeps, polls].map(|it| if it { READS as u64 / 2..10_000 } else { 0..1 });
        assert!(most[0].contains(&grown[0]) && most[1].contains(&grown[1]), "{set:?}: {grown:?}");
    }
    let refused = ctl(&served, &["set", "d", "io_poll_delay=50"]).expect_err("not hybrid");
    assert!(refused.contains("it is allowed with poll = \"hybrid\""), "{refused}");
    served.end();
}

/// `cost` of `wfq`.
#[test]
fn value_with_words_is_set_by_its_word_or_its_number_and_shown_by_the_word() {
    let served = serve();
    let shown = ctl(&served, &["set", "d", "scheduler=wfq", "cost=bytes"]).expect("allowed");
    assert!(shown.contains("\ncost=bytes\n"), "{shown}");
    ctl(&served, &["set", "d", "cost=3"]).expect("allowed");
    assert_eq!(ctl(&served, &["get", "d", "cost"]).as_deref(), Ok("fixed\n"));
    let refused = ctl(&served, &["set", "d", "cost=lern"]).expect_err("it is no word");
    assert!(refused.contains("cost = \"lern\": one of learn, requests, bytes, fixed"), "{refused}");
    served.end();
}

/// `ctl limit`, `stat` and `reload` of a group's caps and reservations.
#[test]
fn limits_are_set_shown_and_put_back_by_the_file() {
    let served = serve();
    let refused = ctl(&served, &["limit", "/a", "riops=5"]).expect_err("cfq has none");
    assert!(refused.contains("the scheduler cfq, which has no caps"), "{refused}");
    ctl(&served, &["set", "d", "scheduler=wfq"]).expect("allowed");
    let said = ctl(&served, &["limit", "/a", "riops=500", "wbps=1M", "min_iops=9"]);
    assert_eq!(said.as_deref(), Ok("disk d: /a has min_iops 9, riops 500, wbps 1 MiB\n"));
    let said = ctl(&served, &["limit", "/a", "riops=max", "--disk", "d"]);
    assert_eq!(said.as_deref(), Ok("disk d: /a has min_iops 9, wbps 1 MiB\n"));
    let shown = ctl(&served, &["stat"]).expect("it answers");
    assert!(shown.contains("\n  /a: min_iops 9, wbps 1 MiB\n"), "{shown}");
    assert_eq!(ctl(&served, &["get", "/a", "wbps"]).as_deref(), Ok("1048576\n"));
    let refused = ctl(&served, &["limit", "/a", "riops=9", "weight=5"]).expect_err("no limit");
    assert!(refused.contains("no limit: weight; limits are: riops, wiops, rbps, "), "{refused}");
    let said = ctl(&served, &["limit", "/", "bps=90M"]);
    assert_eq!(said.as_deref(), Ok("disk d: / has bps 90 MiB\n"));
    let shown = ctl(&served, &["stat"]).expect("it answers");
    assert!(shown.contains("\n  /: bps 90 MiB"), "{shown}");
    let lines = "riops=max\nwiops=max\nrbps=max\nwbps=max\niops=max\nbps=94371840\n";
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&ctl(&served, &["get", "/"]).expect("it answers")), sorted(lines));
    ctl(&served, &["limit", "/", "bps=max"]).expect("allowed");
    let shown = ctl(&served, &["set", "/a", "weight=7", "latency_target=2ms"]).expect("allowed");
    for line in ["weight=7\n", "latency_target=2ms\n", "riops=max\n", "min_iops=9\n"] {
        assert!(shown.contains(line), "no {line}: {shown}");
    }
    let refused = ctl(&served, &["set", "/a", "latency_target=2000"]).expect_err("no unit");
    assert!(refused.contains("a duration with its unit, \"2000us\", is allowed"), "{refused}");
    ctl(&served, &["set", "/a", "weight=default", "latency_target=0us"]).expect("allowed");
    ctl(&served, &["set", "d", "scheduler=cfq"]).expect("allowed");
    let shown = ctl(&served, &["stat"]).expect("it answers");
    assert!(shown.contains("\n  /a: min_iops 9, wbps 1 MiB; no effect under cfq\n"), "{shown}");
    let lines = "changed: group \"/a\": wbps 1048576 -> \"max\"\n\
                 changed: group \"/a\": min_iops 9 -> 0\n";
    assert_eq!(ctl(&served, &["reload"]).as_deref(), Ok(lines));
    assert_eq!(ctl(&served, &["reload"]).as_deref(), Ok("nothing changed\n"));
    served.end();
}

/// It is of a disk, whose root it is a setting of, and of no group.
#[test]
fn hierarchy_is_set_of_a_disk_under_cfq_and_of_nothing_else() {
    let served = serve();
    for (setting, hierarchy) in [
        ("use_hierarchy=0", "flat"),
        ("use_hierarchy=1", "entities"),
        ("hierarchy=leaf-weight", "leaf-weight"),
    ] {
        let shown = ctl(&served, &["set", "d", setting]).expect(setting);
        assert!(shown.contains(&format!("\nhierarchy={hierarchy}\n")), "{setting}: {shown}");
    }
    for (what, said) in [
        (&["/a", "use_hierarchy=1"][..], "a group has no \"use_hierarchy\"; what can be set is: "),
        (
            &["/", "use_hierarchy=1"],
            "a group has no \"use_hierarchy\"; what can be set is: riops, ",
        ),
        (&["d", "use_hierarchy=2"], "use_hierarchy = 2: 0 (flat) or 1 (entities) is allowed"),
        (&["d", "use_hierarchy=flat"], "use_hierarchy = \"flat\": 0 (flat) or 1 (entities) is"),
        (&["d", "use_hierarchy="], "use_hierarchy = \"\": 0 (flat) or 1 (entities) is allowed"),
        (
            &["d", "hierarchy=1"],
            "hierarchy = 1: \"leaf-weight\", \"flat\" or \"entities\" is allowed",
        ),
        (&["d", "scheduler=bfq", "use_hierarchy=1"], "bfq has no hierarchy to choose; cfq"),
    ] {
        let refused = ctl(&served, &[&["set"], what].concat()).expect_err("refused");
        assert!(refused.contains(said), "{what:?}: {refused}");
    }
    assert_eq!(ctl(&served, &["get", "d", "hierarchy"]), Ok("leaf-weight\n".to_owned()));
    ctl(&served, &["set", "d", "scheduler=kyber"]).expect("allowed");
    let refused = ctl(&served, &["set", "d", "use_hierarchy=1"]).expect_err("Kyber has none");
    assert!(refused.contains("kyber has no hierarchy to choose; cfq"), "{refused}");
    served.end();
}

#[test]
fn scheduler_that_changes_every_200_ms_loses_and_doubles_no_request() {
    for threads in [1, 2] {
        switch_under_load(threads);
    }
}

fn switch_under_load(threads: usize) {
    let served = serve_on(threads, SERVICE);
    let mut fio = tool_command("fio", served.dir.path());
    fio.args(["--ioengine=nbd", "--rw=randrw", "--bsrange=4k-32k", "--iodepth=16", "--thread"]);
    fio.args(["--size=8M", "--offset_increment=8M", "--numjobs=8", "--group_reporting"]);
    fio.args(["--time_based", "--runtime=13", "--verify=crc32c", "--verify_fatal=1"]);
    fio.args(["--verify_backlog=64", "--verify_state_save=0"]);
    for (name, uri) in ["a", "b"].iter().zip(&served.uris) {
        fio.arg(format!("--name={name}")).arg(format!("--uri={uri}"));
    }
    let log = File::create(served.path("fio.log")).expect("a log");
    let mut fio = fio.stdout(log.try_clone().expect("a log")).stderr(log).spawn().expect("it runs");

    let mut random = Rng::with_seed(11);
    let mut kind = SchedulerKind::Cfq;
    let mut loaded = 0;
    let mut moved = 0;
    let mut next = Instant::now();
    let status = loop {
        if let Some(status) = fio.try_wait().expect("a child") {
            break status;
        }
        let others = SchedulerKind::ALL.into_iter().filter(|&other| other != kind);
        kind = *random.choice(&others.collect::<Vec<_>>()).expect("there are several");
        change(&served, kind, &mut random);
        let now = disk(&served).moved;
        loaded += u32::from(now > moved);
        moved = now;
        next += PERIOD;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    };
    check_found("fio", "fio", status);
    let said = fs::read_to_string(served.path("fio.log")).expect("a log");
    assert!(status.success() && said.contains("err= 0"), "{status}\n{said}");

    let DiskStat { switches, queued, in_device, groups, .. } = disk(&served);
    let ops = || groups.iter().flat_map(|group| group.ops.values());
    let [bios, merged] = [ops().map(|op| op.bios).sum::<u64>(), ops().map(|op| op.merged).sum()];
    let completed: u64 = ops().map(|op| op.completed).sum();
    println!(
        "{threads} threads: {switches} switches, {loaded} of them with requests, {moved} moved; \
         {bios} bios, {merged} merged, {completed} requests completed"
    );
    assert_eq!((queued, in_device), (0, 0));
    assert_eq!(bios, merged + completed, "each bio is merged or completes as a request, once");
    assert!(loaded >= LOADED_SWITCHES, "{loaded} switches found requests that wait");
    served.end();
}

/// Changes to that scheduler, and draws a hierarchy, a depth, a tunable and a weight.
fn change(served: &Served, kind: SchedulerKind, random: &mut Rng) {
    let path = served.path("ctl.sock");
    let mut set = vec![
        ("scheduler".to_owned(), Value::from(kind.name())),
        ("depth".to_owned(), random.u32(1..=16).into()),
    ];
    if kind == SchedulerKind::Cfq {
        let hierarchy = random.choice(Hierarchy::ALL).expect("there are three");
        set.push(("hierarchy".to_owned(), hierarchy.name().into()));
    }
    // The disk's `depth` is that of wfq.
    let tunables = kind.tunables().iter().filter(|tunable| tunable.name != "depth");
    if let Some(tunable) = random.choice(&tunables.collect::<Vec<_>>()) {
        // The least one of some would stop nearly everything for seconds, as would the greatest.
        let value = random.i64(tunable.default / 2..=tunable.default.saturating_mul(2));
        set.push((tunable.name.to_owned(), value.clamp(tunable.min, tunable.max).into()));
    }
    let change = DiskChange { disk: "d".to_owned(), set: Settings(set) };
    let answer = change_settings(&path, &change).expect("allowed");
    let scheduler = answer.disks[0].settings.get("scheduler");
    assert_eq!(scheduler, Some(&kind.name().into()));
    let weight = GroupChange::one("/a", "weight", random.u32(1..=1000));
    set_group(&path, &weight).expect("allowed");
}

fn disk(served: &Served) -> DiskStat {
    let answer = fetch_stat(&served.path("ctl.sock"), Detail::Groups).expect("an answer");
    answer.stat.disks.into_iter().next().expect("a disk")
}
