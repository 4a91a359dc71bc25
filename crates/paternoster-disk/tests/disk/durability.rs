//! What was promised to be durable is there after a cut, wherever the cut falls.
//!
//! A seeded run of four connections on the recording back end, without threads between it and them
//! or with two, whose plugs and messages make everything late. What clients know of a command is
//! then earlier than the engine, and of its answer later. Then the device is cut off after
//! every single event, several times with other volatile writes lost, and what the medium holds is
//! compared with what clients may rely on:
//!
//! ```text
//!   kept      every write answered before a FLUSH was received whose reply was sent;
//!             every FUA write, trim and zero that was answered
//!   allowed   at each byte: what was kept, or any write that was not over before it was received
//! ```

use std::ops::Range;

use paternoster::{NoMerges, SchedulerKind};
use paternoster_disk::{CommandOp, Transfer, VolumeId};

use crate::support::far::{Far, Message};
use crate::support::random::Random;
use crate::support::recorder::{Honesty, Recorder};
use crate::support::{Rig, SECTOR, Shape, any_byte, trim, write, write_fua, zero};

/// Bytes of all volumes.
const DISK: usize = 30 << 10;
/// Changes a run; each has a byte value of its own.
const CHANGES: usize = 200;
/// Commands that a connection has in flight.
const DEPTH: usize = 6;
/// Subsets of volatile writes that are lost at each cut.
const SUBSETS: usize = 3;

/// Commands that change the disk, as a set.
type Changes = [u64; 4];

/// A command of the run. Its index is its tag and, for a write, the byte that it writes.
struct Issued {
    /// The index of its volume.
    volume: usize,
    op: CommandOp,
    submitted: u64,
    answered: Option<u64>,
}

/// A run, and what clients saw of it.
struct Run {
    rig: Rig,
    /// They lie on the device one behind the other.
    volumes: Vec<VolumeId>,
    recorder: Recorder,
    random: Random,
    /// Index 0 stands for what was there before the run.
    issued: Vec<Issued>,
    flushes: Vec<Issued>,
    in_flight: [usize; 4],
    /// Where each connection's last change ended, and on which volume: the next one often goes on
    /// there.
    next: [(usize, u64); 4],
    tick: u64,
    merged: usize,
    /// Writes that ended while a sync ran.
    ended_in_sync: usize,
    /// Threads between the connections and the engine, if there are any.
    far: Option<Far>,
}

/// Tags from here on are flushes.
const FLUSH: u64 = 1000;
/// What a tag of each connection begins with.
const CONNECTION: u64 = 10_000;

impl Run {
    fn new(kind: SchedulerKind, honesty: Honesty, seed: u64) -> Self {
        Self::of_volumes(1, kind, honesty, seed)
    }

    fn of_volumes(volumes: usize, kind: SchedulerKind, honesty: Honesty, seed: u64) -> Self {
        let op = zero(0, u32::try_from(DISK).expect("it is small"), false);
        let nothing = Issued { volume: 0, op, submitted: 0, answered: Some(0) };
        let mut rig = Rig::with_short_requests(kind, 4, 12);
        let further = (1..volumes).map(|_| rig.add_volume(&any_byte()));
        let further: Vec<_> = further.collect();
        Self {
            volumes: [rig.volume].into_iter().chain(further).collect(),
            rig,
            recorder: Recorder::new(honesty, DISK),
            random: Random::new(seed),
            issued: vec![nothing],
            flushes: Vec::new(),
            in_flight: [0; 4],
            next: [(0, 0); 4],
            tick: 0,
            merged: 0,
            ended_in_sync: 0,
            far: None,
        }
    }

    /// With two threads between the connections and the engine.
    fn on_threads(mut self) -> Self {
        let rules = self.rig.engine.elevator().plug_rules();
        let volume = self.rig.volume;
        let of = (volume, self.rig.engine.place(volume));
        self.far = Some(Far::new(&self.rig.connections, rules, of));
        self
    }

