//! What a client does next.

use paternoster::Nanos;

use super::{Dbench, Flush, write};
use crate::sim::{Action, Moment, TaskId};

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    phase: Phase,
    /// Which flush of the load file is next, or being done.
    flush: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is about to begin.
    New,
    /// It works in the page cache.
    Working,
    /// It waits for the data of a file to be written.
    Writing,
    /// They are.
    Written,
    /// It waits for this commit.
    Committing { commit: u64 },
    /// It has ended.
    Ended,
}

impl Client {
    pub(super) fn new() -> Self {
        Self { phase: Phase::New, flush: 0 }
    }

    pub(super) fn completed(&mut self) {
        self.phase = Phase::Written;
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
                let flush = self.flush(index);
                self.count(now, flush.operations);
                self.clients[index].phase = Phase::Writing;
                let place = self.allocation.place(index, flush, &mut self.draws);
                write(place, flush.blocks)
            }
            Phase::Writing => Action::Wait,
            Phase::Written => {
                let commit = self.journal.ask();
                moment.wake(TaskId(0));
                self.clients[index].phase = Phase::Committing { commit };
                Action::Wait
            }
            Phase::Committing { commit } if !self.journal.has_committed(commit) => Action::Wait,
            Phase::Committing { .. } => {
                let client = &mut self.clients[index];
                client.flush = (client.flush + 1) % self.parameters.flushes.len();
                if client.flush == 0 {
                    self.allocation.delete_files(index);
                }
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
        let operations = self.flush(index).operations;
        Action::Sleep(moment.now + self.draw_work(operations))
    }

    fn draw_work(&mut self, operations: u32) -> Nanos {
        let work = self.parameters.operation.as_nanos() * u64::from(operations);
        let most = work * u64::from(self.parameters.varies_percent) / 100;
        Nanos::new(work - most + self.draws.bits() % (2 * most).max(1))
    }

    fn flush(&self, index: usize) -> Flush {
        self.parameters.flushes[self.clients[index].flush]
    }
}
