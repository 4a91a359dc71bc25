//! Several I/Os in the device at once.

use paternoster::poll::{Choice, Completions, Estimator, PollPolicy, Wait, WhyAwake};
use paternoster::{Instant, Nanos};

use super::rig::{Rig, auto, reads};

fn micros(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

#[test]
fn sleep_ends_where_the_earliest_is_expected() {
    let mut estimator = Estimator::new(PollPolicy::Fixed(micros(60)), Completions::Noticed);
    let start = Instant::START;
    let tickets: Vec<_> =
        (0..8).map(|n| estimator.submitted(reads(8), start + micros(5 * n))).collect();
    assert_eq!(estimator.wait(start + micros(40)), Wait::SleepUntil(start + micros(60)));
    // It ends 12 µs late, and three are done.
    let woken = start + micros(72);
    estimator.woke(start + micros(60), woken, true);
    tickets[..3].iter().for_each(|ticket| estimator.completed(*ticket, woken));
    assert_eq!(estimator.wait(woken), Wait::SleepUntil(start + micros(75)), "for the fourth");
    estimator.woke(start + micros(75), start + micros(76), false);
    assert_eq!(estimator.wait(start + micros(76)), Wait::Poll, "its time has come");
    estimator.completed(tickets[3], start + micros(79));
    assert_eq!(estimator.wait(start + micros(79)), Wait::SleepUntil(start + micros(80)));
}

/// Out of order, and the oldest last.
#[test]
fn nobody_sleeps_while_one_that_is_overdue_is_in_the_device() {
    let mut estimator = Estimator::new(PollPolicy::Fixed(micros(60)), Completions::Noticed);
    let start = Instant::START;
    let oldest = estimator.submitted(reads(8), start);
    let next = estimator.submitted(reads(64), start + micros(1));
    let last = estimator.submitted(reads(8), start + micros(70));
    assert_eq!(estimator.wait(start + micros(70)), Wait::Poll);
    estimator.completed(next, start + micros(71));
    assert_eq!(estimator.wait(start + micros(71)), Wait::Poll);
    estimator.completed(oldest, start + micros(90));
    assert_eq!(estimator.wait(start + micros(90)), Wait::SleepUntil(start + micros(130)));
    estimator.completed(last, start + micros(131));
    assert_eq!(estimator.wait(start + micros(131)), Wait::Block, "nothing is in the device");
}

/// A message, say, ends the sleep; the device is still expected where it was.
#[test]
fn sleep_that_something_else_ended_goes_on() {
    let mut estimator = Estimator::new(PollPolicy::Fixed(micros(60)), Completions::Noticed);
    let (start, end) = (Instant::START, Instant::START + micros(60));
    estimator.submitted(reads(8), start);
    assert_eq!(estimator.wait(start), Wait::SleepUntil(end));
    estimator.woke(end, start + micros(20), false);
    assert_eq!(estimator.wait(start + micros(21)), Wait::SleepUntil(end));
    assert_eq!(estimator.statistics().woken_early, 1);
}

/// `auto` has learned that reads take 80 µs; one hangs.
#[test]
fn hanging_one_is_left_to_its_interrupt_and_the_others_are_slept_for() {
    let mut rig = Rig::new(auto(), Completions::Noticed).calibrate(2_900, &[2_500]);
    for _ in 0..6_000 {
        rig.io(reads(8), 80_000, 2_500);
    }
    assert!(matches!(rig.statistics().classes[0].choice, Choice::Sleep(_)));
    let Rig { mut estimator, now, .. } = rig;
    let hanging = estimator.submitted(reads(8), now);
    assert_eq!(estimator.wait(now + micros(999)), Wait::Poll);
    let later = now + micros(1_001);
    assert_eq!(estimator.wait(later), Wait::Block);
    let slept: Vec<_> = (0..20).map(|n| later + micros(100 * n)).collect();
    let mut sleeps = 0;
    for at in slept {
        let ticket = estimator.submitted(reads(8), at);
        if let Wait::SleepUntil(until) = estimator.wait(at) {
            sleeps += 1;
            estimator.woke(until, until + Nanos::new(2_500), false);
        }
        estimator.completed(ticket, at + micros(80));
    }
    assert!(sleeps >= 19, "all but a probe: {sleeps}");
    estimator.completed(hanging, later + micros(5_000));
}

/// Two sizes, one of which is too fast for a sleep: while one of those is in the device nobody
/// sleeps for the other.
#[test]
fn one_that_is_polled_for_keeps_the_thread_awake() {
    let mut rig = Rig::new(auto(), Completions::Noticed).calibrate(2_900, &[2_500]);
    for _ in 0..6_050 {
        rig.io(reads(256), 80_000, 2_500);
        rig.io(reads(1), 3_000, 2_500);
    }
    let choices: Vec<_> = rig.statistics().classes.iter().map(|class| class.choice).collect();
    assert!(matches!(choices[..], [Choice::Poll(WhyAwake::NotWorth), Choice::Sleep(_)]));
    let Rig { mut estimator, now, .. } = rig;
    let fast = estimator.submitted(reads(1), now);
    estimator.submitted(reads(256), now);
    assert_eq!(estimator.wait(now), Wait::Poll);
    estimator.completed(fast, now + micros(3));
    assert!(matches!(estimator.wait(now + micros(3)), Wait::SleepUntil(_)));
}
