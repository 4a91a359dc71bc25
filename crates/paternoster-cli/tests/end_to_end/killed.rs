//! A server that is killed before each system call by which it makes, grows, shrinks or removes a
//! volume. What was answered is there after a restart; what was not can be asked for again.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::settings::ctl;
use crate::support::{Served, eventually, temp_dir};

const POOL: &str = r#"
unix = "nbd.sock"
ctl = "ctl.sock"
state_dir = "state"
[pools.fast]
path = "images"
"#;

/// The system calls that change a directory, a record or an image, or make it durable.
const CALLS: [&str; 8] =
    ["openat2", "ftruncate", "fsync", "fdatasync", "renameat", "renameat2", "unlink", "mkdir"];

const MIB: u64 = 1 << 20;

fn serve(dir: TempDir) -> Served {
    let served = Served::start(dir, &["c.toml"], 0);
    eventually("it answers", || ctl(&served, &["pool", "list"]).is_ok());
    served
}

fn new_pool() -> TempDir {
    let dir = temp_dir();
    fs::create_dir(dir.path().join("images")).expect("a directory");
    fs::write(dir.path().join("c.toml"), POOL).expect("a file");
    dir
}

/// strace on all threads of a server.
struct Traced(Child);

impl Traced {
    fn attach(served: &Served, more: &[&str]) -> Self {
        let mut command = Command::new("strace");
        let id = served.id().to_string();
        command.args(["-f", "-y", "-o", "trace.log", "-p", &id]).args(more);
        command.current_dir(served.dir.path()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("install the Debian package strace");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut said = String::new();
        while !said.contains("attached") {
            assert!(stderr.read_line(&mut said).is_ok_and(|bytes| bytes > 0), "{said}");
        }
        Self(child)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        // It has ended where the server was killed.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A volume as `ctl volume show` has it; none if there is none.
fn volume(served: &Served) -> Option<Value> {
    let shown = ctl(served, &["volume", "list", "--json"]).expect("it answers");
    let all: Value = serde_json::from_str(&shown).expect("JSON");
    all["volumes"].as_array().expect("a list").iter().find(|one| one["name"] == "vm").cloned()
}

fn size(volume: &Value) -> u64 {
    assert_eq!(volume["state"], "ready", "{volume}");
    volume["size"].as_u64().expect("a number")
}

/// Has a server be killed at each step of what `args` ask for. `before` makes the volume such that
/// there is something to do; `after` judges what is there when the next server serves, and whether
/// the same has been asked for again.
fn kill_at_each_step(
    least: usize,
    args: impl Fn(u64) -> Vec<String>,
    before: impl Fn(&Served, u64),
    after: impl Fn(&Served, u64, bool),
) {
    let (mut dir, mut round, mut kills) = (new_pool(), 0, 0);
    for call in CALLS {
        for step in 1.. {
            round += 1;
            let mut served = serve(dir);
            before(&served, round);
            let (trace, inject) =
                (format!("trace={call}"), format!("inject={call}:signal=KILL:when={step}"));
            let traced = Traced::attach(&served, &["-e", &trace, "-e", &inject]);
            let args = args(round);
            let args: Vec<_> = args.iter().map(String::as_str).collect();
            let answered = ctl(&served, &args).is_ok();
            if answered {
                drop(traced);
                after(&served, round, true);
                served.terminate();
                dir = served.leave();
                break;
            }
            let (status, _) = served.wait(Duration::from_secs(10));
            assert!(!status.success(), "it was killed");
            drop(traced);
            kills += 1;
            let again = serve(served.leave());
            after(&again, round, false);
            ctl(&again, &args).unwrap_or_else(|why| {
                assert!(args.contains(&"remove") && why.contains("there is no volume"), "{why}");
                String::new()
            });
            after(&again, round, true);
            again.terminate();
            dir = again.leave();
        }
    }
    assert!(kills >= least, "{kills} steps");
    println!("killed at {kills} steps");
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn image(served: &Served) -> File {
    let path = served.path("images/vm.img");
    OpenOptions::new().read(true).write(true).open(path).expect("it is there")
}

/// Makes the volume, if it is not there, of that size, with something in its first block.
fn make(served: &Served, size: &str) {
    if volume(served).is_none() {
        let create = ["volume", "create", "vm", "--pool", "fast", "--size", size];
        ctl(served, &create).expect("it is made");
        image(served).write_all_at(&[7; 512], 0).expect("it is written");
    }
}

/// Looks that the image has all of the volume, and what was written.
fn check_image(served: &Served, size: u64) {
    let image = image(served);
    let mut block = [0; 512];
    image.read_exact_at(&mut block, 0).expect("it has one");
    assert_eq!(block, [7; 512]);
    assert!(image.metadata().expect("it is there").len() >= size);
}

#[test]
fn killed_while_it_makes_a_volume() {
    let args = |_| words("volume create vm --pool fast --size 1M weight=200");
    let before = |served: &Served, _| {
        if volume(served).is_some() {
            ctl(served, &["volume", "remove", "vm", "--delete-data"]).expect("it is removed");
            // As in a directory in which nothing has been recorded yet.
            fs::remove_dir(served.path("state/volumes")).expect("it is empty");
            fs::remove_file(served.path("state/format")).expect("it is there");
        }
    };
    let after = |served: &Served, _, is_answered: bool| {
        let there = volume(served);
        assert!(there.is_some() || !is_answered);
        assert!(there.iter().all(|volume| size(volume) == MIB && volume["weight"] == 200));
        let is_image = served.path("images/vm.img").exists();
        assert_eq!(is_image, there.is_some(), "an image is a volume's");
    };
    kill_at_each_step(14, args, before, after);
}

#[test]
fn killed_while_a_volume_grows() {
    let to = |round| (1 + round) * MIB;
    let args = |round| words(&format!("volume resize vm {}", to(round)));
    let before = |served: &Served, _| make(served, "1M");
    let after = |served: &Served, round, is_answered: bool| {
        let size = size(&volume(served).expect("it is there"));
        assert!(size == to(round) || !is_answered && size == to(round) - MIB, "{size}");
        check_image(served, size);
    };
    kill_at_each_step(5, args, before, after);
}

#[test]
fn killed_while_a_volume_becomes_smaller() {
    let to = |round| (99 - round) * MIB;
    let args = |round| words(&format!("volume resize vm {}", to(round)));
    let before = |served: &Served, _| make(served, "99M");
    let after = |served: &Served, round, is_answered: bool| {
        let size = size(&volume(served).expect("it is there"));
        assert!(size == to(round) || !is_answered && size == to(round) + MIB, "{size}");
        check_image(served, size);
    };
    kill_at_each_step(4, args, before, after);
}

#[test]
fn killed_while_it_removes_a_volume() {
    let args = |_| words("volume remove vm --delete-data --drain 0s");
    let before = |served: &Served, _| make(served, "1M");
    let after = |served: &Served, _, is_answered: bool| match volume(served) {
        Some(volume) => {
            assert!(!is_answered);
            check_image(served, size(&volume));
        }
        None => assert!(!served.path("images/vm.img").exists(), "what is gone is gone whole"),
    };
    kill_at_each_step(6, args, before, after);
}

/// A kill loses nothing that was written; a machine that loses power loses what was not synced.
#[test]
fn each_step_is_durable_before_the_next() {
    let served = serve(new_pool());
    let steps = |args: &str| {
        let traced = Traced::attach(&served, &["-e", &format!("trace={}", CALLS.join(","))]);
        let args = words(args);
        ctl(&served, &args.iter().map(String::as_str).collect::<Vec<_>>()).expect("it is done");
        drop(traced);
        let log = fs::read_to_string(served.path("trace.log")).expect("the trace");
        log.lines().filter_map(step).collect::<Vec<_>>()
    };
    let format = steps("volume create first --pool fast --size 1M");
    let laid_out = ["fdatasync state/.new-", "renameat state/format", "fsync state"];
    assert_eq!(format[5..8], laid_out);
    assert_eq!(format[8..10], ["mkdir state/volumes", "fsync state"]);
    let record = ["fdatasync state/volumes/.new-", "renameat state/volumes/vm.json"];
    let recorded = ["fsync state/volumes"];
    let create =
        ["unlink images/.new-vm.img", "openat2 .new-vm.img", "ftruncate images/.new-vm.img"];
    let synced = ["fsync images/.new-vm.img", "fsync images"];
    let named = ["renameat2 images/vm.img"];
    assert_eq!(
        steps("volume create vm --pool fast --size 1M"),
        [&create[..], &synced, &record, &recorded, &named].concat()
    );
    let grown = ["ftruncate images/vm.img", "fsync images/vm.img"];
    assert_eq!(steps("volume resize vm 2M"), [&grown[..], &record, &recorded].concat());
    let deleted = ["unlink images/vm.img", "fsync images"];
    let forgotten = ["unlink state/volumes/vm.json", "fsync state/volumes"];
    assert_eq!(
        steps("volume remove vm --delete-data"),
        [&record[..], &recorded, &deleted, &forgotten].concat()
    );
    served.end();
}

/// A line of strace, as `CALL PATH`: the path that is changed last, without what is random.
fn step(line: &str) -> Option<String> {
    let call = line.split_whitespace().nth(1)?.split('(').next()?;
    let quoted = line.split('"').skip(1).step_by(2).last();
    let opened = line.split(['<', '>']).nth(1);
    let path = quoted.or(opened)?;
    let at = ["/state", "/images"].iter().find_map(|part| path.rfind(part));
    let path = &path[at.map_or(0, |at| at + 1)..];
    let path = match path.split_once("/.new-") {
        Some((state, _)) if state.starts_with("state") => format!("{state}/.new-"),
        _ => path.to_owned(),
    };
    CALLS.contains(&call).then(|| format!("{call} {path}"))
}
