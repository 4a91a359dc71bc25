//! What it costs the others that the device was kept free for a queue: charged to it, where that is
//! tuned so. Linux charges nothing for it.
//!
//! ```text
//!   a turn without waiting      S sectors in the time T  ──▶  pace = Σ S / Σ T
//!   a turn with waiting         charge = max(its sectors, its time × pace)
//! ```
//!
//! The pace is that of the last second or so in which queues had requests all the time: what the
//! others would have got, whatever the size of their requests.

use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::parts::pace::Pace;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, Trace};

/// Whether the queue in service was waited for, and how fast those are served that are not.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// In this turn the queue kept the device while it was empty.
    pub(super) waited: bool,
    /// What the queue had been charged of its budget before, for requests that were injected.
    before: SectorCount,
    /// What others were charged meanwhile, for requests that were injected.
    pub(super) injected: SectorCount,
    /// Sectors that are charged in turns without waiting.
    pace: Pace,
}

impl Waiting {
    /// A queue that was charged so much of its budget is put in service.
    pub(super) fn begin_turn(&mut self, before: SectorCount) {
        self.waited = false;
        self.before = before;
        self.injected = SectorCount(0);
    }
}

impl<T: Trace> Bfq<T> {
    /// The turn of the queue ends: it is charged for its time if it was waited for. If not, and it
    /// could have gone on, the pace is learned from it.
    pub(super) fn charge_waiting(&mut self, cx: &Cx<'_>, queue: QueueId, why: BudgetEnd) {
        if !self.tunables.charge_waiting() {
            return;
        }
        let time = cx.now.saturating_since(self.turn_began);
        if self.waiting.waited {
            let lost = self.waiting.pace.served_in(time);
            let lost = u32::try_from(lost).unwrap_or(u32::MAX);
            let lost = lost.saturating_sub(self.waiting.injected.0);
            let want = self.waiting.before.0.saturating_add(lost);
            self.charge_up_to(cx, queue, SectorCount(want));
        } else if matches!(why, BudgetEnd::Exhausted | BudgetEnd::Timeout) {
            let service = self.wf2q.entities[queue].service.0.saturating_sub(self.waiting.before.0);
            self.waiting.pace.learn(service.into(), time);
        }
    }
}
