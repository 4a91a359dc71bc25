//! A server is recorded under one scheduler, its load is predicted under another, and then the
//! server does it: one pair of `cargo xtask bench replay`.

use paternoster::{Nanos, Sector};
use paternoster_intake::{Options as TraceOptions, Trace};
use paternoster_lab::replay::{Options, Predictor, Recording, as_recorded};
use paternoster_load::Live;
use paternoster_model::{Kind, ServersParameters, Service};
use paternoster_scene::{Outcome, Scene, Scheduler, Tenant};

/// Four servers of 2 ms, and three tenants who ask for the more, the less they weigh.
fn scene() -> Scene {
    let tenants = vec![
        Tenant::reads(100, 4, 16).named("light"),
        Tenant::reads(200, 2, 16).named("middle"),
        Tenant::reads(400, 1, 32).named("heavy"),
    ];
    let disk = ServersParameters::new(4, Service::constant(Nanos::from_millis(2)));
    let (depth, end) = (disk.room.depth, Sector(Live::EXPORT_BYTES / 512 * tenants.len() as u64));
    let scene = Scene::new(Kind::Servers(disk.with_room(depth, end)), tenants);
    Scene { warm_up: Nanos::from_millis(300), counted: Nanos::from_millis(1200), ..scene }
}

fn play(scene: &Scene, scheduler: &str, live: &Live) -> Outcome {
    let scheduler: Scheduler = scheduler.parse().expect("it is one");
    live.watch(scene, &scheduler, 1, |_| {}).expect("it is served")
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn shares(outcome: &Outcome) -> (Vec<f64>, f64) {
    let all: u64 = outcome.tenants.iter().map(|tenant| tenant.requests).sum();
    let shares = outcome.tenants.iter().map(|tenant| tenant.requests as f64 / all as f64);
    (shares.collect(), all as f64 / outcome.seconds)
}

#[test]
fn recorded_server_does_under_another_scheduler_what_was_predicted() {
    let (scene, folder) = (scene(), tempfile::tempdir().expect("a folder"));
    let out = folder.path().join("none");
    let recorded = Live { recorded: Some(out.clone()), ..Live::default() };
    let (before, _) = shares(&play(&scene, "none", &recorded));
    let (live, rate) = shares(&play(&scene, "wfq", &Live::default()));

    let trace = Trace::open(&out.with_extension("blktrace.0"), &TraceOptions::default());
    let (recording, findings) = Recording::read(trace.expect("a trace")).expect("it is whole");
    let meta = &findings.recorded().expect("it has a sidecar").meta;
    assert!(meta.scheduler.starts_with("none"), "{meta:?}");
    let parties = recording.parties();
    let index = |name: &str| {
        let path = format!("/{name}");
        parties.iter().position(|party| recording.path(*party) == path).expect("it asked")
    };
    let order: Vec<_> = ["light", "middle", "heavy"].map(index).into();
    let options = |scheduler: &str| {
        let scheduler: Scheduler = scheduler.parse().expect("it is one");
        Options::new(as_recorded(&scheduler, meta, false))
    };
    let own = options("none");
    let predictor = Predictor::new(recording.clone(), &scene.device, &own).expect("it fits");
    let itself = predictor.itself(&own).expect("it is replayed");
    assert_eq!(itself.fits(), Some(true), "{:?}", itself.self_errors);
    let predicted = predictor.predict(&options("wfq")).expect("it is replayed").figures;
    for (tenant, index) in order.iter().enumerate() {
        let share = predicted[*index].share;
        assert!((share - live[tenant]).abs() < 0.05, "{share} of {live:?}, {before:?} before");
    }
    let all: f64 = predicted.iter().map(|figures| figures.iops).sum();
    assert!((all / rate - 1.0).abs() < 0.1, "{all} of {rate}");
    // Else whoever predicted that nothing changes would be right.
    assert!(before[0] - live[0] > 0.25 && live[2] - before[2] > 0.25, "{before:?}, {live:?}");
}
