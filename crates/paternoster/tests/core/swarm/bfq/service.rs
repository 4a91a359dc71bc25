//! What a service is charged, worked out from its course in the trace: the sectors that were
//! dispatched, or the time that it took, if it was slow. This holds for sync queues that are not
//! raised, and whose services do not end with idling.

use std::collections::BTreeMap;

use paternoster::{BfqEvent, BudgetEnd, Event, Hz, Instant, IocId};

/// The greatest budget, until another is told.
const MAX_BUDGET: u64 = 16384;

/// The service that goes on, and the budgets of the next ones.
#[derive(Debug)]
pub(crate) struct Service {
    hz: Hz,
    rotational: bool,
    max_budget: u64,
    begun: Instant,
    budget: u64,
    dispatched: u64,
    /// What each queue may use in its next service, unless its next request is larger.
    next_budgets: BTreeMap<IocId, u64>,
}

impl Service {
    pub(crate) fn new(hz: Hz, rotational: bool) -> Self {
        let begun = Instant::START;
        Self {
            hz,
            rotational,
            max_budget: MAX_BUDGET,
            begun,
            budget: 0,
            dispatched: 0,
            next_budgets: BTreeMap::new(),
        }
    }

    /// Takes an event, and judges the charge at the end of the service.
    pub(crate) fn hear(&mut self, at: Instant, event: Event) {
        match event {
            Event::Bfq(BfqEvent::MaxBudget { sectors, .. }) => self.max_budget = sectors.0.into(),
            Event::Bfq(BfqEvent::InService { budget, .. }) => {
                self.begun = at;
                self.budget = budget.0.into();
                self.dispatched = 0;
            }
            Event::Bfq(BfqEvent::BudgetExpired { queue, why, slow, service, .. }) => {
                self.judge(at, why, slow, service.0.into());
                self.adapt_budget(queue.ioc, why);
            }
            _ => {}
        }
    }

    /// What a queue has to have for its service, if that is known.
    pub(crate) fn next_budget(&self, queue: IocId) -> Option<u64> {
        self.next_budgets.get(&queue).copied()
    }

    /// A queue that used up its budget gets four times as much, one that used up its time twice.
    fn adapt_budget(&mut self, queue: IocId, why: BudgetEnd) {
        let times = match why {
            BudgetEnd::Exhausted => 4,
            BudgetEnd::Timeout => 2,
            _ => {
                self.next_budgets.remove(&queue);
                return;
            }
        };
        let before = self.next_budgets.get(&queue).copied().unwrap_or(self.budget);
        self.next_budgets.insert(queue, (before * times).min(self.max_budget));
    }

    /// Sectors of the queue in service are dispatched.
    pub(crate) fn dispatch(&mut self, sectors: u64) {
        self.dispatched += sectors;
    }

    fn judge(&self, at: Instant, why: BudgetEnd, slow: bool, charged: u64) {
        let took = at.saturating_since(self.begun).as_nanos() / 1000;
        // In a millisecond to twenty it depends on its seeks.
        if took > 20_000 {
            assert_eq!(
                slow,
                self.dispatched < self.max_budget / 2,
                "it got little in its time: {self:?}"
            );
        }
        let much_left = self.budget - self.dispatched >= self.budget / 3;
        let by_time = slow || (why == BudgetEnd::Timeout && much_left);
        let default_timeout = u64::from(self.hz.ticks_per_s() / 8) * 1000;
        let full = default_timeout / u64::from(self.hz.ticks_per_s());
        let millis = match took {
            0..1000 if self.rotational => 8,
            0..1000 => 2,
            _ => took / 1000,
        };
        let time = self.max_budget * millis.min(full) / full;
        let expected = if by_time { time.max(self.dispatched) } else { self.dispatched };
        assert_eq!(charged, expected, "what the service took: {self:?}, {at:?}, {why:?}");
    }
}
