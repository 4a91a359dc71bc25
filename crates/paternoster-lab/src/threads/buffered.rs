//! A read or a write through the page cache: runs of pages, each copied when it is there.
//!
//! ```text
//!   read                      a page that is not cached is read, with what is read ahead
//!   write by a call           only a page that is overwritten in part is read before
//!   write to mapped memory    every page is, by a fault
//! ```

use std::ops::Range;

use paternoster::Instant;

use super::system::System;
use crate::cache::{Found, PageRun, Readahead, Writer};
use crate::sim::{Action, TaskId};

/// A read or a write that is under way.
#[derive(Debug)]
pub(super) struct Access {
    file: usize,
    kind: Kind,
    way: Way,
    /// The next page.
    page: u64,
    /// The page behind the last one.
    end: u64,
    /// How many pages are being copied.
    copying: u64,
    /// What is to be read from the device because of it.
    fetches: Vec<PageRun>,
}

/// What is done with the pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    /// Those pages are overwritten as a whole, the others in part.
    Write {
        whole: Range<u64>,
    },
}

/// How the pages are come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By a call that says how much it wants.
    Call,
    /// By a fault for each page of mapped memory.
    Fault,
}

/// Who has the access done.
#[derive(Debug)]
pub(super) struct Caller<'a> {
    pub(super) task: TaskId,
    /// Of the file.
    pub(super) readahead: &'a mut Readahead,
    pub(super) writer: &'a mut Writer,
}

/// What a call needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This, and then to be asked again.
    Do(Action),
    /// Nothing: it is done.
    Done,
}

impl Access {
    /// An access to those pages.
    pub(super) fn new(run: PageRun, kind: Kind, way: Way) -> Self {
        let PageRun { file, page, pages } = run;
        Self { file, kind, way, page, end: page + pages, copying: 0, fetches: Vec::new() }
    }

    /// What it needs next.
    pub(super) fn step(
        &mut self,
        system: &mut System,
        caller: &mut Caller<'_>,
        now: Instant,
    ) -> Step {
        self.has_copied(system, caller, now);
        if self.kind != Kind::Read
            && let Some(action) = system.hold_back(now, caller, self.file)
        {
            return Step::Do(action);
        }
        if let Some(fetch) = self.next_fetch() {
            return Step::Do(Action::Submit(system.fetch(fetch)));
        }
        if self.page == self.end {
            return Step::Done;
        }
        let found = self.look(system, caller.readahead);
        if let Some(fetch) = self.next_fetch() {
            return Step::Do(Action::Submit(system.fetch(fetch)));
        }
        match found {
            Found::OnItsWay => {
                system.await_page(caller.task, self.file, self.page);
                Step::Do(Action::Wait)
            }
            Found::Cached { pages } => {
                let most = match self.kind {
                    Kind::Read => pages,
                    Kind::Write { .. } => caller.writer.allowance - caller.writer.unseen,
                };
                self.copying = pages.min(most);
                Step::Do(Action::Work(system.parameters.copy(self.copying)))
            }
        }
    }

    /// What was being copied has been.
    fn has_copied(&mut self, system: &mut System, caller: &mut Caller<'_>, now: Instant) {
        let pages = std::mem::take(&mut self.copying);
        if pages == 0 {
            return;
        }
        let &mut Self { file, page, .. } = self;
        self.page += pages;
        if let Kind::Write { .. } = self.kind {
            caller.writer.unseen += system.dirty(now, PageRun { file, page, pages });
        }
        if self.page == self.end || self.way == Way::Fault {
            caller.readahead.has_read(self.page - 1);
        }
    }

    /// What is at the next page, and has to be read because of it.
    fn look(&mut self, system: &mut System, readahead: &mut Readahead) -> Found {
        let &mut Self { file, page, end, .. } = self;
        let left = PageRun { file, page, pages: end - page };
        match (&self.kind, self.way) {
            (Kind::Write { whole }, Way::Call) => {
                system.cache.overwrite(left, whole, &mut self.fetches)
            }
            (Kind::Read, Way::Call) => system.cache.touch(readahead, left, &mut self.fetches),
            (_, Way::Fault) => {
                let one = PageRun { pages: 1, ..left };
                match system.cache.touch(readahead, one, &mut self.fetches) {
                    Found::OnItsWay => Found::OnItsWay,
                    Found::Cached { .. } => Found::Cached { pages: system.cache.cached(left) },
                }
            }
        }
    }

    fn next_fetch(&mut self) -> Option<PageRun> {
        (!self.fetches.is_empty()).then(|| self.fetches.remove(0))
    }
}
