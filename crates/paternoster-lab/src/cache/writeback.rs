//! Which dirty pages are written to the device, and when.
//!
//! ```text
//!   dirty pages   0 ─────── background ─────────── limit     parts of the memory
//!                              10 %                 20 %
//!                 after 30 s   at once              and who writes is held back (throttle.rs)
//! ```
//!
//! Files take turns of so many pages, in the order in which they became dirty. A turn goes on where
//! the last one in the file ended, in the order of its pages, and begins again at its start: so
//! writes that came at random leave in order.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use paternoster::{Instant, Nanos};

use super::throttle::Throttle;
use super::{PageCache, PageRun};

/// The greatest write, in pages.
const WRITE_PAGES: u64 = 256;

/// When dirty pages are written: the settings of Linux below `/proc/sys/vm`, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WritebackRules {
    /// `dirty_background_ratio`, in percent of the memory.
    pub background_percent: u64,
    /// `dirty_ratio`, in percent of the memory.
    pub limit_percent: u64,
    /// `dirty_expire_centisecs`: a file is written after it was dirty for so long.
    pub expire: Nanos,
    /// `dirty_writeback_centisecs`: how often that is looked at.
    pub wake_up: Nanos,
    /// How many pages of a file are written before it is another one's turn.
    pub turn_pages: u64,
}

impl Default for WritebackRules {
    fn default() -> Self {
        Self {
            background_percent: 10,
            limit_percent: 20,
            expire: Nanos::from_secs(30),
            wake_up: Nanos::from_secs(5),
            turn_pages: 1024,
        }
    }
}

/// Bounds of dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Above it, dirty pages are written at once.
    pub(crate) background: u64,
    /// Above it, counting those that are being written, who writes is held back.
    pub(crate) limit: u64,
}

impl WritebackRules {
    /// The bounds in a memory of so many pages. As in Linux, a background that is not below the
    /// limit is half of it.
    pub(crate) fn limits(&self, memory: u64) -> Limits {
        let limit = memory * self.limit_percent / 100;
        let background = memory * self.background_percent / 100;
        Limits { background: if background < limit { background } else { limit / 2 }, limit }
    }
}

/// The dirty pages of some files.
#[derive(Debug)]
pub(crate) struct Writeback {
    rules: WritebackRules,
    limits: Limits,
    /// Pages that are dirty, and pages that are being written.
    dirty: u64,
    writing: u64,
    /// Files that were dirty.
    files: BTreeMap<usize, DirtyFile>,
    /// Those that are, but for the one whose turn it is, in the order of their turns.
    order: VecDeque<usize>,
    turn: Option<Turn>,
    throttle: Throttle,
}

/// A file that was dirty.
#[derive(Clone, Copy, Debug, Default)]
struct DirtyFile {
    /// Since when it is dirty.
    since: Option<Instant>,
    /// It is to be written whatever the limits are.
    is_due: bool,
    /// The page at which its next turn begins.
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    file: usize,
    /// How many pages of it are left.
    left: u64,
}

impl Writeback {
    /// Nothing is dirty yet.
    pub(crate) fn new(rules: WritebackRules, limits: Limits) -> Self {
        Self {
            rules,
            limits,
            dirty: 0,
            writing: 0,
            files: BTreeMap::new(),
            order: VecDeque::new(),
            turn: None,
            throttle: Throttle::new(limits),
        }
    }

    /// So many pages of the file have become dirty.
    pub(crate) fn dirtied(&mut self, now: Instant, file: usize, pages: u64) {
        self.dirty += pages;
        let state = self.files.entry(file).or_default();
        if state.since.is_none() {
            state.since = Some(now);
            self.order.push_back(file);
        }
    }

