//! `ctl record`: what clients asked for is what is recorded, by the laboratory's reader and by
//! blktrace's tools, whatever becomes of the server meanwhile.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use paternoster_intake::{Options, Recorded, Request, Trace};
use rustix::process::Signal;
use serde_json::Value;

use crate::full_disk::{FLUSH, WRITE, ask};
use crate::settings::ctl;
use crate::support::{Place, Served, eventually, paternoster, run, temp_dir};
use crate::wire::{Wire, request};

const READ: u16 = 0;
const TRIM: u16 = 4;
const FUA: u16 = 1;

/// Two exports, the second behind the first, of groups with weights 200 and 100.
const SIZE: u64 = 32 << 20;

/// A server of a disk with these keys, which may write to `rec`.
fn serve(of_server: &str, of_disk: &str) -> Served {
    let dir = temp_dir();
    fs::create_dir(dir.path().join("rec")).expect("a directory");
    let toml = format!(
        "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\nsandbox_paths = [\"rec\"]\n{of_server}\n\
         [disks.vm]\nbackend = \"modelled\"\nsize = \"64M\"\nservers = 2\nservice_us = 200\n\
         {of_disk}\n\
         [exports.gold]\ndisk = \"vm\"\nsize = {SIZE}\nweight = 200\n\
         [exports.lead]\ndisk = \"vm\"\nsize = {SIZE}\noffset = {SIZE}\nweight = 100\n"
    );
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    Served::start(dir, &["c.toml"], 2)
}

fn enter(served: &Served, export: &str) -> Wire {
    let mut wire = Wire::connect(served, Place::Unix);
    wire.enter_by_name(3, export);
    wire
}

/// Sends reads of 4 KiB at once, and takes all replies, which come in any order.
fn read_at_once(wire: &mut Wire, offsets: &[u64]) {
    let reads =
        offsets.iter().zip(1..).flat_map(|(at, cookie)| request(0, READ, cookie, *at, 4096));
    wire.send(&reads.collect::<Vec<_>>());
    for _ in offsets {
        let reply: [u8; 16] = wire.take();
        assert_eq!(reply[4..8], [0; 4], "no error");
        wire.skip(4096);
    }
}

fn read(files: &Path) -> (Vec<Request>, Recorded) {
    let path = files.with_extension("blktrace.0");
    let mut trace = Trace::open(&path, &Options::default()).expect("it is a trace");
    let mut requests = Vec::new();
    while let Some(request) = trace.next_request().expect("it is whole") {
        requests.push(request);
    }
    let findings = trace.finish();
    (requests, findings.recorded().expect("it has a sidecar").clone())
}

fn stat(served: &Served) -> Value {
    serde_json::from_str(&ctl(served, &["stat", "--json"]).expect("it answers")).expect("JSON")
}

