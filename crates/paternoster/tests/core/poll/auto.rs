//! `auto`: it sleeps as long as may be, sees when that changes, and says why it does not sleep.

use paternoster::poll::{
    AutoTunables, Choice, Completions, Estimator, PollPolicy, Ppm, StallStatistics, Wait, WhyAwake,
};
use paternoster::{Instant, Nanos};

use super::rig::{Outcome, Rig, auto, reads};

/// Sleeps end 2.4 to 2.6 µs late and cost 2.9 µs.
fn fast_machine(policy: PollPolicy, completions: Completions) -> Rig {
    Rig::new(policy, completions).calibrate(2_900, &[2_400, 2_450, 2_500, 2_550, 2_600])
}

/// So many I/Os that take `mean` and up to a tenth more or less.
fn run(rig: &mut Rig, ios: usize, mean: u64) -> Vec<Outcome> {
    let mut one = |_| {
        let time = mean * 9 / 10 + rig.below(mean / 5);
        let late = 2_400 + rig.below(200);
        rig.io(reads(8), time, late)
    };
    (0..ios).map(&mut one).collect()
}

fn choice(rig: &Rig) -> Choice {
    rig.statistics().classes[0].choice
}

fn mean(outcomes: &[Outcome], of: impl Fn(&Outcome) -> u64) -> u64 {
    outcomes.iter().map(of).sum::<u64>() / outcomes.len() as u64
}

/// In Linux sleeping stopped for months and nobody saw it: every sample went to no class. So it is
/// counted here: all but probes, one in 64, and what is learned at the start.
#[test]
fn sleeping_happens() {
    for completions in [Completions::Stamped, Completions::Noticed] {
        let mut rig = fast_machine(auto(), completions);
        run(&mut rig, 100_000, 80_000);
        let statistics = rig.statistics();
        assert!(statistics.sleeps > 97_000, "{completions:?}: {statistics:?}");
        let class = &statistics.classes[0];
        assert!(class.slept_for > 97_000 && class.ios == 100_000, "{class:?}");
        assert!(class.misses * 1000 < class.slept_for * 60, "μ is 5 %: {class:?}");
    }
    for policy in [PollPolicy::hybrid(0, false, Nanos::ZERO), Ok(PollPolicy::IoUring)] {
        let mut rig = fast_machine(policy.expect("0 is allowed"), Completions::Noticed);
        run(&mut rig, 10_000, 80_000);
        assert!(rig.statistics().sleeps > 8_700, "{policy:?}: {:?}", rig.statistics());
    }
}

/// Times of 72 to 88 µs: less 2.5 µs of overshoot, and a little for the misses that are allowed.
#[test]
fn sleep_ends_where_the_fastest_are_done() {
    let mut rig = fast_machine(auto(), Completions::Noticed);
    run(&mut rig, 20_000, 80_000);
    let outcomes = run(&mut rig, 20_000, 80_000);
    assert!(mean(&outcomes, |it| it.latency) < 80_000 + 80_000 * 4 / 1000);
    let Choice::Sleep(sleep) = choice(&rig) else { panic!("{:?}", rig.statistics()) };
    assert!((69_000..72_000).contains(&sleep.as_nanos()), "{sleep:?}");
}

/// Where half of the mean and a quarter late would run away.
#[test]
fn estimate_does_not_run_away_without_the_devices_own_times() {
    let mut rig = Rig::new(auto(), Completions::Noticed).calibrate(2_900, &[22_000]);
    for _ in 0..30_000 {
        let time = 79_000 + rig.below(2_000);
        rig.io(reads(8), time, 22_000);
    }
    let class = rig.statistics().classes[0];
    assert!((78_900..81_100).contains(&class.q50.as_nanos()), "{class:?}");
    assert!(matches!(class.choice, Choice::Sleep(sleep) if sleep.as_nanos() < 58_000), "{class:?}");
}

#[test]
fn crowded_cpu_is_not_slept_on() {
    let late: Vec<u64> = (0..100).map(|n| if n < 2 { 35_000 } else { 13_500 }).collect();
    let mut rig = Rig::new(auto(), Completions::Noticed).calibrate(13_700, &late);
    for _ in 0..5_000 {
        let late = late[usize::try_from(rig.below(100)).expect("it is small")];
        rig.io(reads(8), 60_000, late);
    }
    assert!(rig.statistics().sleeps <= 5_000 / 16, "but to see whether it is so");
    assert_eq!(choice(&rig), Choice::Poll(WhyAwake::Crowded));
    // Nobody else is there any more.
    for _ in 0..10_000 {
        rig.io(reads(8), 60_000, 13_500);
    }
    assert!(matches!(choice(&rig), Choice::Sleep(_)), "{:?}", rig.statistics());
}

