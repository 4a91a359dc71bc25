//! `ctl why` and `top`: what they say of tenants that wait for a known reason.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use paternoster::Nanos;
use paternoster_load::Load;
use paternoster_scene::Tenant;
use serde_json::Value;

use crate::support::{Place, Served, paternoster, run, temp_dir};
use crate::wire::{Wire, request};

/// A modelled disk that serves one request at a time, with two tenants.
fn serve(scheduler: &str, weights: [(&str, u32); 2]) -> Served {
    let dir = temp_dir();
    let mut toml = format!(
        "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n[disks.m]\nbackend = \"modelled\"\n\
         size = \"16M\"\nservers = 1\nservice_us = 400\ndepth = 2\n{scheduler}\n"
    );
    for (index, (name, weight)) in weights.iter().enumerate() {
        let export = format!(
            "[exports.{name}]\ndisk = \"m\"\nsize = \"8M\"\noffset = \"{}M\"\nweight = {weight}\n",
            8 * index
        );
        toml.push_str(&export);
    }
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    Served::start(dir, &["c.toml"], 2)
}

/// Clients that ask until this is dropped.
struct Asking {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Asking {
    /// Each tenant has one client with so many requests outstanding, which thinks so long.
    fn start(served: &Served, tenants: &[(&str, u32, Nanos)]) -> Self {
        let socket = served.path("nbd.sock");
        let tenant = |&(name, depth, think): &(&str, _, _)| Tenant {
            think,
            ..Tenant::reads(100, 1, depth).named(name)
        };
        let tenants: Vec<_> = tenants.iter().map(tenant).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut clients = Load::connect(&socket, &tenants, 7).expect("clients");
            clients.start().expect("they ask");
            while !stopped.load(Ordering::Relaxed) {
                clients.run_for(Duration::from_millis(20)).expect("they are answered");
            }
        });
        thread::sleep(Duration::from_millis(200));
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_some_and(|ended| ended.is_ok()), "they failed");
    }
}

/// What the program writes, and whether that was a success.
fn say(dir: &Path, args: &[&str]) -> (bool, String) {
    let output = paternoster(dir).args(args).output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).expect("UTF-8"))
}

/// The answer about a tenant, of a second, on the only disk; and the same for people.
fn why(served: &Served, tenant: &str) -> (Value, String) {
    let dir = served.dir.path();
    let ask = ["ctl", "--ctl", "ctl.sock", "why", tenant, "--seconds", "1"];
    let (succeeded, json) = say(dir, &[&ask[..], &["--json"]].concat());
    assert!(succeeded, "{json}");
    let answer: Value = serde_json::from_str(&json).expect("JSON");
    let (succeeded, text) = say(dir, &ask);
    assert!(succeeded, "{text}");
    (answer["disks"][0].clone(), text)
}

/// The part of the time that a cause has.
fn part(why: &Value, cause: &str) -> f64 {
    let number = |value: &Value| value.as_f64().expect("a number");
    number(&why["time"][format!("{cause}_ns")]) / number(&why["elapsed_ns"])
}

/// All causes together are all time; shown to a part in a million.
fn check_sum(why: &Value) {
    let waiting = ["turn", "busy", "idle_window", "cap", "target", "server"];
    let causes = waiting.into_iter().chain(["memory", "unread", "too_few", "nothing"]);
    let sum: f64 = causes.map(|cause| part(why, cause)).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{sum} of the time: {why}");
}

#[test]
fn tenant_behind_a_heavier_one_is_told_behind_whom() {
    let served = serve("scheduler = \"cfq\"", [("heavy", 900), ("light", 100)]);
    let asking = Asking::start(&served, &[("heavy", 16, Nanos::ZERO), ("light", 16, Nanos::ZERO)]);
    let (light, text) = why(&served, "/light");
    check_sum(&light);
    assert!((0.1 - light["entitled"].as_f64().expect("a share")).abs() < 1e-9, "{light}");
    assert!(part(&light, "turn") > 0.6, "{light}");
    assert_eq!(light["behind"][0]["tenant"], "/heavy", "{light}");
    assert_eq!(light["behind"][0]["time_ns"], light["time"]["turn_ns"], "{light}");
    assert!(text.contains("its turn had not come: behind /heavy "), "{text}");
    // The other one is mostly next.
    let (heavy, text) = why(&served, "/heavy");
    check_sum(&heavy);
    assert!(part(&heavy, "turn") < 0.3, "{heavy}");
    assert!(part(&heavy, "busy") > 0.5, "{heavy}");
    assert!(text.contains("the disk was busy with its own requests"), "{text}");
    check_top(&served);
    drop(asking);
    served.end();
}

/// The screen while both ask.
fn check_top(served: &Served) {
    let (succeeded, screen) = say(served.dir.path(), &["top", "--ctl", "ctl.sock", "--once"]);
    assert!(succeeded, "{screen}");
    let lines: Vec<_> = screen.lines().collect();
    let [disk, header, heavy, light] = lines[..] else { panic!("{screen}") };
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{screen}");
    assert!(disk.starts_with("disk m: cfq, depth 2, "), "{screen}");
    let columns: Vec<_> = header.split_whitespace().collect();
    assert_eq!(
        columns,
        "TENANT DUE HAD DEMAND IOPS P50 P99 WAITS FOR".split(' ').collect::<Vec<_>>()
    );
    let words: Vec<_> = light.split_whitespace().collect();
    assert_eq!(words[..2], ["/light", "10.0%"], "{screen}");
    assert_eq!(words[7], "/heavy", "{screen}");
    assert!(heavy.starts_with("/heavy ") && heavy.contains("90.0%"), "{screen}");
}

