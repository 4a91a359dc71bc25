//! What always holds between events.

use std::collections::BTreeMap;

use crate::arena::GroupId;
use crate::cfq::Cfq;
use crate::cfq::queue::Queue;
use crate::cfq::queue_id::{QueueId, queue_of};
use crate::scheduler::Cx;
use crate::synchrony::BySynchrony;
use crate::trace::Trace;

impl<T: Trace> Cfq<T> {
    pub(super) fn check_queues(&self, cx: &Cx) {
        let (mut queued, mut busy, mut busy_sync) = (0, 0, 0);
        let mut in_flight = BySynchrony::<u32>::default();
        for (id, queue) in self.queues.iter() {
            self.check_queue(cx, id, queue);
            queued += queue.queued();
            busy += u32::from(queue.is_busy());
            busy_sync += u32::from(queue.is_busy() && queue.synchrony.is_sync());
            in_flight[queue.synchrony] += queue.in_flight;
        }
        assert_eq!(queued, self.queued, "the sum of waiting requests");
        assert_eq!((busy, busy_sync), (self.busy, self.busy_sync), "busy queues");
        assert_eq!(in_flight, self.in_flight, "the sums of requests in flight");
        assert!(self.in_driver <= in_flight.0.iter().sum(), "the device holds requests in flight");
        let idles_for_active =
            self.active.is_some_and(|active| self.queues[active].slice.is_idling());
        assert!(
            self.idle_timer.is_none() || idles_for_active,
            "the timer runs for the active queue"
        );
        let has_context = self.active_context.is_some();
        assert!(self.active.is_some() || !has_context, "an active context is of a slice");
        self.check_users();
    }

    fn check_queue(&self, cx: &Cx, id: QueueId, queue: &Queue) {
        queue.waiting.check(&cx.requests);
        let mut waiting = queue.waiting.iter(&cx.requests);
        assert!(
            waiting.all(|rq| queue_of(&cx.requests, rq) == id),
            "a queue holds requests bound to it"
        );
        let with_prio = queue.waiting.iter(&cx.requests).filter(|&rq| cx.requests[rq].has_prio());
        assert_eq!(
            with_prio.count(),
            queue.prio_pending as usize,
            "requests with the priority flag"
        );
        let is_empty = queue.is_empty();
        assert!(queue.is_busy() || is_empty, "a queue with requests is busy");
        let is_active = self.active == Some(id);
        assert!(queue.is_busy() || !is_active, "the active queue is busy");
        assert!(
            is_active || !queue.is_busy() || !is_empty,
            "only the active queue is busy without requests"
        );
        self.check_position(cx, id, queue);
        assert!(queue.requests_bound >= queue.queued() + queue.in_flight, "its requests are bound");
        assert!(queue.users > 0 || queue.requests_bound > 0, "an unused queue is freed");
    }

    /// Asserts the number of users: an I/O context uses its queues and those into which they are to
    /// be merged; a group uses its asynchronous queues.
    fn check_users(&self) {
        let mut users = BTreeMap::<QueueId, u32>::new();
        for context in self.contexts.values() {
            for mut link in context.queues.0 {
                while let Some(queue) = link {
                    *users.entry(queue).or_default() += 1;
                    link = self.queues[queue].merge_into;
                }
            }
        }
        for group in self.groups.values() {
            for queue in group.async_queues.into_iter().flatten() {
                *users.entry(queue).or_default() += 1;
            }
        }
        for (id, queue) in self.queues.iter() {
            let expected = users.get(&id).copied().unwrap_or(0);
            assert_eq!(queue.users, expected, "users of a queue");
        }
    }

    pub(super) fn check_groups(&self, cx: &Cx) {
        for (id, state) in self.groups.iter() {
            let members = || self.queues.iter().map(|(_, queue)| queue).filter(|q| q.group == id);
            let busy = members().filter(|queue| queue.is_busy()).count();
            let own = state.entities - state.share.child_groups();
            assert_eq!(busy, own as usize, "busy queues of the group");
            assert_eq!(state.entities, state.trees.len(), "each entity is on one of its trees");
            let queued: u32 = members().map(Queue::queued).sum();
            assert_eq!(queued, state.queued, "requests that wait in the group");
            let in_flight = self.in_flight_of(cx, id);
            assert_eq!(in_flight, state.in_flight as usize, "requests of the group in flight");
            self.check_share(cx, id);
        }
        let in_flight: u32 = self.groups.values().map(|group| group.in_flight).sum();
        assert_eq!(in_flight, self.in_flight.0.iter().sum::<u32>(), "requests in flight, by group");
    }

    /// How many requests in flight the group is to count. A queue that moves leaves its requests to
    /// the group in which they were made.
    fn in_flight_of(&self, cx: &Cx, group: GroupId) -> usize {
        let queues = || self.queues.iter().map(|(_, queue)| queue);
        if !self.kernel.may_move_queues() {
            let members = queues().filter(|queue| queue.group == group);
            return members.map(|queue| queue.in_flight as usize).sum();
        }
        let waiting = queues().flat_map(|queue| {
            queue.waiting.iter(&cx.requests).map(|rq| self.isolation.counted_in(rq, queue.group))
        });
        let waiting = waiting.filter(|counted_in| *counted_in == group).count();
        self.isolation.counted_by(group) - waiting
    }
}