/// Something else has the CPU for 3 ms, thirty times a second, and it does not matter what the
/// thread does then: the sleep is that of a machine of one's own (above), and latency what classic
/// polling has of the same stalls, and δ.
#[test]
fn stalls_that_polling_suffers_too_are_no_price_of_sleeping() {
    let stalled = |policy| {
        let every = Nanos::from_micros(33_333);
        let mut rig =
            fast_machine(policy, Completions::Noticed).stall(every, Nanos::from_millis(3));
        run(&mut rig, 20_000, 80_000);
        let outcomes = run(&mut rig, 20_000, 80_000);
        (rig, mean(&outcomes, |it| it.latency))
    };
    let (_, polled) = stalled(PollPolicy::Classic);
    let (rig, slept) = stalled(auto());
    assert!(polled > 80_000 * 105 / 100, "a tenth of the time is lost: {polled}");
    assert!(slept < polled * 1005 / 1000, "{slept} {polled}");
    let Choice::Sleep(sleep) = choice(&rig) else { panic!("{:?}", rig.statistics()) };
    assert!((69_000..72_000).contains(&sleep.as_nanos()), "{sleep:?}");
    let statistics = rig.statistics();
    assert!(statistics.stalls_asleep.stalls > 50, "{statistics:?}");
}

/// One sleep in 300 ends 1 ms late, and who polls loses nothing: 3.3 µs for an I/O of 80 µs.
#[test]
fn stalls_that_only_sleepers_have_are_a_price_of_sleeping() {
    let mut rig = fast_machine(auto(), Completions::Noticed);
    let (mut added, mut latest) = (0, 0);
    for _ in 0..200_000 {
        let time = 72_000 + rig.below(16_000);
        let late = if rig.below(300) == 0 { 1_000_000 } else { 2_500 };
        let latency = rig.io(reads(8), time, late).latency;
        added += latency - time;
        latest = latest.max(latency - time);
    }
    assert!(latest > 900_000, "it was found out: {latest}");
    assert!(added < 200_000 * 80_000 / 200, "half a percent: {added}");
    assert_eq!(choice(&rig), Choice::Poll(WhyAwake::Crowded), "{:?}", rig.statistics());
}

#[test]
fn sleep_that_costs_more_than_it_saves_is_none() {
    let mut rig = Rig::new(auto(), Completions::Noticed).calibrate(13_700, &[11_000]);
    let outcomes = run(&mut rig, 5_000, 12_000);
    assert_eq!(rig.statistics().sleeps, 0);
    assert_eq!(choice(&rig), Choice::Poll(WhyAwake::NotWorth));
    let latency: u64 = outcomes.iter().map(|it| it.latency).sum();
    assert_eq!(latency, rig.cpu, "pure polling");
}

#[test]
fn without_calibration_nobody_sleeps_and_it_says_why() {
    let mut rig = Rig::new(auto(), Completions::Noticed);
    run(&mut rig, 1, 80_000);
    assert_eq!(choice(&rig), Choice::Poll(WhyAwake::Learning));
    run(&mut rig, 1_000, 80_000);
    assert_eq!(choice(&rig), Choice::Poll(WhyAwake::Uncalibrated));
}

/// 80 to 20 µs: the sleep of 70 µs is halved after four misses, and again.
#[test]
fn device_that_gets_faster_is_followed_at_once() {
    let mut rig = fast_machine(auto(), Completions::Noticed);
    run(&mut rig, 20_000, 80_000);
    let outcomes = run(&mut rig, 360, 20_000);
    let asked: Vec<u64> = outcomes.iter().filter_map(|it| it.asked).collect();
    assert!(asked[..3].iter().all(|asked| *asked > 69_000), "{:?}", &asked[..20]);
    let halved = asked.iter().position(|asked| *asked < 36_000).expect("it is halved");
    assert!(halved <= 4, "{:?}", &asked[..20]);
    let safe = asked.iter().position(|asked| *asked < 18_000).expect("and again");
    assert!(safe <= 8, "{:?}", &asked[..20]);
    // 64 probes, one of four I/Os, later it has been learned again: 18 µs less 2.5.
    let right = &asked[asked.len() - 50..];
    assert!(right.iter().all(|asked| (14_000..17_000).contains(asked)), "{right:?}");
}

