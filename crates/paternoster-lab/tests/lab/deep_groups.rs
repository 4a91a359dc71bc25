//! The deepest groups that are allowed, under every scheduler.

use crate::common::jobs::jobs;
use crate::common::{log, scenario, with};
use paternoster::{Nanos, SchedulerKind, Sector, Weight, Weights};
use paternoster_lab::sim::{GroupSetup, Setup, SetupError};
use paternoster_lab::threads::{PageCacheParameters, run_jobs};
use paternoster_model::{Room, Servers};
use serde_json::{Value, json};

fn path(depth: usize) -> String {
    "/a".repeat(depth)
}

/// A test's thread has a stack of 2 MiB, the program's first one 8.
#[test]
fn groups_as_deep_as_is_allowed_run_under_every_scheduler() {
    let io = "ioengine=libaio\ndirect=1\nrw=randread\nsize=1m\n";
    let text = format!("[global]\n{io}[deep]\n; lab: group={}\n[top]\n", path(256));
    let jobs = jobs(&text);
    for kind in SchedulerKind::ALL {
        let end = Sector(1 << 31);
        let fixed = Nanos::from_micros(100);
        let device = Servers::constant(1, Room { depth: 1, end }, fixed, Nanos::ZERO);
        let page_cache = PageCacheParameters::default();
        let outcome = run_jobs(&jobs, &Setup::new(kind), page_cache, device, |_| {});
        let results = outcome.unwrap_or_else(|error| panic!("{kind:?}: {error}")).results;
        let ios = |job: usize| results[job].directions[0].ios;
        assert_eq!((ios(0), ios(1)), (256, 256), "{kind:?}");
        let groups: Vec<_> = (1..=256).map(|depth| json!({ "path": path(depth) })).collect();
        let deep = with(scenario(), "/groups", Value::Array(groups));
        let deep = with(deep, "/tasks/0/group", json!(path(256)));
        log(&with(deep, "/scheduler", json!(kind.name()))).expect("it runs");
    }
}

#[test]
fn setup_refuses_deeper_ones_too() {
    let weights = Weights { weight: Weight::default(), leaf: Weight::default() };
    let group = |depth| GroupSetup { path: path(depth), weights };
    let setup = Setup { groups: (1..=257).map(group).collect(), ..Setup::new(SchedulerKind::Bfq) };
    let jobs = jobs("[j]\nsize=1m\n");
    let workload = paternoster_lab::threads::Threads::new(&jobs, PageCacheParameters::default());
    let (end, fixed) = (Sector(1 << 31), Nanos::from_micros(100));
    let device = Servers::constant(1, Room { depth: 1, end }, fixed, Nanos::ZERO);
    let sim = paternoster_lab::sim::Simulation::new(&setup, workload, device, paternoster::NoTrace);
    assert_eq!(sim.err(), Some(SetupError::TooDeep { depth: 257 }));
}
