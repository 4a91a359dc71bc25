//! What the disk does for a write, a flush and a discard, and how it writes back what it has held
//! back. The parts of their times are those of `serve`.

use super::Disk;
use super::cache::Kind;
use super::head::{Access, Begin, Pass, Range};
use super::link::Arrival;
use super::serve::{Parts, Served};
use super::units::{Millis, real};
use super::write_back::WriteBack;

impl Disk {
    pub(super) fn write(&mut self, range: Range, now: Millis) -> Served {
        match self.parameters.buffer.write_back.mode {
            WriteBack::Off => return self.write_through(range, now),
            WriteBack::Appending if !self.may_hold_back(range) => {
                return self.write_through(range, now);
            }
            _ => {}
        }
        let mut room_at = now;
        while !self.may_hold_back(range) {
            let begins = self.stop_reading_ahead(now);
            self.write_one_back(begins);
            room_at = self.free_at;
        }
        self.hold_back(range, now, room_at)
    }

    /// Whether a write of `range` may end when it is in the buffer, as that is now.
    pub(super) fn may_hold_back(&self, range: Range) -> bool {
        let (buffer, dirty) = (&self.parameters.buffer, &self.dirty);
        let room = self.segments.room() * buffer.segmentation.write_segments as u64;
        match buffer.write_back.mode {
            WriteBack::Off => false,
            WriteBack::Appending | WriteBack::OneRun => {
                dirty.is_empty() || dirty.is_continued_by(range)
            }
            WriteBack::Sorted => {
                dirty.is_empty()
                    || dirty.len() < buffer.write_back.runs
                        && dirty.sectors() + range.sectors() <= room
            }
        }
    }

    /// Takes a write into the buffer, which has room for it from `room_at` on.
    fn hold_back(&mut self, range: Range, now: Millis, room_at: Millis) -> Served {
        let overheads = &self.parameters.overheads;
        let before = self.overhead(overheads.write_hit) + overheads.data_preparation;
        let arrives = self.parameters.link.write_sector * real(range.sectors());
        let done = (now + before).max(room_at) + arrives;
        let others = done - arrives - (now + before);
        if self.parameters.buffer.read_ahead.write_stops {
            self.stop_reading_ahead(now);
        }
        self.keep_written(range, now);
        let joins = self.parameters.buffer.write_back.joins;
        self.dirty.add(range, joins, self.segments.room());
        Parts::new(before, others).served(now, done)
    }

    /// Writes `range` to the medium.
    pub(super) fn write_through(&mut self, range: Range, now: Millis) -> Served {
        let buffer = self.parameters.buffer;
        let overheads = self.parameters.overheads;
        let mut free = self.stop_reading_ahead(now);
        self.dirty.remove(range);
        if buffer.write_back.mode != WriteBack::Sorted {
            free = self.write_all_back(&mut Parts::default(), free);
        }
        let before = self.overhead(overheads.write_miss);
        let data = now + before + overheads.write_disconnect + overheads.data_preparation;
        let moves = now + before + overheads.write_seek;
        let begins = moves.max(free);
        let mark = self.marked(buffer.write_mark, range);
        let arrival = self.parameters.link.arrival(range, data, mark);
        let access = Access::Write(arrival);
        let pass = self.head.pass(&self.geometry, range, begins, access, buffer.write_begin);
        self.free_at = pass.ends;
        self.keep_written(range, now);
        let overhead = before + overheads.write_seek + overheads.write_completion;
        let mut parts = Parts::new(overhead, begins - moves);
        parts.add(&pass);
        parts.served(now, pass.ends + overheads.write_completion)
    }

    /// Keeps what is written in a segment. What the buffer had of it is no longer true.
    fn keep_written(&mut self, range: Range, now: Millis) {
        let continued = self.segments.continued_by(range);
        self.segments.forget(range);
        let continued = continued.filter(|_| self.parameters.buffer.write_back.joins);
        match continued {
            Some(segment) => {
                self.segments.touch(segment);
                self.segments.extend(segment, range.end);
            }
            None => {
                self.segments.take(Kind::Written, range);
            }
        }
        let read_into = self.read_ahead.map(|ahead| ahead.segment);
        if read_into.is_some_and(|segment| self.segments.segment(segment).is_none()) {
            self.stop_reading_ahead(now);
        }
    }

    /// Makes all durable that was written.
    pub(super) fn flush(&mut self, now: Millis) -> Served {
        let overhead = self.parameters.overheads.command;
        let mut parts = Parts::new(overhead, Millis::ZERO);
        let mut done = now + overhead;
        if !self.dirty.is_empty() {
            let free = self.stop_reading_ahead(now);
            done = done.max(self.write_all_back(&mut parts, free));
        }
        parts.served(now, done)
    }

    /// Writes back all that waits, from `begins` on. Returns when the head is free.
    pub(super) fn write_all_back(&mut self, parts: &mut Parts, begins: Millis) -> Millis {
        let mut free = begins;
        while let Some(pass) = self.write_one_back(free) {
            parts.add(&pass);
            free = pass.ends;
        }
        free
    }

    /// Writes back what is next, from `begins` on, if anything waits.
    pub(super) fn write_one_back(&mut self, begins: Millis) -> Option<Pass> {
        let run = match self.parameters.buffer.write_back.mode {
            WriteBack::Sorted => self.dirty.take_nearest(&self.geometry, &self.head, begins)?,
            _ => self.dirty.take_first()?,
        };
        let access = Access::Write(Arrival::DONE);
        let pass = self.head.pass(&self.geometry, run, begins, access, Begin::AtFirst);
        self.free_at = pass.ends;
        Some(pass)
    }
}
