//! What always holds, asserted by walking everything.

use std::collections::BTreeMap;

use crate::bfq::Bfq;
use crate::bfq::queue::{Queue, QueueId, queue_of};
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    pub(super) fn check_all(&self, cx: &Cx<'_>) {
        self.wf2q.check();
        let mut sums = [0, 0];
        for (id, queue) in self.queues.iter() {
            self.check_queue(cx, id, queue);
            sums = [sums[0] + queue.queued, sums[1] + queue.in_flight];
        }
        assert_eq!(sums, [self.queued, self.in_driver], "requests that wait and that were sent");
        let busy = self.queues.iter().filter(|(_, queue)| queue.busy).count();
        assert_eq!(self.symmetry.busy() as usize, busy, "busy queues");
        assert!(self.in_service.is_none_or(|active| self.queues[active].busy), "it is busy");
        let timer = self.idling.timer.map(|(_, queue)| queue);
        let waiting = self.queues.iter().find(|(_, queue)| queue.waiting).map(|(id, _)| id);
        assert_eq!(timer, waiting, "the timer runs for the queue that is waited for");
        self.check_users();
    }

    fn check_queue(&self, cx: &Cx<'_>, id: QueueId, queue: &Queue) {
        let entity = &self.wf2q.entities[id];
        let waiting: Vec<_> = queue.sorted.iter(cx.requests).collect();
        assert!(waiting.iter().all(|&rq| queue_of(cx.requests, rq) == id), "each holds its own");
        assert_eq!(waiting.len(), queue.queued as usize, "requests in the sort list");
        assert_eq!(waiting.len(), queue.fifo.iter(cx.requests).count(), "both lists hold the same");
        match queue.next() {
            Some(next) => assert!(waiting.contains(&next), "next is one of what waits"),
            None => assert!(waiting.is_empty(), "one of what waits is next"),
        }
        assert!(queue.busy || waiting.is_empty(), "a queue with requests is busy");
        assert!(!queue.near || !waiting.is_empty(), "an indexed queue has requests");
        let positions = &self.groups[entity.above].positions;
        assert!(!queue.near || positions.contains(&self.queues, id), "it is on its index");
        assert!(!queue.waiting || self.in_service == Some(id), "only one in service is waited for");
        assert!(entity.requests >= queue.queued + queue.in_flight, "its requests are bound");
        let wakes = |waker| self.woken_by(waker).any(|woken| woken == id);
        assert!(queue.waker.waker.is_none_or(wakes), "a waker knows whom it wakes");
        assert!(queue.owner.is_none_or(|owner| self.contexts.contains_key(owner)), "it is there");
    }

    /// Each task's slot uses its queue; a queue that is to merge with another uses that for each of
    /// its own users; a group uses its async queues.
    fn check_users(&self) {
        let mut users = BTreeMap::<QueueId, u32>::new();
        let mut elders = BTreeMap::<QueueId, u32>::new();
        for context in self.contexts.values() {
            for mut link in context.queues {
                while let Some(queue) = link {
                    *users.entry(queue).or_default() += 1;
                    link = self.queues[queue].merge_into;
                }
            }
            if let Some(elder) = context.elder {
                *elders.entry(elder).or_default() += 1;
            }
        }
        for group in self.groups.values() {
            for queue in group.async_queues.into_iter().flatten() {
                *users.entry(queue).or_default() += 1;
            }
        }
        for (id, queue) in self.queues.iter() {
            let expected = users.get(&id).copied().unwrap_or(0);
            assert_eq!(queue.users, expected, "who uses a queue");
            let holders = elders.get(&id).copied().unwrap_or(0);
            assert_eq!(queue.holders, holders, "whose elder brother it is");
        }
    }
}
