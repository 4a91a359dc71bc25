//! Other people's servers as disks of ours.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::settings::ctl;
use crate::support::{Place, Served, eventually, fio_verify, request, temp_dir};
use crate::wire::Wire;

/// A program that serves `far.img` of a folder on `far.sock` there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Nbdkit,
    QemuNbd,
}

impl Program {
    pub(crate) const ALL: [Self; 2] = [Self::Nbdkit, Self::QemuNbd];

    fn command(self, socket: &Path) -> Command {
        match self {
            Self::Nbdkit => {
                let mut command = Command::new("nbdkit");
                // With more, version 1.32 may end with a failed assertion (`sock >= 0`) where two
                // of them find at once that their client has hung up.
                command.args(["--foreground", "--threads=1", "--unix"]).arg(socket);
                command.args(["file", "far.img"]);
                command
            }
            Self::QemuNbd => {
                let mut command = Command::new("qemu-nbd");
                command.args(["--persistent", "--shared=8", "--format=raw"]);
                command.arg("--socket").arg(socket).arg("far.img");
                command
            }
        }
    }
}

/// That server, which is killed when this is dropped.
pub(crate) struct Far {
    program: Program,
    child: Child,
    dir: PathBuf,
}

impl Far {
    /// Serves a new file of so many bytes, all of them a hole.
    pub(crate) fn start(program: Program, dir: &Path, bytes: u64) -> Self {
        let image = File::create(dir.join("far.img")).expect("an image");
        image.set_len(bytes).expect("room for it");
        Self { program, child: spawn(program, dir), dir: dir.to_owned() }
    }

    /// Kills it, as a machine that loses its power does, but for what the page cache holds.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
    }

    /// Stops it. When this returns, every thread of it has stopped.
    fn stop(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).expect("it runs");
        waitpid(Some(pid), WaitOptions::UNTRACED).expect("a child").expect("it has stopped");
    }

    /// Has it go on where it was stopped.
    fn resume(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).expect("it runs");
    }

    /// Starts it again.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.program, &self.dir);
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: Program, dir: &Path) -> Child {
    let socket = dir.join("far.sock");
    // What a killed one has left behind neither of them takes.
    let _ = fs::remove_file(&socket);
    let mut command = program.command(&socket);
    // It must not hold the streams of the test's own runner open.
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.spawn().unwrap_or_else(|error| panic!("{program:?}: {error}"));
    eventually("the far server listens", || socket.exists());
    child
}

/// Ours in front of it: the export `disk`, with more of the disk's keys.
pub(crate) fn in_front(program: Program, listen: &str, bytes: u64, keys: &str) -> (Far, Served) {
    let dir = temp_dir();
    let far = Far::start(program, dir.path(), bytes);
    let toml = format!(
        "{listen}\n[disks.d]\nbackend = \"nbd\"\n\
         uri = \"nbd+unix:///?socket={}/far.sock\"\n{keys}\n[exports.disk]\ndisk = \"d\"\n",
        dir.path().display()
    );
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    (far, Served::start(dir, &["c.toml"], 1))
}

const MIB: u64 = 1 << 20;

#[test]
fn fio_verifies_what_it_writes_while_the_far_server_is_killed_and_started_again() {
    for program in Program::ALL {
        let keys = "after_reconnect = \"trust\"";
        let (mut far, served) = in_front(program, "unix = \"nbd.sock\"", 64 * MIB, keys);
        let (uri, dir) = (served.uri().to_owned(), served.dir.path().to_owned());
        let more = ["--bsrange=512-64k", "--rate=,16m", "--fsync=64"];
        let fio = thread::spawn(move || fio_verify(&uri, &more, &dir));
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(400));
            far.kill();
            thread::sleep(Duration::from_millis(100));
            far.restart();
        }
        let said = fio.join().expect("fio succeeds");
        assert!(said.contains("err= 0"), "{program:?}: {said}");
        let log = served.log();
        assert!(log.contains("is connected again"), "{program:?}: {log}");
        served.end();
    }
}

