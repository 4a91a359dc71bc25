//! Signals, and an end that is not a good one.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use crate::fuse::Mounted;
use crate::stat::stat;
use crate::support::{Place, Served, eventually, paternoster, temp_dir};
use crate::wire::{Wire, request};

const MIB: u64 = 1 << 20;

/// Serves a file that is somewhere else.
fn serve_mounted(mounted: &Mounted) -> Served {
    let file = mounted.file();
    let file = file.to_str().expect("UTF-8");
    let args = ["--disk", file, "--export", "disk", "--unix", "nbd.sock", "--ctl", "ctl.sock"];
    Served::start(temp_dir(), &args, 1)
}

/// Has a read of 4 KiB at 512 KiB in the device, which has not done it.
fn begin_read(served: &Served, wire: &mut Wire) {
    wire.send(&request(0, 0, 1, 512 << 10, 4096));
    eventually("the read is in the device", || stat(served)["disks"][0]["in_device"] == 1);
}

fn assert_no_sockets(served: &Served) {
    for socket in ["nbd.sock", "ctl.sock"] {
        assert!(!served.path(socket).exists(), "{socket} is gone");
    }
}

#[test]
fn sigint_and_sigquit_end_it_as_sigterm_does() {
    for signal in [Signal::INT, Signal::QUIT] {
        let mut served = Served::empty_file(Place::Unix, MIB, &["--ctl", "ctl.sock"]);
        served.signal(signal);
        let (status, _) = served.wait(Duration::from_secs(10));
        assert_eq!(status.code(), Some(0), "{signal:?}: {}", served.log());
        assert_no_sockets(&served);
    }
}

/// A pipe that nobody reads was full once the URIs and the log had filled it, and SIGTERM was not
/// heard any more.
#[test]
fn sigterm_ends_it_though_nobody_reads_what_it_says() {
    for log_too in [false, true] {
        let (_unread, full) = io::pipe().expect("a pipe");
        let mut filler = full.try_clone().expect("a descriptor");
        thread::spawn(move || while filler.write_all(&[b'x'; 4096]).is_ok() {});
        eventually("the pipe is full", || {
            let mut polled = [PollFd::new(&full, PollFlags::OUT)];
            poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0)
        });
        let dir = temp_dir();
        fs::write(dir.path().join("disk.img"), [0; 4096]).expect("a disk");
        let mut server = paternoster(dir.path());
        server.args(["serve", "--disk", "disk.img", "--export", "disk", "--unix", "nbd.sock"]);
        server.stdout(full.try_clone().expect("a descriptor"));
        server.stderr(if log_too { Stdio::from(full) } else { Stdio::null() });
        let mut server = server.spawn().expect("the binary runs");
        eventually("it serves", || UnixStream::connect(dir.path().join("nbd.sock")).is_ok());
        kill_process(Pid::from_child(&server), Signal::TERM).expect("it is there");
        let begun = Instant::now();
        let status = loop {
            match server.try_wait().expect("a child") {
                Some(status) => break status,
                None if begun.elapsed() > Duration::from_secs(20) => {
                    server.kill().expect("it is there");
                    panic!("it does not end, with log_too = {log_too}");
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        assert_eq!(status.code(), Some(0), "{status}");
    }
}

#[test]
fn signals_of_the_user_are_ignored_with_a_line() {
    let served = Served::memory(Place::Unix, MIB);
    for (signal, name) in [(Signal::USR1, "SIGUSR1"), (Signal::USR2, "SIGUSR2")] {
        served.signal(signal);
        eventually(name, || served.log().contains(&format!("{name} is ignored: ")));
    }
    Wire::enter(&served, Place::Unix);
    served.end();
}

#[test]
fn second_signal_ends_it_at_once_with_status_1() {
    let dir = temp_dir();
    let toml = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n[exports.disk]\ndisk = \"d\"\n\
                [disks.d]\nbackend = \"modelled\"\nsize = \"1M\"\nservers = 1\n\
                service_us = 10_000_000\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    let mut served = Served::start(dir, &["c.toml"], 1);
    let mut wire = Wire::enter(&served, Place::Unix);
    begin_read(&served, &mut wire);
    served.signal(Signal::TERM);
    eventually("the end has begun", || !served.path("ctl.sock").exists());
    assert!(served.is_running(), "the disk takes ten seconds for the read");
    served.signal(Signal::INT);
    let (status, took) = served.wait(Duration::from_secs(10));
    assert_eq!(status.code(), Some(1), "{}", served.log());
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert!(served.log().contains("SIGINT again: ending at once"), "{}", served.log());
    assert_no_sockets(&served);
}

#[test]
fn transfer_that_is_stuck_in_the_kernel_holds_the_end_for_ten_seconds_at_most() {
    let mounted = Mounted::evaluated(&["flush=exit 0"]);
    let mut served = serve_mounted(&mounted);
    let mut wire = Wire::enter(&served, Place::Unix);
    // The first read and the first close ask of the program behind the file what it never answers
    // with more than "not here"; that would be stuck otherwise, outside of any transfer.
    drop(fs::File::open(mounted.file()).expect("it can be opened"));
    wire.send(&request(0, 0, 0, 0, 512));
    assert_eq!(wire.simple_reply(0), 0);
    wire.skip(512);
    mounted.stand_still();
    begin_read(&served, &mut wire);
    served.terminate();
    let (status, took) = served.wait(Duration::from_secs(20));
    let log = served.log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!((8..=10).contains(&took.as_secs()), "{took:?}");
    assert!(log.contains("the shutdown gives up: 1 × read (one of 4096 bytes at 524288)"), "{log}");
    assert!(log.contains("paternoster: disk disk0 did not end in 9.5s"), "{log}");
    assert_no_sockets(&served);
}

#[test]
fn last_flush_that_failed_is_exit_status_1() {
    let mounted = Mounted::evaluated(&["flush=echo 'EIO none today' >&2; exit 1"]);
    let mut served = serve_mounted(&mounted);
    served.terminate();
    let (status, _) = served.wait(Duration::from_secs(10));
    let log = served.log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("disk disk0: the last flush failed: Input/output error"), "{log}");
}
