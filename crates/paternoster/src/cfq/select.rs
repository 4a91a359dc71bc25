//! Whose turn it is.

use crate::cfq::Cfq;
use crate::cfq::queue::QueueId;
use crate::scheduler::Cx;
use crate::trace::{Event, ExpireReason, Trace};

/// What is to happen with the active queue.
enum Verdict {
    Keep(QueueId),
    Expire(ExpireReason),
}

impl<T: Trace> Cfq<T> {
    /// The queue to send from; it has a request.
    pub(super) fn select(&mut self, cx: &Cx<'_>) -> Option<QueueId> {
        if let Some(active) = self.active {
            match self.judge_active(active) {
                Verdict::Keep(queue) => return Some(queue),
                Verdict::Expire(reason) => self.expire_active(cx, reason),
            }
        }
        self.choose(cx)
    }

    fn judge_active(&self, active: QueueId) -> Verdict {
        let queue = &self.queues[active];
        if queue.is_empty() {
            Verdict::Expire(ExpireReason::Empty)
        } else if queue.sent >= self.slice(queue) {
            Verdict::Expire(ExpireReason::SliceUsed)
        } else {
            Verdict::Keep(active)
        }
    }

    /// Begins the turn of the first queue of the group that was served least for its weight.
    pub(super) fn choose(&mut self, cx: &Cx<'_>) -> Option<QueueId> {
        let group = self.group_tree.choose()?;
        let queue = self.groups[group].trees.first().expect("a group on the tree has queues");
        let event = Event::Active {
            group,
            class: self.queues[queue].io_prio.class(),
            vdisktime: self.groups[group].vdisktime.0,
            min_vdisktime: self.group_tree.min_vdisktime().0,
        };
        self.trace.event(cx.now, event);
        let state = &mut self.queues[queue];
        state.turn_start = cx.now;
        state.sent = 0;
        state.fifo_done = false;
        self.active = Some(queue);
        Some(queue)
    }
}
