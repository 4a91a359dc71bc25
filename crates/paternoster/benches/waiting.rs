//! Nanoseconds that an I/O takes in the estimator of each way to wait: it is submitted, the caller
//! asks how to wait until it is done, and it completes.

#![allow(missing_docs)] // criterion's macro makes a public function

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use paternoster::poll::{AutoTunables, Completions, Estimator, PollClass, PollPolicy, Wait};
use paternoster::{Direction, Instant, Nanos, SectorCount};

/// I/Os before anything is measured.
const WARM_UP: u32 = 100_000;

/// How long the CPU that sleeps takes, and how late a sleep ends, at least.
const SLEEP: Nanos = Nanos::from_micros(3);

/// One I/O at a time of 72 to 88 µs.
struct OneAtATime {
    estimator: Estimator,
    class: PollClass,
    now: Instant,
    ios: u64,
}

impl OneAtATime {
    fn new(policy: PollPolicy) -> Self {
        let mut estimator = Estimator::new(policy, Completions::Stamped);
        while let Some(asked) = estimator.calibration_wanted() {
            estimator.calibrated(asked, SLEEP, SLEEP);
        }
        let class = PollClass::of(Direction::Read, SectorCount(8)).expect("it has sectors");
        Self { estimator, class, now: Instant::START, ios: 0 }
    }

    fn io(&mut self) {
        self.ios += 1;
        let time = Nanos::new(72_000 + self.ios * 7919 % 16_000);
        let ticket = self.estimator.submitted(self.class, self.now);
        let done = self.now + time;
        if let Wait::SleepUntil(until) = self.estimator.wait(self.now) {
            let woken = (until + SLEEP).min(done.max(until));
            self.estimator.woke(until, woken, done <= woken);
            self.now = woken;
        }
        if done > self.now {
            black_box(self.estimator.wait(self.now));
            self.now = done;
        }
        self.estimator.completed(ticket, done);
        self.now = self.now + Nanos::from_micros(1);
    }
}

fn waiting(criterion: &mut Criterion) {
    let hybrid = PollPolicy::hybrid(0, false, Nanos::ZERO).expect("within the range");
    for (name, policy) in [
        ("interrupt", PollPolicy::Interrupt),
        ("classic", PollPolicy::Classic),
        ("hybrid", hybrid),
        ("auto", PollPolicy::Auto(AutoTunables::DEFAULT)),
    ] {
        let mut one = OneAtATime::new(policy);
        (0..WARM_UP).for_each(|_| one.io());
        criterion.bench_function(&format!("waiting/{name}"), |bencher| bencher.iter(|| one.io()));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .sample_size(50);
    targets = waiting
}
criterion_main!(benches);
