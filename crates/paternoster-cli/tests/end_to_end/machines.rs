//! A virtual machine whose server goes, by SIGKILL or by SIGTERM, or as another one takes over,
//! while it writes; and the next server, to which its front-end attaches again with the memory of
//! its requests in flight.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use paternoster_load::{Ask, Machine, Shape};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{Served, eventually, temp_dir};

const BLOCK: usize = 4096;
const SECTORS: u64 = 8;

/// Requests that the machine has in flight, each of a block of its own.
const SLOTS: u16 = 16;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a machine has written, and what it has been told of that.
struct Writes {
    machine: Machine,
    rng: Rng,
    /// The number that was written last to each block.
    written: BTreeMap<u64, u64>,
    /// The block of each slot.
    in_flight: BTreeMap<u16, u64>,
    numbers: u64,
    answered: u64,
}

impl Writes {
    fn new(served: &Served, rng: Rng) -> Self {
        let shape = Shape { slots: SLOTS, room: 4096, ..Shape::default() };
        let machine = Machine::attach(&served.path("gold.vhost"), shape).expect("it attaches");
        let (written, in_flight) = (BTreeMap::new(), BTreeMap::new());
        Self { machine, rng, written, in_flight, numbers: 0, answered: 0 }
    }

    /// Writes to blocks that no request in flight has, until all slots are taken.
    fn ask(&mut self) {
        while self.machine.rings[0].has_room() {
            let block = self.rng.u64(0..256);
            if self.in_flight.values().any(|&other| other == block) {
                continue;
            }
            self.numbers += 1;
            let data = content(self.numbers);
            let ask = Ask::Write(block * SECTORS, &data);
            let slot = self.machine.ask(0, &ask).expect("there is room");
            self.in_flight.insert(slot, block);
            self.written.insert(block, self.numbers);
        }
    }

    /// Takes what is done within that time: each once, and well.
    fn take(&mut self, span: Duration) -> usize {
        let done = self.machine.wait(0, span).expect("each is done once");
        for one in &done {
            assert_eq!(one.status, 0, "no request fails because its server goes");
            self.in_flight.remove(&one.slot).expect("it was asked for");
        }
        self.answered += done.len() as u64;
        done.len()
    }

    /// Waits until nothing is in flight.
    fn take_all(&mut self) {
        while !self.in_flight.is_empty() {
            let taken = self.take(PATIENCE);
            assert!(taken > 0, "{} requests have been lost", self.in_flight.len());
        }
    }

    /// Reads all that was ever written.
    fn check(&mut self) {
        for (&block, &number) in &self.written {
            let ask = Ask::Read(block * SECTORS, 4096);
            let (status, data) = self.machine.do_one(&ask).expect("it is done");
            assert_eq!(status, 0);
            assert!(data == content(number), "block {block} is not as it was written last");
        }
    }
}

/// What a block has that was written with that number.
fn content(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK / 8)
}

const FILE: &str = r#"
unix = "nbd.sock"
ctl = "ctl.sock"
[disks.d]
path = "disk.img"
scheduler = "SCHEDULER"
[exports.gold]
disk = "d"
vhost_user = "gold.vhost"
"#;

/// The server goes so many times under a machine, by one signal and the other, or for another one.
fn goes_on(scheduler: &str, times: u64) {
    let dir = temp_dir();
    fs::write(dir.path().join("c.toml"), FILE.replace("SCHEDULER", scheduler)).expect("a file");
    let disk = fs::File::create(dir.path().join("disk.img")).expect("an image");
    disk.set_len(1 << 20).expect("room");
    let mut served = Served::start(dir, &["c.toml"], 2);
    assert_eq!(served.uris[1], "vhost-user gold.vhost");
    let mut writes = Writes::new(&served, Rng::with_seed(times));
    let mut longest = Duration::ZERO;
    for round in 0..times {
        let until = Instant::now() + Duration::from_micros(writes.rng.u64(0..20_000));
        while Instant::now() < until {
            writes.ask();
            writes.take(Duration::from_micros(200));
        }
        writes.ask();
        served = match round % 3 {
            0 => served.hand_over("c.toml").0,
            by => {
                served.signal(if by == 1 { Signal::KILL } else { Signal::TERM });
                served.wait(PATIENCE);
                let dir = served.leave();
                Served::start(dir, &["c.toml"], 2)
            }
        };
        let back = Instant::now();
        writes.machine.attach_again(&served.path("gold.vhost")).expect("it attaches again");
        if !writes.in_flight.is_empty() {
            assert!(writes.take(PATIENCE) > 0, "what was in flight is answered");
        }
        longest = longest.max(back.elapsed());
    }
    writes.take_all();
    writes.check();
    assert!(longest < Duration::from_secs(2), "{longest:?} until the first answer");
    println!("{} writes, {times} servers, {longest:?} to the first answer", writes.answered);
    drop(writes);
    served.end();
}

