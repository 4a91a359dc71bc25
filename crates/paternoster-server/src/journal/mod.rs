//! The newest requests of a disk, as its owner notes them, for a recording to be written of them.
//!
//! ```text
//!   owner:   clients' commands, what the elevator does with them, their ends ──▶ Journal, a ring
//!                                                                                  │ asked for
//!   writer:  NAME.blktrace.0 and NAME.pater ◀── Scribe ◀── entries since the last ─┘ every 50 ms
//! ```
//!
//! To note an entry is a copy of some 60 bytes. The ring overwrites its oldest entries and waits
//! for nobody: a writer that comes too late has lost some, and says so. The same ring serves
//! `record last`, which begins with the oldest, and `record start`, which begins with now.

mod disguise;
mod recordings;
mod scribe;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use paternoster::{
    BioFlags, ElevatorEvent, Event, Instant, IocId, MergeKind, Op, Sector, SectorCount,
};
use paternoster_disk::{Command, CommandOp, FrontTag, Outcome};
use paternoster_trace::sidecar::{Change, Meta, Party};
use rustix::io::Errno;

pub(crate) use self::recordings::Recordings;

/// The bytes of a ring that there is for a recording alone.
const OF_A_RECORDING: u64 = 4 << 20;

/// How many notes are kept that are older than all entries (names of clients that have come, and
/// changes), and how many at most.
const NOTES: usize = 1 << 12;
const MOST_NOTES: usize = 1 << 14;

/// What happened, and when on the elevator's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Instant,
    pub(crate) what: What,
}

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A client's command has come to the owner.
    Arrived(Arrival),
    /// A bio became part of a request that waits.
    Merged(Io, MergeKind),
    /// A request went to the device.
    Dispatched(Io),
    /// The device is done with it.
    Completed(Io),
    /// A command is done. Its reply leaves when the round is over.
    Done { tag: FrontTag, error: u16 },
    /// A command was given up: it has no reply, or comes once more.
    GivenUp(FrontTag),
    /// All replies of a round have left the owner.
    RoundOver,
}

/// A command of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) tag: FrontTag,
    pub(crate) ioc: IocId,
    /// On its volume, in bytes.
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    /// Whether nobody wants the data yet.
    pub(crate) ahead: bool,
    /// Its number among all commands.
    pub(crate) number: u32,
}

/// What the elevator does something with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    /// Whose it is, or the first of it.
    pub(crate) ioc: IocId,
    pub(crate) op: Op,
    pub(crate) sector: Sector,
    pub(crate) sectors: SectorCount,
}

/// What has no room in an entry.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// A client has an I/O context from now on.
    Client(IocId, Client),
    /// It has left.
    Gone(IocId),
    /// Something was set that was something else before; under which scheduler that was.
    Changed { change: Change, from: String, scheduler: String },
}

/// A client, and its volume.
#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    /// As recordings call it. It has no number, as each recording has its own.
    pub(crate) party: Party,
    /// Where the volume lies in the elevator's disk, and how long it is.
    pub(crate) first: Sector,
    pub(crate) bytes: u64,
}

/// A ring of entries, of which each has a number, from 0.
#[derive(Debug)]
pub(crate) struct Journal {
    entries: VecDeque<Entry>,
    most: usize,
    /// The number of the oldest.
    first: u64,
    /// How many commands there were so far.
    commands: u32,
    /// In their order, each with the number of the next entry.
    notes: VecDeque<(u64, Note)>,
    /// The number of the oldest of these.
    first_note: u64,
    /// The scheduler with its tunables, as a recording has it.
    scheduler: String,
    /// Whether commands have ended in this round.
    has_ended_some: bool,
    /// Whether it is there for a recording alone.
    is_of_a_recording: bool,
}

/// What a writer gets.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// The number of the first entry: greater than what was asked for where some were lost.
    pub(crate) first: u64,
    pub(crate) entries: Vec<Entry>,
    /// Each with the number of the entry that it stands before.
    pub(crate) notes: Vec<(u64, Note)>,
    /// Where the next part begins.
    pub(crate) then: From,
    /// The number that the next entry will have.
    pub(crate) next: u64,
}

/// From which entry on, and from which note.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct From {
    pub(crate) entry: u64,
    pub(crate) note: u64,
}

/// Which entries are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those from now on.
    FromNow,
    /// Those that there are.
    UntilNow,
}

