//! Random commands, completions, failures and short transfers, in random order: every command is
//! answered once, and reads give what was written.

use std::collections::BTreeMap;
use std::ops::Range;

use paternoster::{Nanos, SchedulerKind};
use paternoster_disk::{Capabilities, CommandOp, Transfer, TransferId};
use rustix::io::Errno;

use crate::support::random::Random;
use crate::support::{
    Rig, Shape, any_byte, cache, merges, read, trim, trimmed, write, write_fua, zero,
};

/// Its last block is short.
const DISK: usize = (64 << 10) + 700;
const COMMANDS: u64 = 400;

/// A command in flight, and what it may change.
struct InFlight {
    op: CommandOp,
    range: Range<usize>,
    fill: u8,
}

/// What is varied from seed to seed.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    /// A transfer fails or falls short once in so many; 0 is never.
    fails_once_in: u64,
    /// What is queued is cancelled once in so many steps; 0 is never.
    cancels_once_in: u64,
}

struct Swarm {
    rig: Rig,
    random: Random,
    trouble: Trouble,
    depth: usize,
    /// Bytes of a block.
    block: usize,
    /// What the device holds.
    disk: Vec<u8>,
    /// What clients believe it holds; none where a change has failed.
    model: Vec<Option<u8>>,
    in_flight: BTreeMap<u64, InFlight>,
    submitted: u64,
    /// Pieces that waited for a block, summed over looks.
    waited_for_blocks: usize,
    transfers_failed: bool,
}

impl Swarm {
    fn new(kind: SchedulerKind, seed: u64, trouble: Trouble) -> Self {
        let mut random = Random::new(seed);
        let depth = u32::try_from(random.of(1..9)).expect("small");
        let sectors = u32::try_from(random.of(1..24)).expect("small");
        let block = [1, 512, 4096][random.index(3)];
        let capabilities = Capabilities { block, size: DISK as u64, ..any_byte() };
        let mut rig = Rig::of(kind, depth, &capabilities);
        rig.cut_at(sectors, block.div_ceil(512));
        if random.once_in(3) {
            let bound = u32::try_from(random.of(1..12)).expect("small");
            rig.engine.administer(|elevator| elevator.set_nr_requests(Some(bound)));
        }
        Self {
            rig,
            random,
            trouble,
            depth: depth as usize,
            block: block as usize,
            disk: vec![0; DISK],
            model: vec![Some(0); DISK],
            in_flight: BTreeMap::new(),
            submitted: 0,
            waited_for_blocks: 0,
            transfers_failed: false,
        }
    }

    /// Until all commands are submitted and answered.
    fn run(mut self) -> Self {
        while self.submitted < COMMANDS || !self.in_flight.is_empty() {
            self.rig.clock.advance(Nanos::from_micros(self.random.of(0..2000)));
            if self.submitted < COMMANDS && self.random.once_in(2) {
                self.submit();
            } else if !self.rig.in_device.is_empty() {
                self.finish();
            }
            let cancels = self.trouble.cancels_once_in;
            if cancels > 0 && self.random.once_in(cancels) {
                self.rig.engine.cancel_queued(self.rig.clock.now());
                self.rig.settle();
            }
            self.take_answers();
            self.check();
        }
        assert!(self.rig.engine.is_idle());
        assert!(self.rig.in_device.is_empty());
        assert!(self.rig.engine.poll_outcome().is_none());
        self
    }

    fn check(&mut self) {
        self.rig.engine.check();
        self.waited_for_blocks += self.rig.engine.waiting_for_blocks();
        let syncs = self.rig.in_device.iter().filter(|(id, _)| *id == TransferId::Sync).count();
        assert!(syncs <= 1, "one sync at a time");
        assert!(self.rig.in_device.len() - syncs <= self.depth, "no more than the device takes");
        for (start, end) in self.rig.shapes().iter().filter_map(Shape::range) {
            let ends_block =
                |byte: u64| byte == DISK as u64 || byte.is_multiple_of(self.block as u64);
            assert!(ends_block(start) && ends_block(end), "{start}..{end} is whole blocks");
        }
    }

    fn submit(&mut self) {
        let offset = self.random.index(DISK);
        let len = 1 + self.random.index(9000.min(DISK - offset));
        let range = self.rounded(offset..offset + len);
        let fill = self.random.next().to_le_bytes()[0];
        let op = self.op(&range, fill);
        let conflicts = self.in_flight.values().any(|other| {
            (changes(&op) || changes(&other.op))
                && other.range.start < range.end
                && range.start < other.range.end
        });
        if conflicts {
            return; // What overlapping commands leave is nobody's promise.
        }
        let tag = self.submitted;
        self.submitted += 1;
        self.in_flight.insert(tag, InFlight { op: op.clone(), range, fill });
        let connection = self.random.index(4);
        self.rig.submit(connection, tag, op);
    }

    /// Every other range is of whole sectors.
    fn rounded(&mut self, range: Range<usize>) -> Range<usize> {
        if self.random.once_in(2) {
            range
        } else {
            range.start / 512 * 512..range.end.next_multiple_of(512).min(DISK)
        }
    }

    fn op(&mut self, range: &Range<usize>, fill: u8) -> CommandOp {
        let (offset, long) = (range.start as u64, range.len());
        let short = u32::try_from(long).expect("at most 10000");
        let fua = self.random.once_in(2);
        match self.random.of(0..12) {
            0..4 => read(offset, short),
            4 => cache(offset, short),
            5..8 => write(offset, long, fill),
            8 => write_fua(offset, long, fill),
            9 => trim(offset, short, fua),
            10 => zero(offset, short, fua),
            _ => CommandOp::Flush,
        }
    }

