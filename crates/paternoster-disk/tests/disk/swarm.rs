//! Random commands, completions, failures and short transfers, in random order, on volumes that
//! come, grow and go: every command is answered once, and reads give what was written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use paternoster::{Nanos, SchedulerKind};
use paternoster_disk::{
    Capabilities, CommandOp, GuestReads, NoGrowth, Transfer, TransferId, VolumeId,
};
use rustix::io::Errno;

use crate::support::guest::Guest;
use crate::support::random::Random;
use crate::support::{
    Rig, Shape, any_byte, cache, merges, read, trim, trimmed, write, write_fua, zero,
};

/// Bytes of a volume, whose last block is short.
const SIZE: usize = (64 << 10) + 700;
const COMMANDS: u64 = 400;
/// Volumes at once.
const VOLUMES: usize = 4;
/// Syncs at once.
const SYNCS: usize = 4;

/// A command in flight, and what it may change.
struct InFlight {
    volume: VolumeId,
    op: CommandOp,
    range: Range<usize>,
    fill: u8,
    /// Where it reads into, if it does.
    guest: Option<Places>,
}

/// Two places in a guest's memory.
type Places = (Guest, [Range<usize>; 2]);

/// What is varied from seed to seed: each happens once in so many times; 0 is never.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    /// A transfer fails or falls short.
    failures: u64,
    /// In a step what is queued is cancelled.
    cancels: u64,
    /// In a step a volume comes, grows or goes.
    changes: u64,
}

const NO_TROUBLE: Trouble = Trouble { failures: 0, cancels: 0, changes: 0 };

/// A volume, as the test knows it.
struct Volume {
    /// Bytes of a block.
    block: usize,
    /// What the device holds.
    disk: Vec<u8>,
    /// What clients believe it holds; none where a change has failed.
    model: Vec<Option<u8>>,
    is_closing: bool,
    /// Whether a sync of it has failed.
    is_poisoned: bool,
}

impl Volume {
    /// Zeroes.
    fn new(block: usize, size: usize) -> Self {
        let (disk, model) = (vec![0; size], vec![Some(0); size]);
        Self { block, disk, model, is_closing: false, is_poisoned: false }
    }
}

/// How often volumes came, grew and went, and how often one could not grow yet.
#[derive(Default)]
struct Changes {
    added: usize,
    grown: usize,
    busy: usize,
    removed: usize,
    /// Commands of a volume that was closing, or gone.
    refused: usize,
}

struct Swarm {
    rig: Rig,
    random: Random,
    trouble: Trouble,
    depth: usize,
    volumes: BTreeMap<VolumeId, Volume>,
    /// The last that has gone.
    gone: Option<VolumeId>,
    changes: Changes,
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
        let capabilities = capabilities(block, SIZE);
        let mut rig = Rig::of(kind, depth, &capabilities);
        rig.cut_at(sectors, block.div_ceil(512));
        if random.once_in(3) {
            let bound = u32::try_from(random.of(1..12)).expect("small");
            rig.engine.administer(|elevator| elevator.set_nr_requests(Some(bound)));
        }
        let volume = rig.volume;
        Self {
            rig,
            random,
            trouble,
            depth: depth as usize,
            volumes: [(volume, Volume::new(block as usize, SIZE))].into(),
            gone: None,
            changes: Changes::default(),
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
            let cancels = self.trouble.cancels;
            if cancels > 0 && self.random.once_in(cancels) {
                self.rig.engine.cancel_queued(self.rig.clock.now());
                self.rig.settle();
            }
            let changes = self.trouble.changes;
            if changes > 0 && self.random.once_in(changes) {
                self.change_volumes();
            }
            self.take_answers();
            self.remove_idle();
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
        let syncs = self.rig.in_device.iter().filter_map(|(id, _)| match id {
            TransferId::Sync(volume) => Some(volume),
            TransferId::Request(..) => None,
        });
        let (syncs, of_volumes) = (syncs.clone().count(), syncs.collect::<BTreeSet<_>>());
        assert_eq!(syncs, of_volumes.len(), "one sync of a volume at a time");
        assert!(syncs <= SYNCS, "so many syncs at once");
        assert!(self.rig.in_device.len() - syncs <= self.depth, "no more than the device takes");
        for (id, transfer) in &self.rig.in_device {
            let Some((start, end)) = Shape::of(transfer).range() else { continue };
            let volume = &self.volumes[&id.volume()];
            let (size, block) = (volume.disk.len() as u64, volume.block as u64);
            assert!(end <= size, "{start}..{end} is inside the volume");
            let ends_block = |byte: u64| byte == size || byte.is_multiple_of(block);
            assert!(ends_block(start) && ends_block(end), "{start}..{end} is whole blocks");
        }
    }