/// Each figure is what this client has sent, in this order.
#[test]
fn recording_has_what_clients_asked_for_and_behind_which_reply() {
    for threads in ["threads = 1", "threads = 2"] {
        let served = serve(threads, "scheduler = \"wfq\"");
        let mut gold = enter(&served, "gold");
        // Its I/O context is there before the recording is.
        read_at_once(&mut gold, &[0]);
        let begun =
            ctl(&served, &["record", "start", "vm", "--out", "rec/one"]).expect("it begins");
        assert!(begun.contains("rec/one: 0 requests"), "{begun}");
        read_at_once(&mut gold, &[1 << 20, 5 << 20]);
        assert_eq!(ask(&mut gold, FUA, WRITE, 4096, 8192), 0);
        assert_eq!(ask(&mut gold, 0, FLUSH, 0, 0), 0);
        let mut lead = enter(&served, "lead");
        assert_eq!(ask(&mut lead, 0, TRIM, 8192, 65536), 0);
        assert_eq!(ask(&mut lead, 0, TRIM, 8292, 100), 0);
        lead.send(&request(0, READ, 7, 700, 100));
        assert_eq!(lead.simple_reply(7), 0);
        lead.skip(100);
        let ended = ctl(&served, &["record", "stop", "vm"]).expect("it ends");
        assert!(ended.contains("7 requests") && ended.ends_with("it was stopped\n"), "{ended}");

        let (requests, recorded) = read(&served.path("rec/one"));
        let told: Vec<_> = requests
            .iter()
            .map(|it| {
                let after = it.replied.expect("it had a reply").after;
                (it.context.0, format!("{:?}", it.op), it.offset, it.len, after)
            })
            .collect();
        let is = |context, op: &str, offset, len, after| {
            (context, op.to_owned(), offset, len, Some(after))
        };
        let expected = [
            is(0, "Read", 1 << 20, 4096, 0),
            is(0, "Read", 5 << 20, 4096, 0),
            is(0, "Write", 4096, 8192, 2),
            is(0, "Flush", 0, 0, 3),
            is(1, "Discard", SIZE + 8192, 65536, 0),
            is(1, "Discard", SIZE + 8292, 100, 1),
            is(1, "Read", SIZE + 700, 100, 2),
        ];
        assert_eq!(told, expected, "{threads}");
        for it in &requests {
            let replied = it.replied.expect("it had a reply").at;
            let done = it.completed.expect("it completed");
            assert!(it.arrived < done && done <= replied + 8, "{it:?}");
            let is_dispatched = it.dispatched.is_some();
            assert_eq!(is_dispatched, it.len > 0, "{it:?}");
        }
        let parties: Vec<_> = recorded.parties.values().collect();
        let [first, second] = &parties[..] else { panic!("{parties:?}") };
        let of = |party: &paternoster_intake::Party| {
            (party.name.clone(), party.group.clone(), party.weight, party.volume.clone())
        };
        assert_eq!(of(first), ("gold#1".into(), "/gold".into(), 200, String::new()));
        assert_eq!(of(second), ("lead#2".into(), "/lead".into(), 100, String::new()));
        let meta = &recorded.meta;
        assert_eq!((&*meta.disk, meta.size, meta.rotational), ("vm", 2 * SIZE, false));
        assert!(meta.scheduler.starts_with("wfq"), "{meta:?}");
        assert!(recorded.lost.is_empty());
        for file in ["rec/one.blktrace.0", "rec/one.pater"] {
            let seen = fs::metadata(served.path(file)).expect("it is there");
            assert_eq!(seen.mode() & 0o777, 0o600, "{file}");
        }
        served.end();
    }
}

/// What blkparse counts is what the server counted.
#[test]
fn blktraces_tools_take_a_recording_and_count_what_the_server_did() {
    // On two, what a client sends at once merges before it comes to the disk's thread.
    for threads in ["threads = 1", "threads = 2"] {
        is_counted_by_blkparse(threads);
    }
}