/// `RESTARTS` says how often, of each; ten times unless it does.
#[test]
fn machine_goes_on_when_its_server_is_killed_or_ended() {
    let times = std::env::var("RESTARTS").map_or(10, |times| times.parse().expect("a number"));
    for scheduler in ["none", "wfq"] {
        goes_on(scheduler, times);
    }
}

/// A folder with the file of a server that has the export `gold` in memory.
fn with_gold() -> TempDir {
    let dir = temp_dir();
    let toml = "unix = \"nbd.sock\"\nctl = \"none\"\n\
                [disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n\
                [exports.gold]\ndisk = \"d\"\nvhost_user = \"gold.vhost\"\n";
    fs::write(dir.path().join("c.toml"), toml).expect("a file");
    dir
}

#[test]
fn machine_whose_memory_can_be_taken_away_is_named_once() {
    let served = Served::start(with_gold(), &["c.toml"], 2);
    for (sealed, warnings) in [(true, 0), (false, 1)] {
        let shape = Shape { sealed, ..Shape::default() };
        let mut machine = None;
        eventually("it attaches", || {
            machine = Machine::attach(&served.path("gold.vhost"), shape).ok();
            machine.is_some()
        });
        if !sealed {
            // A line of a kind is let through once in a second.
            thread::sleep(Duration::from_millis(1100));
        }
        machine.expect("it is there").tell_memory().expect("it is obeyed");
        let log = served.log();
        assert_eq!(log.matches("memory can be taken away").count(), warnings, "{log}");
    }
    served.end();
}

/// It goes on behind what it was answered; what it was not may be lost, and only the log says so.
#[test]
fn machine_that_comes_back_without_what_was_in_flight_is_named() {
    for (inflight, warnings) in [(true, 0), (false, 1)] {
        let mut served = Served::start(with_gold(), &["c.toml"], 2);
        let shape = Shape { inflight, queues: 2, ..Shape::default() };
        let mut machine = Machine::attach(&served.path("gold.vhost"), shape).expect("it attaches");
        machine.do_one(&Ask::Read(0, 512)).expect("it is done");
        // A ring that stops here goes on where it was.
        machine.stop(0).expect("it stops");
        machine.stop(1).expect("it stops");
        machine.start_again().expect("it goes on");
        machine.do_one(&Ask::Read(0, 512)).expect("it is done");
        assert!(!served.log().contains("may be lost"), "{}", served.log());
        served.signal(Signal::KILL);
        served.wait(PATIENCE);
        let dir = served.leave();
        served = Served::start(dir, &["c.toml"], 2);
        machine.attach_again(&served.path("gold.vhost")).expect("it attaches again");
        machine.do_one(&Ask::Read(0, 512)).expect("it is done");
        let log = served.log();
        assert_eq!(log.matches("requests of a machine may be lost").count(), warnings, "{log}");
        drop(machine);
        served.end();
    }
}

/// Each ring has a kick and a call, and a front-end may have 64 rings.
#[test]
fn machine_that_wants_more_descriptors_than_there_are_is_shut_out_alone() {
    let dir = with_gold();
    // Some eighty of them are for clients.
    let mut command = Command::new("sh");
    let few = "ulimit -n 400 && exec \"$0\" serve c.toml";
    command.args(["-c", few, env!("CARGO_BIN_EXE_paternoster")]).current_dir(dir.path());
    command.env("RUST_LOG", "info");
    let served = Served::spawn(dir, command, 2);
    let attach = |queues| {
        let shape = Shape { queues, ..Shape::default() };
        Machine::attach(&served.path("gold.vhost"), shape)
    };
    assert!(attach(64).is_err(), "there are not so many");
    eventually("its end is told", || served.log().contains("all that the server has descriptors"));
    let mut machine = None;
    eventually("what it had is free again", || {
        machine = attach(16).ok();
        machine.is_some()
    });
    let mut machine = machine.expect("it is there");
    assert_eq!(machine.do_one(&Ask::Read(0, 512)).expect("it is served"), (0, vec![0; 512]));
    drop(machine);
    served.end();
}
