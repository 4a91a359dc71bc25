//! What threads share: the page cache, its dirty pages, what is under way, and who waits for that.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use paternoster::{BioFlags, Instant, Nanos, Op, Sector, SectorCount};

use super::PageCacheParameters;
use super::buffered::Caller;
use super::flusher::{Service, Services};
use super::sinks::Sinks;
use crate::cache::{PAGE, PageCache, PageRun, Throttling, Writeback};
use crate::fio::Jobs;
use crate::journal::{CommitForm, Journal, flush};
use crate::sim::{Action, Io, TaskId};

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// How many writes of pages a task may have under way: `nr_requests` of Linux.
const WRITES: u32 = 128;

/// The names of I/Os that are no thread's own begin here; a thread's own are keys, and far below.
const NAMES: u64 = 1 << 63;

/// What a commit writes: a description and the metadata of a file, then the block that ends it.
const COMMIT: CommitForm = CommitForm { blocks: 2, waiter_blocks: 0, in_one: false, fua: true };

/// How long a writer that has written pages itself sleeps: HZ / 10.
const CONGESTION: Nanos = Nanos::from_millis(100);

/// What threads share.
#[derive(Debug)]
pub(super) struct System {
    pub(super) parameters: PageCacheParameters,
    pub(super) cache: PageCache,
    /// Of each flusher.
    pub(super) writebacks: Vec<Writeback>,
    pub(super) journal: Option<Journal>,
    /// Tasks that are to be asked again.
    pub(super) woken: Vec<TaskId>,
    /// Where the files of jobs go.
    pub(super) sinks: Sinks,
    services: Services,
    /// The sector behind the device's last one.
    device_end: Sector,
    /// Where each file starts on the device, and how long it is, in bytes.
    starts: Vec<u64>,
    lengths: Vec<u64>,
    /// The last name that was given to an I/O.
    last_name: u64,
    /// The I/Os of the page cache and the journal that are under way, by their names.
    under_way: HashMap<u64, Transfer>,
    /// The writes among them, by file and name.
    writes: Vec<BTreeMap<u64, PageRun>>,
    /// How many of them each task has.
    writes_of: BTreeMap<TaskId, u32>,
    /// Who waits for what, each task at most once.
    waiting: Vec<(TaskId, Awaited)>,
}

/// An I/O that is not a thread's own.
#[derive(Clone, Copy, Debug)]
enum Transfer {
    Read(PageRun),
    Write(TaskId, PageRun),
    Flush,
    Journal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// A page of a file.
    Page(usize, u64),
    /// The next write of a file that completes.
    Write(usize),
    Commit,
}

