//! A server that takes over from another one, under other people's clients, which connect once and
//! are told of no error.
//!
//! `TAKE_OVERS` says how often that is, where a load runs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::settings::ctl;
use crate::support::{Served, check_found, eventually, paternoster, temp_dir, tool_command};
use crate::wire::Wire;

fn times() -> usize {
    std::env::var("TAKE_OVERS").map_or(4, |times| times.parse().expect("a number"))
}

/// A folder with an image of so many bytes, and the file of a server that has it as export `disk`;
/// `keys` are those of the server, and `more` is what comes behind.
pub(crate) fn prepared(bytes: u64, keys: &str, more: &str) -> TempDir {
    let dir = temp_dir();
    let image = File::create(dir.path().join("disk.img")).expect("an image");
    image.set_len(bytes).expect("room for it");
    write_file(&dir, keys, more);
    dir
}

fn write_file(dir: &TempDir, keys: &str, more: &str) {
    let text = format!(
        "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n{keys}[disks.d]\npath = \"disk.img\"\n\
         scheduler = \"wfq\"\n{more}[exports.disk]\ndisk = \"d\"\ngroup = \"/g\"\n"
    );
    fs::write(dir.path().join("c.toml"), text).expect("a file");
}

/// How long nobody served, in milliseconds, as a server has logged that was taken over from.
fn stall(log: &str) -> u64 {
    let line = log.lines().find(|line| line.contains("handed over: ")).expect("it has handed over");
    let words: Vec<_> = line.split(' ').collect();
    let [.., millis, "ms"] = words[..] else { panic!("{line}") };
    millis.parse().expect("a number")
}

/// Servers take over one from the other until the load has ended, or often enough.
fn under_load(mut served: Served, mut load: Command, package: &str) -> (Served, String) {
    let log = File::create(served.path("load.log")).expect("a log");
    load.stdout(log.try_clone().expect("a descriptor")).stderr(log);
    let mut load = load.spawn().expect("timeout, of the package coreutils, runs");
    let enters = "a client has connected";
    eventually("a client is there", || served.log().contains(enters));
    let mut stalls = Vec::new();
    while load.try_wait().expect("a child").is_none() && stalls.len() < times() {
        thread::sleep(Duration::from_millis(150));
        let log;
        (served, log) = served.hand_over("c.toml");
        stalls.push(stall(&log));
    }
    let status = load.wait().expect("a child");
    check_found(package, "the load", status);
    let said = fs::read_to_string(served.path("load.log")).expect("a log");
    assert!(status.success(), "{status}: {said}\n{}", served.log());
    assert!(stalls.len() > 2, "the load has ended after {} of them", stalls.len());
    stalls.sort_unstable();
    let (count, longest) = (stalls.len(), stalls[stalls.len() - 1]);
    println!("{count} hand-overs: nobody served for {} ms, {longest} at most", stalls[count / 2]);
    (served, said)
}

