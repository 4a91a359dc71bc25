//! What threads share: the page cache, what of it is on its way, and who waits for that.

use std::collections::HashMap;

use paternoster::{BioFlags, Op, Sector, SectorCount};

use super::Host;
use crate::cache::{PAGE, PageCache, PageRun};
use crate::fio::Jobs;
use crate::sim::{Io, Moment, TaskId};

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// What threads share.
#[derive(Debug)]
pub(super) struct System {
    pub(super) host: Host,
    pub(super) cache: PageCache,
    /// Where each file starts on the device, in bytes.
    starts: Vec<u64>,
    /// Names given to I/Os so far.
    names: u64,
    /// The I/Os of the page cache that are under way, by their names.
    transfers: HashMap<u64, PageRun>,
    /// Tasks that wait for a page of a file, each at most once.
    waiting: Vec<(TaskId, usize, u64)>,
}

impl System {
    pub(super) fn new(jobs: &Jobs, host: Host) -> Self {
        let lengths = jobs.files.iter().map(|file| file.bytes);
        Self {
            host,
            cache: PageCache::new(host.memory_bytes / PAGE, lengths),
            starts: jobs.files.iter().map(|file| file.start).collect(),
            names: 0,
            transfers: HashMap::new(),
            waiting: Vec::new(),
        }
    }

    /// A name that no other I/O has.
    pub(super) fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    /// Where a byte of a file lies on the device.
    pub(super) fn byte(&self, file: usize, offset: u64) -> u64 {
        self.starts[file] + offset
    }

    /// The I/O that reads the pages.
    pub(super) fn fetch(&mut self, run: PageRun) -> Io {
        let name = self.name();
        self.transfers.insert(name, run);
        let sectors = u32::try_from(run.pages * PAGE / SECTOR).expect("a window is short");
        Io {
            name,
            op: Op::Read,
            flags: BioFlags::empty(),
            sector: Sector(self.byte(run.file, run.page * PAGE) / SECTOR),
            sectors: SectorCount(sectors),
            io_prio: None,
        }
    }

    /// The task waits for a page that is on its way.
    pub(super) fn await_page(&mut self, task: TaskId, file: usize, page: u64) {
        self.waiting.retain(|(other, ..)| *other != task);
        self.waiting.push((task, file, page));
    }

    /// The I/O of that name has completed. Returns whether it was one of the page cache.
    pub(super) fn completed(&mut self, moment: &mut Moment<'_>, name: u64) -> bool {
        let Some(run) = self.transfers.remove(&name) else { return false };
        self.cache.arrived(run);
        self.waiting.retain(|&(task, file, page)| {
            let awaited = run.has(file, page);
            if awaited {
                moment.wake(task);
            }
            !awaited
        });
        true
    }
}
