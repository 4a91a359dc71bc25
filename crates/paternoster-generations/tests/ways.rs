//! Every way does all that it is given, once, from several threads; and the locks that it takes are
//! counted.

use std::sync::Arc;
use std::time::Duration;

use paternoster::PlugLimits;
use paternoster_generations::{
    BATCH_DISPATCH, Completions, Direct, Figures, Global, Load, Locked, PerCpu, PerDevice, Rings,
    Scheduler, Setup, Until, Variant, Way,
};

const SUBMITTERS: usize = 4;
const EACH: usize = 3_000;

fn locks(figures: &Figures) -> u64 {
    figures.counts.lists.taken + figures.counts.devices.taken
}

/// Runs a load of four submitters and checks each bio.
fn assert_each_once<W: Way>(what: &str, settings: impl Fn(&mut Setup)) {
    for (devices, batch, outstanding) in [(1, 1, 1), (3, 5, 16), (8, 16, 64), (64, 7, 7)] {
        for scheduler in Scheduler::ALL {
            let load = Load {
                submitters: SUBMITTERS,
                devices,
                owners: devices.min(2),
                batch,
                outstanding,
                poll: Duration::from_micros(u64::from(batch % 2 == 0) * 50),
                scheduler,
                until: Until::Ios(EACH as u64),
                ..Load::default()
            };
            let completions = Arc::new(Completions::recording(SUBMITTERS, EACH));
            let figures = load.run_telling::<W>(&settings, &completions);
            assert_eq!(figures.ios, (SUBMITTERS * EACH) as u64, "{what}: {load:?}");
            assert!(completions.times().all(|times| times == 1), "{what}: {load:?}: each once");
            let requests = figures.batches.requests;
            assert!(requests <= figures.ios && requests > figures.ios / 2, "{what}: {figures:?}");
        }
    }
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice_by_any_way() {
    assert_each_once::<Direct>("direct", |_| {});
    assert_each_once::<Global>("global", |_| {});
    assert_each_once::<PerCpu>("percpu", |_| {});
    assert_each_once::<PerDevice>("perdev", |_| {});
    assert_each_once::<Locked>("plug+lock", |_| {});
    assert_each_once::<Locked>("plug+lock-batch", |setup| setup.per_lock = BATCH_DISPATCH);
    assert_each_once::<Rings>("plug+rings", |_| {});
    assert_each_once::<Locked>("off+lock", |setup| setup.plug = PlugLimits::OFF);
    assert_each_once::<Rings>("off+rings", |setup| setup.plug = PlugLimits::OFF);
}

fn load(submitters: usize, batch: usize) -> Load {
    let until = Until::Ios(1_600);
    let poll = Duration::ZERO;
    Load { submitters, batch, outstanding: batch, poll, until, ..Load::default() }
}

/// One submitter, so that nobody takes a lock for it. Of 1,600 I/Os:
///
/// - one at a time, generation 1 takes the machine's lock four times for each;
/// - in batches of 16 its queue is plugged, and unplugged at the fourth, four times a batch; the
///   last leaves nothing for the hand-over, which still looks: 4 × 2 + 1 a batch of 16;
/// - generation 2 is alike, but looks once to find its slot empty, and not to take it;
/// - generation 3 takes the device's lock for each alone;
/// - behind a plug a batch is inserted under one lock, and each dispatched under one, and one finds
///   none left; with batches one dispatches all 16;
/// - rings take none.
#[test]
fn locks_are_taken_as_often_as_each_generation_says() {
    for (variant, batch, lists, devices) in [
        (Variant::Global, 1, 4 * 1600, 2 * 1600),
        (Variant::Global, 16, 9 * 100, 1600),
        (Variant::PerCpu, 1, 4 * 1600, 2 * 1600),
        (Variant::PerCpu, 16, 9 * 100, 1600),
        (Variant::PerDevice, 1, 0, 1600),
        (Variant::PerDevice, 16, 0, 1600),
        (Variant::PlugLock, 16, 0, 100 * (1 + 16 + 1)),
        (Variant::PlugLockBatch, 16, 0, 100 * 2),
        (Variant::OffLock, 16, 0, 1600 * 3),
        (Variant::Rings, 16, 0, 0),
        (Variant::OffRings, 16, 0, 0),
        (Variant::Direct, 16, 0, 0),
    ] {
        let figures = variant.run(&load(1, batch));
        let counts = figures.counts;
        let taken = (counts.lists.taken, counts.devices.taken);
        // A task that moved to another processor has drained the wrong slot, once less.
        let taken = (taken.0 + figures.timeouts, taken.1);
        assert_eq!(taken, (lists, devices), "{variant}, batches of {batch}");
        let may_wait = variant == Variant::PerCpu;
        assert!(may_wait || figures.timeouts == 0, "{variant}");
    }
}

/// The first objection of the thread: nobody else drains the list on which the queue is.
#[test]
fn who_moves_before_handing_over_waits_for_the_timer_under_percpu_alone() {
    let can_move =
        std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    for variant in [Variant::Global, Variant::PerCpu, Variant::PerDevice, Variant::PlugLock] {
        let (moves_percent, until) = (Some(20), Until::Ios(100));
        let load = Load { moves_percent, pins: true, until, ..load(1, 1) };
        let figures = variant.run(&load);
        assert!(figures.moves > 5, "{variant}: {figures:?}");
        let stranded = if variant == Variant::PerCpu && can_move { figures.moves } else { 0 };
        assert_eq!(figures.timeouts, stranded, "{variant}: {figures:?}");
        // Its 3 ms begin within a tick of 1 ms.
        let waits = figures.batch_p99 >= Duration::from_millis(2);
        assert!(waits || stranded == 0, "{variant}: {figures:?}");
    }
}

/// However many submitters there are.
#[test]
fn submitters_take_no_lock_on_the_way_over_rings() {
    for variant in [Variant::Rings, Variant::OffRings] {
        let figures = variant.run(&Load { devices: 8, ..load(4, 16) });
        assert_eq!(locks(&figures), 0, "{variant}");
    }
}

/// Batches are what a plug holds, what unplugs a queue, or single requests.
#[test]
fn batches_are_as_long_as_each_way_lets_them_grow() {
    for (variant, longest) in [
        (Variant::Direct, 16),
        (Variant::Global, 4),
        (Variant::PerCpu, 4),
        (Variant::PerDevice, 4),
        (Variant::PlugLock, 16),
        (Variant::PlugLockBatch, 16),
        (Variant::Rings, 16),
        (Variant::OffLock, 1),
        (Variant::OffRings, 1),
    ] {
        let figures = variant.run(&load(1, 16));
        assert_eq!(figures.batches.longest, longest, "{variant}");
    }
}

/// An owner is not woken more often than batches were sent, nor than it waited.
#[test]
fn owner_is_woken_at_most_once_for_each_time_that_it_waits() {
    let figures = Variant::Rings.run(&load(4, 16));
    let counts = figures.counts;
    assert!(counts.owner_wakes <= figures.batches.count, "{figures:?}");
    assert!(counts.owner_wakes > 0, "it waits for the first");
}

#[test]
fn locks_count_for_how_long_they_are_held_where_they_are_asked_to() {
    for times_hold in [false, true] {
        let figures = Variant::PlugLock.run(&Load { times_hold, ..load(1, 16) });
        assert_eq!(!figures.counts.devices.held.is_zero(), times_hold);
    }
}

/// However long they spin: with more threads than processors that is their whole time.
#[test]
fn who_spins_for_locks_loses_nothing() {
    for variant in [Variant::Global, Variant::PlugLock] {
        let load = Load { spins: true, ..load(4, 16) };
        let figures = variant.run(&load);
        let Until::Ios(each) = load.until else { panic!("it has so many bios") };
        assert_eq!(figures.ios, 4 * each, "{variant:?}");
    }
}

#[test]
fn ways_have_names_and_others_are_refused() {
    for variant in Variant::ALL {
        assert_eq!(variant.name().parse(), Ok(variant));
    }
    let error = "ours".parse::<Variant>().expect_err("there is none of that name");
    assert!(error.to_string().starts_with("there is no way \"ours\"; there are: direct, "));
}
