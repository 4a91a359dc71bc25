//! An array of disks with parity, behind a controller with a cache and one link to the host.
//!
//! ```text
//!   read    front end ─▶ streams: what to read ahead
//!                    └─▶ cache: held? ──────────────────────────▶ link ─▶ done
//!                               missing ─▶ striping ─▶ members ──▲
//!   write   front end ─▶ link ─▶ room in the cache? ─▶ done
//!                                  └─▶ destage ─▶ striping ─▶ members
//!   flush   front end ─▶ all that was written before is on the disks, or has a battery ─▶ done
//! ```
//!
//! The front end works on all commands side by side, and the link moves one command's data at a
//! time, in the order in which they are ready. The disks are the laboratory's own model, each with
//! its queue and its buffer; their links to the controller keep nobody waiting.

mod cache;
mod destage;
mod from_toml;
mod members;
mod reading;
mod streams;
mod striping;
mod writing;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::ops::Range;

use paternoster::{Instant, Nanos, Sector};

use super::disk::{LayoutError, Parameters};
use super::{Command, Completion, Model, Op, Spent};
use cache::Cache;
use destage::{Destage, DirtyId};
use members::{Members, Purpose};
use streams::Streams;

pub use cache::Segmentation;
pub use destage::WriteBack;
pub use streams::Prefetch;
pub use striping::Striping;

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// How an array is made.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayParameters {
    /// Commands that it takes at once.
    pub depth: u32,
    /// How long the front end takes for a command, beside the link.
    pub front_end: Nanos,
    /// Bytes that the host's link moves a second.
    pub link_bytes_per_s: u64,
    /// How the cache is divided.
    pub cache: Segmentation,
    /// What of it written data may take.
    pub write_back: WriteBack,
    /// What is read ahead.
    pub prefetch: Prefetch,
    /// How the data are spread over the disks.
    pub striping: Striping,
    /// Each of the disks.
    pub member: Parameters,
}

/// What is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The front end has done its work for a command.
    Decoded(u32),
    /// The link has moved what a command writes.
    Written(u32),
    /// A command completes.
    Done(u32),
}

/// A command in the array.
#[derive(Clone, Copy, Debug)]
struct InArray {
    command: Command,
    /// Since when it waits for the disks; valid while it does.
    waits_since: Instant,
    spent: Spent,
}

/// A command that waits for data to be on the disks.
#[derive(Clone, Debug)]
struct WaitsForDisks {
    tag: u32,
    left: BTreeSet<DirtyId>,
}

/// An array of disks.
#[derive(Clone, Debug)]
pub struct Array {
    parameters: ArrayParameters,
    end: Sector,
    link_free: Instant,
    cache: Cache,
    streams: Streams,
    destage: Destage,
    members: Members,
    /// The commands, by their tags.
    commands: Vec<Option<InArray>>,
    /// Reads that wait for the disks.
    reading: Vec<u32>,
    /// Writes that wait for room in the cache, in their order.
    writing: VecDeque<u32>,
    syncing: Vec<WaitsForDisks>,
    /// What is due, by time; what is due at one time in the order in which it was put here.
    agenda: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    sequence: u64,
}

impl Array {
    /// Makes an array with an empty cache, its disks at rest. Fails if the disks' layout is
    /// impossible.
    pub fn new(parameters: ArrayParameters) -> Result<Self, LayoutError> {
        let ArrayParameters { striping, cache, write_back, prefetch, depth, .. } = parameters;
        let members = Members::new(striping.disks, &parameters.member)?;
        Ok(Self {
            end: striping.end(members.end()),
            link_free: Instant::from_nanos(0),
            cache: Cache::new(cache),
            streams: Streams::new(prefetch),
            destage: Destage::new(write_back, striping),
            members,
            commands: vec![None; depth as usize],
            reading: Vec::new(),
            writing: VecDeque::new(),
            syncing: Vec::new(),
            agenda: BinaryHeap::new(),
            sequence: 0,
            parameters,
        })
    }

    /// Written sectors that are only in the cache.
    pub fn unwritten(&self) -> u64 {
        self.destage.sectors()
    }