#[test]
fn victim_of_an_idle_window_is_told_for_whom_the_disk_is_idled() {
    let served =
        serve("scheduler = \"cfq\"\ntunables.group_idle = 8", [("thinker", 100), ("victim", 100)]);
    let asking = Asking::start(
        &served,
        &[("thinker", 1, Nanos::from_millis(2)), ("victim", 8, Nanos::ZERO)],
    );
    let (victim, text) = why(&served, "/victim");
    check_sum(&victim);
    assert!(part(&victim, "idle_window") > 0.2, "{victim}");
    assert_eq!(victim["idled_for"][0]["tenant"], "/thinker", "{victim}");
    assert!(text.contains("idle window: the disk idled for /thinker "), "{text}");
    // The one that thinks has all that it asks for in the disk, or asks for nothing.
    let (thinker, text) = why(&served, "/thinker");
    check_sum(&thinker);
    assert!(part(&thinker, "nothing") > 0.2 && part(&thinker, "too_few") > 0.05, "{thinker}");
    assert!(text.contains("it asked for nothing"), "{text}");
    drop(asking);
    served.end();
}

/// Nine parts of ten of a depth of 2 are 1.8 requests, and it has one.
#[test]
fn tenant_with_too_little_outstanding_is_told_what_its_weight_needs() {
    let served = serve("scheduler = \"wfq\"", [("heavy", 900), ("light", 100)]);
    let asking = Asking::start(&served, &[("heavy", 1, Nanos::ZERO), ("light", 8, Nanos::ZERO)]);
    let (heavy, text) = why(&served, "/heavy");
    check_sum(&heavy);
    assert!(part(&heavy, "too_few") > 0.1, "{heavy}");
    assert_eq!(heavy["needs_outstanding"], 2, "{heavy}");
    let had = heavy["outstanding"].as_f64().expect("it is measured");
    assert!((0.5..=1.001).contains(&had), "one, but for the way to its client: {heavy}");
    assert!(text.contains("too few outstanding for its weight, needs 2, had "), "{text}");
    let (_, table) = say(served.dir.path(), &["ctl", "--ctl", "ctl.sock", "stat"]);
    let last_two = |line: &str| {
        let words: Vec<_> = line.split_whitespace().rev().take(2).map(str::to_owned).collect();
        (words[1].clone(), words[0].clone())
    };
    let line = |start: &str| {
        let found = table.lines().find(|line| line.trim_start().starts_with(start));
        last_two(found.unwrap_or_else(|| panic!("no {start}: {table}")))
    };
    assert_eq!(line("GROUP"), ("OUTSTANDING".to_owned(), "NEEDS".to_owned()));
    assert_eq!((line("/heavy").1.as_str(), line("/light").1.as_str()), ("2", "1"), "{table}");
    let url = ["--silent", "--unix-socket", "ctl.sock", "http://localhost/metrics"];
    let metrics = run("curl", "curl", &url, served.dir.path());
    for sample in [
        "paternoster_tenant_needs_outstanding_requests{disk=\"m\",tenant=\"/heavy\"} 2\n",
        "paternoster_tenant_outstanding_seconds_total{disk=\"m\",tenant=\"/heavy\"} ",
    ] {
        assert!(metrics.contains(sample), "no {sample}: {metrics}");
    }
    drop(asking);
    served.end();
}

#[test]
fn client_that_reads_no_replies_is_told_so() {
    let served = serve("scheduler = \"none\"", [("disk", 100), ("other", 100)]);
    let mut wire = Wire::enter(&served, Place::Unix);
    for cookie in 0..40 {
        wire.send(&request(0, 0, cookie, 0, 128 << 10));
    }
    // Until the disk has done them.
    thread::sleep(Duration::from_millis(300));
    let (disk, text) = why(&served, "/disk");
    check_sum(&disk);
    assert!(part(&disk, "unread") > 0.9, "{disk}");
    assert!(text.contains("its client does not read the replies"), "{text}");
    let (other, _) = why(&served, "/other");
    assert!(part(&other, "nothing") > 0.99, "{other}");
    drop(wire);
    served.end();
}

#[test]
fn who_asks_for_a_tenant_that_there_is_not_is_told_which_there_are() {
    let served = serve("scheduler = \"none\"", [("a", 100), ("b", 100)]);
    let ask = |args: &[&str]| {
        say(served.dir.path(), &[&["ctl", "--ctl", "ctl.sock", "why"], args].concat())
    };
    let (succeeded, said) = ask(&["/c"]);
    assert!(!succeeded && said.contains("no tenant \"/c\"; there are: \"/a\", \"/b\""), "{said}");
    let (succeeded, said) = ask(&["/a", "--disk", "x"]);
    assert!(!succeeded && said.contains("no disk \"x\"; there are: \"m\""), "{said}");
    served.end();
}
