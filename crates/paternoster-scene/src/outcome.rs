//! What the tenants of a scene got.

#![allow(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]

use hdrhistogram::Histogram;
use paternoster::{Instant, Nanos};

use crate::scene::{Scene, Tenant};

/// What a tenant got.
#[derive(Clone, Debug, PartialEq)]
pub struct TenantOutcome {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// It asked for less than its share.
    pub light: bool,
    /// Bytes of its requests.
    pub block: u32,
    /// Its requests that completed.
    pub requests: u64,
    /// What they cost the device, in reads without bytes; where that is not known, how many they
    /// are.
    pub cost: f64,
    /// How long they kept servers of the device, summed over the servers, where that was looked at.
    pub device: Option<Nanos>,
    /// The part of the time in which it had a request waiting.
    pub backlogged: f64,
    /// From a request to its answer, in ns.
    pub latency: Histogram<u64>,
}

impl TenantOutcome {
    /// What a tenant got that has got nothing yet.
    pub fn none_of(tenant: &Tenant) -> Self {
        Self {
            name: tenant.name.clone(),
            weight: tenant.weight,
            light: tenant.light,
            block: tenant.block,
            requests: 0,
            cost: 0.0,
            device: None,
            backlogged: 0.0,
            latency: Histogram::new(3).expect("three digits are allowed"),
        }
    }

    /// A quantile of its latency, in µs.
    pub fn latency_us(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1e3
    }
}

/// What was measured of a scene while it counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How long it counted, in seconds.
    pub seconds: f64,
    /// All requests that completed.
    pub requests: u64,
    /// What they cost the device, in reads without bytes.
    pub cost: f64,
    /// The tenants, as the scene has them.
    pub tenants: Vec<TenantOutcome>,
    /// The greatest share error of a tenant in one second, for each whole second.
    pub seconds_errors: Vec<f64>,
    /// How many requests were in the device, on average over time, where that was looked at.
    pub in_flight: Option<f64>,
}

impl Outcome {
    /// Sets what requests cost from the device's time for them, in units of the time that a read
    /// without bytes takes. Costs stay where that time is not known.
    pub fn price(&mut self, read: Nanos) {
        for tenant in &mut self.tenants {
            if let Some(took) = tenant.device {
                tenant.cost = took.as_nanos() as f64 / read.as_nanos() as f64;
            }
        }
        self.cost = self.tenants.iter().map(|tenant| tenant.cost).sum();
    }

    /// What was done a second, in reads without bytes.
    pub fn throughput(&self) -> f64 {
        self.cost / self.seconds
    }

    /// The share of a tenant among those that ask for their share, by cost; none where they got
    /// nothing.
    pub fn share(&self, tenant: &TenantOutcome) -> Option<f64> {
        let all: f64 = self.heavy().map(|tenant| tenant.cost).sum();
        (all > 0.0).then(|| tenant.cost / all)
    }

    /// The part that its weight entitles a tenant to, among the same.
    pub fn entitled(&self, tenant: &TenantOutcome) -> f64 {
        let weights: f64 = self.heavy().map(|tenant| f64::from(tenant.weight)).sum();
        f64::from(tenant.weight) / weights
    }

    /// By how much of its share a tenant that does not ask for less got more or less, at most.
    pub fn share_error(&self) -> f64 {
        share_error(self.heavy().map(|tenant| (tenant.weight, tenant.cost)))
    }

    /// The part of the time in which each such tenant had a request waiting: that of the tenant
    /// with the least.
    pub fn backlogged(&self) -> f64 {
        self.heavy().map(|tenant| tenant.backlogged).fold(1.0, f64::min)
    }

    /// The first tenant that asks for less than its share.
    pub fn light(&self) -> Option<&TenantOutcome> {
        self.tenants.iter().find(|tenant| tenant.light)
    }

