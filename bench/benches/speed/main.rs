//! How fast the laboratory is: simulated reads a second of a core's time, which is the wall's
//! where nothing else runs.

#![allow(missing_docs)] // criterion's macro makes a public function

mod load;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use load::{Config, serve};
use paternoster::SchedulerKind;
use paternoster_lab::fio::{Jobs, Surroundings};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{PageCacheParameters, run_jobs};
use paternoster_model::open_device;
use rustix::time::{ClockId, clock_gettime};

/// Reads before anything is measured.
const WARM_UP: u64 = 20_000;

/// Random reads as fio does them, 128 outstanding. `number_ios` ends it.
const JOB: &str = "[job]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\niodepth=128\nsize=512g\n\
                   norandommap\n";

fn speed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulated reads");
    group.throughput(Throughput::Elements(1));
    for config in Config::all() {
        let mut sim = config.simulation();
        serve(&mut sim, WARM_UP);
        group.bench_function(config.to_string(), |bencher| {
            bencher.iter_custom(|reads| {
                let begun = core_time();
                serve(&mut sim, reads);
                core_time().saturating_sub(begun)
            });
        });
    }
    group.bench_function("none, nvme-980pro, a job of fio", |bencher| bencher.iter_custom(fio_job));
}

/// How long so many reads of a job of fio take, set-up and report included.
fn fio_job(reads: u64) -> Duration {
    let surroundings = Surroundings::without_files(1 << 40, 1);
    let text = format!("{JOB}number_ios={reads}\n");
    let jobs = Jobs::parse("job.fio", text.as_bytes(), &surroundings).expect("a job file");
    let device = open_device("nvme-980pro", 1).expect("it comes with the laboratory");
    let setup = Setup::new(SchedulerKind::None);
    let begun = core_time();
    let outcome =
        run_jobs(&jobs, &setup, PageCacheParameters::default(), device, |_| {}).expect("it runs");
    let taken = core_time().saturating_sub(begun);
    assert_eq!(outcome.results[0].directions[0].ios, reads);
    taken
}

/// How long a core has worked for this thread.
fn core_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.try_into().expect("a thread's time is not negative")
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1500))
        .sample_size(20);
    targets = speed
}
criterion_main!(benches);
