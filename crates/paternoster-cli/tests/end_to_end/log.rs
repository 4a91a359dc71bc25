//! What an operator reads in the log, and when.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::fuse::Mounted;
use crate::support::{Place, Served, eventually, paternoster, temp_dir};
use crate::wire::{Wire, request};

const MIB: u64 = 1 << 20;

/// How many lines say so.
fn count(log: &str, words: &str) -> usize {
    log.lines().filter(|line| line.contains(words)).count()
}

/// The one line that says so.
fn line(log: &str, words: &str) -> String {
    let found: Vec<_> = log.lines().filter(|line| line.contains(words)).collect();
    assert_eq!(found.len(), 1, "{words:?} in:\n{log}");
    found[0].to_owned()
}

fn assert_says(line: &str, words: &[&str]) {
    for word in words {
        assert!(line.contains(word), "{word:?} in: {line}");
    }
}

/// What a program prints to standard error that is refused at once.
fn serve(dir: &Path, args: &[&str], rust_log: &str) -> Output {
    let mut command = paternoster(dir);
    command.arg("serve").args(args).env("RUST_LOG", rust_log).output().expect("the binary runs")
}

#[test]
fn the_first_error_of_each_operation_and_errno_is_a_line() {
    // The script takes what is written: nbdkit calls one that does not EIO, if it ends before that.
    let mounted = Mounted::evaluated(&[
        "pread=if [ $4 -ge 524288 ]; then echo 'EIO bad' >&2; exit 1; fi; head -c $3 /dev/zero",
        "pwrite=cat >/dev/null; echo 'ENOSPC full' >&2; exit 1",
        "flush=echo 'EIO lost' >&2; exit 1",
    ]);
    let file = mounted.file();
    let args = ["--disk", file.to_str().expect("UTF-8"), "--unix", "nbd.sock"];
    let mut served = Served::start(temp_dir(), &[&args[..], &["--export", "disk"]].concat(), 1);
    let mut wire = Wire::enter(&served, Place::Unix);
    // Two bad reads, two writes that do not fit, two flushes.
    for (code, offset) in [(0, 600_000), (0, 700_000), (1, 8192), (1, 0), (3, 0), (3, 0)] {
        let len = if code == 3 { 0 } else { 512 };
        let payload = if code == 1 { vec![1; 512] } else { Vec::new() };
        wire.send(&[request(0, code, 7, offset, len), payload].concat());
        assert_ne!(wire.simple_reply(7), 0);
    }
    // They were written before the replies were sent.
    let log = served.log();
    let at = ["ERROR", "disk=\"disk0\"", "export=\"disk\""];
    let read = line(&log, "a read failed: Input/output error");
    assert_says(&read, &[&at[..], &["offset=600000", "bytes=512", "errno=5"]].concat());
    let write = line(&log, "a write failed: No space left on device");
    assert_says(&write, &[&at[..], &["offset=8192", "errno=28"]].concat());
    let sync = line(&log, "a sync failed: Input/output error");
    assert_says(&sync, &["ERROR", "disk=\"disk0\"", "errno=5"]);
    line(&log, "a sync has failed");
    served.terminate();
    let (status, _) = served.wait(std::time::Duration::from_secs(10));
    assert_eq!(status.code(), Some(1), "the last flush fails too");
}

#[test]
fn image_that_is_truncated_or_deleted_is_a_line_while_its_disk_is_used() {
    let served = Served::empty_file(Place::Unix, MIB, &[]);
    let mut wire = Wire::enter(&served, Place::Unix);
    let image = File::options().write(true).open(served.path("disk.img")).expect("the image");
    image.set_len(4096).expect("it is truncated");
    wire.send(&request(0, 0, 1, 65536, 4096));
    assert_eq!(wire.simple_reply(1), 5);
    let log = served.log();
    let truncated = line(&log, "its file was truncated, to 4096 bytes");
    assert_says(&truncated, &["ERROR", "disk=\"disk0\""]);
    image.set_len(MIB).expect("it is whole again");
    fs::remove_file(served.path("disk.img")).expect("it was there");
    eventually("a connection has the image looked at", || {
        Wire::enter(&served, Place::Unix);
        count(&served.log(), "its file was deleted or replaced") == 1
    });
    line(&served.log(), "its file was truncated");
    served.end();
}