    /// A volume comes, grows or goes.
    fn change_volumes(&mut self) {
        let open = self.volumes.iter().filter(|(_, volume)| !volume.is_closing);
        let open: Vec<VolumeId> = open.map(|(&id, _)| id).collect();
        let one = open[self.random.index(open.len())];
        match self.random.of(0..3) {
            0 if self.volumes.len() < VOLUMES => {
                let block = [1, 512, 4096][self.random.index(3)];
                let size = SIZE - self.random.index(1000);
                let id = self.rig.add_volume(&capabilities(block, size));
                self.volumes.insert(id, Volume::new(block as usize, size));
                self.changes.added += 1;
            }
            1 if open.len() > 1 => {
                self.rig.engine.close_volume(one);
                self.rig.settle();
                self.volumes.get_mut(&one).expect("it is open").is_closing = true;
            }
            _ => self.grow(one),
        }
    }

    /// A volume has more bytes, which are zeroes, unless its short last block is in use.
    fn grow(&mut self, id: VolumeId) {
        let volume = self.volumes.get_mut(&id).expect("it is open");
        let size = volume.disk.len() + 1 + self.random.index(5000);
        match self.rig.engine.grow_volume(id, size as u64) {
            Ok(()) => {
                volume.disk.resize(size, 0);
                volume.model.resize(size, Some(0));
                self.changes.grown += 1;
            }
            Err(error) => {
                assert_eq!(error, NoGrowth::Busy);
                assert!(!volume.disk.len().is_multiple_of(volume.block), "its last block is short");
                assert!(!self.rig.engine.is_volume_idle(id));
                self.changes.busy += 1;
            }
        }
    }

    /// Volumes that are closing go when they are idle.
    fn remove_idle(&mut self) {
        let Self { rig, volumes, changes, gone, .. } = self;
        volumes.retain(|&id, volume| {
            let goes = volume.is_closing && rig.engine.is_volume_idle(id);
            if goes {
                rig.engine.remove_volume(id);
                *gone = Some(id);
                changes.removed += 1;
            }
            !goes
        });
    }

    /// Some volume, which may be closing, or seldom one that is gone.
    fn some_volume(&mut self) -> VolumeId {
        let volumes: Vec<_> = self.volumes.keys().copied().collect();
        let one = volumes[self.random.index(volumes.len())];
        if volumes.len() > 1 && self.random.once_in(20) { self.gone.unwrap_or(one) } else { one }
    }

    fn submit(&mut self) {
        let volume = self.some_volume();
        let size = self.volumes.get(&volume).map_or(SIZE, |volume| volume.disk.len());
        let offset = self.random.index(size);
        let len = 1 + self.random.index(9000.min(size - offset));
        let range = self.rounded(offset..offset + len, size);
        let fill = self.random.next().to_le_bytes()[0];
        let op = self.op(&range, fill);
        let (op, guest) = self.read_to_guest(volume, op);
        let conflicts = self.in_flight.values().any(|other| {
            other.volume == volume
                && (changes(&op) || changes(&other.op))
                && other.range.start < range.end
                && range.start < other.range.end
        });
        if conflicts {
            return; // What overlapping commands leave is nobody's promise.
        }
        let tag = self.submitted;
        self.submitted += 1;
        self.in_flight.insert(tag, InFlight { volume, op: op.clone(), range, fill, guest });
        let connection = self.random.index(4);
        self.rig.submit_to(volume, connection, tag, op);
    }

