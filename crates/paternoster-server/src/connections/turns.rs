//! Whose connections the owner's thread works for next, and how much of it in one turn.
//!
//! ```text
//!   rotation   tenant b ──▶ tenant c ──▶ tenant a ─┐     a visit: up to a quantum of work
//!       ▲                                          │     a turn: visits, up to a budget
//!       └──────── what is left of b's ─────────────┘     then the disk and the ring again
//! ```
//!
//! Connections with something to do are queued by tenant. Work is counted in units, about a system
//! call or a command each; a tenant that has used more than its quantum sits out visits until that
//! is made up (deficit round robin). So a tenant with a thousand connections, or with questions
//! that take long, does not get more of the thread than one with a single connection, and no turn
//! is so long that the disk has nothing to do.

use std::collections::VecDeque;

/// Units of work in one visit to a tenant.
pub(super) const QUANTUM: i32 = 32;

/// Units of work in one turn.
const BUDGET: i32 = 128;

/// Connections with something to do; `C` names one.
#[derive(Debug)]
pub(super) struct Turns<C> {
    tenants: Vec<Queue<C>>,
    /// Tenants with something to do, the next first.
    rotation: VecDeque<usize>,
    /// Units left in this turn.
    budget: i32,
    /// Whose visit has not been charged yet.
    visited: Option<usize>,
}

#[derive(Debug)]
struct Queue<C> {
    ready: VecDeque<C>,
    /// Units that it may use, or has used beyond those.
    left: i32,
}

impl<C> Turns<C> {
    pub(super) fn new(tenants: usize) -> Self {
        let queue = || Queue { ready: VecDeque::new(), left: 0 };
        let tenants = std::iter::repeat_with(queue).take(tenants).collect();
        Self { tenants, rotation: VecDeque::new(), budget: BUDGET, visited: None }
    }

    /// A connection of the tenant has something to do. It is queued once. A visit is charged before
    /// its connection is queued again: else what it was given for the visit counts for the next.
    pub(super) fn add(&mut self, tenant: usize, connection: C) {
        debug_assert_ne!(self.visited, Some(tenant), "a visit is charged first");
        let queue = &mut self.tenants[tenant];
        if queue.ready.is_empty() {
            self.rotation.push_back(tenant);
            // What was not used is not saved; what was used beyond stays owed.
            queue.left = queue.left.min(0) + QUANTUM;
        }
        queue.ready.push_back(connection);
    }

    pub(super) fn begin_turn(&mut self) {
        self.budget = BUDGET;
    }

    /// The connection to work for now, whose visit is to be charged; none when the turn is over. It
    /// is not queued any more.
    pub(super) fn next(&mut self) -> Option<C> {
        if self.budget <= 0 {
            return None;
        }
        loop {
            let tenant = *self.rotation.front()?;
            let queue = &mut self.tenants[tenant];
            if queue.left <= 0 {
                queue.left += QUANTUM;
                self.rotation.rotate_left(1);
                continue;
            }
            let connection = queue.ready.pop_front();
            self.visited = Some(tenant);
            if queue.ready.is_empty() {
                self.rotation.pop_front();
            }
            return connection;
        }
    }

    /// The tenant has used so many units.
    pub(super) fn charge(&mut self, tenant: usize, units: i32) {
        self.visited = None;
        self.tenants[tenant].left -= units;
        self.budget -= units;
    }

    /// Whether a further turn has something to do.
    pub(super) fn has_more(&self) -> bool {
        !self.rotation.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns in which tenant 0 has a thousand connections with work of `units` each, and tenant 1
    /// one connection with as much as one visit takes, always: the units of each.
    fn work(units: i32, turns_taken: usize) -> [i32; 2] {
        let mut turns = Turns::new(2);
        for connection in 0..1000 {
            turns.add(0, (0, connection));
        }
        turns.add(1, (1, 0));
        let mut used = [0; 2];
        for _ in 0..turns_taken {
            turns.begin_turn();
            let mut in_turn = 0;
            while let Some((tenant, connection)) = turns.next() {
                let units = if tenant == 0 { units } else { QUANTUM };
                turns.charge(tenant, units);
                used[tenant] += units;
                in_turn += units;
                turns.add(tenant, (tenant, connection));
            }
            assert!(in_turn < BUDGET + units.max(QUANTUM), "a turn of {in_turn} units");
            assert!(turns.has_more());
        }
        used
    }

    #[test]
    fn a_thousand_connections_get_no_more_than_one() {
        let [many, one] = work(1, 1000);
        assert!(many <= one + QUANTUM, "{many} beside {one}");
    }

    #[test]
    fn work_that_takes_long_is_made_up_for() {
        for units in [33, 65, 130, 500] {
            let [long, short] = work(units, 3000);
            let slack = units + 2 * QUANTUM;
            assert!(long <= short + slack && short <= long + slack, "{units}: {long}, {short}");
        }
    }

    #[test]
    fn a_tenant_alone_has_all_of_every_turn() {
        let mut turns = Turns::new(3);
        for _ in 0..1000 {
            turns.add(1, ());
        }
        for _ in 0..7 {
            turns.begin_turn();
            let mut served = 0;
            while turns.next().is_some() {
                turns.charge(1, 1);
                served += 1;
            }
            assert_eq!(served, BUDGET);
        }
        turns.begin_turn();
        let rest = std::iter::from_fn(|| turns.next()).count();
        assert_eq!(rest, 1000 - 7 * usize::try_from(BUDGET).expect("positive"));
        assert!(!turns.has_more());
    }
}
