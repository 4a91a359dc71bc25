//! Machines that attach, ask, stop, change their memory, break their rings and leave at random,
//! beside a client of NBD that goes on. A failure names its seed.
//!
//! Each machine knows what may be in every block of its disk: one value behind an answer, the old
//! and the new where a write was not answered. What it reads has to be one of these, whoever had
//! the export before.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use paternoster_load::{Ask, Machine, Shape};
use paternoster_vhost::proto::{Features, request};

use crate::support::{PATIENCE, Rig};

/// Machines, each on an export of its own.
const MACHINES: u64 = 3;
/// How often each attaches.
const SESSIONS: usize = 60;
/// Bytes of a block, which are all alike.
const BLOCK: u32 = 4096;
/// Blocks of a machine's disk.
const BLOCKS: u64 = 24;

/// What a machine has asked for.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Read(u64),
    Write(u64, u8),
    Flush,
}

/// The values that a block may have; none where it may have any.
type Values = Option<Vec<u8>>;

/// What is known of an export.
struct Known {
    export: String,
    rng: Rng,
    blocks: Vec<Values>,
}

/// A machine that is attached, and what it waits for, by ring and slot.
struct Session<'k> {
    known: &'k mut Known,
    machine: Machine,
    asked: BTreeMap<(usize, u16), Asked>,
}

/// How a session goes on.
#[derive(PartialEq, Eq)]
enum After {
    More,
    Left,
}

fn serve(disk: &str) -> Rig {
    let size = BLOCKS * u64::from(BLOCK);
    let exports = (0..MACHINES).map(|number| {
        let offset = number * size;
        format!(
            "[exports.m{number}]\ndisk = \"d\"\noffset = {offset}\nsize = {size}\n\
             vhost_user = \"DIR/m{number}.vhost\"\n"
        )
    });
    let rest = format!("[exports.a]\ndisk = \"d\"\noffset = {}\n", MACHINES * size);
    let exports = exports.chain([rest]).collect::<String>();
    if disk.is_empty() {
        Rig::start(&format!("[disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n{exports}"))
    } else {
        Rig::with_file(1 << 20, &format!("{disk}\n{exports}"))
    }
}

#[test]
fn machines_come_and_go_at_random() {
    for (seed, disk) in (1..).zip(["", "cache = \"page\"", "cache = \"direct\""]) {
        let rig = serve(disk);
        let end = thread::scope(|scope| {
            let machines = (0..MACHINES).map(|number| {
                let dir = rig.dir.path();
                scope.spawn(move || {
                    let mut known = Known {
                        export: format!("m{number}"),
                        rng: Rng::with_seed(seed * MACHINES + number),
                        blocks: vec![Some(vec![0]); usize::try_from(BLOCKS).expect("few")],
                    };
                    for session in 0..SESSIONS {
                        println!("seed {seed}, {}, session {session}", known.export);
                        known.live(dir);
                    }
                    known
                })
            });
            let machines: Vec<_> = machines.collect();
            let mut client = rig.client("a");
            while machines.iter().any(|machine| !machine.is_finished()) {
                client.check_served(3);
            }
            machines.into_iter().map(|machine| machine.join().expect("it was right")).collect()
        });
        rig.until_empty();
        let end: Vec<Known> = end;
        for mut known in end {
            let mut client = rig.client(&known.export);
            for block in 0..BLOCKS {
                let bytes = client.read(block * u64::from(BLOCK), BLOCK);
                known.read(block, &bytes);
            }
        }
        rig.end();
    }
}

impl Known {
    /// Attaches, does this and that, and leaves.
    fn live(&mut self, dir: &Path) {
        let rng = &mut self.rng;
        let shape = Shape {
            queues: rng.u16(1..=3),
            slots: [4, 16, 32][rng.usize(0..3)],
            room: 8192,
            features: [Features::all(), Features::VERSION_1][rng.usize(0..2)],
            sealed: rng.bool(),
            inflight: rng.bool(),
        };
        let path = dir.join(format!("{}.vhost", self.export));
        let begun = Instant::now();
        let machine = loop {
            // It is refused as long as the server has not seen that the one before is gone.
            match Machine::attach(&path, shape) {
                Ok(machine) => break machine,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error:#}"),
            }
        };
        let steps = self.rng.usize(1..60);
        let mut session = Session { known: self, machine, asked: BTreeMap::new() };
        for _ in 0..steps {
            if session.step(shape) == After::Left {
                break;
            }
        }
        session.leave();
    }

