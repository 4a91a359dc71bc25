//! The page cache and its readahead, against sequences that Linux was seen to submit and what
//! follows from the rules.

use paternoster::Instant;

use super::writeback::Limits;
use super::*;

/// One reader of a file.
struct Reader {
    cache: PageCache,
    readahead: Readahead,
}

impl Reader {
    fn new(file_pages: u64) -> Self {
        let cache = PageCache::new(1 << 20, [file_pages * PAGE]);
        Self { cache, readahead: Readahead::new(32) }
    }

    fn touch(&mut self, page: u64, wanted: u64) -> (Found, Vec<PageRun>) {
        let mut fetches = Vec::new();
        let wanted = PageRun { file: 0, page, pages: wanted };
        let found = self.cache.touch(&mut self.readahead, wanted, &mut fetches);
        (found, fetches)
    }
}

fn run(page: u64, pages: u64) -> PageRun {
    PageRun { file: 0, page, pages }
}

/// The windows in KiB, each with the page at which it is submitted, of a reader that reads the
/// file from its start, so many pages at a time. What is submitted arrives at once.
fn windows(read_pages: u64, count: usize) -> Vec<(u64, u64)> {
    let mut reader = Reader::new(1 << 20);
    let mut windows = Vec::new();
    let mut first = 0;
    while windows.len() < count {
        for page in first..first + read_pages {
            let (_, fetches) = reader.touch(page, first + read_pages - page);
            for fetch in fetches {
                windows.push((fetch.pages * PAGE / 1024, page));
                reader.cache.arrived(fetch);
            }
        }
        first += read_pages;
        reader.readahead.has_read(first - 1);
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
    let mut reader = Reader::new(1 << 20);
    for page in [4000, 800, 90_000, 123] {
        assert_eq!(reader.touch(page, 8), (Found::OnItsWay, vec![run(page, 8)]));
        for page in page..page + 8 {
            assert_eq!(reader.touch(page, 1).1, []);
        }
        reader.readahead.has_read(page + 7);
    }
}

/// A file of 10 pages, read by pages: 4, then 6 of the 8 that would follow.
#[test]
fn windows_end_with_the_file() {
    let mut reader = Reader::new(10);
    assert_eq!(reader.touch(0, 1).1, [run(0, 4)]);
    assert_eq!(reader.touch(1, 1).1, [run(4, 6)]);
    for page in 2..10 {
        assert_eq!(reader.touch(page, 1).1, [], "page {page}");
    }
}

#[test]
fn page_is_on_its_way_until_it_arrives() {
    let mut reader = Reader::new(100);
    let (found, fetches) = reader.touch(0, 1);
    assert_eq!(found, Found::OnItsWay);
    reader.cache.arrived(fetches[0]);
    assert_eq!(reader.touch(0, 1).0, Found::Cached { pages: 1 });
}

/// Of the window 0..4 the page with the mark is 1: a reader that wants four may copy one, and then
/// has the next window read.
#[test]
fn run_of_cached_pages_ends_before_the_mark() {
    let mut reader = Reader::new(100);
    let (_, fetches) = reader.touch(0, 1);
    reader.cache.arrived(fetches[0]);
    assert_eq!(reader.touch(0, 4), (Found::Cached { pages: 1 }, vec![]));
    assert_eq!(reader.touch(1, 3), (Found::Cached { pages: 3 }, vec![run(4, 8)]));
}

/// Pages 8 to 15 are cached; the first window of a reader of 128 KiB is 0 to 31.
#[test]
fn window_leaves_out_what_is_cached() {
    let mut reader = Reader::new(100);
    let (_, fetches) = reader.touch(8, 8);
    assert_eq!(fetches, [run(8, 8)]);
    assert_eq!(reader.touch(0, 32).1, [run(0, 8), run(16, 16)]);
}

/// Room for 256 pages, which are four extents: of eight that are read in order by reads of an
/// extent, the last four are left.
#[test]
fn what_was_used_long_ago_makes_room() {
    let mut cache = PageCache::new(256, [1 << 30]);
    let mut readahead = Readahead::new(0);
    let mut read = |cache: &mut PageCache, page| {
        let mut fetches = Vec::new();
        let wanted = PageRun { file: 0, page, pages: 64 };
        let found = cache.touch(&mut readahead, wanted, &mut fetches);
        for fetch in fetches {
            cache.arrived(fetch);
        }
        found
    };
    for extent in 0..8 {
        assert_eq!(read(&mut cache, 64 * extent), Found::OnItsWay);
        assert!(cache.held() <= 256);
    }
    for extent in 4..8 {
        assert_eq!(read(&mut cache, 64 * extent), Found::Cached { pages: 64 });
    }
    assert_eq!(read(&mut cache, 0), Found::OnItsWay);
}

#[test]
fn forgotten_file_is_read_again_but_for_what_is_on_its_way() {
    let mut reader = Reader::new(1 << 20);
    let (_, fetches) = reader.touch(1000, 8);
    reader.cache.arrived(fetches[0]);
    assert_eq!(reader.touch(2000, 8).1, [run(2000, 8)]);
    reader.cache.forget(0);
    assert_eq!(reader.cache.held(), 8);
    assert_eq!(reader.touch(1000, 8).1, [run(1000, 8)]);
    assert_eq!(reader.touch(2000, 8), (Found::OnItsWay, vec![]));
}

const LIMITS: Limits = Limits { background: 1000, limit: 4000 };

/// Dirty pages of files of 1 GiB.
struct Dirty {
    cache: PageCache,
    writeback: Writeback,
}

impl Dirty {
    fn new(room: u64, runs: &[PageRun]) -> Self {
        let writeback = Writeback::new(WritebackRules::default(), LIMITS);
        let mut dirty = Self { cache: PageCache::new(room, [1 << 30; 2]), writeback };
        for &run in runs {
            dirty.write(run);
        }
        dirty
    }

    fn write(&mut self, run: PageRun) {
        let pages = self.cache.dirty(run);
        self.writeback.dirtied(Instant::START, run.file, pages);
    }

    fn next(&mut self) -> Option<PageRun> {
        self.writeback.next(Instant::START, &mut self.cache)
    }

    fn written(&mut self, run: PageRun) {
        self.cache.written(run);
        self.writeback.written(run);
    }
}

/// 3000 pages of each file: four writes of 256 pages are a turn. The flusher stops when no more
/// than 1000 are dirty and the turn is over, which is at 2 × 3000 - 5 × 1024.
#[test]
fn files_take_turns_of_1024_pages() {
    let both = [0, 1].map(|file| PageRun { file, page: 100, pages: 3000 });
    let mut dirty = Dirty::new(1 << 20, &both);
    let runs: Vec<_> = std::iter::from_fn(|| dirty.next()).collect();
    let turns: Vec<_> = runs.chunks(4).map(|turn| (turn[0].file, turn[0].page)).collect();
    assert_eq!(turns, [(0, 100), (1, 100), (0, 1124), (1, 1124), (0, 2148)]);
    assert_eq!(runs.iter().map(|run| run.pages).sum::<u64>(), 4 * 1024 + 952);
}

#[test]
fn pages_that_came_at_random_leave_in_order_and_together() {
    let pages = [50, 10, 30, 31, 11, 70].map(|page| run(page, 1));
    let mut dirty = Dirty::new(1 << 20, &pages);
    assert_eq!(dirty.next(), None, "six pages are below the limit");
    dirty.writeback.write_now(0);
    let runs: Vec<_> = std::iter::from_fn(|| dirty.next()).collect();
    assert_eq!(runs, [run(10, 2), run(30, 2), run(50, 1), run(70, 1)]);
}

/// A page that is written into while it is being written is written once more, afterwards.
#[test]
fn page_that_is_being_written_may_become_dirty_again() {
    let mut dirty = Dirty::new(1 << 20, &[run(7, 1)]);
    dirty.writeback.write_now(0);
    let first = dirty.next().expect("it is to be written");
    dirty.write(run(7, 1));
    dirty.writeback.write_now(0);
    assert_eq!(dirty.next(), None);
    dirty.written(first);
    dirty.writeback.write_now(0);
    assert_eq!(dirty.next(), Some(run(7, 1)));
}

/// What a sync has taken needs no turn; what becomes dirty then is not due.
#[test]
fn file_that_was_synced_is_not_written_again() {
    let mut dirty = Dirty::new(1 << 20, &[run(0, 600)]);
    dirty.writeback.write_now(0);
    assert_eq!(dirty.next(), Some(run(0, 256)));
    for pages in [256, 88] {
        let taken = dirty.writeback.take_for_sync(0, 0..u64::MAX, &mut dirty.cache);
        assert_eq!(taken.map(|run| run.pages), Some(pages));
    }
    assert!(!dirty.writeback.is_dirty());
    dirty.write(run(900, 1));
    assert_eq!(dirty.next(), None);
}

/// 200,000 pages all over a file of 262,144, written a few at a time, in a memory of 4096.
#[test]
fn memory_is_bounded_in_a_long_run() {
    let mut dirty = Dirty::new(4096, &[]);
    for number in 0..200_000 {
        dirty.write(run(number * 7919 % 262_144, 1));
        assert!(dirty.cache.held() <= 4096, "after {number} writes");
        while let Some(run) = dirty.next() {
            dirty.written(run);
        }
    }
}

#[test]
fn background_is_below_the_limit() {
    let limits = |background_percent, limit_percent| {
        let rules = WritebackRules { background_percent, limit_percent, ..Default::default() };
        let Limits { background, limit } = rules.limits(1000);
        (background, limit)
    };
    assert_eq!(limits(10, 20), (100, 200));
    assert_eq!(limits(15, 20), (150, 200));
    assert_eq!(limits(30, 20), (100, 200));
}
