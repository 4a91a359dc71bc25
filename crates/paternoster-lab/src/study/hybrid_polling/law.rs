//! How long I/Os take, and how late sleeps end: laws with the draws of them.

use std::f64::consts::TAU;

use paternoster_model::Draws;

/// The standard normal distribution, by the method of Box and Muller.
fn normal(draws: &mut Draws) -> f64 {
    let radius = (-2.0 * libm::log(draws.above_zero())).sqrt();
    radius * libm::cos(TAU * draws.above_zero())
}

/// The sum of two exponential times of mean 1.
fn gamma(draws: &mut Draws) -> f64 {
    -libm::log(draws.above_zero() * draws.above_zero())
}

fn happens(draws: &mut Draws, probability: f64) -> bool {
    probability > 0.0 && draws.above_zero() <= probability
}

/// How late sleeps end, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overshoots {
    pub(super) base_us: f64,
    pub(super) deviation_us: f64,
    pub(super) gamma_us: f64,
    /// How often it is so much longer.
    pub(super) rare: f64,
    pub(super) rare_us: f64,
}

impl Overshoots {
    /// In ns.
    pub(super) fn draw(&self, draws: &mut Draws) -> u64 {
        let common =
            self.base_us + self.deviation_us * normal(draws) + self.gamma_us * gamma(draws);
        let rare = if happens(draws, self.rare) { self.rare_us } else { 0.0 };
        nanos(common + rare)
    }
}

/// How often something else has the CPU, and for how long: the means of two exponential laws, in
/// µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StallLaw {
    /// From the end of one to the next; 0 where there is none.
    pub(super) every_us: f64,
    pub(super) length_us: f64,
}

/// The next span in which something else has the CPU. These come and go whatever the thread does.
#[derive(Clone, Debug)]
pub(super) struct Stalls {
    law: StallLaw,
    draws: Draws,
    begin: u64,
    end: u64,
}

impl Stalls {
    pub(super) fn new(law: StallLaw, draws: Draws, now: u64) -> Self {
        let mut stalls = Self { law, draws, begin: now, end: now };
        stalls.draw();
        stalls
    }

    /// When the thread runs that wants to run then; `moment` never goes back.
    pub(super) fn runs_at(&mut self, moment: u64) -> u64 {
        let mut runs = moment;
        while self.begin <= runs {
            runs = runs.max(self.end);
            self.draw();
        }
        runs
    }

    /// When it begins.
    pub(super) fn next(&self) -> u64 {
        self.begin
    }

    fn draw(&mut self) {
        let StallLaw { every_us, length_us } = self.law;
        if every_us <= 0.0 {
            self.begin = u64::MAX;
            return;
        }
        self.begin = self.end + nanos(-every_us * libm::log(self.draws.above_zero()));
        self.end = self.begin + nanos(-length_us * libm::log(self.draws.above_zero()));
    }
}

/// How long the I/Os of a stream take, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    pub(super) base_us: f64,
    pub(super) uniform_us: f64,
    pub(super) gamma_us: f64,
    pub(super) pareto_us: f64,
    pub(super) pareto_alpha: f64,
    /// Log-normal times in the place of all these, if it is not 0.
    pub(super) median_us: f64,
    pub(super) sigma: f64,
    /// How often it is so much longer.
    pub(super) rare: f64,
    pub(super) rare_us: f64,
    /// This part takes that long instead.
    pub(super) fast_part: f64,
    pub(super) fast_us: f64,
    pub(super) fast_uniform_us: f64,
    /// By what times are multiplied from the middle of the measured I/Os on.
    pub(super) midway: f64,
    /// By how much times swing up and down, in so many I/Os.
    pub(super) drift: f64,
    pub(super) drift_ios: f64,
    /// Of so many I/Os so many in a row take that long instead.
    pub(super) stall_every: u64,
    pub(super) stall_ios: u64,
    pub(super) stall_us: f64,
    pub(super) stall_uniform_us: f64,
}

impl Times {
    /// How long the I/O of that number takes, in ns; `middle` is the number of the middle one.
    #[allow(clippy::cast_precision_loss)] // numbers are far below 2⁵³
    pub(super) fn draw(&self, number: u64, middle: u64, draws: &mut Draws) -> u64 {
        let plain = self.plain(draws);
        if self.stall_every > 0 && number % self.stall_every < self.stall_ios {
            return nanos(self.stall_us + self.stall_uniform_us * draws.above_zero());
        }
        let phase = number as f64 / self.drift_ios.max(1.0);
        let drift = 1.0 + self.drift * libm::sin(TAU * phase);
        let midway = if number >= middle { self.midway } else { 1.0 };
        nanos(plain * drift * midway)
    }

    fn plain(&self, draws: &mut Draws) -> f64 {
        if happens(draws, self.fast_part) {
            return self.fast_us + self.fast_uniform_us * draws.above_zero();
        }
        let rare = if happens(draws, self.rare) { self.rare_us } else { 0.0 };
        if self.median_us > 0.0 {
            return rare + self.median_us * libm::exp(self.sigma * normal(draws));
        }
        let uniform = self.uniform_us * draws.above_zero();
        let gamma = self.gamma_us * gamma(draws);
        let pareto = if self.pareto_us > 0.0 {
            self.pareto_us * (libm::pow(draws.above_zero(), -1.0 / self.pareto_alpha) - 1.0)
        } else {
            0.0
        };
        self.base_us + rare + uniform + gamma + pareto
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it saturates
pub(super) fn nanos(micros: f64) -> u64 {
    (micros * 1e3).round() as u64
}