/// Its writes are flushed before it goes, so nothing is in doubt, and nothing is sent twice.
#[test]
fn fio_verifies_what_it_writes_while_the_far_server_restarts_as_planned() {
    for program in Program::ALL {
        let dir = temp_dir();
        let mut far = Far::start(program, dir.path(), 64 * MIB);
        let toml = format!(
            "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n[pools.far]\nbackend = \"nbd\"\n\
             [volumes.disk]\npool = \"far\"\nuri = \"nbd+unix:///?socket={}/far.sock\"\n",
            dir.path().display()
        );
        fs::write(dir.path().join("c.toml"), toml).expect("a file");
        let served = Served::start(dir, &["c.toml"], 1);
        let (uri, dir) = (served.uri().to_owned(), served.dir.path().to_owned());
        let more = ["--bsrange=512-64k", "--rate=,40m", "--fsync=64"];
        let fio = thread::spawn(move || fio_verify(&uri, &more, &dir));
        for _ in 0..5 {
            thread::sleep(Duration::from_millis(200));
            let left = ctl(&served, &["volume", "quiesce", "disk"]).expect("it is connected");
            assert!(left.contains("state=quiesced"), "{program:?}: {left}");
            far.kill();
            far.restart();
            ctl(&served, &["volume", "resume", "disk"]).expect("it was quiesced");
        }
        let said = fio.join().expect("fio succeeds");
        assert!(said.contains("err= 0"), "{program:?}: {said}");
        let shown = ctl(&served, &["volume", "show", "disk"]).expect("it is there");
        let far = shown.lines().find(|line| line.starts_with("far="));
        let far = far.unwrap_or_else(|| panic!("{program:?}: {shown}"));
        for none in ["\"lost\":0", "\"sent_again\":0", "\"in_doubt\":false"] {
            assert!(far.contains(none), "{program:?}: {far}");
        }
        served.end();
    }
}

/// NBD's numbers of commands.
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// Sends a command without a range, or a write of 512 bytes: its error.
fn ask(wire: &mut Wire, command: u16) -> u32 {
    let len = if command == WRITE { 512 } else { 0 };
    wire.send(&request(0, command, 7, 0, len));
    wire.send(&vec![3; len as usize]);
    wire.simple_reply(7)
}

pub(crate) const EIO: u32 = 5;

#[test]
fn server_that_is_stopped_is_waited_for_no_longer_than_the_file_says() {
    for program in Program::ALL {
        let keys = "answer_timeout = \"300ms\"\nreconnect = \"500ms\"";
        let (far, served) = in_front(program, "unix = \"nbd.sock\"", MIB, keys);
        let mut wire = Wire::enter(&served, Place::Unix);
        assert_eq!([WRITE, FLUSH].map(|command| ask(&mut wire, command)), [0, 0]);
        far.stop();
        let answers = [WRITE, WRITE].map(|command| ask(&mut wire, command));
        assert_eq!(answers, [EIO, EIO], "{program:?}: {}", served.log());
        far.resume();
        eventually("it is of use again", || ask(&mut wire, WRITE) == 0);
        assert!(served.log().contains("not answered within 300 ms"), "{}", served.log());
        served.end();
    }
}

#[test]
fn writes_that_a_killed_server_had_not_flushed_are_in_doubt() {
    for program in Program::ALL {
        let (mut far, served) = in_front(program, "unix = \"nbd.sock\"", MIB, "");
        let mut wire = Wire::enter(&served, Place::Unix);
        let connected = |times| move |log: &str| log.matches("is connected again").count() == times;
        let mut restart = |times| {
            far.kill();
            far.restart();
            eventually("it is connected again", || connected(times)(&served.log()));
        };
        assert_eq!([WRITE, FLUSH].map(|command| ask(&mut wire, command)), [0, 0]);
        restart(1);
        let answers = [FLUSH, WRITE].map(|command| ask(&mut wire, command));
        assert_eq!(answers, [0, 0], "{program:?}: nothing was in doubt");
        restart(2);
        let answers = [FLUSH, WRITE, FLUSH].map(|command| ask(&mut wire, command));
        assert_eq!(answers, [EIO, 0, EIO], "{program:?}: {}", served.log());
    }
}

#[test]
fn disk_whose_server_is_lost_goes_with_a_reload_and_the_others_are_served_on() {
    let dir = temp_dir();
    let mut far = Far::start(Program::QemuNbd, dir.path(), MIB);
    let rest = "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n[disks.m]\nbackend = \"memory\"\n\
                size = \"1M\"\n[exports.other]\ndisk = \"m\"\n";
    let uri = format!("nbd+unix:///?socket={}/far.sock", dir.path().display());
    let far_disk = format!(
        "[disks.d]\nbackend = \"nbd\"\nuri = \"{uri}\"\nreconnect = \"1s\"\n\
         [exports.disk]\ndisk = \"d\"\n"
    );
    fs::write(dir.path().join("c.toml"), format!("{rest}{far_disk}")).expect("a file");
    let served = Served::start(dir, &["c.toml"], 2);
    let mut wire = Wire::connect(&served, Place::Unix);
    wire.enter_by_name(3, "disk");
    assert_eq!(ask(&mut wire, WRITE), 0);
    far.kill();
    fs::write(served.path("c.toml"), rest).expect("a file");
    drop(wire);
    // What was not flushed is lost, which the reload tells; it is not the end of the server.
    assert!(ctl(&served, &["reload"]).is_err());
    let lost = "disk \"d\": the last flush failed";
    eventually("it is told", || served.log().contains(lost));
    assert!(!ctl(&served, &["stat"]).expect("it answers").contains("far.sock"));
    thread::sleep(Duration::from_millis(200));
    let mut wire = Wire::connect(&served, Place::Unix);
    wire.enter_by_name(3, "other");
    served.end();
}
