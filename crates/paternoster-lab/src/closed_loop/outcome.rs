//! What a run has measured.

#![allow(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]

use hdrhistogram::Histogram;
use paternoster::{Instant, Nanos};

use super::tenants::{Client, Clients};

/// The longest latency that is told apart, an hour; in ns.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// What a tenant got.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TenantOutcome {
    /// Its weight.
    pub weight: u32,
    /// Its requests that completed.
    pub requests: u64,
    /// What they cost the device, in requests without bytes.
    pub cost: f64,
    /// The part of the time in which it had a request waiting.
    pub backlogged: f64,
}

/// What requests cost by a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// So many bytes cost as much as one op.
    pub op_bytes: i64,
    /// What a write costs, in percent of a read.
    pub write_percent: i64,
    /// What a write with FUA costs, likewise.
    pub fua_percent: i64,
}

/// The scheduler at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the start of the run.
    pub at: Nanos,
    /// How many requests it lets into the device; none where it does not say.
    pub depth: Option<i64>,
    /// What requests cost by it; none where it does not say.
    pub prices: Option<Prices>,
    /// How many are there.
    pub in_flight: u32,
    /// How many have completed so far.
    pub completed: u64,
}

/// What a run has measured, but for [`samples`](Self::samples), after it warmed up.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How long it counted, in seconds.
    pub seconds: f64,
    /// All requests that completed.
    pub requests: u64,
    /// What they cost the device, in requests without bytes.
    pub cost: f64,
    /// The tenants, in the order of their weights.
    pub tenants: Vec<TenantOutcome>,
    /// The greatest share error of a tenant in one second, for each whole second.
    pub seconds_errors: Vec<f64>,
    /// The victim's latencies, in ns.
    pub victim: Histogram<u64>,
    /// How many requests were in the device, on average over time.
    pub in_flight: f64,
    /// The scheduler from the start of the run on, each 10 ms.
    pub samples: Vec<Sample>,
    /// When it began to count, since the start of the run.
    pub counted_from: Nanos,
}

impl Outcome {
    /// What was done a second, in requests without bytes.
    pub fn throughput(&self) -> f64 {
        self.cost / self.seconds
    }

    /// By how much of its share, of what all tenants but the victim got, a tenant got more or less,
    /// at most.
    pub fn share_error(&self) -> f64 {
        share_error(self.tenants.iter().map(|tenant| (tenant.weight, tenant.cost)))
    }

    /// The part of the time in which each tenant had a request waiting: that of the tenant with the
    /// least.
    pub fn backlogged(&self) -> f64 {
        self.tenants.iter().map(|tenant| tenant.backlogged).fold(1.0, f64::min)
    }

    /// The victim's requests a second.
    pub fn victim_rate(&self) -> f64 {
        self.victim.len() as f64 / self.seconds
    }

    /// A quantile of the victim's latency, in µs.
    pub fn victim_us(&self, quantile: f64) -> f64 {
        self.victim.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The mean depth while it counted, and the last; none where the scheduler does not say.
    pub fn depth(&self) -> Option<(f64, i64)> {
        let counted = self.samples.iter().filter(|sample| sample.at >= self.counted_from);
        let depths: Vec<i64> = counted.filter_map(|sample| sample.depth).collect();
        let last = *depths.last()?;
        Some((depths.iter().sum::<i64>() as f64 / depths.len() as f64, last))
    }
}

/// By how much of its share a tenant got more or less, at most, by the weights of all and what they
/// got.
fn share_error(tenants: impl Iterator<Item = (u32, f64)> + Clone) -> f64 {
    let weights: f64 = tenants.clone().map(|(weight, _)| f64::from(weight)).sum();
    let all: f64 = tenants.clone().map(|(_, got)| got).sum();
    let error = |(weight, got)| {
        let share = f64::from(weight) / weights;
        let part: f64 = got / all;
        (part / share - 1.0).abs()
    };
    tenants.map(error).fold(0.0, f64::max)
}

/// Counts what completes.
#[derive(Debug)]
pub(super) struct Counting {
    from: Instant,
    requests: u64,
    cost: f64,
    tenants: Vec<TenantOutcome>,
    /// What each tenant got in each second.
    each_second: Vec<Vec<f64>>,
    victim: Histogram<u64>,
}

impl Counting {
    /// Counts what completes from then on.
    pub(super) fn new(from: Instant, clients: &Clients) -> Self {
        let victim = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("good bounds");
        let tenant = |weight| TenantOutcome { weight, ..TenantOutcome::default() };
        let tenants = clients.tenants.iter().map(|own| tenant(own.weight)).collect();
        Self { from, requests: 0, cost: 0.0, tenants, each_second: Vec::new(), victim }
    }