    /// Until all changes are issued and everything is answered.
    fn run(mut self) -> Self {
        while self.issued.len() <= CHANGES || !self.is_idle() {
            let connection = self.random.index(4);
            let may_submit = self.issued.len() <= CHANGES && self.in_flight[connection] < DEPTH;
            if may_submit && !self.random.once_in(3) {
                self.submit(connection);
            } else if !self.rig.in_device.is_empty() {
                self.finish();
            }
            self.note_what_followed();
            self.cross();
        }
        assert!(self.merged > 0, "writes merge");
        assert!(self.ended_in_sync > 0, "writes end while syncs run");
        self
    }

    fn submit(&mut self, connection: usize) {
        self.tick += 1;
        self.in_flight[connection] += 1;
        let in_front = CONNECTION * connection as u64;
        let flush = self.random.once_in(8);
        let any = self.random.index(self.volumes.len());
        let (volume, op) =
            if flush { (any, CommandOp::Flush) } else { self.change(connection, any) };
        let issued = Issued { volume, op: op.clone(), submitted: self.tick, answered: None };
        let list = if flush { &mut self.flushes } else { &mut self.issued };
        let tag = in_front + list.len() as u64 + if flush { FLUSH } else { 0 };
        list.push(issued);
        match &mut self.far {
            None => self.rig.submit_to(self.volumes[volume], connection, tag, op),
            Some(far) => far.submit(connection, tag, op),
        }
    }

    fn is_idle(&self) -> bool {
        self.rig.engine.is_idle() && self.far.as_ref().is_none_or(Far::is_idle)
    }

    /// Something crosses between the threads and the engine.
    fn cross(&mut self) {
        let Some(far) = &mut self.far else { return };
        match self.random.of(0..4) {
            0 => far.visit_over(self.random.index(4)),
            1 => {
                if let Some(tag) = far.answer(self.random.index(2)) {
                    self.answered(tag);
                }
            }
            _ => {
                match far.take(self.random.index(2)) {
                    None => return,
                    Some(Message::Command(command)) => {
                        self.rig.engine.submit(self.rig.clock.now(), command);
                    }
                    Some(Message::Batch(batch, commands)) => {
                        self.rig.engine.submit_batch(self.rig.clock.now(), batch, commands);
                    }
                }
                self.rig.settle();
                self.note_what_followed();
            }
        }
    }

    /// A client is answered.
    fn answered(&mut self, tag: u64) {
        self.tick += 1;
        self.in_flight[connection_of(tag)] -= 1;
        let tag = tag % CONNECTION;
        let (list, index) =
            if tag < FLUSH { (&mut self.issued, tag) } else { (&mut self.flushes, tag - FLUSH) };
        list[usize::try_from(index).expect("an index")].answered = Some(self.tick);
    }

    /// A change of 1 to 9000 bytes of that volume; every other one is of whole sectors, behind the
    /// last, on the volume of that.
    fn change(&mut self, connection: usize, mut volume: usize) -> (usize, CommandOp) {
        let value = u8::try_from(self.issued.len()).expect("fewer changes than values");
        let size = self.size() as u64;
        let random = &mut self.random;
        let (mut offset, mut len) = (random.of(0..size), random.of(1..9001));
        if random.once_in(2) {
            (volume, offset) = self.next[connection];
            offset = offset / SECTOR * SECTOR;
            len = SECTOR * random.of(1..5);
        }
        if offset + len > size {
            offset = 0;
        }
        self.next[connection] = (volume, offset + len);
        let short = u32::try_from(len).expect("at most 9000");
        let long = usize::try_from(len).expect("at most 9000");
        let op = match random.of(0..10) {
            0 => trim(offset, short, random.once_in(2)),
            1 => zero(offset, short, random.once_in(2)),
            2 | 3 => write_fua(offset, long, value),
            _ => write(offset, long, value),
        };
        (volume, op)
    }

    /// Bytes of a volume.
    fn size(&self) -> usize {
        DISK / self.volumes.len()
    }

    /// The bytes of the device that a command covers.
    fn range(&self, issued: &Issued) -> Range<usize> {
        let Range { start, end } = range(&issued.op);
        let base = issued.volume * self.size();
        base + start..base + end
    }