#[test]
fn clients_are_named_as_they_come_and_go() {
    let dir = temp_dir();
    let toml = "unix = \"nbd.sock\"\n[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n\
                [exports.disk]\ndisk = \"d\"\ngroup = \"/gold\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let served = Served::start(dir, &["c.toml"], 1);
    let mut wire = Wire::enter(&served, Place::Unix);
    wire.send(&request(0, 2, 0, 0, 0));
    assert_eq!(wire.rest(), [0; 0]);
    eventually("it has left", || count(&served.log(), "a client has left") == 1);
    let log = served.log();
    let uid = rustix::process::geteuid().as_raw();
    let who = format!("peer=\"pid {} of uid {uid}\"", std::process::id());
    let of = ["INFO", "disk=\"d\"", "export=\"disk\"", "tenant=\"/gold\"", &who];
    let came = line(&log, "a client has connected");
    assert_says(&came, &[&of[..], &["of_tenant=1", "of_disk=1"]].concat());
    let left = line(&log, "a client has left");
    assert_says(&left, &[&of[..], &["why=\"it sent NBD_CMD_DISC\"", "of_tenant=0"]].concat());

    let mut rubbish = Wire::enter(&served, Place::Unix);
    rubbish.send(&[0xff; 64]);
    assert_eq!(rubbish.rest(), [0; 0]);
    eventually("it was cut off", || count(&served.log(), "a client was cut off") == 1);
    let cut_off = line(&served.log(), "a client was cut off");
    assert_says(&cut_off, &["a request begins with 0xffffffff", &who]);
    served.end();
}

