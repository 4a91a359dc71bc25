//! What the disk does for one command, and how long each part of it takes.
//!
//! ```text
//!   read    in a segment          overhead, link
//!           being read ahead      overhead, the rest of the medium, link meanwhile
//!           neither               overhead, seek, rotation, medium, link meanwhile
//!   write   held back             overhead, link
//!           not                   overhead, link; seek, rotation, medium meanwhile
//!   flush   all that was held back goes to the medium
//!   discard overhead
//! ```

use paternoster::Sector;

use super::super::{Command, Op, Spent};
use super::cache::Kind;
use super::head::{Access, Pass, Range};
use super::link::Arrival;
use super::parameters::Behind;
use super::read_ahead::ReadAhead;
use super::units::{Millis, real, whole};
use super::write_back::WriteBack;
use super::{Disk, range};

/// A command that was served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub(super) done: Millis,
    pub(super) spent: Spent,
}

/// Of what the time of a command is made. What is left is transfer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parts {
    overhead: Millis,
    /// What it waited for other commands' data.
    others: Millis,
    seek: Millis,
    rotation: Millis,
}

impl Parts {
    pub(super) fn new(overhead: Millis, others: Millis) -> Self {
        Self { overhead, others, ..Self::default() }
    }

    pub(super) fn add(&mut self, pass: &Pass) {
        self.seek += pass.seek;
        self.rotation += pass.rotation;
    }

    pub(super) fn served(self, now: Millis, done: Millis) -> Served {
        // Each is at most what is left, so that the sum is all of it.
        let mut left = (done - now - self.others).to_nanos();
        let mut part = |span: Millis| {
            let part = span.to_nanos().min(left);
            left = left.saturating_sub(part);
            part
        };
        let (overhead, seek) = (part(self.overhead), part(self.seek));
        let rotation = part(self.rotation);
        Served { done, spent: Spent { seek, rotation, transfer: left, overhead } }
    }
}

impl Disk {
    /// How long the disk takes to begin with `command`: it looks at it, and moves the head.
    pub(super) fn positioning(&self, command: &Command, now: Millis) -> Millis {
        let Some(range) = range(command) else { return Millis::ZERO };
        let overheads = &self.parameters.overheads;
        let (own, access) = match command.op {
            Op::Read if self.is_hit(range) => return Millis::ZERO,
            Op::Write if !command.durable && self.may_hold_back(range) => return Millis::ZERO,
            Op::Read => (overheads.read_miss, Access::Read),
            Op::Write => (overheads.write_miss, Access::Write(Arrival::DONE)),
            Op::Flush => return Millis::ZERO,
            Op::Discard => unreachable!("the disk does not take it"),
        };
        // The platters turn on while the disk looks at the command.
        let before = self.overhead(own);
        before + self.head.positioning(&self.geometry, range.first, now + before, access)
    }

    /// Serves `command` from `now` on.
    pub(super) fn serve(&mut self, command: &Command, now: Millis) -> Served {
        let served = match (command.op, range(command)) {
            (Op::Read, Some(range)) => self.read(range, now),
            (Op::Write, Some(range)) if command.durable => self.write_through(range, now),
            (Op::Write, Some(range)) => self.write(range, now),
            (Op::Discard, Some(_)) => unreachable!("the disk does not take it"),
            (Op::Flush, _) | (_, None) => self.flush(now),
        };
        if matches!(command.op, Op::Read | Op::Write) {
            self.last = command.op;
        }
        self.idle_since = served.done;
        served
    }

    /// Does what is left to do while there is no command.
    pub(super) fn be_idle_until(&mut self, now: Millis) {
        let Self { read_ahead, geometry, head, segments, .. } = self;
        if let Some(ahead) = read_ahead {
            ahead.go_on(geometry, head, now);
            segments.extend(ahead.segment, ahead.next);
            if ahead.is_going() {
                return;
            }
            self.free_at = self.free_at.max(ahead.at.min(now));
        }
        while !self.dirty.is_empty() {
            let begins = self.free_at.max(self.idle_since + self.parameters.buffer.write_back.idle);
            if begins >= now {
                return;
            }
            self.write_one_back(begins);
        }
    }

    /// The overhead of a command whose own is `own`.
    pub(super) fn overhead(&self, own: Behind) -> Millis {
        self.parameters.overheads.command + own.after(self.last)
    }

    /// Ends reading ahead at `now`. Returns when the head is free, at `now` or later.
    pub(super) fn stop_reading_ahead(&mut self, now: Millis) -> Millis {
        let Self { read_ahead, geometry, head, segments, .. } = self;
        let policy = &self.parameters.buffer.read_ahead;
        if let Some(mut ahead) = read_ahead.take() {
            ahead.finish(policy, geometry, head);
            segments.extend(ahead.segment, ahead.next);
            self.free_at = self.free_at.max(ahead.free_at(policy, now));
        }
        self.free_at = self.free_at.max(now);
        self.free_at
    }

    fn is_hit(&self, range: Range) -> bool {
        let buffer = &self.parameters.buffer;
        buffer.answers_reads
            && self.segments.holding(range).is_some_and(|segment| {
                segment.kind == Kind::Read || buffer.answers_reads_of_written
            })
    }

