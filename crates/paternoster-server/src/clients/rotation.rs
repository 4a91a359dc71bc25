//! The order in which a thread takes in what tenants send, and how much in one round: an owner what
//! clients or connection threads send, a connection thread what clients do.
//!
//! ```text
//!   rotation   tenant b ──▶ tenant c ──▶ tenant a ─┐     a visit: up to a quantum of work
//!       ▲                                          │     a round: visits, up to a budget
//!       └──────── what is left of b's ─────────────┘     then the disk and the ring again
//! ```
//!
//! Connections with something to take in are queued by tenant. Work is counted in units, about a
//! microsecond each: a command for the disk or a receive is one, and what is answered at once costs
//! more, as its reply has to be made and sent. A tenant that has used more than its quantum sits
//! out visits until that is made up (deficit round robin). So a tenant with a thousand connections,
//! or with questions that take long, does not get more of the thread than one with a single
//! connection.
//!
//! A round has room for several times as many commands as leave a disk in one (16), so that those
//! of all tenants come to wait in the scheduler, which goes by weight, and not here, where the
//! turns are equal. Answers are not for the disk: of them a round has few, so that the disk does
//! not wait for those of a client that asks for nothing else.

use std::collections::VecDeque;

use slotmap::{Key, SecondaryMap};

/// Units of work in one visit to a tenant.
pub(crate) const QUANTUM: i32 = 16;

/// Units of work in one round: some 0.1 ms. On a disk in memory weights do not hold with as many as
/// leave it in a round (16), in part with two and four times that, and no better without a bound.
const BUDGET: i32 = 128;

/// What is answered at once, without the disk: 16 answers a round. With 128 of them, a client that
/// asks for nothing else would have the disk of its neighbours wait for most of the time.
pub(crate) const ANSWER: i32 = 8;

/// The tenants' connections with something to do; `T` names a tenant, `C` a connection.
#[derive(Debug)]
pub(crate) struct Rotation<T: Key, C> {
    /// Those that have had something to do.
    tenants: SecondaryMap<T, Queue<C>>,
    /// Tenants with something to do, the next first.
    order: VecDeque<T>,
    /// Units left in this round.
    budget: i32,
    /// Whose visit has not been charged yet.
    visited: Option<T>,
}

#[derive(Debug)]
struct Queue<C> {
    ready: VecDeque<C>,
    /// Units that it may use, or has used beyond those.
    left: i32,
}

impl<T: Key, C> Default for Rotation<T, C> {
    fn default() -> Self {
        let (tenants, order) = (SecondaryMap::new(), VecDeque::new());
        Self { tenants, order, budget: BUDGET, visited: None }
    }
}

impl<T: Key, C> Rotation<T, C> {
    /// A connection of the tenant has something to do. It is queued once. A visit is charged before
    /// its connection is queued again: else what it was given for the visit counts for the next.
    pub(crate) fn add(&mut self, tenant: T, connection: C) {
        debug_assert_ne!(self.visited, Some(tenant), "a visit is charged first");
        let entry = self.tenants.entry(tenant).expect("a tenant outlives its connections");
        let queue = entry.or_insert_with(|| Queue { ready: VecDeque::new(), left: 0 });
        if queue.ready.is_empty() {
            self.order.push_back(tenant);
            // What was not used is not saved; what was used beyond stays owed.
            queue.left = queue.left.min(0) + QUANTUM;
        }
        queue.ready.push_back(connection);
    }

    pub(crate) fn begin_round(&mut self) {
        self.budget = BUDGET;
    }

    /// The connection to work for now, whose visit is to be charged; none when the round is over.
    /// It is not queued any more.
    pub(crate) fn next(&mut self) -> Option<C> {
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
    pub(crate) fn charge(&mut self, tenant: T, units: i32) {
        self.visited = None;
        self.tenants[tenant].left -= units;
        self.budget -= units;
    }

    /// The tenant has used so many units outside of its visits: they count against its next ones.
    pub(crate) fn owe(&mut self, tenant: T, units: i32) {
        if let Some(queue) = self.tenants.get_mut(tenant) {
            queue.left -= units;
        }
    }

    /// Returns whether a further round has something to do.
    pub(crate) fn has_more(&self) -> bool {
        !self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use slotmap::SlotMap;

    use super::*;
    use crate::clients::TenantId;

    fn tenants<const N: usize>() -> [TenantId; N] {
        let mut keys = SlotMap::with_key();
        [(); N].map(|()| keys.insert(()))
    }

    /// Rounds in which tenant 0 has a thousand connections with work of `units` each, and tenant 1
    /// one connection with as much as one visit takes, always: the units of each.
    fn work(units: i32, rounds: usize) -> [i32; 2] {
        let mut rotation = Rotation::default();
        let tenants = tenants::<2>();
        for connection in 0..1000 {
            rotation.add(tenants[0], (0, connection));
        }
        rotation.add(tenants[1], (1, 0));
        let mut used = [0; 2];
        for _ in 0..rounds {
            rotation.begin_round();
            let mut in_round = 0;
            while let Some((tenant, connection)) = rotation.next() {
                let units = if tenant == 0 { units } else { QUANTUM };
                rotation.charge(tenants[tenant], units);
                used[tenant] += units;
                in_round += units;
                rotation.add(tenants[tenant], (tenant, connection));
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

    /// As many as eight tenants send while a disk does 16: all are in the scheduler, whoever they
    /// are of.
    #[test]
    fn sixteen_commands_of_each_of_eight_tenants_fit_into_one_round() {
        let mut rotation = Rotation::default();
        let tenants = tenants::<8>();
        for tenant in tenants {
            rotation.add(tenant, tenant);
        }
        rotation.begin_round();
        let visited: Vec<_> = std::iter::from_fn(|| {
            let tenant = rotation.next()?;
            rotation.charge(tenant, 16);
            Some(tenant)
        })
        .collect();
        assert_eq!(visited, tenants);
        assert!(!rotation.has_more());
    }

    #[test]
    fn round_has_sixteen_answers() {
        let mut rotation = Rotation::default();
        let [tenant] = tenants();
        (0..100).for_each(|connection| rotation.add(tenant, connection));
        rotation.begin_round();
        let answers =
            std::iter::from_fn(|| rotation.next().inspect(|_| rotation.charge(tenant, ANSWER)));
        assert_eq!(answers.count(), 16);
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
        let mut rotation = Rotation::default();
        let [_, tenant, _] = tenants();
        for _ in 0..1000 {
            rotation.add(tenant, ());
        }
        for _ in 0..7 {
            rotation.begin_round();
            let mut served = 0;
            while rotation.next().is_some() {
                rotation.charge(tenant, 1);
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
