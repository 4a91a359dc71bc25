//! A file whose device fails here and there, is short of room, moves less than it is asked for and
//! is late: every command gets its own true result, whatever it was merged with.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use bytes::Bytes;
use paternoster::{Instant, Nanos, SchedulerKind};
use paternoster_disk::{
    Backend, Buffers, CacheChoice, Capabilities, CommandOp, Completion, Extent, Ring, Token,
    Transfer, TransferDone, TransferId, Transferred,
};
use rustix::io::Errno;

use crate::support::front::{Answers, play, play_in_turn};
use crate::support::random::Random;
use crate::support::{open_file, read, within_a_minute, write, write_fua};

const SECTOR: u64 = 512;

const DISK: u64 = 4 << 20;

/// What is wrong with the sectors of a disk.
#[derive(Debug)]
struct Ailments {
    /// By sector: the error of a read, and that of a write.
    sectors: Vec<[Option<Errno>; 2]>,
}

const READ: usize = 0;
const WRITE: usize = 1;

impl Ailments {
    /// One sector in fifty cannot be read, one in fifty not written, and for one in fifty there is
    /// no room.
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut sector = || match random.index(150) {
            0..3 => [Some(Errno::IO), None],
            3..6 => [None, Some(Errno::IO)],
            6..9 => [None, Some(Errno::NOSPC)],
            _ => [None, None],
        };
        Self { sectors: (0..DISK / SECTOR).map(|_| sector()).collect() }
    }

    /// The error of the first sector that has one.
    fn of(&self, bytes: &Range<u64>, side: usize) -> Option<Errno> {
        let sectors = bytes.start / SECTOR..bytes.end.div_ceil(SECTOR);
        let all = &self.sectors[index(sectors.start)..index(sectors.end)];
        all.iter().find_map(|sector| sector[side])
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("the disk is small")
}

/// A back end on such a disk. What it does not fail is done by the one within, on the ring.
#[derive(Debug)]
struct Injected {
    within: Box<dyn Backend>,
    ailments: Ailments,
    random: Random,
    /// What is done, and when that is told.
    late: VecDeque<(Instant, TransferDone)>,
    now: Instant,
    /// Whether the next sync fails.
    fails_sync: bool,
}

impl Injected {
    fn new(seed: u64, within: Box<dyn Backend>) -> Self {
        let (ailments, random) = (Ailments::new(seed), Random::new(seed));
        let (late, now) = (VecDeque::new(), Instant::START);
        Self { within, ailments, random, late, now, fails_sync: false }
    }

    /// What the transfer moves before it stops: all of it three times in four.
    fn shortened(&mut self, transfer: Transfer) -> Transfer {
        if transfer.len() < 2 || !self.random.once_in(4) {
            return transfer;
        }
        let mut left = self.random.of(1..transfer.len());
        let mut part = |len: usize| {
            let moved = index(left.min(len as u64));
            left -= moved as u64;
            moved
        };
        match transfer {
            Transfer::Read { offset, mut parts } => {
                for len in &mut parts {
                    *len = u32::try_from(part(*len as usize)).expect("it was a u32");
                }
                Transfer::Read { offset, parts }
            }
            Transfer::Write { offset, from } => {
                let from = from.iter().map(|bytes| bytes.slice(..part(bytes.len()))).collect();
                Transfer::Write { offset, from }
            }
            other => other,
        }
    }

    fn end_late(&mut self, done: TransferDone) {
        let delay = Nanos::from_micros(self.random.of(0..300));
        let at = self.late.back().map_or(self.now, |&(at, _)| at.max(self.now));
        self.late.push_back((at.max(self.now + delay), done));
    }
}

impl Backend for Injected {
    fn capabilities(&self) -> Capabilities {
        self.within.capabilities()
    }

    fn start(&mut self, ring: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        self.now = now;
        let (offset, side) = match transfer {
            Transfer::Read { offset, .. } => (offset, READ),
            Transfer::Write { offset, .. } => (offset, WRITE),
            Transfer::Sync { .. } if std::mem::take(&mut self.fails_sync) => {
                let transferred = Transferred::new(Err(Errno::IO), Buffers::new());
                return self.end_late(TransferDone { id, transferred });
            }
            other => return self.within.start(ring, now, id, other),
        };
        let transfer = self.shortened(transfer);
        match self.ailments.of(&(offset..offset + transfer.len()), side) {
            Some(errno) => {
                let transferred = Transferred::new(Err(errno), Buffers::new());
                self.end_late(TransferDone { id, transferred });
            }
            None => self.within.start(ring, now, id, transfer),
        }
    }

    fn ring_completed(
        &mut self,
        ring: &mut Ring<Token>,
        completion: Completion<TransferId>,
    ) -> Option<TransferDone> {
        let done = self.within.ring_completed(ring, completion)?;
        self.end_late(done);
        None
    }

    fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        self.now = now;
        let is_due = self.late.front().is_some_and(|&(at, _)| at <= now);
        if is_due { self.late.pop_front().map(|(_, done)| done) } else { None }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.late.front().map(|&(at, _)| at)
    }

    fn extents(&self, offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        self.within.extents(offset, len)
    }
}

/// The disk in ranges of 1 to 9000 bytes, one behind the other, three quarters of which end with a
/// sector: those merge.
fn tiles(random: &mut Random) -> Vec<Range<u64>> {
    let mut tiles = Vec::new();
    let mut at = 0;
    while at < DISK {
        let mut end = at + random.of(1..8500);
        if !random.once_in(4) {
            end = end.next_multiple_of(SECTOR);
        }
        let end = end.min(DISK);
        tiles.push(at..end);
        at = end;
    }
    tiles
}

/// How many answers were what.
#[derive(Debug, Default)]
struct Tally {
    ok: usize,
    io: usize,
    no_space: usize,
}

impl Tally {
    /// Each answer is that of the first sector of its range that fails, if there is one.
    fn judge(
        &mut self,
        ranges: &[Range<u64>],
        answers: &Answers,
        side: usize,
        ailments: &Ailments,
    ) {
        for (range, answer) in ranges.iter().zip(answers) {
            let result = answer.as_ref().map(drop).map_err(|errno| *errno);
            let expected = ailments.of(range, side).map_or(Ok(()), Err);
            assert_eq!(result, expected, "{range:?}, {}", ["read", "write"][side]);
            match expected {
                Ok(()) => self.ok += 1,
                Err(Errno::IO) => self.io += 1,
                Err(_) => self.no_space += 1,
            }
        }
    }
}

fn open(seed: u64, folder: &std::path::Path) -> Injected {
    let path = folder.join("disk.img");
    std::fs::File::create(&path).expect("a file").set_len(DISK).expect("room for a hole");
    Injected::new(seed, open_file(&path, CacheChoice::Page))
}

fn play_and_judge(seed: u64, kind: SchedulerKind) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random::new(!seed);
    let writes = tiles(&mut random);
    let reads = tiles(&mut random);
    let mut model = vec![0; index(DISK)];
    model.fill_with(|| random.next().to_le_bytes()[0]);
    let data =
        |range: &Range<u64>| Bytes::copy_from_slice(&model[index(range.start)..index(range.end)]);
    let write = |range: &Range<u64>| CommandOp::Write {
        offset: range.start,
        data: data(range),
        fua: false,
    };
    let read = |range: &Range<u64>| {
        read(range.start, u32::try_from(range.end - range.start).expect("short"))
    };
    let phases = vec![writes.iter().map(write).collect(), reads.iter().map(read).collect()];
    let (answers, merges) = play(Box::new(open(seed, folder.path())), kind, phases);
    assert!(merges > 0, "something merged");
    let ailments = Ailments::new(seed);
    let mut tally = Tally::default();
    tally.judge(&writes, &answers[0], WRITE, &ailments);
    tally.judge(&reads, &answers[1], READ, &ailments);
    let Tally { ok, io, no_space } = tally;
    assert!(ok > 500 && io > 50 && no_space > 20, "all of it happened: {ok} {io} {no_space}");
    // What a command that failed has written of its range is not known.
    let unknown = writes.iter().filter(|range| ailments.of(range, WRITE).is_some());
    let unknown: Vec<_> = unknown.cloned().collect();
    for (range, answer) in reads.iter().zip(&answers[1]) {
        let Ok(bytes) = answer else { continue };
        for (byte, at) in bytes.iter().zip(range.clone()) {
            let is_known = !unknown.iter().any(|unknown| unknown.contains(&at));
            assert!(!is_known || *byte == model[index(at)], "{kind}, seed {seed}: byte {at}");
        }
    }
}

#[test]
fn every_command_gets_the_result_of_its_own_sectors() {
    within_a_minute(|| {
        for (seed, kind) in (0..).zip(SchedulerKind::ALL) {
            play_and_judge(seed, kind);
        }
    });
}

#[test]
fn sync_that_fails_once_is_everybodys_and_for_good() {
    within_a_minute(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut backend = open(1, folder.path());
        backend.ailments.sectors.fill([None; 2]);
        backend.fails_sync = true;
        let commands = vec![
            write(0, 4096, 1),
            CommandOp::Flush,
            write(4096, 4096, 2),
            read(0, 1),
            write_fua(0, 512, 3),
            CommandOp::Flush,
        ];
        let answers = play_in_turn(Box::new(backend), commands);
        let failed = answers.iter().map(Result::is_err).collect::<Vec<_>>();
        assert_eq!(failed, [false, true, false, false, true, true]);
    });
}