    /// Every other range is of whole sectors.
    fn rounded(&mut self, range: Range<usize>, size: usize) -> Range<usize> {
        if self.random.once_in(2) {
            range
        } else {
            range.start / 512 * 512..range.end.next_multiple_of(512).min(size)
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

    /// Every other read goes to two places in a guest's memory, where it may.
    fn read_to_guest(&mut self, volume: VolumeId, op: CommandOp) -> (CommandOp, Option<Places>) {
        let block = self.volumes.get(&volume).map_or(1, |volume| volume.block);
        match op {
            CommandOp::Read { offset, len }
                if self.random.once_in(2)
                    && offset.is_multiple_of(block as u64)
                    && len.is_multiple_of(u32::try_from(block).expect("4096 at most")) =>
            {
                let len = len as usize;
                let first = self.random.index(len / block + 1) * block;
                let guest = Guest::new(2 * len);
                let places = [len..len + first, 0..len - first];
                let into = guest.buffers(&places);
                (CommandOp::ReadInto { offset, into }, Some((guest, places)))
            }
            op => (op, None),
        }
    }

    /// Some transfer ends, well or not.
    fn finish(&mut self) {
        let index = self.random.index(self.rig.in_device.len());
        let len = self.rig.in_device[index].1.len();
        let fails = self.trouble.failures;
        let fails = fails > 0 && self.random.once_in(fails);
        self.transfers_failed |= fails;
        let done = if fails { self.random.of(0..len + 1) } else { len };
        let read = self.carry_out(index, usize::try_from(done).expect("small"));
        let errors = [Errno::IO, Errno::NOSPC];
        let error = errors[self.random.index(2)];
        let (id, transfer) = &self.rig.in_device[index];
        let is_sync = matches!(transfer, Transfer::Sync { .. });
        let of = id.volume();
        match read {
            _ if fails && is_sync => {
                self.volumes.get_mut(&of).expect("it has transfers").is_poisoned = true;
                self.rig.finish_nth(index, Err(error));
            }
            _ if fails && self.random.once_in(2) => self.rig.finish_nth(index, Err(error)),
            Some(data) => self.rig.finish_read(index, &data),
            None => self.rig.finish_nth(index, Ok(done)),
        }
    }

    /// Does the first bytes of a transfer. Returns those of a read.
    fn carry_out(&mut self, index: usize, done: usize) -> Option<Vec<u8>> {
        let start = |offset: u64| usize::try_from(offset).expect("inside the volume");
        let (id, transfer) = &self.rig.in_device[index];
        let disk = &mut self.volumes.get_mut(&id.volume()).expect("it has transfers").disk;
        match transfer {
            Transfer::Read { offset, .. } | Transfer::ReadInto { offset, .. } => {
                return Some(disk[start(*offset)..start(*offset) + done].to_vec());
            }
            Transfer::Write { offset, from, .. } => {
                let data = from.concat();
                disk[start(*offset)..start(*offset) + done].copy_from_slice(&data[..done]);
            }
            Transfer::Trim { offset, .. } | Transfer::Zero { offset, .. } => {
                disk[start(*offset)..start(*offset) + done].fill(0);
            }
            Transfer::Cache { .. } | Transfer::Sync { .. } => {}
        }
        None
    }

    fn take_answers(&mut self) {
        for outcome in self.rig.outcomes() {
            let command =
                self.in_flight.remove(&outcome.tag.key).expect("a command is answered once");
            let Some(volume) = self.volumes.get_mut(&command.volume) else {
                assert_eq!(outcome.result.map(drop), Err(Errno::SHUTDOWN), "its volume is gone");
                self.changes.refused += 1;
                continue;
            };
            self.changes.refused += usize::from(outcome.result.is_err() && volume.is_closing);
            if let (CommandOp::Flush, Err(error)) = (&command.op, &outcome.result) {
                // Of another volume's trouble it hears nothing.
                let is_cancelled = volume.is_closing && *error == Errno::SHUTDOWN;
                assert!(volume.is_poisoned || is_cancelled, "a flush fails with its volume alone");
            }
            let changed = match (&command.op, &outcome.result) {
                (CommandOp::Trim { .. }, Ok(_)) => {
                    trimmed(command.range, volume.block, volume.disk.len())
                }
                _ => command.range,
            };
            let model = &mut volume.model[changed];
            match (command.op, outcome.result) {
                (CommandOp::Read { .. } | CommandOp::ReadInto { .. }, Ok(data)) => {
                    let data = match &command.guest {
                        Some((guest, places)) => guest.bytes(places),
                        None => data.concat(),
                    };
                    assert_eq!(data.len(), model.len());
                    let agrees = |(known, is): (&Option<u8>, &u8)| known.is_none_or(|k| k == *is);
                    assert!(
                        model.iter().zip(&data).all(agrees),
                        "command {} read something else",
                        outcome.tag.key
                    );
                }
                (CommandOp::Write { .. }, Ok(_)) => model.fill(Some(command.fill)),
                (CommandOp::Trim { .. } | CommandOp::Zero { .. }, Ok(_)) => model.fill(Some(0)),
                (op, Err(_)) if changes(&op) => model.fill(None),
                (_, _) => {}
            }
        }
    }
}

fn capabilities(block: u32, size: usize) -> Capabilities {
    let reads_into = Some(GuestReads { memory: 1, block });
    Capabilities { block, size: size as u64, reads_into, ..any_byte() }
}

fn changes(op: &CommandOp) -> bool {
    !matches!(
        op,
        CommandOp::Read { .. }
            | CommandOp::ReadInto { .. }
            | CommandOp::Cache { .. }
            | CommandOp::Flush
    )
}

fn each_seed(trouble: Trouble, mut check: impl FnMut(Swarm)) {
    for kind in SchedulerKind::ALL {
        for seed in 0..40 {
            println!("{kind}, seed {seed}, {trouble:?}"); // Shown when it fails.
            check(Swarm::new(kind, seed, trouble).run());
        }
    }
}

#[test]
fn every_command_succeeds_and_reads_what_was_written() {
    each_seed(NO_TROUBLE, |swarm| {
        let volume = &swarm.volumes[&swarm.rig.volume];
        let model: Vec<u8> = volume.model.iter().map(|byte| byte.expect("all is well")).collect();
        assert!(volume.disk == model);
        assert!(!swarm.rig.engine.sync_stats(swarm.rig.volume).failed);
    });
}

/// What is written to a volume is there, whatever becomes of others.
#[test]
fn volumes_come_grow_and_go_while_others_are_served() {
    let mut all = Changes::default();
    each_seed(Trouble { changes: 8, ..NO_TROUBLE }, |swarm| {
        for volume in swarm.volumes.values().filter(|volume| !volume.is_closing) {
            let model: Vec<u8> =
                volume.model.iter().map(|byte| byte.expect("all is well")).collect();
            assert!(volume.disk == model);
        }
        let Changes { added, grown, busy, removed, refused } = swarm.changes;
        all.added += added;
        all.grown += grown;
        all.busy += busy;
        all.removed += removed;
        all.refused += refused;
    });
    let Changes { added, grown, busy, removed, refused } = all;
    let least = [added, grown, busy, removed, refused].into_iter().min();
    assert!(least > Some(100), "{added}, {grown}, {busy}, {removed}, {refused}");
}

#[test]
fn every_command_is_answered_once_when_transfers_fail_and_volumes_go() {
    each_seed(Trouble { failures: 10, cancels: 40, changes: 10 }, |_| {});
}

#[test]
fn every_command_is_answered_once_whatever_fails() {
    each_seed(Trouble { failures: 5, ..NO_TROUBLE }, |swarm| assert!(swarm.transfers_failed));
}

#[test]
fn every_command_is_answered_once_when_what_is_queued_is_cancelled() {
    each_seed(Trouble { failures: 20, cancels: 30, ..NO_TROUBLE }, |_| {});
}

/// What is written to a part of a block leaves the rest of it as others have written it, though all
/// of that is under way at once: else this swarm shows nothing of it.
#[test]
fn swarm_waits_for_blocks() {
    let swarms = (0..40).map(|seed| Swarm::new(SchedulerKind::MqDeadline, seed, NO_TROUBLE).run());
    assert!(swarms.map(|swarm| swarm.waited_for_blocks).sum::<usize>() > 1000);
}

#[test]
fn swarm_merges() {
    let swarms = (0..40).map(|seed| Swarm::new(SchedulerKind::MqDeadline, seed, NO_TROUBLE).run());
    let merges: u64 = swarms.map(|swarm| merges(swarm.rig.engine.elevator())).sum();
    assert!(merges > 0);
}
