//! A sync of a file: its dirty pages are written, all its writes awaited, and then made durable.
//!
//! ```text
//!   write each dirty page, in order ──▶ wait for those and for the flusher's ──▶ flush, or commit
//! ```
//!
//! Pages that become dirty behind it while it goes through the file are left for the next sync.

use std::ops::Range;

use paternoster::BioFlags;

use super::buffered::Step;
use super::system::System;
use crate::sim::{Action, TaskId};

/// A sync that is under way.
#[derive(Debug)]
pub(super) struct Syncing {
    file: usize,
    /// The pages that are left to go through.
    pages: Range<u64>,
    /// All its pages.
    whole: Range<u64>,
    durability: Durability,
    phase: Phase,
}

/// How what was written is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// The device is told to flush: `fdatasync` of a file whose length stays, and any sync of a
    /// device.
    Flush,
    /// The journal commits, if there is one: `fsync` of a file.
    Commit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Dirty pages are written.
    Writing,
    /// Writes up to that name are awaited.
    Draining(u64),
    /// The flush of that name is.
    Flushing(u64),
    /// The commit of that number is.
    Committing(u64),
}

impl Syncing {
    /// A sync of those pages of a file.
    pub(super) fn new(file: usize, pages: Range<u64>, durability: Durability) -> Self {
        Self { file, whole: pages.clone(), pages, durability, phase: Phase::Writing }
    }

    /// What the sync of that task needs next.
    pub(super) fn step(&mut self, system: &mut System, task: TaskId) -> Step {
        loop {
            match self.phase {
                Phase::Writing => {
                    if let Some(action) = self.write(system, task) {
                        return Step::Do(action);
                    }
                    self.phase = Phase::Draining(system.last_name());
                }
                Phase::Draining(last) => {
                    if system.has_writes(self.file, &self.whole, last) {
                        system.await_writes(task, self.file);
                        return Step::Do(Action::Wait);
                    }
                    if self.durability == Durability::Commit
                        && let Some(number) = system.ask_for_commit()
                    {
                        self.phase = Phase::Committing(number);
                        continue;
                    }
                    let io = system.flush();
                    self.phase = Phase::Flushing(io.name);
                    return Step::Do(Action::Submit(io));
                }
                Phase::Flushing(name) if system.is_under_way(name) => {
                    return Step::Do(Action::Wait);
                }
                Phase::Committing(number) if !system.has_committed(number) => {
                    system.await_commit(task);
                    return Step::Do(Action::Wait);
                }
                Phase::Flushing(_) | Phase::Committing(_) => return Step::Done,
            }
        }
    }

    /// Writes the next dirty pages; nothing when there are none.
    fn write(&mut self, system: &mut System, task: TaskId) -> Option<Action> {
        let page = system.cache.first_dirty(self.file, self.pages.clone())?;
        self.pages.start = page;
        if system.cache.is_writing(self.file, page) {
            system.await_page(task, self.file, page);
            return Some(Action::Wait);
        }
        if !system.has_room(task) {
            return Some(Action::Wait);
        }
        let run = system.take_for_sync(self.file, self.pages.clone())?;
        self.pages.start = page + run.pages;
        Some(Action::Submit(system.write(task, run, BioFlags::SYNC)))
    }
}
