//! Reports the state of BFQ.

use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::dump::{BudgetDump, Dump, QueueDump, ServiceDump};
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    pub(super) fn dump_all(&self, out: &mut dyn Dump) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        out.number("queues", number(self.queues.len()));
        out.number("busy_queues", self.busy.count().into());
        out.number("raised_busy_queues", self.busy.raised().into());
        out.number("queued", self.queued.into());
        out.number("in_driver", self.in_driver.into());
        out.number("hw_tag", self.hw_queueing.hw_tag());
        out.number("nonrot_with_queueing", self.hw_queueing.is_nonrot_with_queueing().into());
        out.number("max_budget", self.budgets.upper().0.into());
        for (queue, _) in self.queues.iter() {
            out.queue(&self.dump_of(queue));
        }
    }

    fn dump_of(&self, queue: QueueId) -> QueueDump {
        let (state, wf2q) = (&self.queues[queue], &self.wf2q);
        let waker = state.waker.map(|waker| self.queues[waker].name());
        let budget = BudgetDump {
            weight: wf2q.weight(queue),
            raising: state.raising().factor(),
            raised_since: state.raising().since(),
            raised_for: state.raising().length(),
            budget: wf2q.budget(queue),
            service: wf2q.service(queue),
            max_budget: state.max_budget,
            injection_limit: state.injection.limit(),
            injection_base: state.injection.base_time(),
            waker,
            think_time: state.io_pattern.think_time(),
            short_think_time: state.io_pattern.has_short_think_time(),
            io_bound: state.io_pattern.is_io_bound(),
            soft_rt: state.raising().is_soft_rt(),
            in_large_burst: state.in_large_burst,
        };
        QueueDump {
            name: state.name(),
            group: wf2q.group_of(queue),
            io_prio: wf2q.io_prio_of(queue),
            in_service: self.in_service == Some(queue),
            busy: state.busy,
            idling: state.idling,
            shared: state.shared,
            seeky: state.is_seeky(),
            queued: state.queued(),
            in_flight: state.in_flight,
            service: ServiceDump::Budget(budget),
        }
    }
}