    /// A request of that cost completed that was asked for at `asked`.
    pub(super) fn completed(&mut self, now: Instant, client: Client, asked: Instant, cost: f64) {
        if now < self.from {
            return;
        }
        self.requests += 1;
        self.cost += cost;
        match client {
            Client::Victim => {
                self.victim.saturating_record(now.saturating_since(asked).as_nanos());
            }
            Client::Tenant(tenant) => {
                self.tenants[tenant].requests += 1;
                self.tenants[tenant].cost += cost;
                let second = now.saturating_since(self.from).as_nanos() / 1_000_000_000;
                let second = usize::try_from(second).expect("a run has few seconds");
                if self.each_second.len() <= second {
                    self.each_second.resize(second + 1, vec![0.0; self.tenants.len()]);
                }
                self.each_second[second][tenant] += cost;
            }
        }
    }

    /// The outcome of a run that ended then.
    pub(super) fn end(
        mut self,
        now: Instant,
        backlogged: &[Nanos],
        in_flight: f64,
        samples: Vec<Sample>,
    ) -> Outcome {
        let span = now.saturating_since(self.from).as_nanos() as f64;
        for (tenant, backlogged) in self.tenants.iter_mut().zip(backlogged) {
            tenant.backlogged = backlogged.as_nanos() as f64 / span;
        }
        // What is left of the last second is not whole.
        let whole = usize::try_from(now.saturating_since(self.from).as_nanos() / 1_000_000_000);
        self.each_second.truncate(whole.expect("a run has few seconds"));
        let weights = self.tenants.iter().map(|tenant| tenant.weight);
        let error = |got: Vec<f64>| share_error(weights.clone().zip(got.iter().copied()));
        let seconds_errors = self.each_second.into_iter().map(error).collect();
        Outcome {
            seconds: span / 1e9,
            requests: self.requests,
            cost: self.cost,
            tenants: self.tenants,
            seconds_errors,
            victim: self.victim,
            in_flight,
            samples,
            counted_from: self.from.since_start(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_loop::tenants::Tenant;

    /// Equal parts where a seventh, two and four are due: 7/3 of a share, 7/6 and 7/12.
    #[test]
    fn share_error_is_that_of_the_tenant_that_is_farthest_off() {
        let error = |got| share_error([100, 200, 400].into_iter().zip(got));
        assert!((error([1.0, 1.0, 1.0]) - 4.0 / 3.0).abs() < 1e-9);
        assert!(error([10.0, 20.0, 40.0]) < 1e-9);
    }

    #[test]
    fn what_completes_before_it_counts_is_left_out() {
        let from = Instant::START + Nanos::from_secs(1);
        let tenants = [100, 200, 400].map(|weight| Tenant::reads(weight, 1, 1)).to_vec();
        let clients = Clients { tenants, victim_weight: Some(100) };
        let mut counting = Counting::new(from, &clients);
        counting.completed(Instant::START, Client::Tenant(0), Instant::START, 1.0);
        for (tenant, cost) in [100.0, 200.0, 400.0].into_iter().enumerate() {
            counting.completed(from, Client::Tenant(tenant), from, cost);
        }
        counting.completed(from + Nanos::from_micros(70), Client::Victim, from, 1.0);
        let end = from + Nanos::from_millis(1500);
        let backlogged = [1500, 1500, 750].map(Nanos::from_millis);
        let outcome = counting.end(end, &backlogged, 3.0, Vec::new());
        assert_eq!((outcome.requests, outcome.seconds_errors.len()), (4, 1));
        assert!(outcome.share_error() < 1e-9);
        assert!((outcome.backlogged() - 0.5).abs() < 1e-9);
        assert!((outcome.victim_us(0.5) - 70.0).abs() < 0.1);
        assert!((outcome.throughput() - 701.0 / 1.5).abs() < 1e-9);
    }
}