    /// Whether anything is dirty.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty > 0
    }

    /// Whether so much is dirty that it is to be written at once.
    pub(crate) fn is_above_background(&self) -> bool {
        self.dirty > self.limits.background
    }

    /// How many pages are dirty or being written.
    pub(crate) fn level(&self) -> u64 {
        self.dirty + self.writing
    }

    /// Has files written that were dirty for too long.
    pub(crate) fn look(&mut self, now: Instant) {
        let expire = self.rules.expire;
        for file in self.files.values_mut() {
            file.is_due |= file.since.is_some_and(|since| now.saturating_since(since) >= expire);
        }
    }

    /// Has a file written now.
    pub(crate) fn write_now(&mut self, file: usize) {
        if let Some(file) = self.files.get_mut(&file) {
            file.is_due |= file.since.is_some();
        }
    }

    /// Takes the pages that are to be written next, if there are any.
    pub(crate) fn next(&mut self, now: Instant, cache: &mut PageCache) -> Option<PageRun> {
        // Once around: a file that is being written and dirty again may have nothing to take.
        for _ in 0..self.order.len() + 2 {
            let turn = self.turn.filter(|turn| turn.left > 0);
            let turn = turn.or_else(|| self.begin_turn(cache))?;
            self.turn = Some(turn);
            let most = turn.left.min(WRITE_PAGES);
            let from = self.files[&turn.file].next;
            let run = cache
                .take_dirty(turn.file, from..u64::MAX, most)
                .or_else(|| cache.take_dirty(turn.file, 0..from, most));
            let Some(run) = run else {
                self.end_pass(now, turn.file, cache);
                continue;
            };
            self.turn = Some(Turn { left: turn.left - run.pages, ..turn });
            self.taken(run, cache);
            return Some(run);
        }
        None
    }

    /// A sync takes dirty pages of the file itself: the first of those pages, if there are any.
    pub(crate) fn take_for_sync(
        &mut self,
        file: usize,
        pages: Range<u64>,
        cache: &mut PageCache,
    ) -> Option<PageRun> {
        let run = cache.take_dirty(file, pages, WRITE_PAGES)?;
        self.taken(run, cache);
        Some(run)
    }

    /// The pages were written.
    pub(crate) fn written(&mut self, run: PageRun) {
        self.writing -= run.pages;
        self.throttle.written(run.pages);
    }

    /// What holds back who writes.
    pub(crate) fn throttle(&mut self) -> &mut Throttle {
        &mut self.throttle
    }

    fn taken(&mut self, run: PageRun, cache: &PageCache) {
        self.dirty -= run.pages;
        self.writing += run.pages;
        let file = self.files.get_mut(&run.file).expect("what is taken was dirty");
        file.next = run.page + run.pages;
        if !cache.is_dirty(run.file) {
            *file = DirtyFile { next: file.next, ..DirtyFile::default() };
            self.order.retain(|other| *other != run.file);
            self.turn = self.turn.filter(|turn| turn.file != run.file);
        }
    }

    /// Ends the last turn, and begins that of the next file that is to be written.
    fn begin_turn(&mut self, cache: &PageCache) -> Option<Turn> {
        if let Some(Turn { file, .. }) = self.turn.take() {
            self.enlist(file, cache);
        }
        let is_above = self.is_above_background();
        let at = self.order.iter().position(|file| is_above || self.files[file].is_due)?;
        let file = self.order.remove(at)?;
        Some(Turn { file, left: self.rules.turn_pages })
    }

    /// All that could be taken of the file whose turn it is was taken. What became dirty again
    /// meanwhile counts from now on.
    fn end_pass(&mut self, now: Instant, file: usize, cache: &PageCache) {
        self.turn = None;
        let state = self.files.get_mut(&file).expect("its turn is of a file that was dirty");
        state.is_due = false;
        state.since = cache.is_dirty(file).then_some(now);
        self.enlist(file, cache);
    }

    /// The file gets another turn if it is dirty.
    fn enlist(&mut self, file: usize, cache: &PageCache) {
        if cache.is_dirty(file) && !self.order.contains(&file) {
            self.order.push_back(file);
        }
    }
}
