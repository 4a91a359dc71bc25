//! Nanoseconds that a request takes in each scheduler.

#![allow(missing_docs)] // criterion's macro makes a public function

mod load;

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use load::{Config, Kind, Load, server_sink};
use paternoster::scheduler::Scheduler;
use paternoster::{
    AnyScheduler, Bfq, Cfq, Kyber, MqDeadline, NoScheduler, NoTrace, SchedulerKind, Wfq,
};

/// Requests before anything is measured.
const WARM_UP: u32 = 10_000;

fn requests(criterion: &mut Criterion) {
    for config in Config::all() {
        match config.kind {
            Kind::None => measure(criterion, config, NoScheduler::new(NoTrace)),
            Kind::MqDeadline => measure(criterion, config, MqDeadline::new(NoTrace)),
            Kind::Kyber => measure(criterion, config, Kyber::new(NoTrace)),
            Kind::Cfq => measure(criterion, config, Cfq::new(NoTrace)),
            Kind::Bfq | Kind::BfqMerging => measure(criterion, config, Bfq::new(NoTrace)),
            Kind::Wfq => measure(criterion, config, Wfq::new(NoTrace)),
            Kind::AnyCfq => {
                let scheduler = AnyScheduler::new(SchedulerKind::Cfq, NoTrace);
                measure(criterion, config, scheduler);
            }
            Kind::ServedCfq | Kind::TracedCfq => {
                let sink = server_sink(matches!(config.kind, Kind::TracedCfq));
                let scheduler = AnyScheduler::new(SchedulerKind::Cfq, sink);
                measure(criterion, config, scheduler);
            }
        }
    }
}

fn measure<S: Scheduler>(criterion: &mut Criterion, config: Config, scheduler: S) {
    let mut load = Load::new(scheduler, config);
    load.serve(WARM_UP);
    criterion.bench_function(&config.to_string(), |bencher| bencher.iter(|| load.step()));
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .sample_size(50);
    targets = requests
}
criterion_main!(benches);