    /// The tenants that ask for their share.
    fn heavy(&self) -> impl Iterator<Item = &TenantOutcome> + Clone {
        self.tenants.iter().filter(|tenant| !tenant.light)
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
pub struct Counting {
    from: Instant,
    requests: u64,
    cost: f64,
    tenants: Vec<TenantOutcome>,
    /// What each tenant got in each second.
    each_second: Vec<Vec<f64>>,
}

impl Counting {
    /// Counts what completes from then on.
    pub fn new(from: Instant, scene: &Scene) -> Self {
        let tenants = scene.tenants.iter().map(TenantOutcome::none_of).collect();
        Self { from, requests: 0, cost: 0.0, tenants, each_second: Vec::new() }
    }

    /// A request of that cost completed that its tenant asked for at `asked`.
    pub fn completed(&mut self, now: Instant, tenant: usize, asked: Instant, cost: f64) {
        if now < self.from {
            return;
        }
        self.requests += 1;
        self.cost += cost;
        let count = self.tenants.len();
        let own = &mut self.tenants[tenant];
        own.requests += 1;
        own.cost += cost;
        own.latency.record(now.saturating_since(asked).as_nanos()).expect("it grows");
        let second = now.saturating_since(self.from).as_nanos() / 1_000_000_000;
        let second = usize::try_from(second).expect("a scene has few seconds");
        if self.each_second.len() <= second {
            self.each_second.resize(second + 1, vec![0.0; count]);
        }
        self.each_second[second][tenant] += cost;
    }

    /// The outcome of a scene that ended then, by how long each tenant had a request waiting.
    pub fn end(mut self, now: Instant, backlogged: &[Nanos], in_flight: f64) -> Outcome {
        let span = now.saturating_since(self.from).as_nanos() as f64;
        for (tenant, backlogged) in self.tenants.iter_mut().zip(backlogged) {
            tenant.backlogged = backlogged.as_nanos() as f64 / span;
        }
        // What is left of the last second is not whole.
        let whole = usize::try_from(now.saturating_since(self.from).as_nanos() / 1_000_000_000);
        self.each_second.truncate(whole.expect("a scene has few seconds"));
        let heavy: Vec<_> = (0..self.tenants.len()).filter(|&it| !self.tenants[it].light).collect();
        let error = |got: &Vec<f64>| {
            share_error(heavy.iter().map(|&it| (self.tenants[it].weight, got[it])))
        };
        let seconds_errors = self.each_second.iter().map(error).collect();
        Outcome {
            seconds: span / 1e9,
            requests: self.requests,
            cost: self.cost,
            tenants: self.tenants,
            seconds_errors,
            in_flight: Some(in_flight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster_model::{Kind, ServersParameters, Service};

    /// Equal parts where a seventh, two and four are due: 7/3 of a share, 7/6 and 7/12.
    #[test]
    fn share_error_is_that_of_the_tenant_that_is_farthest_off() {
        let error = |got| share_error([100, 200, 400].into_iter().zip(got));
        assert!((error([1.0, 1.0, 1.0]) - 4.0 / 3.0).abs() < 1e-9);
        assert!(error([10.0, 20.0, 40.0]) < 1e-9);
    }

    #[test]
    fn what_completes_before_it_counts_is_left_out_and_who_asks_for_little_of_shares() {
        let from = Instant::START + Nanos::from_secs(1);
        let mut tenants: Vec<_> =
            [100, 200, 400, 100].map(|weight| Tenant::reads(weight, 1, 1)).into();
        tenants[3].light = true;
        let device = Kind::Servers(ServersParameters::new(1, Service::constant(Nanos::ZERO)));
        let scene = Scene {
            name: String::new(),
            about: String::new(),
            device: device.into(),
            tenants,
            warm_up: Nanos::from_secs(1),
            counted: Nanos::from_millis(1500),
        };
        let mut counting = Counting::new(from, &scene);
        counting.completed(Instant::START, 0, Instant::START, 1.0);
        for (tenant, cost) in [100.0, 200.0, 400.0].into_iter().enumerate() {
            counting.completed(from, tenant, from, cost);
        }
        counting.completed(from + Nanos::from_micros(70), 3, from, 1.0);
        let backlogged = [1500, 1500, 750, 0].map(Nanos::from_millis);
        let outcome = counting.end(from + scene.counted, &backlogged, 3.0);
        assert_eq!((outcome.requests, outcome.seconds_errors.len()), (4, 1));
        assert!(outcome.share_error() < 1e-9);
        assert!((outcome.backlogged() - 0.5).abs() < 1e-9);
        let light = outcome.light().expect("it is there");
        assert!((light.latency_us(0.5) - 70.0).abs() < 0.1);
        assert!((outcome.throughput() - 701.0 / 1.5).abs() < 1e-9);
        assert!((outcome.entitled(&outcome.tenants[1]) - 2.0 / 7.0).abs() < 1e-9);
    }
}