#[test]
fn clients_that_are_refused_are_named_with_what_they_asked_for() {
    let served = Served::memory(Place::Tcp, MIB);
    let address = served.uri().trim_start_matches("nbd://").split('/').next().expect("one");
    let stream = TcpStream::connect(address).expect("a connection");
    let peer = format!("peer=\"{}\"", stream.local_addr().expect("an address"));
    let mut wire = Wire::over(stream);
    let _greeting: [u8; 18] = wire.take();
    // GO for an export that there is not, with a line break in its name; then what is no option.
    let name = b"no\npe";
    let mut go = [&3u32.to_be_bytes()[..], b"IHAVEOPT", &7u32.to_be_bytes()].concat();
    go.extend(u32::try_from(name.len() + 6).expect("short").to_be_bytes());
    go.extend(u32::try_from(name.len()).expect("short").to_be_bytes());
    wire.send(&[&go[..], name, &[0, 0]].concat());
    let _refusal: [u8; 20] = wire.take();
    wire.send(b"SOMETHINGELSE...");
    wire.rest();
    let log = served.log();
    let refused = line(&log, "a client was refused an export");
    assert_says(&refused, &["INFO", &peer, r#"there is none of the name \"no\\npe\""#]);
    let turned_away = line(&log, "a client was turned away");
    assert_says(&turned_away, &["INFO", &peer, "why=\"an option begins with"]);
    served.end();
}

/// By the option of NBD, as of `nbds://`, or before NBD, as a tunnel of TLS does.
#[test]
fn client_that_wants_tls_is_named_with_what_is_allowed() {
    let served = Served::memory(Place::Unix, MIB);
    let connect = || UnixStream::connect(served.path("nbd.sock")).expect("a connection");
    let starttls = [&3u32.to_be_bytes()[..], b"IHAVEOPT", &[0, 0, 0, 5, 0, 0, 0, 0]].concat();
    let mut wire = Wire::over(connect());
    wire.send(&starttls);
    let _greeting_and_refusal: [u8; 18 + 20] = wire.take();
    let mut tunnel = Wire::over(connect());
    tunnel.send(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
    tunnel.rest();
    let log = served.log();
    let refused = line(&log, "a client was refused TLS");
    assert_says(&refused, &["INFO", "peer=\"pid ", "nbds://, which its socket does not have"]);
    let turned_away = line(&log, "a client was turned away");
    assert_says(&turned_away, &["it begins with a record of TLS"]);
    served.end();
}

/// What a modelled disk has is known before any client comes.
#[test]
fn more_reserved_than_a_modelled_disk_has_is_a_line_at_the_start() {
    let dir = temp_dir();
    let toml = "unix = \"nbd.sock\"\n\
                [disks.d]\nbackend = \"modelled\"\nsize = \"1M\"\nservers = 4\n\
                service_us = 200\n[groups.\"/e\"]\nmin_iops = 25001\n[exports.e]\ndisk = \"d\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let served = Served::start(dir, &["c.toml"], 1);
    let words =
        "min_iops of all groups is 25001, more than 80 % of 25000, the most that its servers";
    eventually("the log has it", || count(&served.log(), words) == 1);
    assert_says(&line(&served.log(), words), &["WARN", "disk=\"d\""]);
    served.end();
}

/// 139,000 connections that sent rubbish wrote 16 MB of lines.
#[test]
fn flood_of_rubbish_is_a_line_a_second_with_a_count() {
    const FLOOD: u64 = 2000;
    let mut served = Served::memory(Place::Unix, MIB);
    let begin = std::time::Instant::now();
    for _ in 0..FLOOD {
        let stream = UnixStream::connect(served.path("nbd.sock")).expect("a connection");
        let mut wire = Wire::over(stream);
        wire.send(&[0xff; 64]);
        wire.rest();
    }
    let seconds = begin.elapsed().as_secs();
    served.terminate();
    let (status, _) = served.wait(std::time::Duration::from_secs(10));
    assert_eq!(status.code(), Some(0), "{}", served.log());
    let log = served.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("a client was turned")).collect();
    let written = lines.iter().filter(|line| line.contains("peer=")).count() as u64;
    assert!((1..=seconds + 1).contains(&written), "{written} lines in {seconds} s:\n{log}");
    let left_out = |line: &&str| line.split("left_out=").nth(1)?.parse::<u64>().ok();
    let left_out: u64 = lines.iter().filter_map(left_out).sum();
    assert_eq!(written + left_out, FLOOD, "none is lost:\n{log}");
}

#[test]
fn start_says_of_each_disk_what_is_in_force_and_why() {
    let dir = temp_dir();
    File::create(dir.path().join("a.img")).and_then(|file| file.set_len(MIB)).expect("a disk");
    let toml = "unix = \"nbd.sock\"\n[disks.a]\npath = \"a.img\"\ndepth = 3\n\
                scheduler = \"mq-deadline\"\ntunables = { read_expire = 70 }\n\
                [disks.b]\nbackend = \"memory\"\nsize = \"1M\"\n\
                [exports.x]\ndisk = \"a\"\n[exports.y]\ndisk = \"b\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let served = Served::start(dir, &["c.toml"], 2);
    let log = served.log();
    let a = line(&log, "a disk is served disk=\"a\"");
    let words = ["scheduler=\"mq-deadline\"", "depth=3", "tunables=\"read_expire=70\""];
    assert_says(&a, &[&words[..], &["path=\"a.img\"", "bytes=1048576", "rotational="]].concat());
    assert!(a.contains("queue/rotational"), "the file that says so, or is missing: {a}");
    let b = line(&log, "a disk is served disk=\"b\"");
    assert_says(&b, &["backend=\"memory\"", "scheduler=\"wfq\"", "depth=1024"]);
    assert_says(&b, &["chosen=\"auto: wfq, as the disk does not rotate\""]);
    assert!(!a.contains("chosen="), "it is named: {a}");
    assert_says(&b, &["rotational=false", "because=\"a disk in memory is not rotational\""]);
    served.end();
}

#[test]
fn level_bounds_what_is_logged_and_wins_over_the_environment() {
    for (args, expected) in [(&["--log", "warn"][..], 0), (&["--log", "info"], 1), (&[], 1)] {
        let served = Served::empty_file(Place::Unix, MIB, args);
        assert_eq!(count(&served.log(), "a disk is served"), expected, "{args:?}");
        served.end();
    }
    let dir = temp_dir();
    let disk = ["--disk", "none.img", "--export", "e"];
    let refused = serve(dir.path(), &[&disk[..], &["--log", "loud"]].concat(), "");
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    let allowed = "'loud' for '--log <LEVEL>': error, warn, info, debug or trace is allowed";
    assert!(said.contains(allowed), "{said}");
    let refused = serve(dir.path(), &[&disk[..], &["--log-format", "xml"]].concat(), "");
    let said = String::from_utf8(refused.stderr).expect("UTF-8");
    assert!(said.contains("'--log-format <FORMAT>': text or json is allowed"), "{said}");
}

#[test]
fn as_json_every_line_is_an_object_also_the_last() {
    let mut served =
        Served::empty_file(Place::Unix, MIB, &["--log-format", "json", "--depth", "16"]);
    Wire::enter(&served, Place::Unix);
    eventually("it has left", || count(&served.log(), "a client has left") == 1);
    served.terminate();
    served.wait(std::time::Duration::from_secs(10));
    let log = served.log();
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let of = |message: &str| {
        let found = lines.iter().find(|line| line["message"] == message);
        found.unwrap_or_else(|| panic!("{message:?} in:\n{log}"))
    };
    let came = of("a client has connected");
    assert_eq!(came["level"], "INFO");
    assert_eq!((&came["disk"], &came["export"]), (&"disk0".into(), &"disk".into()));
    assert_eq!(came["of_tenant"], 1);
    assert_eq!(of("a disk is served")["depth"], 16);
    of("SIGTERM: shutting down");

    let dir = temp_dir();
    let args = ["--disk", "none.img", "--export", "e", "--log-format", "json", "--log", "error"];
    let refused = serve(dir.path(), &args, "");
    assert_eq!(refused.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&refused.stderr).expect("one object");
    assert!(said["message"].as_str().is_some_and(|said| said.contains("none.img")), "{said}");
}