impl System {
    pub(super) fn new(jobs: &Jobs, page_cache: PageCacheParameters, services: Services) -> Self {
        let lengths: Vec<_> = jobs.files.iter().map(|file| file.bytes).collect();
        let memory = page_cache.memory_bytes / PAGE;
        let count = u64::try_from(services.flushers()).expect("a length fits").max(1);
        let limits = page_cache.writeback.limits(memory / count);
        let writeback = |_| Writeback::new(page_cache.writeback, limits);
        let journal = page_cache.journal.filter(|_| services.has_journal());
        Self {
            parameters: page_cache,
            cache: PageCache::new(memory, lengths.iter().copied()),
            writebacks: (0..services.flushers()).map(writeback).collect(),
            journal: journal.map(|place| Journal::new(place, COMMIT)),
            woken: Vec::new(),
            sinks: Sinks::default(),
            services,
            device_end: Sector(u64::MAX),
            starts: jobs.files.iter().map(|file| file.start).collect(),
            lengths,
            last_name: NAMES,
            under_way: HashMap::new(),
            writes: vec![BTreeMap::new(); jobs.files.len()],
            writes_of: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    /// Nothing is read or written from that sector on: it is the end of the device.
    pub(super) fn ends_at(&mut self, device_end: Sector) {
        self.device_end = device_end;
    }

    pub(super) fn service_names(&self) -> Vec<(&'static str, Option<usize>)> {
        self.services.names()
    }

    /// The service that is that task; none where it is a thread.
    pub(super) fn service(&self, task: TaskId) -> Option<Service> {
        self.services.of(task)
    }

    /// A name that no other I/O has: the next one.
    pub(super) fn name(&mut self) -> u64 {
        self.last_name += 1;
        self.last_name
    }

    pub(super) fn last_name(&self) -> u64 {
        self.last_name
    }

    /// Where a byte of a file lies on the device.
    pub(super) fn byte(&self, file: usize, offset: u64) -> u64 {
        self.starts[file] + offset
    }

    pub(super) fn file_bytes(&self, file: usize) -> u64 {
        self.lengths[file]
    }

    /// The I/O that reads the pages.
    pub(super) fn fetch(&mut self, run: PageRun) -> Io {
        let name = self.name();
        self.under_way.insert(name, Transfer::Read(run));
        self.io(name, Op::Read, BioFlags::empty(), run)
    }

    /// The I/O by which that task writes the pages.
    pub(super) fn write(&mut self, task: TaskId, run: PageRun, flags: BioFlags) -> Io {
        let name = self.name();
        self.under_way.insert(name, Transfer::Write(task, run));
        self.writes[run.file].insert(name, run);
        *self.writes_of.entry(task).or_default() += 1;
        self.io(name, Op::Write, flags, run)
    }

    /// An I/O that has the device make durable what it has completed.
    pub(super) fn flush(&mut self) -> Io {
        let name = self.name();
        self.under_way.insert(name, Transfer::Flush);
        Io { name, ..flush() }
    }

    /// What the task of the journal does next.
    pub(super) fn journal_on(&mut self) -> Action {
        let Some(journal) = &mut self.journal else { return Action::Wait };
        let (is_committed, io) = journal.step();
        if is_committed {
            self.wake(|awaited| awaited == Awaited::Commit);
        }
        let Some(io) = io else { return Action::Wait };
        let name = self.name();
        self.under_way.insert(name, Transfer::Journal);
        Action::Submit(Io { name, ..io })
    }

    /// The I/O of the pages, as far as they lie on the device.
    fn io(&self, name: u64, op: Op, flags: BioFlags, run: PageRun) -> Io {
        let sector = Sector(self.byte(run.file, run.page * PAGE) / SECTOR);
        // The last page of a file is whole, unless the device ends in it.
        let left = self.device_end.0.saturating_sub(sector.0);
        let sectors = left.min(run.pages * PAGE / SECTOR);
        let sectors = u32::try_from(sectors).expect("a run is short");
        Io { name, op, flags, sector, sectors: SectorCount(sectors), io_prio: None }
    }

    pub(super) fn is_under_way(&self, name: u64) -> bool {
        self.under_way.contains_key(&name)
    }

    /// Whether the task may have one more write of pages under way. It is asked again when one
    /// completes.
    pub(super) fn has_room(&self, task: TaskId) -> bool {
        self.writes_of.get(&task).is_none_or(|&writes| writes < WRITES)
    }

    /// Whether a write of those pages is under way whose name is not above `last`.
    pub(super) fn has_writes(&self, file: usize, pages: &Range<u64>, last: u64) -> bool {
        let mut writes = self.writes[file].range(..=last);
        writes.any(|(_, run)| run.page < pages.end && pages.start < run.page + run.pages)
    }

    pub(super) fn await_page(&mut self, task: TaskId, file: usize, page: u64) {
        self.wait_for(task, Awaited::Page(file, page));
    }

    pub(super) fn await_writes(&mut self, task: TaskId, file: usize) {
        self.wait_for(task, Awaited::Write(file));
    }

    pub(super) fn await_commit(&mut self, task: TaskId) {
        self.wait_for(task, Awaited::Commit);
    }

    fn wait_for(&mut self, task: TaskId, awaited: Awaited) {
        self.waiting.retain(|(other, _)| *other != task);
        self.waiting.push((task, awaited));
    }

    fn wake(&mut self, has_come: impl Fn(Awaited) -> bool) {
        let Self { waiting, woken, .. } = self;
        waiting.retain(|&(task, awaited)| {
            let wakes = has_come(awaited);
            if wakes {
                woken.push(task);
            }
            !wakes
        });
    }

    /// The I/O of that name has completed. Returns whether it was not a thread's own.
    pub(super) fn completed(&mut self, name: u64) -> bool {
        if name < NAMES {
            return false;
        }
        match self.under_way.remove(&name).expect("an I/O that completes was submitted") {
            Transfer::Read(run) => {
                self.cache.arrived(run);
                self.wake(|awaited| is_page_of(awaited, run));
            }
            Transfer::Write(task, run) => {
                self.writes[run.file].remove(&name);
                *self.writes_of.get_mut(&task).expect("it has writes") -= 1;
                self.cache.written(run);
                self.writebacks[self.services.flusher_of(run.file)].written(run);
                self.wake(|awaited| {
                    awaited == Awaited::Write(run.file) || is_page_of(awaited, run)
                });
            }
            Transfer::Flush => {}
            Transfer::Journal => {
                self.journal.as_mut().expect("it has submitted").completed();
            }
        }
        true
    }

    /// The pages were written into. Returns how many were clean before.
    pub(super) fn dirty(&mut self, now: Instant, run: PageRun) -> u64 {
        let pages = self.cache.dirty(run);
        if pages > 0 {
            let flusher = self.services.flusher_of(run.file);
            if !self.is_dirty() {
                self.woken.push(self.services.timer());
            }
            self.writebacks[flusher].dirtied(now, run.file, pages);
            if self.writebacks[flusher].is_above_background() {
                self.woken.push(self.services.flusher(flusher));
            }
        }
        pages
    }

    /// The flushers look for files that were dirty for too long.
    pub(super) fn look(&mut self, now: Instant) {
        for (index, writeback) in self.writebacks.iter_mut().enumerate() {
            writeback.look(now);
            self.woken.push(self.services.flusher(index));
        }
    }

    /// Whether anything is dirty.
    pub(super) fn is_dirty(&self) -> bool {
        self.writebacks.iter().any(Writeback::is_dirty)
    }

    /// The page cache forgets what is clean of the file, and writes what is dirty.
    pub(super) fn invalidate(&mut self, file: usize) {
        self.cache.forget(file);
        if self.cache.is_dirty(file) {
            let flusher = self.services.flusher_of(file);
            self.writebacks[flusher].write_now(file);
            self.woken.push(self.services.flusher(flusher));
        }
    }

    /// The first dirty pages among those of the file, for a sync.
    pub(super) fn take_for_sync(&mut self, file: usize, pages: Range<u64>) -> Option<PageRun> {
        let writeback = &mut self.writebacks[self.services.flusher_of(file)];
        writeback.take_for_sync(file, pages, &mut self.cache)
    }

    /// What a task that has written into a file has to do before it goes on.
    pub(super) fn hold_back(
        &mut self,
        now: Instant,
        caller: &mut Caller<'_>,
        file: usize,
    ) -> Option<Action> {
        let Caller { task, ref mut writer, .. } = *caller;
        if writer.owes.is_none() && writer.unseen < writer.allowance {
            return None;
        }
        let flusher = self.services.flusher_of(file);
        let writeback = &mut self.writebacks[flusher];
        let level = writeback.level();
        if self.parameters.throttling == Throttling::Sleeps {
            let pause = writeback.throttle().pause(now, task.0, writer, level);
            return (pause > Nanos::ZERO).then(|| Action::Sleep(now + pause));
        }
        if writer.owes.is_none() {
            let memory = self.parameters.memory_bytes / PAGE;
            writer.owes = writeback.throttle().owed(writer, level, memory);
        }
        let owed = writer.owes?;
        if owed > 0 && !self.has_room(task) {
            return Some(Action::Wait);
        }
        let run = (owed > 0).then(|| self.next_write(now, flusher)).flatten();
        writer.owes = run.map(|run| owed.saturating_sub(run.pages));
        Some(match run {
            Some(run) => Action::Submit(self.write(task, run, BioFlags::empty())),
            None => Action::Sleep(now + CONGESTION),
        })
    }

    /// The pages that the flusher would write next.
    pub(super) fn next_write(&mut self, now: Instant, flusher: usize) -> Option<PageRun> {
        self.writebacks[flusher].next(now, &mut self.cache)
    }

    /// Has the journal commit what was done. Returns the number of the commit; none where there is
    /// no journal.
    pub(super) fn ask_for_commit(&mut self) -> Option<u64> {
        let number = self.journal.as_mut()?.ask();
        self.woken.push(self.services.journal());
        Some(number)
    }

    pub(super) fn has_committed(&self, number: u64) -> bool {
        self.journal.as_ref().is_none_or(|journal| journal.has_committed(number))
    }
}

fn is_page_of(awaited: Awaited, run: PageRun) -> bool {
    matches!(awaited, Awaited::Page(file, page) if run.has(file, page))
}
