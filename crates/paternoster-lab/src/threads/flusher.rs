//! The tasks that serve all threads: flushers, the journal if there is one, and the timer that has
//! flushers look.
//!
//! ```text
//!   tasks   thread 0 … thread n-1 │ flusher … │ journal │ timer
//! ```
//!
//! A flusher writes dirty pages in the name of a group: the root, or the group of the job that
//! writes a file. Whatever they have left when the last thread ends is not written.

use paternoster::{BioFlags, Instant, IoPrio};

use super::PageCacheParameters;
use super::system::System;
use crate::fio::{DataDirection, Job, Jobs};
use crate::sim::{Action, TaskId, TaskSetup};

/// In whose name dirty pages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WritebackGroup {
    /// The root's, as in cgroup v1.
    #[default]
    Root,
    /// The group of the job that writes the file, the first one if there are several, as in cgroup
    /// v2. Each has its part of the memory for dirty pages.
    Owner,
}

/// Which tasks serve the threads.
#[derive(Debug)]
pub(super) struct Services {
    /// How many threads there are.
    threads: usize,
    /// The group of each flusher; the root has none.
    groups: Vec<Option<usize>>,
    /// The flusher of each file.
    flusher_of: Vec<usize>,
    has_journal: bool,
}

/// A task that serves threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Flusher(usize),
    Timer,
    Journal,
}

impl Services {
    /// The services that the jobs need: none where nothing is written through the page cache.
    pub(super) fn new(jobs: &Jobs, page_cache: PageCacheParameters) -> Self {
        let group_of = |path: &str| jobs.groups.iter().position(|group| group.path == path);
        let mut groups = Vec::new();
        let mut flusher_of = vec![None; jobs.files.len()];
        for job in jobs.jobs.iter().filter(|job| writes(job) && job.submission.is_cached()) {
            let group = match page_cache.writeback_group {
                WritebackGroup::Root => None,
                WritebackGroup::Owner => group_of(&job.group),
            };
            let flusher = groups.iter().position(|other| *other == group).unwrap_or_else(|| {
                groups.push(group);
                groups.len() - 1
            });
            for region in &job.pattern.regions {
                flusher_of[region.file].get_or_insert(flusher);
            }
        }
        Self {
            threads: jobs.jobs.len(),
            groups,
            flusher_of: flusher_of.into_iter().map(Option::unwrap_or_default).collect(),
            has_journal: page_cache.journal.is_some(),
        }
    }

    /// The services as tasks.
    pub(super) fn tasks(&self) -> Vec<TaskSetup> {
        if self.groups.is_empty() && !self.has_journal {
            return Vec::new();
        }
        let task = |group, io_prio| TaskSetup { group, io_prio, start: Instant::START };
        let flushers = self.groups.iter().map(|group| task(*group, IoPrio::default()));
        // ext4's priority, where nothing else was said.
        let journal_prio = IoPrio::be(3).expect("there is a level 3");
        let journal = self.has_journal.then(|| task(None, journal_prio));
        // The timer submits nothing.
        let timer = task(None, IoPrio::default());
        flushers.chain(journal).chain([timer]).collect()
    }

    /// What those are called that submit I/O, with their groups, in the order of their tasks.
    pub(super) fn names(&self) -> Vec<(&'static str, Option<usize>)> {
        let flushers = self.groups.iter().map(|group| ("flusher", *group));
        flushers.chain(self.has_journal.then_some(("journal", None))).collect()
    }

    /// The service that is that task; none where it is a thread.
    pub(super) fn of(&self, task: TaskId) -> Option<Service> {
        let index = task.index().checked_sub(self.threads)?;
        Some(match index.checked_sub(self.groups.len()) {
            None => Service::Flusher(index),
            Some(0) if self.has_journal => Service::Journal,
            Some(_) => Service::Timer,
        })
    }

    pub(super) fn flushers(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn has_journal(&self) -> bool {
        self.has_journal
    }

    pub(super) fn flusher_of(&self, file: usize) -> usize {
        self.flusher_of[file]
    }

    pub(super) fn flusher(&self, flusher: usize) -> TaskId {
        task(self.threads + flusher)
    }

    pub(super) fn timer(&self) -> TaskId {
        task(self.threads + self.groups.len() + usize::from(self.has_journal))
    }

    pub(super) fn journal(&self) -> TaskId {
        task(self.threads + self.groups.len())
    }
}

fn task(index: usize) -> TaskId {
    TaskId(u32::try_from(index).expect("tasks are counted in u32"))
}

fn writes(job: &Job) -> bool {
    job.does(DataDirection::Write)
}

/// When flushers look for what was dirty for too long: from when something became dirty, every few
/// seconds until nothing is.
#[derive(Debug, Default)]
pub(super) struct Timer {
    due: Option<Instant>,
}

impl Timer {
    pub(super) fn step(&mut self, system: &mut System, now: Instant) -> Action {
        if !system.is_dirty() {
            self.due = None;
            return Action::Wait;
        }
        let mut due = self.due.unwrap_or(now + system.parameters.writeback.wake_up);
        if due <= now {
            system.look(now);
            due = now + system.parameters.writeback.wake_up;
        }
        self.due = Some(due);
        Action::Sleep(due)
    }
}

impl System {
    /// What a flusher does next.
    pub(super) fn flush_on(&mut self, now: Instant, flusher: usize, task: TaskId) -> Action {
        if !self.has_room(task) {
            return Action::Wait;
        }
        match self.next_write(now, flusher) {
            Some(run) => Action::Submit(self.write(task, run, BioFlags::empty())),
            None => Action::Wait,
        }
    }
}
