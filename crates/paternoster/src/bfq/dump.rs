//! What BFQ tells of its inside.

use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::dump::{BudgetDump, Dump, QueueDump, TurnDump};
use crate::time::Nanos;
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    pub(super) fn dump_all(&self, out: &mut dyn Dump) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        out.number("queues", number(self.queues.len()));
        out.number("busy_queues", self.symmetry.busy().into());
        out.number("raised_busy_queues", self.symmetry.raised_busy.into());
        out.number("queued", self.queued.into());
        out.number("in_driver", self.in_driver.into());
        out.number("max_budget", self.budgets.upper().0.into());
        for (queue, _) in self.queues.iter() {
            out.queue(&self.dump_of(queue));
        }
    }

    fn dump_of(&self, queue: QueueId) -> QueueDump {
        let (state, entity) = (&self.queues[queue], &self.wf2q.entities[queue]);
        let base = state.injection.base_time;
        let waker = state.waker.waker.map(|waker| self.queues[waker].name());
        let budget = BudgetDump {
            weight: entity.weight,
            raising: entity.factor,
            raised_since: state.raising.since,
            raised_for: state.raising.span,
            budget: entity.budget,
            service: entity.service,
            max_budget: state.granted,
            injection_limit: state.injection.limit,
            injection_base: (base > Nanos::ZERO).then_some(base),
            waker,
            think_time: state.habits.think.mean(),
            thinks_briefly: state.habits.think_briefly,
            io_bound: state.habits.io_bound,
            soft_rt: self.is_soft_rt(queue),
            in_large_burst: state.in_large_burst,
        };
        QueueDump {
            name: state.name(),
            group: entity.above,
            io_prio: entity.io_prio(),
            in_service: self.in_service == Some(queue),
            busy: state.busy,
            waited_for: state.waiting,
            shared: state.shared,
            seeky: state.is_seeky(),
            queued: state.queued,
            in_flight: state.in_flight,
            turn: TurnDump::Budget(budget),
        }
    }
}
