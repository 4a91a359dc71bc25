//! All ways over a real thread that plays the device: what is counted, not how long it takes.

use std::collections::HashMap;

use paternoster::Nanos;
use paternoster::poll::{Completions, Estimator, PollPolicy};

use super::clock::Clock;
use super::device::Device;
use super::rounds::{Bench, Processors, Run, waiting};
use super::ways::{Way, ways};

/// I/Os of 400 µs for 40 ms.
fn run(ways: Vec<Way>) -> HashMap<&'static str, Run> {
    let processors = Processors::choose().expect("these tests need two processors");
    let bench = Bench { processors, clock: Clock::start() };
    let runs = waiting(processors, || {
        let run = |way: Way| {
            let mut estimator = Estimator::new(way.policy, way.completions);
            let device = Device::Modelled(Nanos::from_micros(400));
            let length = Nanos::from_millis(40);
            let run = bench.run(&device, &way, &mut estimator, length, 1)?;
            let told = estimator.statistics();
            assert_eq!((told.sleeps, told.found), (run.sleeps, run.misses), "{}", way.name);
            Ok((way.name, run))
        };
        ways.into_iter().map(run).collect()
    });
    runs.expect("it runs")
}

/// Interrupts come to who blocks, and to nobody else; who polls does not sleep. If sleeping
/// silently stopped happening, as it did in Linux for months, the fixed delay would have none.
#[test]
fn each_way_waits_as_it_says() {
    let fixed = Way {
        name: "fixed",
        policy: PollPolicy::Fixed(Nanos::from_micros(20)),
        completions: Completions::Noticed,
    };
    let is_wanted = |way: &Way| ["interrupt", "classic"].contains(&way.name);
    let named = ways(Nanos::ZERO).into_iter().filter(is_wanted);
    let runs = run(named.chain([fixed]).collect());
    let count = |name| {
        let Run { sleeps, interrupts, .. } = runs[name];
        (sleeps, interrupts, runs[name].ios())
    };
    let (sleeps, interrupts, ios) = count("interrupt");
    assert!(sleeps == 0 && interrupts > 0 && interrupts <= ios, "{interrupts} of {ios}");
    let (sleeps, interrupts, _) = count("classic");
    assert_eq!((sleeps, interrupts), (0, 0));
    let (sleeps, interrupts, ios) = count("fixed");
    assert!(interrupts == 0 && sleeps > 0 && sleeps <= ios, "one an I/O at most: {sleeps}");
}

/// No I/O is done before the device's law says so: 85 % of the mean.
#[test]
fn stamps_are_the_devices() {
    let ways = ways(Nanos::ZERO).into_iter().filter(|way| way.name == "mean/2");
    let runs = run(ways.collect());
    let run = &runs["mean/2"];
    assert!(run.times.iter().all(|&time| time >= 340_000));
    assert_eq!(run.times.len(), run.late.len());
    assert!(run.misses <= run.sleeps);
    let (times, late) = (run.times.iter().sum::<u64>(), run.late.iter().sum::<u64>());
    assert!(times + late <= run.elapsed.as_nanos(), "one I/O after the other");
}