/// 80 to 160 µs: nothing is late, and more is polled for until that is learned.
#[test]
fn device_that_gets_slower_costs_no_latency() {
    let mut rig = fast_machine(auto(), Completions::Noticed);
    run(&mut rig, 20_000, 80_000);
    let before = rig.statistics().classes[0].misses;
    let outcomes = run(&mut rig, 1_200, 160_000);
    assert_eq!(rig.statistics().classes[0].misses - before, mean_misses(&outcomes));
    assert!(outcomes[..500].iter().all(|it| !it.is_missed));
    let last = outcomes.iter().filter_map(|it| it.asked).next_back();
    assert!(last.is_some_and(|asked| (140_000..150_000).contains(&asked)), "{last:?}");
}

fn mean_misses(outcomes: &[Outcome]) -> u64 {
    outcomes.iter().filter(|it| it.is_missed).count() as u64
}

/// A device so slow that a wake-up's delay is within δ of it: 2.5 µs of 2 ms.
#[test]
fn slow_device_is_left_to_interrupts() {
    let mut rig = fast_machine(auto(), Completions::Noticed);
    run(&mut rig, 1_000, 2_000_000);
    assert_eq!(choice(&rig), Choice::Block);
    let before = rig.cpu;
    let outcomes = run(&mut rig, 1_000, 2_000_000);
    assert_eq!(rig.cpu - before, 1_000 * 2_900);
    assert!(mean(&outcomes, |it| it.latency) < 2_000_000 * 1004 / 1000);
    // It gets fast, and is polled for again.
    run(&mut rig, 20_000, 80_000);
    assert!(matches!(choice(&rig), Choice::Sleep(_)), "{:?}", rig.statistics());
}

/// One in ten takes 13 µs, the others 90: polling alone is within δ, but for a short sleep.
#[test]
fn fast_tenth_is_not_slept_through() {
    let mut rig = fast_machine(auto(), Completions::Noticed);
    let mut latency = 0;
    let mut times = 0;
    for _ in 0..50_000 {
        let time = if rig.below(10) == 0 { 13_000 } else { 85_000 + rig.below(10_000) };
        times += time;
        latency += rig.io(reads(8), time, 2_500).latency;
    }
    assert!(latency < times * 1004 / 1000, "{latency} {times}");
    assert!(matches!(choice(&rig), Choice::Sleep(sleep) if sleep.as_nanos() < 12_000));
}

/// Times of 40 to 120 µs, and half of a CPU; with a quarter of it latency is added.
#[test]
fn cap_on_the_cpu_is_kept_at_the_price_of_latency() {
    let spread = |rig: &mut Rig| {
        let (before, begun) = (rig.cpu, rig.now);
        let mut added = 0;
        for _ in 0..20_000 {
            let time = 40_000 + rig.below(80_000);
            added += rig.io(reads(8), time, 2_500).latency - time;
        }
        let elapsed = rig.now.saturating_since(begun).as_nanos();
        (added / 20_000, (rig.cpu - before) * 100 / elapsed)
    };
    let mut free = fast_machine(auto(), Completions::Noticed);
    spread(&mut free);
    let (added, load) = spread(&mut free);
    assert!(load > 45 && added < 320, "{load} % {added} ns");
    let tunables = AutoTunables { cpu_cap: Ppm(250_000), ..AutoTunables::DEFAULT };
    let mut capped = fast_machine(PollPolicy::Auto(tunables), Completions::Noticed);
    spread(&mut capped);
    let (added, load) = spread(&mut capped);
    assert!(load <= 27 && added > 1_000, "{load} % {added} ns");
}

#[test]
fn time_in_which_a_caller_does_not_look_is_no_stall() {
    let mut estimator = Estimator::new(PollPolicy::Classic, Completions::Noticed);
    let at = |us| Instant::START + Nanos::from_micros(us);
    let ticket = estimator.submitted(reads(8), at(0));
    for look in [1, 100, 300, 599] {
        assert_eq!(estimator.wait(at(look)), Wait::Poll);
    }
    estimator.looked_until(at(600));
    assert_eq!(estimator.wait(at(9_000)), Wait::Poll);
    estimator.completed(ticket, at(9_001));
    let StallStatistics { time, stalls, lost } = estimator.statistics().stalls_polling;
    // From 100 to 300 µs, and from 300 to 599.
    assert_eq!((stalls, lost, time), (2, Nanos::from_micros(499), Nanos::from_micros(600)));
}
