//! The page cache: pages that are cached, of all files, and windows on their way.
//!
//! ```text
//!   read ──▶ page cached ───────────────▶ copied
//!            page with the mark ────────▶ the next window is submitted, and the page copied
//!            page not cached ───────────▶ a window is submitted, and its arrival awaited
//! ```
//!
//! So a sequential reader waits for one window and has the next one on its way. Pages are shared by
//! all who read a file; what is read ahead is decided for each who has it open.
//!
//! ```text
//!   write ─▶ page overwritten as a whole ───▶ copied, and dirty until the flusher writes it
//!            page overwritten in part ──────▶ read before, if it is not cached
//! ```

mod memory;
mod pages;
mod readahead;
mod throttle;
mod writeback;

use std::ops::Range;

use memory::Memory;
use pages::FilePages;

pub(crate) use readahead::Readahead;
pub use throttle::Throttling;
pub(crate) use throttle::Writer;
pub(crate) use writeback::Writeback;
pub use writeback::WritebackRules;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// Pages of a file, in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageRun {
    /// The file.
    pub(crate) file: usize,
    /// The first page.
    pub(crate) page: u64,
    /// How many pages.
    pub(crate) pages: u64,
}

impl PageRun {
    fn new(file: usize, pages: Range<u64>) -> Self {
        Self { file, page: pages.start, pages: pages.end - pages.start }
    }

    fn range(self) -> Range<u64> {
        self.page..self.page + self.pages
    }

    /// Whether that page of that file is among them.
    pub(crate) fn has(self, file: usize, page: u64) -> bool {
        self.file == file && self.range().contains(&page)
    }
}

/// What a reader finds at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is cached, and so are pages behind it.
    Cached {
        /// How many with it, up to where the reader has to look again.
        pages: u64,
    },
    /// It is on its way.
    OnItsWay,
}

/// The page cache.
#[derive(Debug)]
pub(crate) struct PageCache {
    files: Vec<CachedFile>,
    memory: Memory,
}

#[derive(Debug)]
struct CachedFile {
    /// Its length in pages.
    length: u64,
    pages: FilePages,
}

impl PageCache {
    /// A cache with room for so many pages, which holds nothing yet of files of those lengths in
    /// bytes.
    pub(crate) fn new(room: u64, lengths: impl IntoIterator<Item = u64>) -> Self {
        let files = lengths.into_iter().map(|bytes| {
            let length = bytes.div_ceil(PAGE);
            CachedFile { length, pages: FilePages::default() }
        });
        Self { files: files.collect(), memory: Memory::new(room) }
    }

    /// A reader comes to the first page of `wanted`, and wants them all. Returns what it finds
    /// there; `fetches` gets what is to be read from the device because of it.
    pub(crate) fn touch(
        &mut self,
        readahead: &mut Readahead,
        wanted: PageRun,
        fetches: &mut Vec<PageRun>,
    ) -> Found {
        let PageRun { file, page, pages: count } = wanted;
        let CachedFile { pages, .. } = &mut self.files[file];
        if !pages.is_present(page) {
            let window = readahead.miss(page, count, pages.present_before(page, count));
            self.request(file, window.pages.range(), window.mark, fetches);
            // A window that was due may lie behind a page that was dropped.
            self.request(file, page..page + 1, None, fetches);
        } else if pages.take_mark(page) {
            let ahead = pages.present_from(page, readahead.max() + 1);
            if let Some(window) = readahead.marked(page, page + ahead) {
                self.request(file, window.pages.range(), window.mark, fetches);
            }
        }
        match self.files[file].pages.use_run(page, count) {
            0 => Found::OnItsWay,
            pages => Found::Cached { pages },
        }
    }

    /// How many pages are cached, from the first one of those on, and have no mark.
    pub(crate) fn cached(&mut self, run: PageRun) -> u64 {
        self.files[run.file].pages.use_run(run.page, run.pages)
    }

    /// A writer comes to the first page of `left`, and overwrites them all, those in `whole` as a
    /// whole. Returns what it finds: pages that it may overwrite count as cached.
    pub(crate) fn overwrite(
        &mut self,
        left: PageRun,
        whole: &Range<u64>,
        fetches: &mut Vec<PageRun>,
    ) -> Found {
        let PageRun { file, page, pages: count } = left;
        let pages = &self.files[file].pages;
        let run = if whole.contains(&page) {
            pages.free_run(page, count.min(whole.end - page))
        } else if pages.is_present(page) {
            u64::from(pages.is_here(page))
        } else {
            self.request(file, page..page + 1, None, fetches);
            0
        };
        if run == 0 { Found::OnItsWay } else { Found::Cached { pages: run } }
    }

    /// The pages were written into. Returns how many were clean before.
    pub(crate) fn dirty(&mut self, run: PageRun) -> u64 {
        let Self { files, memory } = self;
        let pages = &mut files[run.file].pages;
        let dirtied = pages.dirty(run.range(), |extent| memory.enlist(run.file, extent));
        memory.hold(dirtied.absent, files);
        dirtied.clean
    }

    /// Whether the file has dirty pages.
    pub(crate) fn is_dirty(&self, file: usize) -> bool {
        self.files[file].pages.is_dirty()
    }

    /// Whether the page is being written.
    pub(crate) fn is_writing(&self, file: usize, page: u64) -> bool {
        self.files[file].pages.is_writing(page)
    }

    /// The first dirty page among those.
    pub(crate) fn first_dirty(&self, file: usize, pages: Range<u64>) -> Option<u64> {
        self.files[file].pages.first_dirty(pages)
    }

    /// Takes the first dirty pages among those, up to `most` in a row, to be written.
    fn take_dirty(&mut self, file: usize, pages: Range<u64>, most: u64) -> Option<PageRun> {
        let taken = self.files[file].pages.take_dirty(pages, most)?;
        Some(PageRun::new(file, taken))
    }

    /// The pages were written.
    pub(crate) fn written(&mut self, run: PageRun) {
        self.files[run.file].pages.written(run.range());
    }

    /// What was on its way has arrived.
    pub(crate) fn arrived(&mut self, fetched: PageRun) {
        self.files[fetched.file].pages.arrived(fetched.range());
    }

    /// Drops the pages of the file that nothing is under way for.
    pub(crate) fn forget(&mut self, file: usize) {
        let dropped = self.files[file].pages.forget();
        self.memory.forgot(file, dropped, &self.files);
    }

    /// How many pages are cached or on their way.
    #[cfg(test)]
    fn held(&self) -> u64 {
        self.memory.held()
    }

    /// Has those of the pages read that lie in the file and are not present; the one at `mark` is
    /// marked if it is among them.
    fn request(
        &mut self,
        file: usize,
        window: Range<u64>,
        mark: Option<u64>,
        fetches: &mut Vec<PageRun>,
    ) {
        let CachedFile { length, pages } = &mut self.files[file];
        let end = window.end.min(*length);
        let mut from = window.start;
        let mut added = 0;
        while from < end {
            let Some(missing) = pages.missing(from..end) else { break };
            from = missing.end;
            pages.request(missing.clone(), |extent| self.memory.enlist(file, extent));
            if let Some(mark) = mark.filter(|mark| missing.contains(mark)) {
                pages.mark(mark);
            }
            let run = PageRun::new(file, missing);
            added += run.pages;
            fetches.push(run);
        }
        self.memory.hold(added, &mut self.files);
    }
}

#[cfg(test)]
mod tests;