    /// Some transfer ends, well or not.
    fn finish(&mut self) {
        let index = self.random.index(self.rig.in_device.len());
        let len = self.rig.in_device[index].1.len();
        let fails = self.trouble.fails_once_in;
        let fails = fails > 0 && self.random.once_in(fails);
        self.transfers_failed |= fails;
        let done = if fails { self.random.of(0..len + 1) } else { len };
        let read = self.carry_out(index, usize::try_from(done).expect("small"));
        let errors = [Errno::IO, Errno::NOSPC];
        let error = errors[self.random.index(2)];
        match read {
            _ if fails && self.random.once_in(2) => self.rig.finish_nth(index, Err(error)),
            Some(data) => self.rig.finish_read(index, &data),
            None => self.rig.finish_nth(index, Ok(done)),
        }
    }

    /// Does the first bytes of a transfer. Returns those of a read.
    fn carry_out(&mut self, index: usize, done: usize) -> Option<Vec<u8>> {
        let start = |offset: u64| usize::try_from(offset).expect("inside the disk");
        match &self.rig.in_device[index].1 {
            Transfer::Read { offset, .. } => {
                return Some(self.disk[start(*offset)..start(*offset) + done].to_vec());
            }
            Transfer::Write { offset, from, .. } => {
                let data = from.concat();
                self.disk[start(*offset)..start(*offset) + done].copy_from_slice(&data[..done]);
            }
            Transfer::Trim { offset, .. } | Transfer::Zero { offset, .. } => {
                self.disk[start(*offset)..start(*offset) + done].fill(0);
            }
            Transfer::Cache { .. } | Transfer::Sync { .. } => {}
        }
        None
    }

    fn take_answers(&mut self) {
        for outcome in self.rig.outcomes() {
            let command = self.in_flight.remove(&outcome.tag).expect("a command is answered once");
            let changed = match (&command.op, &outcome.result) {
                (CommandOp::Trim { .. }, Ok(_)) => trimmed(command.range, self.block, DISK),
                _ => command.range,
            };
            let model = &mut self.model[changed];
            match (command.op, outcome.result) {
                (CommandOp::Read { len, .. }, Ok(data)) => {
                    let data = data.concat();
                    assert_eq!(data.len(), len as usize);
                    let agrees = |(known, is): (&Option<u8>, &u8)| known.is_none_or(|k| k == *is);
                    assert!(
                        model.iter().zip(&data).all(agrees),
                        "command {} read something else",
                        outcome.tag
                    );
                }
                (CommandOp::Write { .. }, Ok(_)) => model.fill(Some(command.fill)),
                (CommandOp::Trim { .. } | CommandOp::Zero { .. }, Ok(_)) => model.fill(Some(0)),
                (CommandOp::Read { .. } | CommandOp::Cache { .. } | CommandOp::Flush, _) => {}
                (_, Err(_)) => model.fill(None),
            }
        }
    }
}

fn changes(op: &CommandOp) -> bool {
    !matches!(op, CommandOp::Read { .. } | CommandOp::Cache { .. } | CommandOp::Flush)
}

fn each_seed(trouble: Trouble, check: impl Fn(Swarm)) {
    for kind in SchedulerKind::ALL {
        for seed in 0..40 {
            println!("{kind}, seed {seed}, {trouble:?}"); // Shown when it fails.
            check(Swarm::new(kind, seed, trouble).run());
        }
    }
}

#[test]
fn every_command_succeeds_and_reads_what_was_written() {
    let trouble = Trouble { fails_once_in: 0, cancels_once_in: 0 };
    each_seed(trouble, |swarm| {
        let model: Vec<u8> = swarm.model.iter().map(|byte| byte.expect("nothing failed")).collect();
        assert!(swarm.disk == model);
        assert!(!swarm.rig.engine.sync_stats().failed);
    });
}

#[test]
fn every_command_is_answered_once_whatever_fails() {
    let trouble = Trouble { fails_once_in: 5, cancels_once_in: 0 };
    each_seed(trouble, |swarm| assert!(swarm.transfers_failed));
}

#[test]
fn every_command_is_answered_once_when_what_is_queued_is_cancelled() {
    each_seed(Trouble { fails_once_in: 20, cancels_once_in: 30 }, |_| {});
}

/// What is written to a part of a block leaves the rest of it as others have written it, though all
/// of that is under way at once: else this swarm shows nothing of it.
#[test]
fn swarm_waits_for_blocks() {
    let trouble = Trouble { fails_once_in: 0, cancels_once_in: 0 };
    let swarms = (0..40).map(|seed| Swarm::new(SchedulerKind::MqDeadline, seed, trouble).run());
    assert!(swarms.map(|swarm| swarm.waited_for_blocks).sum::<usize>() > 1000);
}

#[test]
fn swarm_merges() {
    let trouble = Trouble { fails_once_in: 0, cancels_once_in: 0 };
    let swarms = (0..40).map(|seed| Swarm::new(SchedulerKind::MqDeadline, seed, trouble).run());
    let merges: u64 = swarms.map(|swarm| merges(swarm.rig.engine.elevator())).sum();
    assert!(merges > 0);
}
