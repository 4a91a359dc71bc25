//! The page cache, as far as readers see it: pages that are cached, and windows on their way.
//!
//! ```text
//!   read ──▶ page cached ───────────────▶ copied
//!            page with the mark ────────▶ the next window is submitted, and the page copied
//!            page not cached ───────────▶ a window is submitted, and its arrival awaited
//! ```
//!
//! So a sequential reader waits for one window and has the next one on its way.

mod readahead;

use std::collections::BTreeSet;

use rangemap::RangeSet;
use readahead::{Pages, Readahead, Window};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Pages that are to be read from the device, in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The first page of the file.
    pub page: u64,
    /// How many pages.
    pub pages: u64,
}

/// What a reader finds at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is cached.
    Cached,
    /// It is on its way.
    OnItsWay,
}

/// A file as one reader has it open: what of it is cached, and what is read ahead.
#[derive(Debug)]
pub struct CachedFile {
    /// Its length in pages.
    pages: u64,
    cached: RangeSet<u64>,
    /// Pages that are cached or on their way.
    requested: RangeSet<u64>,
    marks: BTreeSet<u64>,
    readahead: Readahead,
}

impl CachedFile {
    /// A file of so many pages, of which nothing is cached, with the greatest window in pages.
    pub fn new(pages: u64, window: u64) -> Self {
        Self {
            pages,
            cached: RangeSet::new(),
            requested: RangeSet::new(),
            marks: BTreeSet::new(),
            readahead: Readahead::new(window),
        }
    }

    /// The reader comes to `page`, and wants it and those behind it, `wanted` in all. Returns what
    /// it finds there, and what is to be read from the device because of it.
    pub fn touch(&mut self, page: u64, wanted: u64) -> (Found, Option<Fetch>) {
        let window = if !self.requested.contains(&page) {
            let before = page.checked_sub(1).and_then(|before| self.requested.get(&before));
            let cached_before = before.map_or(0, |range| page - range.start);
            Some(self.readahead.miss(page, wanted, cached_before))
        } else if self.marks.remove(&page) {
            let hole = self.requested.get(&page).map_or(page, |range| range.end);
            self.readahead.marked(page, hole)
        } else {
            None
        };
        let fetch = window.and_then(|window| self.request(window));
        let found = if self.cached.contains(&page) { Found::Cached } else { Found::OnItsWay };
        (found, fetch)
    }

    /// A read has ended with this page.
    pub fn has_read(&mut self, page: u64) {
        self.readahead.has_read(page);
    }

    /// What was on its way has arrived.
    pub fn arrived(&mut self, fetch: Fetch) {
        self.cached.insert(fetch.page..fetch.page + fetch.pages);
    }

    /// The part of the window that lies in the file.
    fn request(&mut self, window: Window) -> Option<Fetch> {
        let Window { pages: Pages { start, .. }, mark } = window;
        let end = window.pages.end().min(self.pages);
        if start >= end {
            return None;
        }
        self.requested.insert(start..end);
        self.marks.extend(mark.filter(|mark| (start..end).contains(mark)));
        Some(Fetch { page: start, pages: end - start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The windows in KiB, each with the page at which it is submitted, of a reader that reads the
    /// file from its start, so many pages at a time. What is submitted arrives at once.
    fn windows(read_pages: u64, count: usize) -> Vec<(u64, u64)> {
        let mut file = CachedFile::new(1 << 20, 32);
        let mut windows = Vec::new();
        let mut first = 0;
        while windows.len() < count {
            for page in first..first + read_pages {
                let (_, fetch) = file.touch(page, first + read_pages - page);
                if let Some(fetch) = fetch {
                    windows.push((fetch.pages * PAGE / 1024, page));
                    file.arrived(fetch);
                }
            }
            first += read_pages;
            file.has_read(first - 1);
        }
        windows
    }

    /// The sequences that Linux submits (measured).
    #[test]
    fn sequential_reader_has_windows_that_grow_to_the_greatest() {
        let by_page = [(16, 0), (32, 1), (64, 4), (128, 12), (128, 28), (128, 60)];
        assert_eq!(windows(1, 6), by_page);
        assert_eq!(windows(8, 4), [(64, 0), (128, 8), (128, 16), (128, 48)]);
        let by_window = windows(32, 4);
        assert_eq!(by_window[0], (128, 0));
        assert!(by_window.iter().all(|(kib, _)| *kib == 128));
    }

    /// Four reads of 32 KiB far apart: each is fetched as it is asked for.
    #[test]
    fn random_reader_gets_what_it_asks_for() {
        let mut file = CachedFile::new(1 << 20, 32);
        for page in [4000, 800, 90_000, 123] {
            let (found, fetch) = file.touch(page, 8);
            assert_eq!((found, fetch), (Found::OnItsWay, Some(Fetch { page, pages: 8 })));
            for page in page..page + 8 {
                assert_eq!(file.touch(page, 1).1, None);
            }
            file.has_read(page + 7);
        }
    }

    /// A file of 10 pages, read by pages: 4, then 6 of the 8 that would follow.
    #[test]
    fn windows_end_with_the_file() {
        let mut file = CachedFile::new(10, 32);
        assert_eq!(file.touch(0, 1).1, Some(Fetch { page: 0, pages: 4 }));
        assert_eq!(file.touch(1, 1).1, Some(Fetch { page: 4, pages: 6 }));
        for page in 2..10 {
            assert_eq!(file.touch(page, 1).1, None, "page {page}");
        }
    }

    #[test]
    fn page_is_on_its_way_until_it_arrives() {
        let mut file = CachedFile::new(100, 32);
        let (found, fetch) = file.touch(0, 1);
        assert_eq!(found, Found::OnItsWay);
        file.arrived(fetch.expect("nothing was cached"));
        assert_eq!(file.touch(0, 1).0, Found::Cached);
    }
}
