//! `ctl trace` under load: its lines are what the scheduler decides, of whom, and in Linux's words.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use serde_json::{Map, Value, json};

use crate::support::{Place, Served, eventually, laboratory, paternoster, run, temp_dir};
use crate::wire::{Wire, request};

/// The disk serves one request at a time, the first for half a second and others for 3 ms.
const SERVICE_US: u64 = 1000;
const US_PER_KIB: u64 = 500;

/// Two exports, `a` and `b`, one behind the other, of groups with weights 200 and 100.
const SIZE: u64 = 8 << 20;

fn serve(scheduler: &str) -> Served {
    let dir = temp_dir();
    let mut toml = format!(
        "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n[disks.m]\nbackend = \"modelled\"\n\
         size = \"16M\"\nservers = 1\nservice_us = {SERVICE_US}\nns_per_kib = {}\ndepth = 1\n\
         {scheduler}\n",
        US_PER_KIB * 1000
    );
    for (name, offset, weight) in [("a", 0, 200), ("b", SIZE, 100)] {
        let _ = write!(
            toml,
            "[exports.{name}]\ndisk = \"m\"\nsize = {SIZE}\noffset = {offset}\nweight = {weight}\n"
        );
    }
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    Served::start(dir, &["c.toml"], 2)
}

/// Reads of each export, as offset and length in it: of `a` in pairs that merge, of `b` apart.
fn reads() -> [Vec<(u64, u32)>; 2] {
    let pairs = (1..8).flat_map(|pair| [pair << 20, (pair << 20) + 4096]);
    let first = (0, 480 << 10);
    let apart = (0..12).map(|place| ((place * 5 % 12) << 17, 4096));
    [[first].into_iter().chain(pairs.map(|offset| (offset, 4096))).collect(), apart.collect()]
}

/// The lines that the server sends while these reads are done.
fn traced(served: &Served, reads: &[Vec<(u64, u32)>; 2]) -> Vec<Value> {
    let mut trace = UnixStream::connect(served.path("ctl.sock")).expect("a connection");
    trace.write_all(b"GET /v1/trace?disk=m HTTP/1.0\r\n\r\n").expect("it is sent");
    let mut trace = BufReader::new(trace);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(trace.read_line(&mut head).expect("a line") > 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.0 200 ") && head.contains("application/jsonl"), "{head}");
    let mut wires = ["a", "b"].map(|export| {
        let mut wire = Wire::connect(served, Place::Unix);
        wire.enter_by_name(3, export);
        wire
    });
    let read =
        |(cookie, &(offset, len)): (usize, &(u64, u32))| request(0, 0, cookie as u64, offset, len);
    // While the disk is busy with the first, all others come.
    wires[0].send(&read((0, &reads[0][0])));
    let is_dispatched = |line: &Value| line["ev"] == "D";
    let mut lines: Vec<Value> = Vec::new();
    let mut next = |lines: &mut Vec<Value>| {
        let mut line = String::new();
        trace.read_line(&mut line).expect("a line");
        lines.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}")));
    };
    while !lines.last().is_some_and(is_dispatched) {
        next(&mut lines);
    }
    for (wire, reads) in wires.iter_mut().zip(reads) {
        let sent = reads.iter().enumerate().skip(usize::from(reads[0].1 > 4096));
        wire.send(&sent.flat_map(read).collect::<Vec<_>>());
    }
    let all = reads.iter().map(Vec::len).sum();
    let completed = |lines: &[Value]| lines.iter().filter(|line| line["ev"] == "C").count();
    while completed(&lines) < all {
        next(&mut lines);
    }
    lines
}

/// The same reads as a scenario: each arrives when it did, at the same device.
fn scenario(served: &Served, scheduler: &str, lines: &[Value], reads: &[Vec<(u64, u32)>; 2]) {
    let arrived = |task: usize, index: usize| {
        let name = format!("{}#{}.{index}", ["a", "b"][task], task + 1);
        let line = lines.iter().find(|line| line["ev"] == "Q" && line["rq"] == name.as_str());
        line.unwrap_or_else(|| panic!("{name} has not arrived: {lines:?}"))["t"].clone()
    };
    let task = |task: usize| {
        let requests = reads[task].iter().enumerate().map(|(index, &(offset, len))| {
            let sector = (offset + SIZE * task as u64) / 512;
            json!([arrived(task, index), "R", sector, len / 512])
        });
        let (group, requests) = (["/a", "/b"][task], requests.collect::<Vec<_>>());
        json!({
            "id": task + 1, "group": group, "ioprio": "none", "start_ns": 0,
            "depth": requests.len(), "requests": requests,
        })
    };
    let scenario = json!({
        "name": "s", "about": "what a server was asked for", "scheduler": scheduler,
        "tunables": tunables(served), "hz": 1000, "merges": true,
        "device": {
            "rotational": false, "queue_depth": 1, "channels": 1, "base_ns": SERVICE_US * 1000,
            "per_sector_ns": US_PER_KIB * 500, "seek_base_ns": 0, "seek_ns_per_mi_sector": 0,
        },
        "groups": [
            {"path": "/a", "weight": 200, "leaf_weight": 200},
            {"path": "/b", "weight": 100, "leaf_weight": 100},
        ],
        "tasks": [task(0), task(1)],
    });
    fs::write(served.path("s.scenario.json"), scenario.to_string()).expect("a file");
}

/// What `ctl get` says of the scheduler's tunables, as numbers.
fn tunables(served: &Served) -> Map<String, Value> {
    let settings = said(served, &["ctl", "--ctl", "ctl.sock", "get", "m"]);
    let number = |line: &str| {
        let (name, value) = line.split_once('=')?;
        // `cost=requests` is 1 in a scenario.
        let value = if value == "requests" { "1" } else { value };
        Some((name.to_owned(), Value::from(value.parse::<i64>().ok()?)))
    };
    let others = ["depth", "plug", "scheduler_auto"];
    let named = settings.lines().filter_map(number);
    named.filter(|(name, _)| !others.contains(&name.as_str())).collect()
}

