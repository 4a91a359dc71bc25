//! What always holds, asserted by walking everything.

use std::collections::BTreeMap;

use crate::bfq::Bfq;
use crate::bfq::queue::Queue;
use crate::bfq::queue_id::{QueueId, queue_of};
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    pub(super) fn check_all(&self, cx: &Cx) {
        self.wf2q.check();
        let mut sums = [0, 0];
        for (id, queue) in self.queues.iter() {
            self.check_queue(cx, id, queue);
            sums = [sums[0] + queue.queued(), sums[1] + queue.in_flight];
        }
        assert_eq!(
            sums,
            [self.queued, self.in_driver],
            "requests that wait and that are in flight"
        );
        let busy = self.queues.iter().filter(|(_, queue)| queue.busy).count();
        assert_eq!(self.busy.count() as usize, busy, "busy queues");
        assert!(
            self.in_service.is_none_or(|in_service| self.queues[in_service].busy),
            "it is busy"
        );
        let timer = self.idling.timer.map(|(_, queue)| queue);
        let idling = self.queues.iter().find(|(_, queue)| queue.idling).map(|(id, _)| id);
        assert_eq!(timer, idling, "the timer runs for the queue that the device idles for");
        self.check_users();
    }

    fn check_queue(&self, cx: &Cx, id: QueueId, queue: &Queue) {
        self.wf2q.check_raising(id, queue.raising().factor());
        queue.waiting.check(&cx.requests);
        let mut waiting = queue.waiting.iter(&cx.requests);
        assert!(waiting.all(|rq| queue_of(&cx.requests, rq) == id), "each holds its own");
        let is_empty = queue.is_empty();
        assert!(queue.busy || is_empty, "a queue with requests is busy");
        if let Some(slot) = queue.position {
            let next = queue.next().expect("an indexed queue has requests");
            let positions = &self.groups[self.wf2q.group_of(id)].positions;
            let is_there = positions.has(slot, id, cx.requests[next].sector);
            assert!(is_there, "an indexed queue is on its index");
        }
        assert!(
            !queue.idling || self.in_service == Some(id),
            "the device idles only for one in service"
        );
        let requests = self.wf2q.requests_of(id);
        assert!(requests >= queue.queued() + queue.in_flight, "its requests are bound");
        let wakes = |waker| self.queues.woken_by(waker).any(|woken| woken == id);
        assert!(queue.waker.is_none_or(wakes), "a waker knows whom it wakes");
        assert!(queue.owner.is_none_or(|owner| self.contexts.contains_key(owner)), "it is there");
    }

    /// Each task's slot uses its queue; a queue that is to merge with another uses that for each of
    /// its own users; a group uses its async queues.
    fn check_users(&self) {
        let mut users = BTreeMap::<QueueId, u32>::new();
        let mut candidates = BTreeMap::<QueueId, u32>::new();
        for context in self.contexts.values() {
            for mut link in context.queues.0 {
                while let Some(queue) = link {
                    *users.entry(queue).or_default() += 1;
                    link = self.queues[queue].merge_into;
                }
            }
            if let Some(candidate) = context.merge_candidate {
                *candidates.entry(candidate).or_default() += 1;
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
            let keepers = candidates.get(&id).copied().unwrap_or(0);
            assert_eq!(queue.keepers, keepers, "the contexts whose merge candidate it is");
        }
    }
}
