//! dbench over a file system with a journal: clients whose flushes wait for a task of its own.
//!
//! ```text
//!   client    ├ reads, writes: page cache ┤├ data, sync ┤├── waits for its commit ──┤├ reads …
//!   journal                                              ├ blocks ┤ flush ├ commit ┤ flush
//!                                                        takes in all who wait as it begins
//! ```
//!
//! A client is a closed loop: it works in the page cache, then flushes a file. That writes what is
//! dirty of the file as synchronous requests, and joins the transaction that runs. The journal
//! commits one transaction at a time: its blocks in a row, a flush, the block that says it is
//! complete, a flush. It has an I/O context and a priority of its own.
//!
//! The bandwidth is counted as dbench counts it: the bytes of all reads and writes of the load
//! file, wherever they are served, by the time. Nearly all are served by the page cache; the device
//! has to do with what the flushes write.

mod client;
mod journal;

use paternoster::{BioFlags, Instant, IoPrio, Nanos, Op, Sector, SectorCount};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;

use crate::sim::{Action, Ended, Io, Moment, TaskId, TaskSetup, Workload};
use client::Client;
use journal::Journal;

/// Sectors of a block of the file system.
const BLOCK: u32 = 8;

/// What dbench and the file system do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbenchParameters {
    /// How many clients there are.
    pub clients: u32,
    /// Bytes that a client reads and writes between two flushes, and in all by the load file.
    pub bytes_a_flush: u64,
    /// How long a client works in the page cache between two flushes, on average.
    pub work: Nanos,
    /// By how many percent that varies, evenly; at most 100.
    pub work_varies_percent: u32,
    /// Requests that a flush writes of the file.
    pub data_requests: u32,
    /// Blocks of each of them.
    pub data_blocks: u32,
    /// Where the files of the first client begin.
    pub data: Sector,
    /// Over how many blocks the files of a client lie; those of the next one follow.
    pub area_blocks: u64,
    /// Blocks between two of its requests at most.
    pub gap_blocks: u64,
    /// Where the journal begins.
    pub journal: Sector,
    /// How many blocks it has.
    pub journal_blocks: u64,
    /// Blocks that a commit writes for itself, and for each client that waits for it.
    pub commit_blocks: u32,
    /// See above.
    pub client_blocks: u32,
    /// The priority of the journal's task.
    pub journal_prio: IoPrio,
    /// How long after one client the next one begins, the journal first.
    pub apart: Nanos,
    /// From when on bytes are counted, and up to when the clients go on.
    pub from: Nanos,
    /// See above.
    pub until: Nanos,
    /// The seed of all draws.
    pub seed: u64,
}

impl Default for DbenchParameters {
    /// Nothing happens.
    fn default() -> Self {
        Self {
            clients: 0,
            bytes_a_flush: 0,
            work: Nanos::ZERO,
            work_varies_percent: 0,
            data_requests: 0,
            data_blocks: 0,
            data: Sector(0),
            area_blocks: 0,
            gap_blocks: 0,
            journal: Sector(0),
            journal_blocks: 0,
            commit_blocks: 0,
            client_blocks: 0,
            journal_prio: IoPrio::default(),
            apart: Nanos::ZERO,
            from: Nanos::ZERO,
            until: Nanos::ZERO,
            seed: 1,
        }
    }
}

/// The clients and the journal, which is the first task.
#[derive(Debug)]
pub struct Dbench {
    parameters: DbenchParameters,
    journal: Journal,
    clients: Vec<Client>,
    random: Xoshiro256PlusPlus,
    /// Flushes that ended while bytes were counted.
    flushes: u64,
    /// How long they took in all.
    flushing: Nanos,
}

impl Dbench {
    /// Makes it, about to begin.
    pub fn new(parameters: DbenchParameters) -> Self {
        let clients = (0..parameters.clients).map(|_| Client::new()).collect();
        Self {
            journal: Journal::default(),
            clients,
            random: Xoshiro256PlusPlus::seed_from_u64(parameters.seed),
            flushes: 0,
            flushing: Nanos::ZERO,
            parameters,
        }
    }

    /// Bytes a second, as dbench counts them.
    #[allow(clippy::cast_precision_loss)] // both are told with 53 bits
    pub fn bytes_per_s(&self) -> f64 {
        let bytes = self.flushes * self.parameters.bytes_a_flush;
        let window = self.parameters.until.saturating_sub(self.parameters.from);
        bytes as f64 * 1e9 / window.as_nanos() as f64
    }

    /// How long a flush took on average.
    pub fn mean_flush(&self) -> Nanos {
        Nanos::new(self.flushing.as_nanos() / self.flushes.max(1))
    }

    fn count(&mut self, now: Instant, took: Nanos) {
        let counted = Instant::START + self.parameters.from..Instant::START + self.parameters.until;
        if counted.contains(&now) {
            self.flushes += 1;
            self.flushing += took;
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now >= Instant::START + self.parameters.until
    }
}

/// A write of so many blocks.
fn write(sector: Sector, blocks: u32) -> Action {
    let flags = BioFlags::SYNC;
    let sectors = SectorCount(blocks * BLOCK);
    Action::Submit(Io { name: 0, op: Op::Write, flags, sector, sectors, io_prio: None })
}

fn client_task(index: usize) -> TaskId {
    TaskId(u32::try_from(index + 1).expect("clients are counted in u32"))
}

impl Workload for Dbench {
    fn tasks(&self) -> Vec<TaskSetup> {
        let DbenchParameters { clients, apart, journal_prio, .. } = self.parameters;
        (0..=clients)
            .map(|number| TaskSetup {
                group: None,
                io_prio: if number == 0 { journal_prio } else { IoPrio::default() },
                start: Instant::START + Nanos::new(apart.as_nanos() * u64::from(number)),
            })
            .collect()
    }

    fn next(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action {
        match task.index().checked_sub(1) {
            None => self.next_of_journal(moment),
            Some(index) => self.next_of_client(moment, index),
        }
    }

    fn completed(&mut self, _moment: &mut Moment<'_>, ended: &Ended) {
        match ended.task.index().checked_sub(1) {
            None => self.journal.completed(),
            Some(index) => self.clients[index].completed(),
        }
    }
}
