//! The order in which the owner's thread works for tenants, and how much it does in one round.
//!
//! ```text
//!   rotation   tenant b ──▶ tenant c ──▶ tenant a ─┐     a visit: up to a quantum of work
//!       ▲                                          │     a round: visits, up to a budget
//!       └──────── what is left of b's ─────────────┘     then the disk and the ring again
//! ```
//!
//! Connections with something to do are queued by tenant. Work is counted in units, about a system
//! call or a command each; a tenant that has used more than its quantum sits out visits until that
//! is made up (deficit round robin). So a tenant with a thousand connections, or with questions
//! that take long, does not get more of the thread than one with a single connection, and no round
//! is so long that the disk has nothing to do.

use std::collections::VecDeque;

/// Units of work in one visit to a tenant.
pub(super) const QUANTUM: i32 = 16;

/// Units of work in one round: about 0.1 ms. A client that asks again once it is answered waits for
/// the round that goes on meanwhile. With rounds of 128 units one with 64 requests outstanding,
/// beside a flood, had nothing waiting in half of the time, and so lost half of its share.
const BUDGET: i32 = 16;

/// The tenants' connections with something to do; `C` names one.
#[derive(Debug)]
pub(super) struct Rotation<C> {
    tenants: Vec<Queue<C>>,
    /// Tenants with something to do, the next first.
    order: VecDeque<usize>,
    /// Units left in this round.
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

impl<C> Rotation<C> {
    pub(super) fn new(tenants: usize) -> Self {
        let queue = || Queue { ready: VecDeque::new(), left: 0 };
        let tenants = std::iter::repeat_with(queue).take(tenants).collect();
        Self { tenants, order: VecDeque::new(), budget: BUDGET, visited: None }
    }

    /// A connection of the tenant has something to do. It is queued once. A visit is charged before
    /// its connection is queued again: else what it was given for the visit counts for the next.
    pub(super) fn add(&mut self, tenant: usize, connection: C) {
        debug_assert_ne!(self.visited, Some(tenant), "a visit is charged first");
        let queue = &mut self.tenants[tenant];
        if queue.ready.is_empty() {
            self.order.push_back(tenant);
            // What was not used is not saved; what was used beyond stays owed.
            queue.left = queue.left.min(0) + QUANTUM;
        }
        queue.ready.push_back(connection);
    }

    pub(super) fn begin_round(&mut self) {
        self.budget = BUDGET;
    }

    /// The connection to work for now, whose visit is to be charged; none when the round is over.
    /// It is not queued any more.
    pub(super) fn next(&mut self) -> Option<C> {
        if self.budget <= 0 {
            return None;
        }
        loop {
            let tenant = *self.order.front()?;
            let queue = &mut self.tenants[tenant];
            if queue.left <= 0 {
                queue.left += QUANTUM;
                self.order.rotate_left(1);
                continue;
            }
            let connection = queue.ready.pop_front();
            self.visited = Some(tenant);
            if queue.ready.is_empty() {
                self.order.pop_front();
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

    /// Returns whether a further round has something to do.
    pub(super) fn has_more(&self) -> bool {
        !self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds in which tenant 0 has a thousand connections with work of `units` each, and tenant 1
    /// one connection with as much as one visit takes, always: the units of each.
    fn work(units: i32, rounds: usize) -> [i32; 2] {
        let mut rotation = Rotation::new(2);
        for connection in 0..1000 {
            rotation.add(0, (0, connection));
        }
        rotation.add(1, (1, 0));
        let mut used = [0; 2];
        for _ in 0..rounds {
            rotation.begin_round();
            let mut in_round = 0;
            while let Some((tenant, connection)) = rotation.next() {
                let units = if tenant == 0 { units } else { QUANTUM };
                rotation.charge(tenant, units);
                used[tenant] += units;
                in_round += units;
                rotation.add(tenant, (tenant, connection));
            }
            assert!(in_round < BUDGET + units.max(QUANTUM), "a round of {in_round} units");
            assert!(rotation.has_more());
        }
        used
    }

    #[test]
    fn thousand_connections_get_no_more_than_one() {
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
    fn tenant_alone_has_all_of_every_round() {
        let mut rotation = Rotation::new(3);
        for _ in 0..1000 {
            rotation.add(1, ());
        }
        for _ in 0..7 {
            rotation.begin_round();
            let mut served = 0;
            while rotation.next().is_some() {
                rotation.charge(1, 1);
                served += 1;
            }
            assert_eq!(served, BUDGET);
        }
        rotation.begin_round();
        let rest = std::iter::from_fn(|| rotation.next()).count();
        assert_eq!(rest, 1000 - 7 * usize::try_from(BUDGET).expect("positive"));
        assert!(!rotation.has_more());
    }
}