    fn read(&mut self, range: Range, now: Millis) -> Served {
        if self.is_hit(range) {
            return self.read_from_buffer(range, now);
        }
        let ahead = self.read_ahead.filter(|ahead| {
            let held = self.segments.segment(ahead.segment);
            let has_first = held.is_some_and(|held| held.range.first <= range.first);
            let near = range.first <= ahead.next && ahead.next < range.end;
            self.parameters.buffer.answers_reads && ahead.is_going() && has_first && near
        });
        match ahead {
            Some(ahead) => self.read_on(range, ahead, now),
            None => self.read_from_medium(range, now),
        }
    }

    fn read_from_buffer(&mut self, range: Range, now: Millis) -> Served {
        let overheads = &self.parameters.overheads;
        let before = self.overhead(overheads.read_hit) + overheads.data_preparation;
        let completion = overheads.read_completion;
        let policy = self.parameters.buffer.read_ahead;
        let segment = self.segments.holding(range).map(|segment| segment.id);
        if let Some(id) = segment {
            self.segments.touch(id);
        }
        // The sectors that have left make room for more.
        let goal = policy.goal(&self.geometry, range, self.segments.room());
        if let Some(ahead) = self.read_ahead.as_mut().filter(|ahead| Some(ahead.segment) == segment)
            && (ahead.is_going() || policy.after_hit)
            && goal > ahead.goal
        {
            if !ahead.is_going() {
                ahead.at = self.free_at.max(now);
            }
            ahead.goal = goal;
        }
        let link = &self.parameters.link;
        let done = link.delivered(range, now + before, &[], 0) + completion;
        Parts::new(before + completion, Millis::ZERO).served(now, done)
    }

    /// Reads what reading ahead has begun to read.
    fn read_on(&mut self, range: Range, mut ahead: ReadAhead, now: Millis) -> Served {
        let overheads = self.parameters.overheads;
        let before = self.overhead(overheads.read_hit) + overheads.data_preparation;
        let rest = Range { first: ahead.next, end: range.end };
        let pass = ahead.read_on(&self.geometry, &mut self.head, rest);
        self.segments.touch(ahead.segment);
        self.segments.extend(ahead.segment, range.end);
        ahead.goal =
            self.parameters.buffer.read_ahead.goal(&self.geometry, range, self.segments.room());
        self.read_ahead = Some(ahead);
        self.free_at = pass.ends;
        let mark = self.marked(self.parameters.buffer.read_mark, range);
        let left = self.parameters.link.delivered(range, now + before, &pass.runs, mark);
        let mut parts = Parts::new(before + overheads.read_completion, Millis::ZERO);
        parts.add(&pass);
        parts.served(now, left + overheads.read_completion)
    }

    fn read_from_medium(&mut self, range: Range, now: Millis) -> Served {
        let buffer = self.parameters.buffer;
        let overheads = self.parameters.overheads;
        let start = self.stop_reading_ahead(now);
        let start = match buffer.write_back.mode {
            WriteBack::Sorted if !self.dirty.overlaps(range) => start,
            _ => self.write_all_back(&mut Parts::default(), start),
        };
        // The head may still be busy while the disk looks at the command.
        let before = self.overhead(overheads.read_miss);
        let begins = start.max(now + before);
        let from = self.head.track();
        let pass = self.head.pass(&self.geometry, range, begins, Access::Read, buffer.read_begin);
        self.free_at = pass.ends;
        self.keep(range, &pass, from, begins);
        let disconnect = overheads.read_disconnect.after(self.last);
        let prepared = overheads.data_preparation + overheads.reselect;
        let ready = now + before + disconnect + prepared;
        let mark = self.marked(buffer.read_mark, range);
        let left = self.parameters.link.delivered(range, ready, &pass.runs, mark);
        let overhead = before + overheads.read_completion;
        let mut parts = Parts::new(overhead, begins - (now + before));
        parts.add(&pass);
        parts.served(now, left + overheads.read_completion)
    }

    /// Keeps what was read in a segment, and begins to read ahead.
    fn keep(&mut self, range: Range, pass: &Pass, from: (u32, u32), begins: Millis) {
        let policy = self.parameters.buffer.read_ahead;
        let mut kept = range;
        if policy.keeps_passed {
            kept.first = self.passed_before(range, pass, from, begins);
        }
        let segment = self.segments.take(Kind::Read, kept);
        let goal = policy.goal(&self.geometry, range, self.segments.room());
        self.read_ahead = Some(ReadAhead::new(segment, range.end, goal, pass.ends));
    }

    /// The first sector of the track that passed below the head while it waited for `range`.
    fn passed_before(&self, range: Range, pass: &Pass, from: (u32, u32), begins: Millis) -> Sector {
        let place = self.geometry.place(range.first);
        let Some(first) = pass.runs.first() else { return range.first };
        let reach = self.head.reach(from, &place, Access::Read);
        let passed = whole(((first.begins - begins - reach).0 / first.each.0).floor());
        let room = self.segments.room().saturating_sub(range.sectors());
        Sector(range.first.0.saturating_sub(passed.min(place.on_track).min(room)))
    }

    pub(super) fn marked(&self, part: f64, range: Range) -> u64 {
        let buffer = &self.parameters.buffer;
        let of = if buffer.marks_of_command { range.sectors() } else { self.segments.room() };
        whole((part * real(of)).ceil()).min(range.sectors())
    }
}
