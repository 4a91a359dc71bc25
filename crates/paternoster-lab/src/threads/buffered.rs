//! A read through the page cache: page by page, each copied when it is there.

use paternoster::{BioFlags, Instant, Nanos, Op, Sector, SectorCount};

use super::Host;
use crate::cache::{CachedFile, Fetch, Found, PAGE};
use crate::sim::{Action, Io};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// A file as a thread has it open.
#[derive(Debug)]
pub(super) struct OpenFile {
    cached: CachedFile,
    /// The sector of the device at which it starts.
    start: u64,
    /// What is on its way, by the names of its I/Os.
    fetches: Vec<(u64, Fetch)>,
    copy_page: Nanos,
}

/// A read that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// The next page.
    page: u64,
    /// The page behind the last one.
    end: u64,
}

impl Reading {
    /// A read of so many bytes.
    pub(super) fn new(offset: u64, bytes: u64) -> Self {
        Self { page: offset / PAGE, end: (offset + bytes).div_ceil(PAGE) }
    }
}

/// What a read needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// This, and then to be asked again.
    Do(Action),
    /// Nothing: it is done.
    Done,
}

impl OpenFile {
    pub(super) fn new(bytes: u64, start_byte: u64, host: Host) -> Self {
        Self {
            cached: CachedFile::new(bytes.div_ceil(PAGE), host.read_ahead_pages),
            start: start_byte / SECTOR,
            fetches: Vec::new(),
            copy_page: host.copy_page,
        }
    }

    /// What the read needs next. `name` is a name for an I/O.
    pub(super) fn step(&mut self, reading: &mut Reading, now: Instant, name: u64) -> Step {
        if reading.page == reading.end {
            self.cached.has_read(reading.end - 1);
            return Step::Done;
        }
        let wanted = reading.end - reading.page;
        let (found, fetch) = self.cached.touch(reading.page, wanted);
        if let Some(fetch) = fetch {
            self.fetches.push((name, fetch));
            return Step::Do(Action::Submit(self.read(name, fetch)));
        }
        match found {
            Found::OnItsWay => Step::Do(Action::Wait),
            Found::Cached => {
                reading.page += 1;
                Step::Do(Action::Sleep(now + self.copy_page))
            }
        }
    }

    /// The I/O of that name has completed. Returns whether it was one of this file's.
    pub(super) fn arrived(&mut self, name: u64) -> bool {
        let Some(index) = self.fetches.iter().position(|(it, _)| *it == name) else { return false };
        let (_, fetch) = self.fetches.swap_remove(index);
        self.cached.arrived(fetch);
        true
    }

    fn read(&self, name: u64, fetch: Fetch) -> Io {
        let per_page = PAGE / SECTOR;
        let sectors = u32::try_from(fetch.pages * per_page).expect("a window is short");
        Io {
            name,
            op: Op::Read,
            flags: BioFlags::empty(),
            sector: Sector(self.start + fetch.page * per_page),
            sectors: SectorCount(sectors),
            io_prio: None,
        }
    }
}
