//! The disks of the array, and what waits for each: a disk takes as many commands as it queues.

use std::collections::VecDeque;

use paternoster::{Instant, Sector, SectorCount};

use super::striping::{Piece, Stripe};
use crate::disk::{Disk, LayoutError, Parameters};
use crate::{Chance, Command, Model, Op, Spent};

/// What a disk's command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// These sectors of the array come into the cache.
    Fill { first: Sector, end: Sector },
    /// What the parity of a stripe was made of is read.
    Old(Stripe),
    /// A stripe is written.
    New(Stripe),
}

/// A disk with what waits for it.
#[derive(Clone, Debug)]
struct Member {
    disk: Disk,
    waiting: VecDeque<(Command, Purpose)>,
    /// What the disk's commands are for, by their tags.
    in_disk: Vec<Option<Purpose>>,
    free_tags: Vec<u32>,
}

/// The disks.
#[derive(Clone, Debug)]
pub(super) struct Members {
    each: Vec<Member>,
    /// When the first of them is due.
    next: Option<(Instant, usize)>,
}

impl Members {
    /// So many disks of these parameters, at rest.
    pub(super) fn new(disks: u32, parameters: &Parameters) -> Result<Self, LayoutError> {
        let disk = Disk::new(parameters.clone())?;
        let depth = disk.depth();
        let member = Member {
            disk,
            waiting: VecDeque::new(),
            in_disk: vec![None; depth as usize],
            free_tags: (0..depth).rev().collect(),
        };
        Ok(Self { each: vec![member; disks as usize], next: None })
    }

    /// Where each of them ends.
    pub(super) fn end(&self) -> Sector {
        self.each[0].disk.end()
    }

    /// Has a disk read the piece.
    pub(super) fn read(&mut self, now: Instant, piece: &Piece, purpose: Purpose) {
        self.add(now, piece, Op::Read, purpose);
    }

    /// Has a disk write the piece. It ends when that is on the medium.
    pub(super) fn write(&mut self, now: Instant, piece: &Piece, purpose: Purpose) {
        self.add(now, piece, Op::Write, purpose);
    }

    /// When the first of them is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next.map(|(at, _)| at)
    }

    /// Something that a disk has done by `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Purpose, Spent)> {
        let (_, index) = self.next.filter(|(at, _)| *at <= now)?;
        let member = &mut self.each[index];
        let done = member.disk.poll(now)?;
        let purpose = member.in_disk[done.tag as usize].take();
        member.free_tags.push(done.tag);
        member.start(now);
        self.find_next();
        Some((purpose.expect("a command that completes was given to the disk"), done.spent))
    }

    fn add(&mut self, now: Instant, piece: &Piece, op: Op, purpose: Purpose) {
        let sectors = piece.on_disk.end.0 - piece.on_disk.start.0;
        let sectors = SectorCount(u32::try_from(sectors).expect("a chunk is in u32"));
        let durable = op == Op::Write;
        let (sector, chance) = (piece.on_disk.start, Chance::default());
        let command = Command { tag: 0, op, durable, sector, sectors, chance };
        let member = &mut self.each[piece.disk];
        member.waiting.push_back((command, purpose));
        member.start(now);
        self.find_next();
    }

    fn find_next(&mut self) {
        let due =
            |(index, member): (usize, &Member)| member.disk.poll_timeout().map(|at| (at, index));
        self.next = self.each.iter().enumerate().filter_map(due).min();
    }
}

impl Member {
    /// Gives the disk what waits, as far as it takes it.
    fn start(&mut self, now: Instant) {
        while !self.waiting.is_empty()
            && let Some(tag) = self.free_tags.pop()
        {
            let (command, purpose) = self.waiting.pop_front().expect("something waits");
            self.in_disk[tag as usize] = Some(purpose);
            self.disk.submit(now, Command { tag, ..command });
        }
    }
}
