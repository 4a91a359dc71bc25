//! How long a turn is, and what is charged at its end.

use crate::cfq::Cfq;
use crate::cfq::queue::Queue;
use crate::scheduler::Cx;
use crate::trace::{Event, ExpireReason, Trace};

/// A level is worth this part of the slice of level 4: 1/5.
const SLICE_STEP: i64 = 5;

/// Async queues get 2/5 of a sync queue's slice, as 40 ms are of 100 ms in Linux.
const ASYNC_PARTS: i64 = 2;

impl<T: Trace> Cfq<T> {
    /// Requests that the queue may send in a turn:
    ///
    /// `quantum × (9 − level) / 5`, for async queues 2/5 of it; at least 1
    pub(super) fn slice(&self, queue: &Queue) -> u32 {
        let parts = SLICE_STEP + 4 - i64::from(queue.io_prio.level());
        let mut slice = self.tunables.quantum * parts / SLICE_STEP;
        if !queue.sync {
            slice = slice * ASYNC_PARTS / SLICE_STEP;
        }
        u32::try_from(slice.max(1)).unwrap_or(u32::MAX)
    }

    /// Ends the turn of the active queue, if there is one: its group is charged, and it goes
    /// behind those that wait, or off the trees if it is empty.
    pub(super) fn expire_active(&mut self, cx: &Cx<'_>, why: ExpireReason) {
        let Some(active) = self.active.take() else { return };
        let Queue { group, sent, turn_start, .. } = self.queues[active];
        let state = &mut self.groups[group];
        // At the fraction of its last put; then it is put anew, at the weights as they are now.
        let vdisktime = state.vdisktime.charged(sent, state.fraction);
        self.pull_group(cx, group);
        self.groups[group].vdisktime = vdisktime;
        self.put_group(cx, group);

        let used = cx.now.saturating_since(turn_start);
        self.trace.event(cx.now, Event::Expired { group, why, sent, used, vdisktime: vdisktime.0 });
        if self.queues[active].is_empty() {
            self.unlist(cx, active);
            self.free_if_unused(active);
        } else {
            self.place(cx.now, active);
        }
    }
}