    /// A block has these bytes.
    fn read(&mut self, block: u64, bytes: &[u8]) {
        let value = bytes[0];
        let values = &mut self.blocks[usize::try_from(block).expect("few")];
        if let Some(values) = values {
            assert!(bytes.iter().all(|byte| *byte == value), "block {block} is of two writes");
            assert!(values.contains(&value), "block {block} is {value}, may be {values:?}");
            *values = vec![value];
        }
    }
}

impl Session<'_> {
    fn step(&mut self, shape: Shape) -> After {
        match self.known.rng.u8(0..40) {
            0..=27 => self.ask(),
            28..=33 => self.take(Duration::from_millis(1)),
            // Under requests.
            34..=35 => self.machine.tell_memory().expect("it is obeyed"),
            36..=37 => {
                if self.known.rng.bool() {
                    self.disable(shape.queues);
                }
                for ring in 0..shape.queues {
                    self.machine.stop(ring).expect("it stops");
                }
                // A ring goes on behind what it has done, and has nothing in flight.
                self.take(Duration::ZERO);
                self.machine.start_again().expect("it goes on");
            }
            38 => {
                let ring = self.known.rng.usize(0..self.machine.rings.len());
                let Machine { rings, guest, .. } = &mut self.machine;
                rings[ring].run_ahead(guest, 1000).expect("it kicks");
                if self.known.rng.bool() {
                    self.disable(shape.queues);
                    let ring = u16::try_from(ring).expect("few");
                    self.machine.stop(ring).expect("it stops");
                }
                return After::Left;
            }
            _ if shape.sealed => {}
            _ => {
                rustix::fs::ftruncate(self.machine.guest.file(), 0).expect("nobody forbids it");
                let _ = self.machine.rings[0].kick();
                // What was being copied is in part of zeroes.
                for asked in std::mem::take(&mut self.asked).into_values() {
                    if let Asked::Write(block, _) = asked {
                        self.known.blocks[usize::try_from(block).expect("few")] = None;
                    }
                }
                return After::Left;
            }
        }
        After::More
    }

    /// Has no ring be read.
    fn disable(&mut self, rings: u16) {
        for ring in 0..u32::from(rings) {
            let body = [ring, 0].map(u32::to_ne_bytes).concat();
            let front_end = &mut self.machine.front_end;
            front_end.tell(request::SET_VRING_ENABLE, &body, &[]).expect("it is obeyed");
        }
    }

    /// Asks for something that is in nobody's way, where there is a slot.
    fn ask(&mut self) {
        let rings = self.machine.rings.len();
        let rng = &mut self.known.rng;
        let (number, block, value) = (rng.usize(0..rings), rng.u64(0..BLOCKS), rng.u8(1..));
        let asked = match rng.u8(0..8) {
            0..=2 => Asked::Read(block),
            3..=6 => Asked::Write(block, value),
            _ => Asked::Flush,
        };
        let is_busy = self.asked.values().any(|other| match other {
            Asked::Read(taken) | Asked::Write(taken, _) => *taken == block,
            Asked::Flush => false,
        });
        if is_busy || !self.machine.rings[number].has_room() {
            return;
        }
        let sector = block * u64::from(BLOCK / 512);
        let data = [value; BLOCK as usize];
        let ask = match asked {
            Asked::Read(_) => Ask::Read(sector, BLOCK),
            Asked::Write(..) => Ask::Write(sector, &data),
            Asked::Flush => Ask::Flush,
        };
        let slot = self.machine.ask(number, &ask).expect("there is room");
        self.asked.insert((number, slot), asked);
    }

    /// Takes what is done.
    fn take(&mut self, timeout: Duration) {
        for (ring, done) in self.machine.wait_for_any(timeout).expect("it is served") {
            assert_eq!(done.status, 0, "it is well");
            let asked = self.asked.remove(&(ring, done.slot)).expect("it was asked for, once");
            match asked {
                Asked::Read(block) => self.known.read(block, &self.machine.data(ring, &done)),
                Asked::Write(block, value) => {
                    self.known.blocks[usize::try_from(block).expect("few")] = Some(vec![value]);
                }
                Asked::Flush => {}
            }
        }
    }

    /// Hangs up, whatever it waits for.
    fn leave(self) {
        for asked in self.asked.into_values() {
            if let Asked::Write(block, value) = asked {
                let values = &mut self.known.blocks[usize::try_from(block).expect("few")];
                if let Some(values) = values {
                    values.push(value);
                }
            }
        }
    }
}
