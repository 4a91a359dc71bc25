//! Runs that share all chance: how much less they differ than runs of other seeds.

use paternoster::{Nanos, SchedulerKind, Sector};
use paternoster_lab::compare::{Measure, Plan};
use paternoster_lab::fio::{Jobs, Surroundings};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{PageCacheParameters, run_jobs};
use paternoster_model::{Described, Kind, Model as _, ServersParameters, Service, Spread};

/// One who thinks, one with some outstanding, and one with many large ones.
const JOBS: &str = "\
[global]
ioengine=libaio
direct=1
rw=randread
size=1g
runtime=200ms
time_based
[thinks]
bs=4k
thinktime=300
; lab: group=/thinks weight=100
[reads]
bs=4k
iodepth=4
; lab: group=/reads weight=100
[large]
bs=32k
iodepth=8
; lab: group=/large weight=200
";

/// Eight servers of 80 us, log-normal.
fn device() -> Described {
    let spread = Spread::LogNormal(0.5);
    let service = Service {
        per_kib: Nanos::from_micros(2),
        ..Service::varying(Nanos::from_micros(80), spread)
    };
    Kind::Servers(ServersParameters::new(8, service).with_room(32, Sector(1 << 31))).into()
}

/// The figures of a run.
fn run(plan: &Plan, scheduler: SchedulerKind, seed: u64) -> Vec<Option<f64>> {
    let model = device().open(seed).expect("a device");
    let bytes = model.end().0 * 512;
    let jobs = jobs(bytes, seed);
    let setup = Setup::new(scheduler);
    let cache = PageCacheParameters::default();
    let outcome = run_jobs(&jobs, &setup, cache, model, |_| {}).expect("a run");
    plan.values(&jobs, &outcome, None)
}

fn jobs(bytes: u64, seed: u64) -> Jobs {
    let surroundings = Surroundings::without_files(bytes, seed);
    Jobs::parse("test.fio", JOBS.as_bytes(), &surroundings).expect("jobs")
}

fn variance(values: &[f64]) -> f64 {
    let mean = paternoster_scene::statistics::mean(values.iter().copied());
    paternoster_scene::statistics::mean(values.iter().map(|value| (value - mean).powi(2)))
}

/// The part of the variance that is left of the difference of two runs if they share their chance,
/// of that with seeds of their own. It is never above 1.1. It is small where schedulers do not
/// idle: `none` and `wfq` keep at most half of the variance of any figure. Those that idle (`cfq`,
/// `bfq`) go other ways after the first request that came a little later: all of it may be left.
#[test]
fn runs_that_share_chance_differ_less() {
    use SchedulerKind::{Bfq, Cfq, MqDeadline, None, Wfq};
    const RUNS: u64 = 24;
    let plan = Plan::of(&jobs(1 << 40, 1));
    let of_scheduler = |scheduler| -> Vec<Vec<Option<f64>>> {
        (1..=RUNS).map(|seed| run(&plan, scheduler, seed)).collect()
    };
    let runs = [None, Wfq, MqDeadline, Cfq, Bfq].map(of_scheduler);
    let mut parts = Vec::new();
    for (one, other) in [(0, 1), (0, 2), (1, 3), (2, 4)] {
        for figure in 0..plan.len() {
            let (_, measure) = plan.figure(figure);
            if !matches!(measure, Measure::Throughput | Measure::P50 | Measure::P99) {
                continue;
            }
            let of = |run: &Vec<Option<f64>>| run[figure].expect("all did something").ln();
            let [one, other] =
                [&runs[one], &runs[other]].map(|runs| runs.iter().map(of).collect::<Vec<f64>>());
            let differences = |later: usize| -> Vec<f64> {
                let others = other.iter().cycle().skip(later);
                one.iter().zip(others).map(|(one, other)| other - one).collect()
            };
            let apart: Vec<f64> = (1..6).map(|later| variance(&differences(later))).collect();
            let part = variance(&differences(0)) / paternoster_scene::statistics::mean(apart);
            parts.push(part);
        }
    }
    let most = parts.iter().copied().fold(0.0, f64::max);
    assert!(most <= 1.1, "{parts:?}");
    let without_idling = parts[..9].iter().copied().fold(0.0, f64::max);
    assert!(without_idling <= 0.6, "{parts:?}");
}