    fn finish(&mut self) {
        self.tick += 1;
        let index = self.random.index(self.rig.in_device.len());
        let (id, transfer) = &self.rig.in_device[index];
        let syncing =
            self.rig.in_device.iter().any(|(_, one)| matches!(one, Transfer::Sync { .. }));
        if let Shape::Write { parts, .. } = Shape::of(transfer) {
            self.merged += usize::from(parts.len() > 1);
            self.ended_in_sync += usize::from(syncing);
        }
        self.recorder.end(self.tick, *id);
        let len = transfer.len();
        self.rig.finish_nth(index, Ok(len));
    }

    /// Answers and transfers that the last input has led to, each a tick of its own.
    fn note_what_followed(&mut self) {
        for outcome in self.rig.outcomes() {
            outcome.result.expect("nothing fails here");
            match &mut self.far {
                None => self.answered(outcome.tag.key),
                Some(far) => far.done(connection_of(outcome.tag.key), outcome.tag.key),
            }
        }
        let size = self.size();
        for transfer in &self.rig.in_device {
            let id = transfer.0;
            if self.recorder.is_new(id) {
                self.tick += 1;
                let index = self.volumes.iter().position(|&volume| volume == id.volume());
                let base = index.expect("it is a volume's") * size;
                self.recorder.begin(self.tick, base..base + size, transfer);
            }
        }
    }

    /// From when on the change must survive a cut.
    fn promised_from(&self, change: &Issued) -> Option<u64> {
        let answered = change.answered?;
        if is_fua(&change.op) {
            return Some(answered);
        }
        let covers = |flush: &&Issued| flush.volume == change.volume && flush.submitted > answered;
        self.flushes.iter().filter(covers).filter_map(|flush| flush.answered).min()
    }

    /// The first cut at which a byte holds what it must not.
    fn violation(&mut self) -> Option<String> {
        let mut allowed = vec![only(0); DISK];
        let promises: Vec<Option<u64>> =
            self.issued.iter().map(|change| self.promised_from(change)).collect();
        let zeroing = self.zeroing();
        for tick in 1..=self.tick {
            for (number, change) in self.issued.iter().enumerate().skip(1) {
                if change.submitted == tick {
                    allowed[self.range(change)].iter_mut().for_each(|here| insert(here, number));
                }
                if promises[number] == Some(tick) {
                    let over = self.answered_before(change.submitted);
                    allowed[self.range(change)].iter_mut().for_each(|here| remove(here, over));
                }
            }
            for _ in 0..SUBSETS {
                let medium = self.recorder.cut(tick, &mut self.random);
                let wrong = medium.iter().zip(&allowed).position(|(&value, here)| {
                    let writers = if value == 0 { zeroing } else { only(value) };
                    here.iter().zip(&writers).all(|(here, writer)| here & writer == 0)
                });
                if let Some(byte) = wrong {
                    let value = medium[byte];
                    return Some(format!("cut after tick {tick}: byte {byte} holds {value}"));
                }
            }
        }
        None
    }

    /// The changes that leave zeroes.
    fn zeroing(&self) -> Changes {
        let mut set = Changes::default();
        for (number, change) in self.issued.iter().enumerate() {
            if !matches!(change.op, CommandOp::Write { .. }) {
                insert(&mut set, number);
            }
        }
        set
    }

    fn answered_before(&self, tick: u64) -> Changes {
        let mut set = Changes::default();
        for (number, change) in self.issued.iter().enumerate() {
            if change.answered.is_some_and(|answered| answered < tick) {
                insert(&mut set, number);
            }
        }
        set
    }
}

/// The connection whose command has that tag.
fn connection_of(tag: u64) -> usize {
    usize::try_from(tag / CONNECTION).expect("0 to 3")
}

fn insert(set: &mut Changes, number: usize) {
    set[number / 64] |= 1 << (number % 64);
}

fn remove(set: &mut Changes, gone: Changes) {
    set.iter_mut().zip(gone).for_each(|(here, gone)| *here &= !gone);
}

