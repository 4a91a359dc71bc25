//! Bursts: many queues that come to life together, as when a service starts or a tree is built.
//! What matters then is throughput, so the queues of a large burst are not raised.

use crate::arena::GroupId;
use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::scheduler::Cx;
use crate::time::Jiffies;
use crate::trace::{Event, Trace};

/// A burst of so many queues is large.
const LARGE: u32 = 8;

/// The burst that goes on, if any.
#[derive(Debug)]
pub(super) struct Burst {
    /// When the last queue joined.
    last: Jiffies,
    /// Queues that joined. One that is freed leaves the list but still counts here, as in Linux.
    size: u32,
    /// The group of them all.
    group: Option<GroupId>,
    pub(super) large: bool,
    /// Those that joined, until the burst is large.
    queues: Vec<QueueId>,
}

impl Burst {
    pub(super) fn new() -> Self {
        Self { last: Jiffies::LONG_AGO, size: 0, group: None, large: false, queues: Vec::new() }
    }

    /// Whether a burst may go on.
    pub(super) fn goes_on(&self) -> bool {
        self.size > 0
    }

    /// A queue is gone.
    pub(super) fn forget(&mut self, queue: QueueId) {
        self.queues.retain(|&other| other != queue);
    }
}

impl<T: Trace> Bfq<T> {
    /// A queue that never had a request gets its first: it may belong to a burst.
    pub(super) fn join_burst(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let now = cx.jiffies();
        let group = self.wf2q.entities[queue].above;
        let state = &self.queues[queue];
        if state.in_burst
            || state.in_large_burst
            || now <= state.split_at + self.spans.split_immunity
        {
            return;
        }
        if now > self.burst.last + self.spans.burst || Some(group) != self.burst.group {
            self.begin_burst(group);
            if self.symmetry.busy() == 0 {
                self.put_on_burst_list(queue);
                self.burst.size = 1;
            }
        } else if self.burst.large {
            self.queues[queue].in_large_burst = true;
        } else {
            self.burst.size += 1;
            self.put_on_burst_list(queue);
            if self.burst.size == LARGE {
                self.burst.large = true;
                self.trace.event(cx.now, Event::LargeBurst);
                self.clear_burst_list(true);
            }
        }
        self.burst.last = now;
    }

    fn begin_burst(&mut self, group: GroupId) {
        self.burst.large = false;
        self.burst.size = 0;
        self.burst.group = Some(group);
        self.clear_burst_list(false);
    }

    pub(super) fn put_on_burst_list(&mut self, queue: QueueId) {
        self.queues[queue].in_burst = true;
        self.burst.queues.push(queue);
    }

    pub(super) fn leave_burst_list(&mut self, queue: QueueId) {
        if std::mem::take(&mut self.queues[queue].in_burst) {
            self.burst.forget(queue);
        }
    }

    fn clear_burst_list(&mut self, large: bool) {
        while let Some(queue) = self.burst.queues.pop() {
            let state = &mut self.queues[queue];
            state.in_burst = false;
            state.in_large_burst |= large;
        }
    }
}