/// What a writer begins with.
#[derive(Debug)]
pub(crate) struct Begin {
    pub(crate) meta: Meta,
    /// The clients that there are.
    pub(crate) clients: Vec<(IocId, Client)>,
    pub(crate) start: Start,
}

/// Where a writer begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) from: From,
    /// The time that is the recording's first, and how long ago that was.
    pub(crate) at: Instant,
    pub(crate) ago: Duration,
    /// The number of the last command before; none where that is not known.
    pub(crate) commands: Option<u32>,
    /// Where it ends; none where that is said later.
    pub(crate) until: Option<u64>,
}

impl Journal {
    /// Of so many bytes; none of 0.
    pub(crate) fn of_bytes(bytes: u64) -> Option<Self> {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<Entry>();
        (most > 0).then(|| Self {
            // All of it, so that it never moves; memory is taken as it is written.
            entries: VecDeque::with_capacity(most),
            most,
            first: 0,
            commands: 0,
            notes: VecDeque::new(),
            first_note: 0,
            scheduler: String::new(),
            has_ended_some: false,
            is_of_a_recording: false,
        })
    }

    /// One that goes with its recording.
    pub(crate) fn of_a_recording() -> Self {
        let journal = Self::of_bytes(OF_A_RECORDING).expect("it has room");
        Self { is_of_a_recording: true, ..journal }
    }

    /// Whether it is there for a recording alone.
    pub(crate) fn is_of_a_recording(&self) -> bool {
        self.is_of_a_recording
    }

    /// Where a writer begins that wants these entries.
    pub(crate) fn start(&self, wanted: Wanted, now: Instant) -> Start {
        let (oldest, next) = self.range();
        match wanted {
            Wanted::FromNow => {
                let note = self.first_note + self.notes.len() as u64;
                let commands = Some(self.commands);
                let (from, ago) = (From { entry: next, note }, Duration::ZERO);
                Start { from, at: now, ago, commands, until: None }
            }
            Wanted::UntilNow => {
                let from = From { entry: oldest, note: self.first_note };
                let at = self.entries.front().map_or(now, |entry| entry.at);
                let ago = Duration::from_nanos(now.saturating_since(at).as_nanos());
                Start { from, at, ago, commands: None, until: Some(next) }
            }
        }
    }

    fn range(&self) -> (u64, u64) {
        (self.first, self.first + self.entries.len() as u64)
    }