fn said(served: &Served, args: &[&str]) -> String {
    let output = paternoster(served.dir.path()).args(args).output().expect("it runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Decisions without when they were: who asks and what is done comes from outside.
fn decisions(lines: impl Iterator<Item = Value>) -> Vec<String> {
    let outside = ["Q", "C", "U", "exit"];
    let decided = lines.filter(|line| !outside.iter().any(|&event| line["ev"] == event));
    let without = decided.map(|mut line| {
        let fields = line.as_object_mut().expect("an object");
        fields.remove("t");
        fields.remove("tenant");
        line.to_string().replace("a#", "").replace("b#", "")
    });
    without.collect()
}

/// Requests, and what the scheduler says of itself, in one order.
#[test]
fn lines_equal_those_of_decide_on_the_same_arrivals() {
    let reads = reads();
    for scheduler in ["none", "mq-deadline", "wfq"] {
        let cost = if scheduler == "wfq" { "tunables.cost = \"requests\"" } else { "" };
        let served = serve(&format!("scheduler = \"{scheduler}\"\n{cost}"));
        let lines = traced(&served, &reads);
        for line in &lines {
            let tenant = ["/a", "/b"].iter().any(|&tenant| line["tenant"] == tenant);
            assert!(tenant || line["ev"] == "batch", "{line}");
        }
        scenario(&served, scheduler, &lines, &reads);
        let decide = ["decide", "--out", "out", "s.scenario.json"];
        run("coreutils", &laboratory(), &decide, served.dir.path());
        let log = fs::read_to_string(served.path("out/s.log.jsonl")).expect("a log");
        let decided = log.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let decided = decisions(decided);
        assert_eq!(decisions(lines.into_iter()), decided, "{scheduler}");
        let merged = decided.iter().filter(|line| line.contains("\"ev\":\"M\"")).count();
        assert_eq!(merged, 7, "{scheduler}: {decided:#?}");
        served.end();
    }
}

/// Post 1: "it helps me a lot during debugging".
#[test]
fn turns_of_cfq_are_told_in_the_words_of_linux() {
    let served = serve("scheduler = \"cfq\"");
    let mut trace = paternoster(served.dir.path())
        .args(["ctl", "--ctl", "ctl.sock", "trace", "m", "--group", "/b"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut wires = ["a", "b"].map(|export| {
        let mut wire = Wire::connect(&served, Place::Unix);
        wire.enter_by_name(3, export);
        wire
    });
    let text = BufReader::new(trace.stdout.take().expect("it is piped"));
    let (sender, read) = mpsc::channel();
    thread::spawn(move || {
        text.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    let mut lines: Vec<String> = Vec::new();
    let has = |lines: &[String], words: &str| lines.iter().any(|line| line.contains(words));
    for round in 0.. {
        assert!(round < 500, "{lines:#?}");
        for wire in &mut wires {
            wire.send(&request(0, 0, round, round << 12, 4096));
        }
        for wire in &mut wires {
            assert_eq!(wire.simple_reply(round), 0);
            wire.skip(4096);
        }
        lines.extend(read.try_iter());
        if has(&lines, " sl_used=") && has(&lines, " arm_idle: ") {
            break;
        }
    }
    let expired = lines.iter().find(|line| line.contains(" sl_used=")).expect("there is one");
    let words: Vec<_> = expired.split_whitespace().collect();
    assert_eq!(words[1..4], ["/b", "b#2S", "expire"], "{expired}");
    let names = words[4..].iter().map(|word| word.split('=').next().unwrap_or_default());
    let names: Vec<_> = names.filter(|&name| name != "resid").collect();
    assert_eq!(names, ["why", "sl_used", "disp", "charge", "iops", "sect", "vt"], "{expired}");
    let idle = lines.iter().find(|line| line.contains(" arm_idle: ")).expect("there is one");
    assert!(idle.contains(" /b b#2S arm_idle: ") && idle.contains(" group_idle: "), "{idle}");
    assert!(!has(&lines, " /a "), "{lines:#?}");
    trace.kill().expect("it runs");
    trace.wait().expect("it ends");
    served.end();
}

#[test]
fn one_at_a_time_traces_a_disk_and_the_next_may_when_it_has_gone() {
    let served = serve("scheduler = \"bfq\"");
    let mut first = UnixStream::connect(served.path("ctl.sock")).expect("a connection");
    first.write_all(b"GET /v1/trace?disk=m HTTP/1.1\r\nHost: x\r\n\r\n").expect("it is sent");
    first.read_exact(&mut [0; 12]).expect("an answer");
    let ask = ["ctl", "--ctl", "ctl.sock", "trace", "m", "--seconds", "0.1"];
    let mut second = paternoster(served.dir.path());
    let refused = second.args(ask).output().expect("it runs");
    let error = String::from_utf8_lossy(&refused.stderr);
    let words = "disk \"m\" is traced already; one trace at a time is allowed";
    assert!(error.contains(words) && !refused.status.success(), "{error}");
    // The disk is idle: nothing but its end tells that the first has gone.
    drop(first);
    eventually("the next may", || {
        paternoster(served.dir.path()).args(ask).output().expect("it runs").status.success()
    });
    let url = ["--silent", "--unix-socket", "ctl.sock", "http://x/v1/trace?disk=x"];
    let unknown = run("curl", "curl", &url, served.dir.path());
    assert!(unknown.contains("there is no disk \\\"x\\\"; there are: \\\"m\\\""), "{unknown}");
    served.end();
}
