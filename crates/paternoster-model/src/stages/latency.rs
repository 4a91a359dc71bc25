//! A network before a device: each answer comes so much later.

use std::collections::VecDeque;

use paternoster::{Instant, Nanos};

use super::Stage;
use crate::{Completion, Model};

/// What answers take on their way.
#[derive(Debug)]
pub struct Latency {
    delay: Nanos,
    /// Answers that are on their way, with when they come.
    on_way: VecDeque<(Instant, Completion)>,
}

impl Latency {
    /// A way that takes so long.
    pub fn new(delay: Nanos) -> Self {
        Self { delay, on_way: VecDeque::new() }
    }
}

impl Stage for Latency {
    fn poll_timeout(&self, device: Option<Instant>) -> Option<Instant> {
        let comes = self.on_way.front().map(|(at, _)| *at);
        match (comes, device) {
            (Some(comes), Some(device)) => Some(comes.min(device)),
            (comes, device) => comes.or(device),
        }
    }

    fn poll(&mut self, device: &mut dyn Model, now: Instant) -> Option<Completion> {
        while let Some(at) = device.poll_timeout().filter(|at| *at <= now) {
            if let Some(done) = device.poll(at) {
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
    use super::*;
    use crate::stages::Behind;
    use crate::tests::{at, ends, read};
    use crate::{Servers, ServersParameters, Service};

    #[test]
    fn answers_come_later_and_servers_do_not_wait_for_them() {
        let one = ServersParameters::new(1, Service::constant(Nanos::from_micros(50)));
        let latency = Latency::new(Nanos::from_micros(400));
        let mut device = Behind::new(latency, Servers::new(one, 1));
        device.submit(at(0), read(0));
        device.submit(at(0), read(1));
        assert_eq!(ends(&mut device), [(0, 450), (1, 500)]);
    }
}
