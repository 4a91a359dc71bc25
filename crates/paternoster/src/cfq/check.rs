//! What always holds between events.

use std::collections::BTreeMap;

use crate::cfq::Cfq;
use crate::cfq::group::WHOLE;
use crate::cfq::queue::{Queue, QueueId};
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Cfq<T> {
    pub(super) fn check_queues(&self, cx: &Cx<'_>) {
        let (mut queued, mut busy, mut busy_sync, mut sent) = (0, 0, 0, [0; 2]);
        for (id, queue) in self.queues.iter() {
            self.check_queue(cx, id, queue);
            queued += queue.queued;
            busy += u32::from(queue.is_listed());
            busy_sync += u32::from(queue.is_listed() && queue.sync);
            sent[usize::from(queue.sync)] += queue.in_flight;
        }
        assert_eq!(queued, self.queued, "the sum of what waits");
        assert_eq!((busy, busy_sync), (self.busy, self.busy_sync), "queues that want turns");
        assert_eq!(sent, self.sent, "the sums of what was sent");
        assert!(self.in_driver <= sent.iter().sum(), "what the device has was sent");
        let active_waits = self.active.is_some_and(|active| self.queues[active].turn.awaiting);
        assert!(self.idle_timer.is_none() || active_waits, "the timer runs for the active queue");
        let has_context = self.active_context.is_some();
        assert!(self.active.is_some() || !has_context, "an active context is of a turn");
        self.check_holders();
    }

    fn check_queue(&self, cx: &Cx<'_>, id: QueueId, queue: &Queue) {
        let waiting: Vec<_> = queue.sorted.iter(cx.requests).collect();
        let with_prio = waiting.iter().filter(|&&rq| cx.requests[rq].has_prio()).count();
        assert_eq!(waiting.len(), queue.queued as usize, "requests in the sort list");
        assert_eq!(waiting.len(), queue.fifo.iter(cx.requests).count(), "both lists hold the same");
        assert_eq!(with_prio, queue.prio_pending as usize, "requests with the priority flag");
        match queue.next() {
            Some(next) => {
                assert!(waiting.contains(&next), "next is one of what waits");
                let sector = cx.requests[next].sector;
                assert_eq!(queue.next_sector(), Some(sector), "where next starts is known");
            }
            None => assert!(waiting.is_empty(), "one of what waits is next"),
        }
        assert!(queue.is_listed() || waiting.is_empty(), "a queue with requests is listed");
        let is_active = self.active == Some(id);
        assert!(queue.is_listed() || !is_active, "the active queue is listed");
        assert!(is_active || !queue.is_listed() || !waiting.is_empty(), "one that waits has work");
        assert!(queue.near.is_none() || !waiting.is_empty(), "an indexed queue has requests");
        assert!(queue.near.is_none() || self.is_indexed(id), "an indexed queue is on its index");
        assert!(queue.requests_bound >= queue.queued + queue.in_flight, "its requests are bound");
        assert!(queue.holders > 0 || queue.requests_bound > 0, "an unused queue is freed");
    }

    /// Each task's slot holds its queue and those into which that is to merge; a group holds its
    /// async queues.
    fn check_holders(&self) {
        let mut holders = BTreeMap::<QueueId, u32>::new();
        for context in self.contexts.values() {
            for mut link in context.queues {
                while let Some(queue) = link {
                    *holders.entry(queue).or_default() += 1;
                    link = self.queues[queue].merge_into;
                }
            }
        }
        for group in self.groups.values() {
            for queue in group.async_queues.into_iter().flatten() {
                *holders.entry(queue).or_default() += 1;
            }
        }
        for (id, queue) in self.queues.iter() {
            let expected = holders.get(&id).copied().unwrap_or(0);
            assert_eq!(queue.holders, expected, "who holds a queue");
        }
    }

    pub(super) fn check_groups(&self, cx: &Cx<'_>) {
        for (id, state) in &self.groups {
            let members = || self.queues.iter().map(|(_, queue)| queue).filter(|q| q.group == id);
            let listed = members().filter(|queue| queue.is_listed()).count();
            assert_eq!(listed, state.listed as usize, "listed queues of the group");
            assert_eq!(state.listed, state.trees.len(), "they are on its trees, each on one");
            let queued: u32 = members().map(|queue| queue.queued).sum();
            let in_flight: u32 = members().map(|queue| queue.in_flight).sum();
            assert_eq!((queued, in_flight), (state.queued, state.in_flight), "its requests");
            assert_eq!(state.is_on_tree(), state.listed > 0, "on the tree if it wants turns");
            let children = self.groups.iter().filter(|(it, _)| cx.groups[*it].parent == Some(id));
            state.check_sums(children.map(|(_, child)| child));
            if state.is_on_tree() {
                assert!((1..=WHOLE).contains(&state.fraction), "a part of the whole");
            }
        }
    }
}
