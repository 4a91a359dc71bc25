//! Decides what is read ahead of a reader, as Linux does for each open file.
//!
//! A window of pages is read at a time. One of its pages carries a mark: when the reader comes to
//! it, the next window is submitted, while the rest of this one is still to be read.
//!
//! ```text
//!   reads of one page     ├─ 4 ─┤├── 8 ──┤├──── 16 ────┤├──────── 32 ────────┤ …
//!                          m     m        m             m
//! ```
//!
//! A sequential reader begins with a small window, which grows up to the greatest. A reader that
//! jumps about gets what it asks for and no more.

use std::ops::Range;

/// Pages of a file, in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pages {
    /// The first one.
    pub(super) start: u64,
    /// How many.
    pub(super) count: u64,
}

impl Pages {
    /// The page behind the last one.
    fn end(self) -> u64 {
        self.start + self.count
    }

    pub(super) fn range(self) -> Range<u64> {
        self.start..self.end()
    }
}

/// What is to be read, and where the mark is that has the next window read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) pages: Pages,
    /// The page with the mark; what is read for a reader that jumps about has none.
    pub(super) mark: Option<u64>,
}

/// The readahead state of an open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readahead {
    /// The greatest window, in pages.
    max: u64,
    /// The last window.
    last: Pages,
    /// How many pages of it are to be left when the next one is submitted.
    ahead: u64,
    /// The last page that was read before this read.
    previous: Option<u64>,
    /// Whether a page that is not cached is read with those around it.
    reads_around: bool,
}

impl Readahead {
    /// A file that was just opened; `max` is `read_ahead_kb` in pages. With 0 nothing is read
    /// ahead.
    pub(crate) fn new(max: u64) -> Self {
        let last = Pages { start: 0, count: 0 };
        Self { max, last, ahead: 0, previous: None, reads_around: false }
    }

    /// A mapping of a file of whose order nothing was said.
    pub(crate) fn of_mapping(max: u64) -> Self {
        Self { reads_around: true, ..Self::new(max) }
    }

    /// The greatest window.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// The reader has read up to this page.
    pub(crate) fn has_read(&mut self, page: u64) {
        self.previous = Some(page);
    }

    /// `page` is not cached, and the reader wants it and those behind it, `wanted` in all. So many
    /// pages right before it are cached.
    pub(super) fn miss(&mut self, page: u64, wanted: u64, cached_before: u64) -> Window {
        let exactly = Window { pages: Pages { start: page, count: wanted }, mark: None };
        if self.max == 0 {
            return exactly;
        }
        if self.reads_around {
            let start = page.saturating_sub(self.max / 2);
            return self.set(Pages { start, count: self.max }, self.max / 4);
        }
        if page > 0 && self.expects(page) {
            return self.next_window();
        }
        let is_next = self.previous.is_some_and(|previous| page.wrapping_sub(previous) <= 1);
        // What is cached before the page looks like the trace of a reader that came along here.
        let has_trace = cached_before > 0 && cached_before >= wanted;
        if page == 0 || is_next || wanted > self.max || has_trace {
            return self.first_window(page, wanted);
        }
        exactly
    }

    /// The reader has come to `page`, which has a mark. `hole` is the first page behind it that is
    /// neither cached nor on its way.
    pub(super) fn marked(&mut self, page: u64, hole: u64) -> Option<Window> {
        if self.expects(page) {
            return Some(self.next_window());
        }
        // Another reader's mark: this one goes on behind what is cached.
        let ahead = hole - page;
        if ahead > self.max {
            return None;
        }
        let count = self.grown(ahead);
        Some(self.set(Pages { start: hole, count }, count))
    }

    /// Whether the page is where the next window is due, or right behind the last one.
    fn expects(&self, page: u64) -> bool {
        let end = self.last.end();
        self.last.count > 0 && (page == end - self.ahead || page == end)
    }

    fn next_window(&mut self) -> Window {
        let count = self.grown(self.last.count);
        self.set(Pages { start: self.last.end(), count }, count)
    }

    fn first_window(&mut self, page: u64, wanted: u64) -> Window {
        let count = self.initial(wanted);
        let ahead = if count > wanted { count - wanted } else { count };
        self.set(Pages { start: page, count }, ahead)
    }

    fn set(&mut self, pages: Pages, ahead: u64) -> Window {
        self.last = pages;
        self.ahead = ahead;
        Window { pages, mark: Some(pages.end() - ahead) }
    }

    /// The first window of a reader that asks for so many pages.
    fn initial(&self, wanted: u64) -> u64 {
        let count = wanted.next_power_of_two();
        if count <= self.max / 32 {
            4 * count
        } else if count <= self.max / 4 {
            2 * count
        } else {
            self.max
        }
    }

    /// The window after one of so many pages.
    fn grown(&self, count: u64) -> u64 {
        let factor = if count < self.max / 16 { 4 } else { 2 };
        (factor * count).min(self.max)
    }
}
