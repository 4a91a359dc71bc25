//! The calls of a thread that go through the page cache, one at a time: reads and writes of cached
//! files, and syncs.
//!
//! ```text
//!   begin ──▶ step, step ... ──▶ returned
//!             a read or a write (buffered.rs), then the sync that it asks for (syncing.rs)
//! ```

use std::collections::BTreeMap;

use paternoster::{Instant, Nanos};

use super::buffered::{Access, Caller, Kind, Step, Way};
use super::syncing::{Durability, Syncing};
use super::system::System;
use crate::cache::{PAGE, PageRun, Readahead, Writer};
use crate::fio::{Advice, Engine, Io, IoOp, Job, Submission, WriteSync};
use crate::sim::{Action, TaskId};

/// The calls of a thread.
#[derive(Debug)]
pub(super) struct Calls {
    submission: Submission,
    /// The one that is under way.
    call: Option<Call>,
    /// The files that it has open through the page cache, with what is read ahead.
    open: BTreeMap<usize, Readahead>,
    /// How it is held back when too much is dirty.
    writer: Writer,
}

/// A call.
#[derive(Debug)]
struct Call {
    io: Io,
    began: Instant,
    doing: Doing,
}

/// What a call does.
#[derive(Debug)]
enum Doing {
    Access(Access),
    Sync(Syncing),
}

/// What comes of a step.
#[derive(Clone, Debug)]
pub(super) enum Called {
    /// The call needs that.
    Do(Action),
    /// It has returned, after so long.
    Returned { io: Io, took: Nanos },
}

impl Calls {
    pub(super) fn new(job: &Job) -> Self {
        let submission = job.submission;
        let files = job.pattern.regions.iter().map(|region| region.file);
        let open = files.filter(|_| submission.is_cached()).map(|file| (file, Readahead::new(0)));
        Self { submission, call: None, open: open.collect(), writer: Writer::default() }
    }

    /// Opens all files anew that are read and written through the page cache.
    pub(super) fn open_all(&mut self, system: &mut System) {
        let files: Vec<_> = self.open.keys().copied().collect();
        for file in files {
            self.open(system, file);
        }
    }

    /// Opens a file, if it is one of those.
    pub(super) fn open(&mut self, system: &mut System, file: usize) {
        let Some(readahead) = self.open.get_mut(&file) else { return };
        let Submission { engine, advice, invalidate, .. } = self.submission;
        let window = system.parameters.advised(advice).read_ahead_pages;
        let reads_around = engine == Engine::Mmap && advice == Advice::None;
        let make = if reads_around { Readahead::of_mapping } else { Readahead::new };
        *readahead = make(window);
        if invalidate {
            system.invalidate(file);
        }
    }

    /// Whether one is under way.
    pub(super) fn are_under_way(&self) -> bool {
        self.call.is_some()
    }

    /// Begins the call for the I/O. Returns whether there is one.
    pub(super) fn begin(&mut self, system: &System, io: Io, now: Instant) -> bool {
        debug_assert!(self.call.is_none(), "a thread has one call under way");
        self.call = self.doing(system, &io).map(|doing| Call { io, began: now, doing });
        self.call.is_some()
    }

    /// Goes on with the call, if there is one.
    pub(super) fn step(
        &mut self,
        system: &mut System,
        now: Instant,
        task: TaskId,
    ) -> Option<Called> {
        loop {
            let Call { io, doing, .. } = self.call.as_mut()?;
            let step = match doing {
                Doing::Access(access) => {
                    let readahead = self.open.get_mut(&io.file).expect("the file is open");
                    let writer = &mut self.writer;
                    access.step(system, &mut Caller { task, readahead, writer }, now)
                }
                Doing::Sync(sync) => sync.step(system, task),
            };
            if let Step::Do(action) = step {
                return Some(Called::Do(action));
            }
            let Call { io, began, doing } = self.call.take()?;
            match self.sync_of(&io).filter(|_| matches!(doing, Doing::Access(_))) {
                Some(sync) => self.call = Some(Call { io, began, doing: Doing::Sync(sync) }),
                None => return Some(Called::Returned { io, took: now.saturating_since(began) }),
            }
        }
    }

    /// What the call for the I/O does; none where it is handed over and does not wait.
    fn doing(&self, system: &System, io: &Io) -> Option<Doing> {
        let Submission { engine, .. } = self.submission;
        let is_open = self.open.contains_key(&io.file);
        let is_mapped = engine == Engine::Mmap;
        let way = if is_mapped { Way::Fault } else { Way::Call };
        let kind = match io.op {
            IoOp::Read => Kind::Read,
            IoOp::Write => {
                let end = io.offset + io.bytes;
                let is_last = end >= system.file_bytes(io.file);
                let end = if is_last { end.div_ceil(PAGE) } else { end / PAGE };
                Kind::Write { whole: io.offset.div_ceil(PAGE)..end }
            }
            IoOp::Trim => return None,
            IoOp::Sync | IoOp::DataSync => {
                let is_handed_over = matches!(engine, Engine::IoUring | Engine::PosixAio);
                let durability = match io.op {
                    IoOp::Sync if !is_mapped => Durability::Commit,
                    _ => Durability::Flush,
                };
                let sync = Syncing::new(io.file, 0..u64::MAX, durability);
                return (is_open || !is_handed_over).then_some(Doing::Sync(sync));
            }
        };
        is_open.then(|| Doing::Access(Access::new(pages(io), kind, way)))
    }

    /// The sync that belongs to an access: that of `sync`, and with mapped memory that of `direct`.
    fn sync_of(&self, io: &Io) -> Option<Syncing> {
        let Submission { engine, direct, write_sync, .. } = self.submission;
        let durability = match (io.op, write_sync) {
            _ if engine == Engine::Mmap && direct => Durability::Flush,
            // What is mapped was not opened for it.
            _ if engine == Engine::Mmap => return None,
            (IoOp::Write, WriteSync::DataSync) => Durability::Flush,
            (IoOp::Write, WriteSync::Sync) => Durability::Commit,
            _ => return None,
        };
        let PageRun { file, page, pages } = pages(io);
        Some(Syncing::new(file, page..page + pages, durability))
    }
}

/// The pages on which the I/O is.
fn pages(io: &Io) -> PageRun {
    let (page, end) = (io.offset / PAGE, (io.offset + io.bytes).div_ceil(PAGE));
    PageRun { file: io.file, page, pages: end - page }
}
