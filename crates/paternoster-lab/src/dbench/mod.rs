//! dbench over a file system with a journal: clients whose flushes wait for a task of its own.
//!
//! ```text
//!   client    ├ operations in the page cache ┤├ data, sync ┤├── waits for its commit ──┤├ …
//!   journal                                                 ├ blocks ┤ flush ├ commit ┤ flush
//!                                                           takes in all who wait as it begins
//! ```
//!
//! A client repeats the flushes of a load file: it does some operations in the page cache, then
//! flushes a file. That writes what is dirty of the file as one synchronous request, and joins the
//! transaction that runs. The journal commits one transaction at a time: its blocks in a row, a
//! flush, the block that says it is complete, a flush. It has an I/O context and a priority of its
//! own.
//!
//! The bandwidth is counted as dbench counts it: the bytes of all reads and writes of the load
//! file, wherever they are served, by the time. Nearly all are served by the page cache; the device
//! has to do with what the flushes write.

mod client;
mod places;

use std::ops::Range;

use paternoster::{BioFlags, Instant, IoPrio, Nanos, Op, Sector, SectorCount};
use paternoster_model::{Draws, Who};

use crate::journal::{BLOCK, CommitForm, Journal, JournalPlace};
use crate::sim::{Action, Ended, Io, Moment, TaskId, TaskSetup, Workload};
use client::Client;
use places::Allocation;
pub use places::Places;

/// What dbench and the file system do.
#[derive(Clone, Debug, PartialEq)]
pub struct DbenchParameters {
    /// How many clients there are.
    pub clients: u32,
    /// What a client does, over and over.
    pub flushes: Vec<Flush>,
    /// How long an operation takes, on average.
    pub operation: Nanos,
    /// By how many percent the time between two flushes varies, evenly; at most 100.
    pub varies_percent: u32,
    /// Bytes that are read and written in an operation, on average.
    pub operation_bytes: f64,
    /// Where files lie.
    pub places: Places,
    /// Where the journal lies.
    pub journal: JournalPlace,
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
            flushes: Vec::new(),
            operation: Nanos::ZERO,
            varies_percent: 0,
            operation_bytes: 0.0,
            places: Places::default(),
            journal: JournalPlace { start: Sector(0), sectors: SectorCount(0) },
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

/// A flush of the load file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flush {
    /// How many operations come before it.
    pub operations: u32,
    /// The number of the file.
    pub file: u32,
    /// How many blocks of it are dirty, from its first one on.
    pub blocks: u32,
}

/// The clients and the journal, which is the first task.
#[derive(Debug)]
pub struct Dbench {
    parameters: DbenchParameters,
    journal: Journal,
    clients: Vec<Client>,
    draws: Draws,
    allocation: Allocation,
    /// Operations that ended while bytes were counted.
    operations: u64,
}

impl DbenchParameters {
    /// Where on the device the files lie, and where the journal.
    pub fn ranges(&self) -> [Range<Sector>; 2] {
        let files = self.places.begin..self.places.end(self.clients, &self.flushes);
        let JournalPlace { start, sectors } = self.journal;
        [files, start..start + sectors]
    }
}

impl Dbench {
    /// Makes it, about to begin.
    ///
    /// # Panics
    ///
    /// If there are clients, and no flushes or no cores.
    pub fn new(parameters: DbenchParameters) -> Self {
        let does_something = !parameters.flushes.is_empty() && parameters.places.cores > 0;
        assert!(parameters.clients == 0 || does_something, "clients flush files, on a core");
        let clients = (0..parameters.clients).map(|_| Client::new()).collect();
        let commit = CommitForm {
            blocks: parameters.commit_blocks,
            waiter_blocks: parameters.client_blocks,
            in_one: true,
            fua: false,
        };
        Self {
            journal: Journal::new(parameters.journal, commit),
            clients,
            draws: Draws::new(parameters.seed, Who::Dbench, 0),
            allocation: Allocation::new(parameters.places, parameters.clients, &parameters.flushes),
            operations: 0,
            parameters,
        }
    }

    /// Bytes a second, as dbench counts them.
    #[allow(clippy::cast_precision_loss)] // both are told with 53 bits
    pub fn bytes_per_s(&self) -> f64 {
        let bytes = self.operations as f64 * self.parameters.operation_bytes;
        let window = self.parameters.until.saturating_sub(self.parameters.from);
        bytes * 1e9 / window.as_nanos() as f64
    }

    fn next_of_journal(&mut self, moment: &mut Moment<'_>) -> Action {
        let (is_committed, io) = self.journal.step();
        if is_committed {
            (0..self.clients.len()).for_each(|index| moment.wake(client_task(index)));
        }
        let has_ended = !self.journal.is_running() && self.clients.iter().all(Client::has_ended);
        match io {
            Some(io) => Action::Submit(io),
            None if has_ended => Action::Exit,
            None => Action::Wait,
        }
    }

    fn count(&mut self, now: Instant, operations: u32) {
        let counted = Instant::START + self.parameters.from..Instant::START + self.parameters.until;
        if counted.contains(&now) {
            self.operations += u64::from(operations);
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