    fn push(&mut self, at: Instant, what: What) {
        if self.entries.len() == self.most {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(Entry { at, what });
    }

    /// Notes a command of a client.
    pub(crate) fn arrived(&mut self, at: Instant, command: &Command) {
        self.commands = self.commands.wrapping_add(1);
        self.push(at, What::Arrived(arrival(command, self.commands)));
    }

    /// Notes the end of a command. When that was, its round says.
    pub(crate) fn done(&mut self, outcome: &Outcome) {
        let errno = outcome.result.as_ref().err().map_or(0, |errno: &Errno| errno.raw_os_error());
        let error = u16::try_from(errno).unwrap_or(u16::MAX);
        let at = self.entries.back().map_or(Instant::START, |last| last.at);
        if outcome.left.is_some() {
            return self.push(at, What::GivenUp(outcome.tag));
        }
        self.has_ended_some = true;
        self.push(at, What::Done { tag: outcome.tag, error });
    }

    /// Whether replies leave when this round is over.
    pub(crate) fn has_ended_some(&self) -> bool {
        self.has_ended_some
    }

    /// Notes that the replies of a round have left.
    pub(crate) fn round_over(&mut self, at: Instant) {
        self.has_ended_some = false;
        self.push(at, What::RoundOver);
    }

    /// The scheduler there.
    pub(crate) fn scheduler_at(&self, from: From) -> &str {
        let changes = self.changes_from(from);
        changes.map(|(_, _, scheduler)| scheduler).next().unwrap_or(&self.scheduler)
    }

    /// What was in the place of something there, if it was set since.
    pub(crate) fn value_at(&self, from: From, what: &str) -> Option<&str> {
        let mut changes = self.changes_from(from);
        changes.find(|(change, ..)| change.what == what).map(|(_, from, _)| from)
    }

    fn changes_from(&self, from: From) -> impl Iterator<Item = (&Change, &str, &str)> {
        let notes = self.notes.iter().zip(self.first_note..);
        let since = move |(at, number): (u64, u64)| at >= from.entry && number >= from.note;
        let notes = notes.filter(move |((at, _), number)| since((*at, *number)));
        notes.filter_map(|((_, note), _)| match note {
            Note::Changed { change, from, scheduler } => Some((change, &**from, &**scheduler)),
            _ => None,
        })
    }

    /// Notes what was set, each with what was there before; and which scheduler is in force now.
    pub(crate) fn changed(&mut self, changes: Vec<(Change, String)>, scheduler: String) {
        let before = std::mem::replace(&mut self.scheduler, scheduler);
        for (change, from) in changes {
            let scheduler = before.clone();
            self.note(Note::Changed { change, from, scheduler });
        }
    }

    /// Notes something that has no room in an entry.
    pub(crate) fn note(&mut self, note: Note) {
        // The names of those who are here come with the beginning of each recording.
        let (oldest, _) = self.range();
        let is_old = |notes: &VecDeque<(u64, Note)>| notes.front().is_some_and(|it| it.0 < oldest);
        while self.notes.len() >= MOST_NOTES || self.notes.len() >= NOTES && is_old(&self.notes) {
            self.notes.pop_front();
            self.first_note += 1;
        }
        let (_, next) = self.range();
        self.notes.push_back((next, note));
    }

    /// Notes what the elevator does.
    #[inline]
    pub(crate) fn event(&mut self, now: Instant, event: Event) {
        let Event::Elevator(event) = event else { return };
        match event {
            ElevatorEvent::Merged { kind, ioc, op, sector, sectors, .. } => {
                let io = Io { ioc, op, sector, sectors };
                self.push(now, What::Merged(io, kind));
            }
            ElevatorEvent::Dispatched { ioc, op, sector, sectors, .. } => {
                let io = Io { ioc, op, sector, sectors };
                self.push(now, What::Dispatched(io));
            }
            ElevatorEvent::Completed { ioc, op, sector, sectors, .. } => {
                let io = Io { ioc, op, sector, sectors };
                self.push(now, What::Completed(io));
            }
            _ => {}
        }
    }

    /// Copies what comes from there on into `room`, as far as there is room, with the notes to it.
    pub(crate) fn take(&self, from: From, mut room: Vec<Entry>) -> Part {
        let (oldest, next) = self.range();
        let first = from.entry.clamp(oldest, next);
        let entries = self.entries.range(index(first - oldest)..).take(room.capacity());
        room.clear();
        room.extend(entries);
        let end = first + room.len() as u64;
        let note = from.note.max(self.first_note);
        let notes = self.notes.range(index(note - self.first_note).min(self.notes.len())..);
        let notes: Vec<_> = notes.take_while(|(at, _)| *at <= end).cloned().collect();
        let then = From { entry: end, note: note + notes.len() as u64 };
        Part { first, entries: room, notes, then, next }
    }
}

fn index(of: u64) -> usize {
    usize::try_from(of).expect("it is in memory")
}

fn arrival(command: &Command, number: u32) -> Arrival {
    let Command { tag, ioc, op, .. } = command;
    let (what, offset, len, fua) = match op {
        CommandOp::Read { offset, len } | CommandOp::Cache { offset, len } => {
            (Op::Read, *offset, *len, false)
        }
        CommandOp::ReadInto { offset, into } => (Op::Read, *offset, into.len(), false),
        CommandOp::Write { offset, data, fua } => {
            (Op::Write, *offset, u32::try_from(data.len()).unwrap_or(u32::MAX), *fua)
        }
        CommandOp::Trim { offset, len, fua } => (Op::Discard, *offset, *len, *fua),
        CommandOp::Zero { offset, len, fua, .. } => (Op::WriteZeroes, *offset, *len, *fua),
        CommandOp::Flush => (Op::Flush, 0, 0, false),
    };
    let ahead = matches!(op, CommandOp::Cache { .. });
    let (tag, ioc) = (*tag, *ioc);
    Arrival { tag, ioc, offset, len, op: what, fua, ahead, number }
}

impl Arrival {
    /// What blktrace has of the flags of its bios.
    pub(crate) fn flags(&self) -> BioFlags {
        let fua = if self.fua { BioFlags::FUA } else { BioFlags::empty() };
        fua | sync_of(self.op)
    }
}

/// The flag of a write, for which somebody always waits.
pub(crate) fn sync_of(op: Op) -> BioFlags {
    if matches!(op, Op::Write | Op::WriteZeroes) { BioFlags::SYNC } else { BioFlags::empty() }
}
