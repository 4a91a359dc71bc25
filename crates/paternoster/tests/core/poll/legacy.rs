//! Linux's policies, before and after 2017, and that of `io_uring`.

use paternoster::poll::{Completions, OfMean, PollClass, PollPolicy, Ppm};
use paternoster::{Direction, Nanos, SectorCount};

use super::rig::{Rig, reads};

const HALF: PollPolicy = PollPolicy::OfMean(OfMean::HALF);

/// I/Os that take so long in turn, until a window of 100 ms is over that has no others.
fn window(rig: &mut Rig, class: PollClass, times: &[u64]) {
    let end = rig.now + Nanos::from_millis(210);
    for time in times.iter().cycle() {
        rig.io(class, *time, 0);
        if rig.now > end {
            return;
        }
    }
}

#[test]
fn half_the_mean_sleeps_from_the_end_of_the_first_window_on() {
    let mut rig = Rig::new(HALF, Completions::Stamped);
    assert_eq!(rig.io(reads(8), 8_001, 0).asked, None, "nothing is known");
    window(&mut rig, reads(8), &[8_001]);
    assert_eq!(rig.io(reads(8), 8_001, 0).asked, Some(4_001), "(mean + 1) / 2");
    assert_eq!(rig.io(reads(16), 8_001, 0).asked, None, "of another size nothing is known");
}

#[test]
fn class_without_samples_keeps_what_it_had() {
    let mut rig = Rig::new(HALF, Completions::Stamped);
    let writes = PollClass::of(Direction::Write, SectorCount(8)).expect("it has sectors");
    window(&mut rig, writes, &[20_000]);
    window(&mut rig, reads(8), &[8_000, 10_000]);
    window(&mut rig, reads(8), &[12_000]);
    assert_eq!(rig.io(writes, 20_000, 0).asked, Some(10_000), "from two windows before");
    assert_eq!(rig.io(reads(8), 12_000, 0).asked, Some(6_000), "from the last window alone");
}

/// The post of 2017: no less than the least, less the adjustment.
#[test]
fn minimum_and_adjustment_are_as_in_the_post() {
    let asked = |use_min, adjust| {
        let policy = PollPolicy::hybrid(0, use_min, Nanos::new(adjust)).expect("0 is allowed");
        let mut rig = Rig::new(policy, Completions::Stamped);
        window(&mut rig, reads(8), &[7_000, 9_000]);
        rig.io(reads(8), 20_000, 0).asked
    };
    assert_eq!(asked(true, 2_000), Some(5_000));
    assert_eq!(asked(true, 10_000), None, "it falls below zero");
    assert_eq!(asked(false, 0), Some(4_000));
}

#[test]
fn fixed_delay_needs_no_statistics() {
    let policy = PollPolicy::hybrid(9, true, Nanos::new(1_000)).expect("9 is allowed");
    let mut rig = Rig::new(policy, Completions::Noticed);
    let outcome = rig.io(reads(8), 20_000, 500);
    assert_eq!(outcome.asked, Some(9_000), "the minimum and the adjustment are for estimates");
    assert_eq!(outcome.latency, 20_000);
}

/// The rig refuses a second sleep for the same I/O.
#[test]
fn request_that_slept_once_is_polled_for() {
    let mut rig = Rig::new(PollPolicy::Fixed(Nanos::new(1_000)), Completions::Noticed);
    let outcome = rig.io(reads(8), 900_000, 500);
    assert_eq!((outcome.asked, outcome.is_missed), (Some(1_000), false));
    assert_eq!(rig.cpu, 2_900 + 898_500);
}

/// The queue has no interrupt, so an I/O that was done early seems to take until somebody looked:
/// ¾ of the mean, a quarter late, and a little, is longer than the mean. With the device's own
/// stamps the mean stays what it is.
#[test]
fn estimate_runs_away_without_the_devices_own_times_and_only_then() {
    let three_quarters = OfMean { part: Ppm(750_000), ..OfMean::HALF };
    let mean_after = |completions, windows: u64| {
        let mut rig = Rig::new(PollPolicy::OfMean(three_quarters), completions);
        let end = rig.now + Nanos::from_millis(100 * windows);
        while rig.now < end {
            rig.io(reads(8), 80_000, 22_000);
        }
        rig.statistics().classes[0].window.mean().as_nanos()
    };
    let noticed = [4, 6, 8].map(|windows| mean_after(Completions::Noticed, windows));
    assert!(noticed[0] > 80_000 && noticed.is_sorted_by(|a, b| a < b), "{noticed:?}");
    assert_eq!(mean_after(Completions::Stamped, 8), 80_000);
}

#[test]
fn io_uring_goes_by_the_least_run_time_ever() {
    let mut rig = Rig::new(PollPolicy::IoUring, Completions::Noticed);
    assert_eq!(rig.io(reads(8), 8_000, 0).asked, None);
    assert_eq!(rig.io(reads(8), 8_500, 0).asked, Some(4_000), "half of 8 µs");
    assert_eq!(rig.io(reads(8), 100_000, 0).asked, Some(2_250), "half of 8.5 µs less 4 µs");
    assert_eq!(rig.io(reads(64), 100_000, 0).asked, Some(2_250), "of whatever size");
}

#[test]
fn classic_polling_and_interrupts_never_sleep() {
    for policy in [PollPolicy::Classic, PollPolicy::Interrupt] {
        let mut rig = Rig::new(policy, Completions::Noticed);
        window(&mut rig, reads(8), &[80_000]);
        assert_eq!(rig.statistics().sleeps, 0);
        let (before, latency) = (rig.cpu, rig.io(reads(8), 80_000, 2_500).latency);
        let expected =
            if policy == PollPolicy::Classic { (80_000, 80_000) } else { (82_500, 2_900) };
        assert_eq!((latency, rig.cpu - before), expected, "{policy:?}");
    }
}
