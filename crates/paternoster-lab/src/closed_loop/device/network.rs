//! A network before a device: each answer comes so much later.

use std::collections::VecDeque;

use paternoster::{Instant, Nanos, Sector};

use crate::model::{Command, Completion, Model, Op};

/// A device behind a network.
pub(super) struct Network {
    device: Box<dyn Model>,
    delay: Nanos,
    /// Answers that are on their way, with when they come.
    on_way: VecDeque<(Instant, Completion)>,
}

impl Network {
    pub(super) fn new(device: Box<dyn Model>, delay: Nanos) -> Self {
        Self { device, delay, on_way: VecDeque::new() }
    }
}

impl Model for Network {
    fn depth(&self) -> u32 {
        self.device.depth()
    }

    fn end(&self) -> Sector {
        self.device.end()
    }

    fn rotational(&self) -> bool {
        self.device.rotational()
    }

    fn takes(&self, op: Op) -> bool {
        self.device.takes(op)
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.device.submit(now, command);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let comes = self.on_way.front().map(|(at, _)| *at);
        match (comes, self.device.poll_timeout()) {
            (Some(comes), Some(device)) => Some(comes.min(device)),
            (comes, device) => comes.or(device),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        while let Some(at) = self.device.poll_timeout().filter(|at| *at <= now) {
            if let Some(done) = self.device.poll(at) {
                self.on_way.push_back((at + self.delay, done));
            }
        }
        let &(at, done) = self.on_way.front()?;
        (at <= now).then(|| {
            self.on_way.pop_front();
            done
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::{Pool, PoolParameters};
    use super::super::tests::{at, ends, read};
    use super::*;
    use crate::closed_loop::chance::{Chance, Service};

    #[test]
    fn answers_come_later_and_servers_do_not_wait_for_them() {
        let servers = PoolParameters::new(1, Service::constant(50.0));
        let pool = Box::new(Pool::new(servers, Chance::new(1, 1)));
        let mut network = Network::new(pool, Nanos::from_micros(400));
        network.submit(at(0), read(0));
        network.submit(at(0), read(1));
        assert_eq!(ends(&mut network), [(0, 450), (1, 500)]);
    }
}
