//! What the journal does next, and who waits for it.
//!
//! Jobs of fio have another journal (`threads/journal.rs`). Here a commit grows with the clients
//! that wait for it, as what a study measures depends on that, its blocks are one write, and a
//! flush follows the block that ends it.

use paternoster::{BioFlags, Op, Sector, SectorCount};

use super::{BLOCK, Dbench, DbenchParameters, client_task, write};
use crate::sim::{Action, Io, Moment};

/// The journal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    step: Step,
    /// Whether what the step submitted has not completed.
    waits: bool,
    /// The transaction that runs: clients join it.
    running: u64,
    /// Those that have joined it.
    joined: u32,
    /// Transactions that have been committed.
    committed: u64,
    /// Its next block.
    at: u64,
}

/// What a commit does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// There is no commit.
    #[default]
    Idle,
    FlushBlocks,
    WriteCommit,
    FlushCommit,
    End,
}

impl Journal {
    /// A client joins the transaction that runs. Returns which that is.
    pub(super) fn join(&mut self) -> u64 {
        self.joined += 1;
        self.running
    }

    pub(super) fn has_committed(&self, transaction: u64) -> bool {
        transaction < self.committed
    }

    pub(super) fn completed(&mut self) {
        self.waits = false;
    }

    /// Takes so many blocks in a row; where they do not fit before its end, from its beginning.
    fn take(&mut self, blocks: u32, parameters: &DbenchParameters) -> Sector {
        if self.at + u64::from(blocks) > parameters.journal_blocks {
            self.at = 0;
        }
        let sector = Sector(parameters.journal.0 + self.at * u64::from(BLOCK));
        self.at += u64::from(blocks);
        sector
    }
}

impl Dbench {
    pub(super) fn next_of_journal(&mut self, moment: &mut Moment<'_>) -> Action {
        if self.journal.waits {
            return Action::Wait;
        }
        let action = match self.journal.step {
            Step::Idle => return self.begin_commit(),
            Step::FlushBlocks => {
                self.journal.step = Step::WriteCommit;
                flush()
            }
            Step::WriteCommit => {
                self.journal.step = Step::FlushCommit;
                write(self.journal.take(1, &self.parameters), 1)
            }
            Step::FlushCommit => {
                self.journal.step = Step::End;
                flush()
            }
            Step::End => {
                self.journal.step = Step::Idle;
                self.journal.committed += 1;
                (0..self.clients.len()).for_each(|index| moment.wake(client_task(index)));
                return self.begin_commit();
            }
        };
        self.journal.waits = true;
        action
    }

    /// Commits the transaction that runs, if a client has joined it; another one runs from then on.
    fn begin_commit(&mut self) -> Action {
        if self.journal.joined == 0 {
            let all_ended = self.clients.iter().all(super::Client::has_ended);
            return if all_ended { Action::Exit } else { Action::Wait };
        }
        let DbenchParameters { commit_blocks, client_blocks, .. } = self.parameters;
        let blocks = commit_blocks + client_blocks * std::mem::take(&mut self.journal.joined);
        self.journal.running += 1;
        self.journal.step = Step::FlushBlocks;
        self.journal.waits = true;
        write(self.journal.take(blocks, &self.parameters), blocks)
    }
}

fn flush() -> Action {
    let (flags, sector, sectors) = (BioFlags::empty(), Sector(0), SectorCount(0));
    Action::Submit(Io { name: 0, op: Op::Flush, flags, sector, sectors, io_prio: None })
}
