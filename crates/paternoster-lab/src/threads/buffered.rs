//! A read through the page cache: runs of pages, each copied when it is there.

use paternoster::Instant;

use super::system::System;
use crate::cache::{Found, PAGE, PageRun, Readahead};
use crate::sim::{Action, TaskId};

/// A read that is under way.
#[derive(Debug)]
pub(super) struct Reading {
    file: usize,
    /// The next page.
    page: u64,
    /// The page behind the last one.
    end: u64,
    /// How many pages are being copied.
    copying: u64,
    /// What is to be read from the device because of it.
    fetches: Vec<PageRun>,
}

/// What a call needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This, and then to be asked again.
    Do(Action),
    /// Nothing: it is done.
    Done,
}

impl Reading {
    /// A read of so many bytes.
    pub(super) fn new(file: usize, offset: u64, bytes: u64) -> Self {
        let (page, end) = (offset / PAGE, (offset + bytes).div_ceil(PAGE));
        Self { file, page, end, copying: 0, fetches: Vec::new() }
    }

    /// Whether the processor is busy with it.
    pub(super) fn is_copying(&self) -> bool {
        self.copying > 0
    }

    /// What the read of that task needs next.
    pub(super) fn step(
        &mut self,
        system: &mut System,
        readahead: &mut Readahead,
        task: TaskId,
        now: Instant,
    ) -> Step {
        self.page += std::mem::take(&mut self.copying);
        if let Some(fetch) = self.next_fetch() {
            return Step::Do(Action::Submit(system.fetch(fetch)));
        }
        if self.page == self.end {
            readahead.has_read(self.end - 1);
            return Step::Done;
        }
        let &mut Self { file, page, end, .. } = self;
        let wanted = PageRun { file, page, pages: end - page };
        let found = system.cache.touch(readahead, wanted, &mut self.fetches);
        if let Some(fetch) = self.next_fetch() {
            return Step::Do(Action::Submit(system.fetch(fetch)));
        }
        match found {
            Found::OnItsWay => {
                system.await_page(task, file, page);
                Step::Do(Action::Wait)
            }
            Found::Cached { pages } => {
                self.copying = pages;
                Step::Do(Action::Sleep(now + system.host.copy(pages)))
            }
        }
    }

    fn next_fetch(&mut self) -> Option<PageRun> {
        (!self.fetches.is_empty()).then(|| self.fetches.remove(0))
    }
}