/// The change whose value that is.
fn only(value: u8) -> Changes {
    let mut set = Changes::default();
    insert(&mut set, usize::from(value));
    set
}

fn is_fua(op: &CommandOp) -> bool {
    match op {
        CommandOp::Write { fua, .. }
        | CommandOp::Trim { fua, .. }
        | CommandOp::Zero { fua, .. } => *fua,
        CommandOp::Read { .. }
        | CommandOp::ReadInto { .. }
        | CommandOp::Cache { .. }
        | CommandOp::Flush => false,
    }
}

fn range(op: &CommandOp) -> Range<usize> {
    let (offset, len) = match op {
        CommandOp::Write { offset, data, .. } => (*offset, data.len()),
        CommandOp::Trim { offset, len, .. } | CommandOp::Zero { offset, len, .. } => {
            (*offset, *len as usize)
        }
        CommandOp::Read { .. }
        | CommandOp::ReadInto { .. }
        | CommandOp::Cache { .. }
        | CommandOp::Flush => (0, 0),
    };
    let offset = usize::try_from(offset).expect("inside the disk");
    offset..offset + len
}

const SEEDS: Range<u64> = 0..6;
const SCHEDULERS: [SchedulerKind; 2] = [SchedulerKind::Cfq, SchedulerKind::MqDeadline];

#[test]
fn what_was_promised_is_there_wherever_the_device_is_cut_off() {
    for kind in SCHEDULERS {
        for seed in SEEDS {
            let violation = Run::new(kind, Honesty::Honest, seed).run().violation();
            assert_eq!(violation, None, "{kind}, seed {seed}");
        }
    }
}

#[test]
fn flush_that_does_nothing_is_found_out() {
    for kind in SCHEDULERS {
        for seed in SEEDS {
            let violation = Run::new(kind, Honesty::SyncsDoNothing, seed).run().violation();
            assert!(violation.is_some(), "{kind}, seed {seed}");
        }
    }
}

#[test]
fn sync_for_fua_that_does_nothing_is_found_out() {
    for kind in SCHEDULERS {
        for seed in SEEDS {
            let violation = Run::new(kind, Honesty::SyncsOfRangesDoNothing, seed).run().violation();
            assert!(violation.is_some(), "{kind}, seed {seed}");
        }
    }
}

/// What is promised of one volume is, whatever others do; and a sync of one is a sync of no other.
#[test]
fn what_was_promised_of_three_volumes_is_there_wherever_the_device_is_cut_off() {
    for kind in SCHEDULERS {
        for seed in 0..3 {
            let violation = Run::of_volumes(3, kind, Honesty::Honest, seed).run().violation();
            assert_eq!(violation, None, "{kind}, seed {seed}");
        }
    }
}

#[test]
fn sync_of_another_volume_is_found_out() {
    for kind in SCHEDULERS {
        for seed in SEEDS {
            let violation =
                Run::of_volumes(3, kind, Honesty::SyncsOfOthers, seed).run().violation();
            assert!(violation.is_some(), "{kind}, seed {seed}");
        }
    }
}

#[test]
fn run_without_merging_keeps_its_promises_too() {
    let mut run = Run::new(SchedulerKind::Cfq, Honesty::Honest, 1);
    run.rig.engine.administer(|elevator| elevator.set_nomerges(NoMerges::All));
    run.merged = 1; // Nothing merges, on purpose.
    assert_eq!(run.run().violation(), None);
}

/// Late commands and late answers are no excuse, nor are plugs.
#[test]
fn what_was_promised_on_two_threads_is_there_wherever_the_device_is_cut_off() {
    for kind in SCHEDULERS {
        for seed in 0..3 {
            let run = Run::new(kind, Honesty::Honest, seed).on_threads();
            assert_eq!(run.run().violation(), None, "{kind}, seed {seed}");
        }
    }
}

#[test]
fn flush_on_two_threads_that_does_nothing_is_found_out() {
    for kind in SCHEDULERS {
        let run = Run::new(kind, Honesty::SyncsDoNothing, 0).on_threads();
        assert!(run.run().violation().is_some(), "{kind}");
    }
}