/// 16 clients that check all that they have written, every other server with connection threads.
#[test]
fn fio_finds_every_byte_while_one_server_after_the_other_takes_over() {
    for (keys, network) in [("", false), ("threads = 3\n", true)] {
        let dir = prepared(256 << 20, keys, "[groups.\"/g\"]\nweight = 200\n");
        if network {
            let path = dir.path().join("c.toml");
            let text = fs::read_to_string(&path).expect("a file");
            let port = free_port();
            let tcp = format!("tcp = \"127.0.0.1:{port}\"");
            fs::write(path, text.replace("unix = \"nbd.sock\"", &tcp)).expect("room");
        }
        let served = Served::start(dir, &["c.toml"], 1);
        let mut load = tool_command("fio", served.dir.path());
        let seconds = 1 + times().div_ceil(2);
        load.args([
            "--name=v",
            "--ioengine=nbd",
            &format!("--uri={}", served.uri()),
            "--numjobs=16",
            "--size=16M",
            "--offset_increment=16M",
            "--rw=randrw",
            "--bsrange=4k-64k",
            "--iodepth=32",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--verify_backlog=64",
            "--verify_state_save=0",
            "--time_based",
            &format!("--runtime={seconds}"),
        ]);
        let (served, _) = under_load(served, load, "fio");
        served.end();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
    listener.local_addr().expect("an address").port()
}

/// It would connect again, and is told to: an answer that it does not get at once is no error, and
/// a connection that is closed is.
#[test]
fn qemu_connects_once_and_finds_every_byte() {
    const BLOCK: usize = 4096;
    const BLOCKS: usize = 800;
    let caps = "[groups.\"/g\"]\nwiops = 500\n";
    let served = Served::start(prepared((2 * BLOCKS * BLOCK) as u64, "", caps), &["c.toml"], 1);
    let pattern = |block: usize| u8::try_from(block % 255).expect("a byte") + 1;
    let mut script = String::new();
    for block in 0..BLOCKS {
        let fua = if block % 7 == 0 { "-f " } else { "" };
        let (at, pattern) = (2 * block * BLOCK, pattern(block));
        let _ = writeln!(script, "aio_write {fua}-P {pattern} {at} {BLOCK}");
    }
    script += "aio_flush\n";
    for block in 0..BLOCKS {
        let _ = writeln!(script, "read -P {} {} {BLOCK}", pattern(block), 2 * block * BLOCK);
    }
    fs::write(served.path("script"), script).expect("a file");
    let mut client = tool_command("sh", served.dir.path());
    let place = "driver=nbd,export=disk,server.type=unix,server.path=nbd.sock,reconnect-delay=0";
    client.args(["-c", &format!("qemu-io --image-opts {place} < script")]);
    let (served, said) = under_load(served, client, "qemu-utils");
    let complaints: Vec<_> = said.lines().filter(|line| line.contains("ailed")).collect();
    assert_eq!(complaints, [""; 0]);
    for done in ["wrote", "read"] {
        let line = format!("{done} {BLOCK}/{BLOCK} bytes at offset ");
        assert_eq!(said.matches(&line).count(), BLOCKS, "all blocks are {done}");
    }
    served.end();
}

/// What `ctl` has set is not in the file.
#[test]
fn what_requests_have_set_and_made_is_there_as_it_was() {
    let dir = prepared(1 << 20, "", "[groups.\"/g\"]\nweight = 100\n");
    fs::create_dir(dir.path().join("images")).expect("a directory");
    let text = fs::read_to_string(dir.path().join("c.toml")).expect("a file");
    let pool = format!("{text}[pools.fast]\npath = \"images\"\n");
    fs::write(dir.path().join("c.toml"), pool).expect("a file");
    let served = Served::start(dir, &["c.toml"], 1);
    eventually("it answers", || ctl(&served, &["pool", "list"]).is_ok());
    for set in [
        &["weight", "/g", "300"][..],
        &["limit", "/g", "riops=5000"],
        &["set", "d", "depth=7"],
        &["volume", "create", "vm7", "--pool", "fast", "--size", "8M", "weight=50"],
    ] {
        ctl(&served, set).unwrap_or_else(|error| panic!("{set:?}: {error}"));
    }
    let asked: [&[&str]; 3] = [&["get", "/g"], &["get", "d"], &["volume", "show", "vm7"]];
    let told = |served: &Served| {
        asked.map(|args| ctl(served, args).unwrap_or_else(|error| panic!("{args:?}: {error}")))
    };
    let mut wire = Wire::enter_at(&served.path("nbd.sock"), "vm7");
    wire.write_and_read_back(0);
    let before = told(&served);
    assert!(before[0].contains("300") && before[0].contains("5000"), "{before:?}");
    let (served, _) = served.hand_over("c.toml");
    assert_eq!(told(&served), before);
    wire.write_and_read_back(1);
    // And once more, by a server that was told of it by another one.
    let (served, _) = served.hand_over("c.toml");
    assert_eq!(told(&served), before);
    wire.write_and_read_back(2);
    drop(wire);
    served.terminate();
    drop(served.leave());
}

/// `VOLUMES` says how many; each has a client with a request outstanding, whose answer comes from
/// whichever server there is.
#[test]
fn each_volume_of_a_pool_is_handed_over_with_its_client() {
    let volumes = std::env::var("VOLUMES").map_or(100, |count| count.parse().expect("a number"));
    let dir = temp_dir();
    fs::create_dir(dir.path().join("images")).expect("a directory");
    let mut text = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n".to_owned();
    text += "[pools.fast]\npath = \"images\"\nscheduler = \"wfq\"\n";
    for volume in 0..volumes {
        let image = File::create(dir.path().join(format!("images/v{volume}.img")));
        image.and_then(|image| image.set_len(1 << 20)).expect("room");
        let _ = writeln!(text, "[volumes.v{volume}]\npool = \"fast\"");
    }
    fs::write(dir.path().join("c.toml"), text).expect("a file");
    let mut served = Served::start(dir, &["c.toml"], volumes);
    let enter = |volume| Wire::enter_at(&served.path("nbd.sock"), &format!("v{volume}"));
    let mut wires: Vec<_> = (0..volumes).map(enter).collect();
    for round in 0..4 {
        for wire in &mut wires {
            wire.begin_to_write(round);
        }
        let log;
        (served, log) = served.hand_over("c.toml");
        let back = Instant::now();
        for wire in &mut wires {
            wire.take_written_and_read_back(round);
        }
        let (all, stall) = (back.elapsed().as_millis(), stall(&log));
        println!("{volumes} volumes and clients: nobody served for {stall} ms, all in {all} ms");
    }
    drop(wires);
    served.end();
}

/// Each server has a connection of its own to the far one, and nothing of it is in doubt.
#[test]
fn disk_on_another_server_is_flushed_and_gone_on_with() {
    let far = Served::start(prepared(1 << 20, "", ""), &["c.toml"], 1);
    let dir = temp_dir();
    let text = format!(
        "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n[disks.d]\nbackend = \"nbd\"\nuri = {:?}\n\
         [exports.disk]\ndisk = \"d\"\n",
        far.uri()
    );
    fs::write(dir.path().join("c.toml"), text).expect("a file");
    let served = Served::start(dir, &["c.toml"], 1);
    let mut wire = Wire::enter_at(&served.path("nbd.sock"), "disk");
    wire.write_and_read_back(1);
    let syncs = |far: &Served| {
        let stat = ctl(far, &["stat", "--json"]).expect("it answers");
        let stat: Value = serde_json::from_str(&stat).expect("JSON");
        stat["disks"][0]["syncs"].as_u64().expect("a number")
    };
    let before = syncs(&far);
    let (served, _) = served.hand_over("c.toml");
    assert!(syncs(&far) > before, "what the far server has taken is durable");
    wire.write_and_read_back(2);
    assert!(!served.log().contains("doubt"), "{}", served.log());
    drop(wire);
    served.end();
    far.end();
}

/// Why a server with this file does not take over from the one that runs, which goes on.
fn refused(served: &Served, toml: &str) -> String {
    fs::write(served.path("other.toml"), toml).expect("a file");
    let output = paternoster(served.dir.path())
        .args(["serve", "other.toml", "--take-over"])
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    Wire::enter_at(&served.path("nbd.sock"), "disk").write_and_read_back(0);
    assert!(ctl(served, &["stat"]).is_ok(), "its control socket is there");
    said
}

#[test]
fn server_that_cannot_take_over_says_why_and_the_other_one_goes_on() {
    let mut served = Served::start(prepared(1 << 20, "", ""), &["c.toml"], 1);
    let mut wire = Wire::enter_at(&served.path("nbd.sock"), "disk");
    let text = fs::read_to_string(served.path("c.toml")).expect("a file");
    let missing = text.replace("disk.img", "no.img");
    assert!(refused(&served, &missing).contains("no.img"));
    let through = text.replace("scheduler", "cache = \"page\"\nscheduler");
    let said = refused(&served, &through);
    let is_direct = served.log().contains("cache=\"direct\"");
    assert!(!is_direct || said.contains("has it open past the page cache"), "{said}");
    let read_only = text.replace("group = ", "read_only = true\ngroup = ");
    assert!(refused(&served, &read_only).contains("has it open for writing, and read-only is"));
    let elsewhere = text.replace("ctl.sock", "elsewhere.sock");
    let said = refused(&served, &elsewhere);
    assert!(said.contains("cannot take over from the server at elsewhere.sock.handover"), "{said}");
    let checked = paternoster(served.dir.path())
        .args(["serve", "c.toml", "--check", "--take-over"])
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(said.contains("--check=take-over alone is allowed with it"), "{said}");
    wire.write_and_read_back(3);
    assert!(served.is_running());
    drop(wire);
    served.end();

    let dir = prepared(1 << 20, "", "[disks.m]\nbackend = \"memory\"\nsize = \"1M\"\n");
    let path = dir.path().join("c.toml");
    let text = fs::read_to_string(&path).expect("a file");
    fs::write(path, format!("{text}[exports.m]\ndisk = \"m\"\n")).expect("a file");
    let served = Served::start(dir, &["c.toml"], 2);
    let text = fs::read_to_string(served.path("c.toml")).expect("a file");
    assert!(refused(&served, &text).contains("\"m\" is in this server's memory"));
    served.end();
}

/// A file with another socket and another export, without the old ones, and one that moves.
#[test]
fn clients_of_what_the_next_file_does_not_have_are_closed_and_others_are_not() {
    let file = |other: &str, moves: u32| {
        format!(
            "ctl = \"ctl.sock\"\n[[listen]]\nunix = \"nbd.sock\"\n\
             [[listen]]\nunix = \"{other}.sock\"\n[disks.d]\npath = \"disk.img\"\n\
             [exports.{other}]\ndisk = \"d\"\nsize = 65536\n\
             [exports.moves]\ndisk = \"d\"\nsize = 65536\noffset = {moves}\n\
             [exports.disk]\ndisk = \"d\"\noffset = 262144\n"
        )
    };
    let dir = prepared(1 << 20, "", "");
    fs::write(dir.path().join("c.toml"), file("old", 65536)).expect("a file");
    let mut served = Served::start(dir, &["c.toml"], 6);
    let mut stays = Wire::enter_at(&served.path("nbd.sock"), "disk");
    let mut goes = Wire::enter_at(&served.path("old.sock"), "old");
    let mut moves = Wire::enter_at(&served.path("nbd.sock"), "moves");
    stays.write_and_read_back(0);
    fs::write(served.path("c.toml"), file("new", 131_072)).expect("a file");
    let next = served.successor("c.toml", 6);
    assert!(served.wait(Duration::from_secs(10)).0.success());
    stays.write_and_read_back(1);
    assert!(goes.has_ended(), "its export is gone");
    assert!(moves.has_ended(), "its client knows other bytes");
    let log = next.log();
    assert!(log.contains("there is no such export any more"), "{log}");
    assert!(log.contains("its export is other bytes now"), "{log}");
    assert!(log.contains("old.sock, where the server before listens, is not in this"), "{log}");
    Wire::enter_at(&next.path("new.sock"), "new").write_and_read_back(2);
    drop(stays);
    next.end();
}

#[test]
fn another_program_is_tried_with_the_file_of_the_server_and_nothing_stops() {
    let mut served = Served::start(prepared(1 << 20, "", ""), &["c.toml"], 1);
    let mut wire = Wire::enter_at(&served.path("nbd.sock"), "disk");
    let program = env!("CARGO_BIN_EXE_paternoster");
    ctl(&served, &["handover", "--check", program]).expect("it is the same program");
    wire.write_and_read_back(1);
    assert!(ctl(&served, &["handover", "--check", "/bin/false"]).is_err());
    assert!(served.log().contains("another server could take over now"), "{}", served.log());
    let refused = ctl(&served, &["handover", "--to-store"]).expect_err("nobody has started it");
    assert!(refused.contains("no service manager has started this server"), "{refused}");
    assert!(served.is_running());
    drop(wire);
    served.end();
}