fn is_counted_by_blkparse(threads: &str) {
    let served = serve(threads, "scheduler = \"mq-deadline\"\ndepth = 2");
    ctl(&served, &["record", "start", "vm", "--out", "rec/one"]).expect("it begins");
    let mut wires = ["gold", "lead"].map(|export| enter(&served, export));
    for round in 0..20 {
        // Neighbours merge while others are in the disk.
        let offsets = [0_u64, 1, 2, 3, 40, 41, 80].map(|page| (round << 20) + page * 4096);
        for wire in &mut wires {
            read_at_once(wire, &offsets);
        }
    }
    for wire in &mut wires {
        assert_eq!(ask(wire, 0, WRITE, 0, 1 << 20), 0);
    }
    ctl(&served, &["record", "stop", "vm"]).expect("it ends");
    let rec = served.path("rec");
    let text = run("blktrace", "blkparse", &["one"], &rec);
    let figure = |name: &str, nth: usize| {
        let line = text.lines().find(|line| line.contains(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {text}"));
        let digits = |part: &str| part.trim_matches(|c: char| !c.is_ascii_digit()).parse();
        let figures = line.split_whitespace().filter_map(|part| digits(part).ok());
        figures.collect::<Vec<u64>>()[nth]
    };
    let stat = stat(&served);
    let sum = |op: &str, what: &str| {
        let groups = stat["disks"][0]["groups"].as_array().expect("groups").iter();
        groups.map(|group| group["ops"][op][what].as_u64().expect("a count")).sum::<u64>()
    };
    let reads = sum("read", "completed");
    assert_eq!(figure("Reads Queued", 0), 280, "{text}");
    assert_eq!(figure("Reads Queued", 1), 280 * 4, "{text}");
    assert_eq!(figure("Read Dispatches", 0), reads, "{text}");
    assert_eq!(figure("Reads Completed", 0), reads, "{text}");
    assert_eq!(figure("Reads Completed", 1) << 10, sum("read", "bytes"), "{text}");
    assert_eq!(figure("Writes Completed", 3) << 10, sum("write", "bytes"), "{text}");
    assert_eq!(figure("Read Merges", 0), 280 - reads, "{text}");
    assert!(reads < 280, "some merged");
    run("blktrace", "blkrawverify", &["one"], &rec);
    let verdict = fs::read_to_string(rec.join("one.verify.out")).expect("it says so");
    assert!(verdict.contains("0 invalid (100.0%)"), "{verdict}");
    served.end();
}

#[test]
fn anonymous_recording_has_no_names_and_other_offsets() {
    let served = serve("", "scheduler = \"bfq\"");
    let start = ["record", "start", "vm", "--anonymous", "--out", "rec/one"];
    ctl(&served, &start).expect("it begins");
    let mut gold = enter(&served, "gold");
    let mib = |number: u64| number << 20;
    let offsets: Vec<_> = (0..20).flat_map(|at| [mib(at), mib(at) + 8192]).collect();
    for pair in offsets.chunks(2) {
        read_at_once(&mut gold, pair);
    }
    ctl(&served, &["record", "stop", "vm"]).expect("it ends");
    let (requests, recorded) = read(&served.path("rec/one"));
    assert_eq!(requests.len(), 40);
    for pair in requests.chunks(2) {
        assert_eq!(pair[0].offset + 8192, pair[1].offset, "within a block all is as it was");
    }
    let stays = requests.iter().zip(&offsets).filter(|(it, at)| it.offset == **at).count();
    assert!(stays < 20, "offsets say where data lie");
    let party = &recorded.parties[&1];
    assert_eq!((&*party.name, &*party.group), ("export0#1", "/group0"));
    for file in ["rec/one.blktrace.0", "rec/one.pater"] {
        let bytes = fs::read(served.path(file)).expect("it is there");
        for name in [&b"gold"[..], b"vm\""] {
            assert!(!bytes.windows(name.len()).any(|part| part == name), "{file}");
        }
    }
    served.end();
}

/// Some 64 bytes an entry, and four or five entries a request.
#[test]
fn last_has_the_newest_requests_and_makes_nothing_where_something_is() {
    let served = serve("threads = 1", "record_ring = \"16K\"\nscheduler = \"bfq\"");
    let mut gold = enter(&served, "gold");
    // It has 200 when it comes, and 250 when these come.
    read_at_once(&mut gold, &[0]);
    ctl(&served, &["weight", "/gold", "250"]).expect("it is set");
    for page in 0..400 {
        read_at_once(&mut gold, &[page * 4096]);
    }
    ctl(&served, &["weight", "/gold", "300"]).expect("it is set");
    ctl(&served, &["set", "vm", "scheduler=none"]).expect("it is set");
    let said = ctl(&served, &["record", "last", "vm", "--out", "rec/last"]).expect("it is written");
    assert!(said.ends_with("it has all that the disk knew\n"), "{said}");
    let (requests, recorded) = read(&served.path("rec/last"));
    assert_eq!(recorded.meta.scheduler, "bfq", "it was when these came");
    assert_eq!(recorded.parties[&1].weight, 250, "likewise");
    let pages: Vec<_> = requests.iter().map(|it| it.offset / 4096).collect();
    let first = pages[0];
    assert_eq!(pages, (first..400).collect::<Vec<_>>());
    assert!((330..380).contains(&first), "{} bytes hold {} requests", 16 << 10, pages.len());
    let again = ctl(&served, &["record", "last", "vm", "--out", "rec/last"]).expect_err("refused");
    assert!(again.contains("last.blktrace.0\": File exists"), "{again}");
    // Of two files that cannot both be made, none is left.
    fs::write(served.path("rec/half.pater"), "mine").expect("a file");
    let half = ctl(&served, &["record", "start", "vm", "--out", "rec/half"]).expect_err("refused");
    assert!(half.contains("half.pater\": File exists"), "{half}");
    assert!(!served.path("rec/half.blktrace.0").exists());
    assert_eq!(fs::read_to_string(served.path("rec/half.pater")).expect("it is there"), "mine");
    served.end();

    let served = serve("", "record_ring = 0");
    let none = ctl(&served, &["record", "last", "vm", "--out", "rec/last"]).expect_err("refused");
    assert!(none.contains("disk \"vm\" keeps nothing of the past: its record_ring is 0"), "{none}");
    ctl(&served, &["record", "start", "vm", "--out", "rec/one"]).expect("it has a ring meanwhile");
    read_at_once(&mut enter(&served, "gold"), &[4096]);
    ctl(&served, &["record", "stop", "vm"]).expect("it ends");
    assert_eq!(read(&served.path("rec/one")).0.len(), 1);
    served.end();
}

#[test]
fn killed_server_leaves_what_it_has_written() {
    let served = serve("threads = 1", "");
    ctl(&served, &["record", "start", "vm", "--out", "rec/one"]).expect("it begins");
    let mut gold = enter(&served, "gold");
    for page in 0..100 {
        read_at_once(&mut gold, &[page * 4096]);
    }
    eventually("all of it is written", || {
        let said = ctl(&served, &["record", "status", "vm", "--json"]).expect("it answers");
        let said: Value = serde_json::from_str(&said).expect("JSON");
        said["disks"][0]["requests"] == 100
    });
    served.signal(Signal::KILL);
    let dir = served.leave();
    let (requests, recorded) = read(&dir.path().join("rec/one"));
    assert_eq!(requests.len(), 100);
    assert!(requests.iter().all(|it| it.replied.is_some()) && recorded.lost.is_empty());
}

#[test]
fn recording_ends_by_itself_and_only_one_is_made_of_a_disk() {
    let served = serve("", "");
    let start = ["record", "start", "vm", "--for", "200ms", "--out", "rec/one"];
    ctl(&served, &start).expect("it begins");
    let busy = ctl(&served, &["record", "start", "vm", "--out", "rec/two"]).expect_err("refused");
    assert!(busy.contains("disk \"vm\" is recorded already, to \"/"), "{busy}");
    eventually("its time is over", || {
        ctl(&served, &["record", "status"]).expect("it answers").ends_with("its time is over\n")
    });
    let none = ctl(&served, &["record", "stop", "vm"]).expect_err("refused");
    assert!(none.contains("disk \"vm\" is not recorded"), "{none}");
    ctl(&served, &["record", "start", "vm", "--max", "1M", "--out", "rec/two"]).expect("it begins");
    let mut gold = enter(&served, "gold");
    eventually("its files are full", || {
        let offsets: Vec<_> = (0..512).map(|page| page * 8192).collect();
        read_at_once(&mut gold, &offsets);
        let said = ctl(&served, &["record", "status"]).expect("it answers");
        said.ends_with("its files are as long as they may be\n")
    });
    let bytes = ["rec/two.blktrace.0", "rec/two.pater"]
        .map(|file| fs::metadata(served.path(file)).expect("it is there").len());
    assert!((1_000_000..=1 << 20).contains(&(bytes[0] + bytes[1])), "{bytes:?}");
    for (args, why) in [
        (["--out", "rec/three", "--for", "0s"], "seconds=0: 0.1 to 2592000 is allowed"),
        (["--out", "rec/three", "--max", "4K"], "max_bytes=4096: 1048576 (1 MiB) or more"),
        (["--out", "/nowhere/three", "--max", "1M"], "cannot make \"/nowhere/three.blktrace.0\""),
    ] {
        let args = [&["record", "start", "vm"][..], &args].concat();
        let refused = ctl(&served, &args).expect_err("refused");
        assert!(refused.contains(why), "{refused}");
    }
    served.end();
}

#[test]
fn recording_of_a_pool_names_volumes_and_what_was_set() {
    let dir = temp_dir();
    fs::create_dir(dir.path().join("rec")).expect("a directory");
    let toml = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\nsandbox_paths = [\"rec\"]\n\
                [pools.fast]\nbackend = \"modelled\"\nservers = 2\nservice_us = 100\n\
                scheduler = \"wfq\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let served = Served::start(dir, &["c.toml"], 0);
    eventually("it answers", || ctl(&served, &["pool", "list"]).is_ok());
    for name in ["vm1", "vm2"] {
        let create = ["volume", "create", name, "--pool", "fast", "--size", "16M", "weight=300"];
        ctl(&served, &create).expect("it is made");
    }
    ctl(&served, &["record", "start", "fast", "--out", "rec/one"]).expect("it begins");
    let mut wires = ["vm1", "vm2"].map(|name| Wire::enter_at(&served.path("nbd.sock"), name));
    for wire in &mut wires {
        read_at_once(wire, &[8192]);
    }
    ctl(&served, &["weight", "/vm1", "77"]).expect("it is set");
    ctl(&served, &["set", "fast", "scheduler=bfq"]).expect("it is set");
    for wire in &mut wires {
        read_at_once(wire, &[12288]);
    }
    let [first, mut stays] = wires;
    drop(first);
    ctl(&served, &["volume", "remove", "vm1"]).expect("it goes while it is recorded");
    read_at_once(&mut stays, &[16384]);
    ctl(&served, &["record", "stop", "fast"]).expect("it ends");
    let (requests, recorded) = read(&served.path("rec/one"));
    assert_eq!(requests.len(), 5);
    let parties = recorded.parties.values();
    let volumes: Vec<_> = parties.map(|party| (&*party.volume, party.weight)).collect();
    assert_eq!(volumes, [("vm1", 300), ("vm2", 300)]);
    let changes = recorded.changes.iter().map(|change| (&*change.what, &*change.value));
    let changes: Vec<_> = changes.collect();
    assert!(changes.contains(&("group \"/vm1\" weight", "77")), "{changes:?}");
    assert!(changes.contains(&("disk \"fast\" scheduler", "bfq")), "{changes:?}");
    // One behind the other, in the order in which their clients came.
    let offsets: Vec<_> = requests.iter().map(|it| it.offset).collect();
    let second = 16 << 20;
    assert_eq!(offsets, [8192, second + 8192, 12288, second + 12288, second + 16384]);
    served.end();
}

/// Nothing that was asked of the server fails with its recording.
#[test]
fn full_file_system_ends_the_recording_and_not_the_server() {
    let dir = temp_dir();
    let mount = "{ mount --make-rprivate / || true; } 2>/dev/null; \
                 mkdir rec && mount -t tmpfs -o size=256K none rec && exec \"$@\"";
    let mut command = paternoster(dir.path());
    let toml = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\nsandbox_paths = [\"rec\"]\n\
                [disks.vm]\nbackend = \"memory\"\nsize = \"64M\"\n[exports.vm]\ndisk = \"vm\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let program = command.get_program().to_owned();
    command = std::process::Command::new("unshare");
    command.current_dir(dir.path()).args(["--mount", "--propagation", "unchanged"]);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["sh", "-c", mount, "sh"]).arg(program).args(["serve", "c.toml"]);
    let served = Served::spawn(dir, command, 1);
    ctl(&served, &["record", "start", "vm", "--out", "rec/one"]).expect("it begins");
    let mut wire = enter(&served, "vm");
    let failed = || {
        paternoster(served.dir.path())
            .args(["ctl", "--ctl", "ctl.sock", "record", "status"])
            .output()
            .expect("it runs")
    };
    eventually("it is full", || {
        read_at_once(&mut wire, &(0..256).map(|page| page * 4096).collect::<Vec<_>>());
        !failed().status.success()
    });
    let said = String::from_utf8(failed().stdout).expect("UTF-8");
    assert!(said.contains("cannot write: No space left on device"), "{said}");
    read_at_once(&mut wire, &[0]);
    served.end();
}
