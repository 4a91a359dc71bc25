//! Restarts under other people's clients that connect again, with requests outstanding that wait:
//! nobody is told of an error, and every byte is right.
//!
//! SIGTERM was worse than `kill -9`: what waited got ESHUTDOWN, which QEMU passes to its guest.
//! `TEST_STOPS` says how many restarts each client goes through.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::support::{Served, check_found, eventually, temp_dir, tool_command};

const BLOCK: usize = 4096;

/// Writes that the cap lets through in a second.
const WRITES_PER_S: usize = 64;

/// The client of libnbd, which is ours.
const CLIENT: &str = include_str!("reconnecting_client.py");

fn stops() -> usize {
    let wanted = std::env::var("TEST_STOPS").ok();
    wanted.map_or(3, |number| number.parse().expect("TEST_STOPS is a number"))
}

/// Blocks that a client writes: more than the cap lets through before the last restart, a second
/// and more each, as a disk that was idle lets a second's worth through at once.
fn blocks() -> usize {
    (stops() + 1) * 5 * WRITES_PER_S
}

/// Where a client writes a block: not behind the one before, as requests that merge are one for a
/// cap.
fn place(block: usize) -> usize {
    2 * block * BLOCK
}

/// Serves an image, capped, so that writes wait; every other server has connection threads.
fn serve(dir: TempDir, round: usize) -> Served {
    let toml = format!(
        "unix = \"nbd.sock\"\nctl = \"none\"\nthreads = {}\n\
         [disks.d]\npath = \"disk.img\"\nscheduler = \"wfq\"\n\
         [groups.\"/g\"]\nwiops = {WRITES_PER_S}\n\
         [exports.disk]\ndisk = \"d\"\ngroup = \"/g\"\n",
        1 + round % 2
    );
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    Served::start(dir, &["c.toml"], 1)
}

/// A client that has ended.
struct Ended {
    status: ExitStatus,
    said: String,
    /// The folder with the image.
    dir: TempDir,
}

/// Restarts the server as often as is wanted under a client, each time with its requests
/// outstanding.
fn restart_under(mut client: Command, prepare: impl FnOnce(&TempDir)) -> Ended {
    let dir = temp_dir();
    let image = File::create(dir.path().join("disk.img")).expect("an image");
    image.set_len((2 * blocks() * BLOCK) as u64).expect("room for it");
    prepare(&dir);
    let mut served = serve(dir, 0);
    // No pipe: one that is full would hold the client.
    let log = File::create(served.path("client.log")).expect("a log");
    client
        .current_dir(served.dir.path())
        .stdout(log.try_clone().expect("a descriptor"))
        .stderr(log);
    let mut client = client.spawn().expect("timeout, of the package coreutils, runs");
    for round in 1..=stops() {
        let enters = "a client has connected";
        eventually("the client is there", || served.log().contains(enters));
        thread::sleep(Duration::from_millis(200));
        served.terminate();
        let (status, took) = served.wait(Duration::from_secs(20));
        assert_eq!(status.code(), Some(0), "{}", served.log());
        assert!(took < Duration::from_secs(3), "what waits is not waited for: {took:?}");
        served = serve(served.leave(), round);
    }
    eventually("the client is there again", || served.log().contains("a client has connected"));
    // Without the cap the rest would take seconds.
    let toml = fs::read_to_string(served.path("c.toml")).expect("a file");
    let capped = format!("wiops = {WRITES_PER_S}");
    fs::write(served.path("c.toml"), toml.replace(&capped, "wiops = \"max\"")).expect("a file");
    served.signal(rustix::process::Signal::HUP);
    let status = client.wait().expect("a child");
    served.terminate();
    served.wait(Duration::from_secs(10));
    let dir = served.leave();
    let said = fs::read_to_string(dir.path().join("client.log")).expect("a log");
    Ended { status, said, dir }
}

/// The bytes of each block that is written, on the image.
fn image_blocks(dir: &TempDir) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(dir.path().join("disk.img"))
        .and_then(|mut image| image.read_to_end(&mut bytes))
        .expect("an image");
    bytes.chunks(BLOCK).step_by(2).map(<[u8]>::to_vec).collect()
}

#[test]
fn qemu_is_told_of_no_error_and_finds_every_byte_over_restarts() {
    let pattern = |block: usize| u8::try_from(block % 255).expect("a byte") + 1;
    let mut script = String::new();
    for block in 0..blocks() {
        let (at, pattern) = (place(block), pattern(block));
        let fua = if block % 7 == 0 { "-f " } else { "" };
        let _ = writeln!(script, "aio_write {fua}-P {pattern} {at} {BLOCK}");
    }
    script += "aio_flush\n";
    for block in 0..blocks() {
        let _ = writeln!(script, "read -P {} {} {BLOCK}", pattern(block), place(block));
    }
    let mut client = tool_command("sh", std::path::Path::new("."));
    let place = "driver=nbd,export=disk,server.type=unix,server.path=nbd.sock,reconnect-delay=30";
    client.args(["-c", &format!("qemu-io --image-opts {place} < script")]);
    let write_script =
        |dir: &TempDir| fs::write(dir.path().join("script"), script).expect("a file");
    let Ended { status, said, dir } = restart_under(client, write_script);
    check_found("qemu-utils", "qemu-io", status);
    let complaints: Vec<_> = said.lines().filter(|line| line.contains("ailed")).collect();
    assert_eq!(complaints, [""; 0]);
    for done in ["wrote", "read"] {
        let line = format!("{done} {BLOCK}/{BLOCK} bytes at offset ");
        assert_eq!(said.matches(&line).count(), blocks(), "all blocks are {done}");
    }
    assert!(status.success(), "{status}");
    for (block, found) in image_blocks(&dir).iter().enumerate() {
        assert!(found.iter().all(|&byte| byte == pattern(block)), "block {block} on the image");
    }
}

#[test]
fn client_of_libnbd_is_told_of_no_error_and_finds_every_byte_over_restarts() {
    let mut client = tool_command("/usr/bin/python3", std::path::Path::new("."));
    client.args(["-c", CLIENT, "nbd+unix:///disk?socket=nbd.sock", &blocks().to_string()]);
    let Ended { status, said, dir } = restart_under(client, |_| {});
    check_found("python3-libnbd", "python3", status);
    assert!(status.success(), "install python3-libnbd, if it is not: {said}");
    let wanted = format!("{0} blocks written and read, {1} connections\n", blocks(), stops() + 1);
    assert_eq!(said, wanted);
    for (block, found) in image_blocks(&dir).iter().enumerate() {
        assert!(found == &(block as u64).to_be_bytes().repeat(BLOCK / 8), "block {block}");
    }
}
