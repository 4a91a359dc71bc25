//! What a client does next.

use paternoster::{Instant, Nanos, Sector};
use rand_xoshiro::rand_core::Rng as _;

use super::{BLOCK, Dbench, DbenchParameters, write};
use crate::sim::{Action, Moment, TaskId};

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    phase: Phase,
    /// Its writes that have not completed.
    outstanding: u32,
    /// When its flush began.
    flush_began: Instant,
    /// The block of its area behind what it has written.
    at: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is about to begin.
    New,
    /// It works in the page cache.
    Working,
    /// It writes the data of a file, of which so many requests are left.
    Writing { left: u32 },
    /// It waits for this commit.
    Committing { transaction: u64 },
    /// It has ended.
    Ended,
}

impl Client {
    pub(super) fn new() -> Self {
        Self { phase: Phase::New, outstanding: 0, flush_began: Instant::START, at: 0 }
    }

    pub(super) fn completed(&mut self) {
        self.outstanding -= 1;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }
}

impl Dbench {
    pub(super) fn next_of_client(&mut self, moment: &mut Moment<'_>, index: usize) -> Action {
        let now = moment.now;
        match self.clients[index].phase {
            Phase::New => self.work(moment, index),
            Phase::Working => {
                let client = &mut self.clients[index];
                client.flush_began = now;
                client.phase = Phase::Writing { left: self.parameters.data_requests };
                self.next_of_client(moment, index)
            }
            Phase::Writing { left: 0 } if self.clients[index].outstanding > 0 => Action::Wait,
            Phase::Writing { left: 0 } => {
                let transaction = self.journal.join();
                moment.wake(TaskId(0));
                self.clients[index].phase = Phase::Committing { transaction };
                Action::Wait
            }
            Phase::Writing { left } => {
                self.clients[index].phase = Phase::Writing { left: left - 1 };
                self.clients[index].outstanding += 1;
                write(self.draw_place(index), self.parameters.data_blocks)
            }
            Phase::Committing { transaction } if !self.journal.has_committed(transaction) => {
                Action::Wait
            }
            Phase::Committing { .. } => {
                self.count(now, now.saturating_since(self.clients[index].flush_began));
                self.work(moment, index)
            }
            Phase::Ended => Action::Exit,
        }
    }

    /// The client works until its next flush, or ends.
    fn work(&mut self, moment: &mut Moment<'_>, index: usize) -> Action {
        if self.is_over(moment.now) {
            self.clients[index].phase = Phase::Ended;
            moment.wake(TaskId(0));
            return Action::Exit;
        }
        self.clients[index].phase = Phase::Working;
        Action::Sleep(moment.now + self.draw_work())
    }

    fn draw_work(&mut self) -> Nanos {
        let DbenchParameters { work, work_varies_percent, .. } = self.parameters;
        let most = work.as_nanos() * u64::from(work_varies_percent) / 100;
        Nanos::new(work.as_nanos() - most + self.random.next_u64() % (2 * most).max(1))
    }

    /// Where a client writes next: behind what it has written, after a gap; at the end of its area
    /// from the beginning.
    fn draw_place(&mut self, index: usize) -> Sector {
        let DbenchParameters { data, area_blocks, data_blocks, gap_blocks, .. } = self.parameters;
        let gap = self.random.next_u64() % (gap_blocks + 1);
        let client = &mut self.clients[index];
        let mut at = client.at + gap;
        if at + u64::from(data_blocks) > area_blocks {
            at = 0;
        }
        client.at = at + u64::from(data_blocks);
        let block = index as u64 * area_blocks + at;
        Sector(data.0 + block * u64::from(BLOCK))
    }
}