    fn schedule(&mut self, at: Instant, due: Due) {
        self.sequence += 1;
        self.agenda.push(Reverse((at, self.sequence, due)));
    }

    fn command(&mut self, tag: u32) -> &mut InArray {
        self.commands[tag as usize].as_mut().expect("the command is in the array")
    }

    fn decoded(&mut self, now: Instant, tag: u32) {
        let command = self.command(tag).command;
        match (command.op, range(&command)) {
            (Op::Read, Some(range)) => self.read(now, tag, range),
            (Op::Write, Some(_)) => {
                let moved = self.transfer(now, tag);
                self.schedule(moved, Due::Written(tag));
            }
            (Op::Flush, _) if !self.parameters.write_back.battery => {
                let left = self.destage.hurry_all();
                self.wait_for_disks(now, tag, left);
            }
            (Op::Flush | Op::Discard, _) | (_, None) => self.schedule(now, Due::Done(tag)),
        }
    }

    /// Moves the data of a command over the link. Returns when that is done.
    fn transfer(&mut self, now: Instant, tag: u32) -> Instant {
        let rate = self.parameters.link_bytes_per_s.max(1);
        let command = self.command(tag);
        let bytes = u64::from(command.command.sectors.0) * SECTOR;
        let span = Nanos::new(bytes * 1_000_000_000 / rate);
        command.spent.transfer += span;
        self.link_free = self.link_free.max(now) + span;
        self.link_free
    }

    /// A disk has done something.
    fn member_is_done(&mut self, now: Instant, purpose: Purpose, spent: Spent) {
        match purpose {
            Purpose::Fill { first, end } => self.arrived(now, first..end, spent),
            Purpose::Old(stripe) => {
                if let Some(dirty) = self.destage.completed(stripe) {
                    self.write_stripe(now, stripe, dirty);
                }
            }
            Purpose::New(stripe) => {
                if let Some(dirty) = self.destage.completed(stripe) {
                    self.stripe_is_written(now, stripe, &dirty);
                }
            }
        }
    }

    fn handle(&mut self, at: Instant, due: Due) -> Option<Completion> {
        match due {
            Due::Decoded(tag) => self.decoded(at, tag),
            Due::Written(tag) => {
                self.writing.push_back(tag);
                self.admit_writes(at);
            }
            Due::Done(tag) => {
                let done = self.commands[tag as usize].take().expect("it is in the array");
                return Some(Completion { tag, spent: done.spent });
            }
        }
        None
    }
}

/// The sectors of a command; none if it has none.
fn range(command: &Command) -> Option<Range<Sector>> {
    let range = command.sector..command.sector + command.sectors;
    (command.op != Op::Flush && range.start < range.end).then_some(range)
}

impl Model for Array {
    fn depth(&self) -> u32 {
        self.parameters.depth
    }

    fn end(&self) -> Sector {
        self.end
    }

    fn rotational(&self) -> bool {
        true
    }

    fn submit(&mut self, now: Instant, command: Command) {
        let end = range(&command).map_or(Sector(0), |range| range.end);
        assert!(end <= self.end, "the command ends at {end:?}, the array at {:?}", self.end);
        let place = &mut self.commands[command.tag as usize];
        assert!(place.is_none(), "tag {} is in the array", command.tag);
        let overhead = self.parameters.front_end;
        let spent = Spent { overhead, ..Spent::default() };
        *place = Some(InArray { command, waits_since: now, spent });
        self.schedule(now + overhead, Due::Decoded(command.tag));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.agenda.peek().map(|Reverse((at, ..))| *at);
        [due, self.members.poll_timeout(), self.destage.poll_timeout()].into_iter().flatten().min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        loop {
            let at = self.poll_timeout().filter(|at| *at <= now)?;
            if let Some((purpose, spent)) = self.members.poll(at) {
                self.member_is_done(at, purpose, spent);
            } else if let Some(&Reverse((due_at, _, due))) = self.agenda.peek()
                && due_at <= at
            {
                self.agenda.pop();
                if let Some(completion) = self.handle(at, due) {
                    return Some(completion);
                }
            }
            self.write_back(at);
        }
    }
}
