//! Latency targets.
//!
//! Four channels of 800 µs serve 5000 a second. With n in the device one that comes waits until it
//! is its turn there: it takes about 200 µs × n, and never less than 800.

use paternoster::scheduler::Scheduler as _;
use paternoster::{GroupLimits, Nanos, TargetStats};

use crate::rig::*;
use crate::wfq::groups;
use crate::wfq::limits::{assert_near, rate, set};

/// That of a group.
fn target(us: u64) -> GroupLimits {
    GroupLimits { latency_target: Some(Nanos::from_micros(us)), ..GroupLimits::NONE }
}

/// Tasks of those groups, each with so many reads of 4 KiB outstanding, at depth 20.
fn busy(tasks: &[(&'static str, u64)], targets: &[(&str, u64)]) -> Served {
    let weights: Vec<_> = tasks.iter().map(|&(task, _)| (task, 100)).collect();
    let mut rig = groups(20, &weights);
    for &(group, us) in targets {
        set(&mut rig, group, target(us));
    }
    let mut run = rig.served(4, us(800));
    for (at, &(task, depth)) in tasks.iter().enumerate() {
        run.issues(task, Stream::reads(8).stride(16).from(at as u64 * 10_000_000).depth(depth));
    }
    run
}

fn stats(run: &mut Served, group: &str) -> TargetStats {
    let group = run.rig.group_id(group);
    run.rig.elevator.scheduler().own_stats(run.rig.now, group).share.expect("wfq has them").target
}

/// How long a request of a task takes that has one at a time.
fn latency(run: &Served, task: &str, from: Nanos) -> Nanos {
    Nanos::new(1_000_000_000 / rate(run, task, from, ms(500)))
}

/// At depth 20 one takes 4 ms. To take 2 ms it finds 9 of others; they stay enough for the device.
#[test]
fn others_are_held_to_as_many_as_the_target_allows() {
    let mut run = busy(&[("A", 1), ("B", 64)], &[]);
    run.until(ms(1000));
    assert!(
        latency(&run, "A", ms(500)) > us(3600),
        "without a target it waits for the whole depth"
    );

    let mut run = busy(&[("A", 1), ("B", 64)], &[("/A", 2000)]);
    run.until(ms(3000));
    let took = latency(&run, "A", ms(2500));
    assert!(took <= us(2000) && took > us(1400), "{took:?}");
    let held = stats(&mut run, "/A").held.expect("they are held");
    assert!((7..=9).contains(&held), "{held}");
    let both = rate(&run, "A", ms(2500), ms(500)) + rate(&run, "B", ms(2500), ms(500));
    assert_near(both, 5000, 2, "the device is as fast as before");
}

/// A run of 10 ms is 50 requests. Once the target holds B to 9 or fewer, its run does not stand in
/// the way: A enters at once, and takes 2 ms, as without runs.
#[test]
fn run_that_is_held_lets_the_group_with_the_target_go() {
    let mut rig = groups(20, &[("A", 100), ("B", 100)]).set("run_us", 10_000);
    set(&mut rig, "/A", target(2000));
    let mut run = rig.served(4, us(800));
    run.issues("A", Stream::reads(8).stride(16));
    run.issues("B", Stream::reads(8).stride(16).from(10_000_000).depth(64));
    run.until(ms(3000));
    let took = latency(&run, "A", ms(2500));
    assert!(took <= us(2000), "{took:?}");
}

/// A quarter of the depth is 5: with them it takes 1.2 ms.
#[test]
fn target_that_cannot_be_met_is_given_up_for_some_seconds() {
    let mut run = busy(&[("A", 1), ("B", 64)], &[("/A", 600)]);
    // 20 18 16 14 13 12 11 10 9 8 7 6 5: twelve periods down to a quarter, ten there.
    run.until(ms(2150));
    let unmet = stats(&mut run, "/A");
    assert_eq!((unmet.held, unmet.unmet, unmet.given_up), (Some(5), 9, false));
    run.until(ms(2250));
    let unmet = stats(&mut run, "/A");
    assert_eq!((unmet.held, unmet.unmet, unmet.given_up), (None, 10, true));
    assert_eq!(unmet.late, unmet.requests, "each took longer than the service itself");
    run.until(ms(7150));
    assert_eq!(stats(&mut run, "/A").held, None);
    run.until(ms(7350));
    let again = stats(&mut run, "/A");
    assert!(again.held.is_some() && !again.given_up, "it is tried again after 5 s: {again:?}");
}

#[test]
fn who_has_as_tight_a_target_is_not_held() {
    let mut run = busy(&[("A", 1), ("B", 1), ("C", 64), ("D", 64)], &[("/A", 2000), ("/B", 1600)]);
    run.until(ms(3000));
    let (a, b) = (stats(&mut run, "/A"), stats(&mut run, "/B"));
    assert!(a.held.or(b.held).is_some(), "{a:?} {b:?}");
    let [a, b] = ["A", "B"].map(|task| latency(&run, task, ms(2500)));
    // They are counted whole: 312 in half a second for 312.5.
    assert!(b <= us(1603) && a <= us(2000), "{a:?} {b:?}");
}

/// It has as many outstanding as others, and so it cannot have what it asks for: its own queue is
/// what it waits for. Its weight holds all the same.
#[test]
fn target_gives_no_more_than_the_weight() {
    let mut run = busy(&[("A", 64), ("B", 64)], &[("/A", 2000)]);
    run.until(ms(2000));
    for task in ["A", "B"] {
        assert_near(rate(&run, task, ms(500), ms(1500)), 2500, 1, task);
    }
}

#[test]
fn target_is_of_all_that_is_below_its_group() {
    let rig = groups(20, &[("B", 100)]).group("/p", 100).group("/p/a", 100);
    let mut rig = rig.task("a", "be/4", "/p/a");
    set(&mut rig, "/p", target(2000));
    let mut run = rig.served(4, us(800));
    run.issues("a", Stream::reads(8).stride(16));
    run.issues("B", Stream::reads(8).stride(16).from(10_000_000).depth(64));
    run.until(ms(3000));
    let took = latency(&run, "a", ms(2500));
    assert!(took <= us(2000), "{took:?}");
}

#[test]
fn nobody_is_held_for_a_group_that_asks_for_nothing() {
    let mut run = busy(&[("A", 1), ("B", 64)], &[("/A", 2000)]);
    run.until(ms(2000));
    assert!(stats(&mut run, "/A").held.is_some());
    run.issues("A", Stream::reads(8).count(0).depth(0));
    run.until(ms(3300));
    assert_eq!(stats(&mut run, "/A").held, None);
}

/// With a weight of 1 beside 1000 it is served about once a second, and something of it waits all
/// the time: it asks for more than it gets, and each of its few requests is late.
#[test]
fn target_of_a_group_that_is_starved_is_acted_on() {
    let mut rig = groups(8, &[("A", 1), ("B", 1000)]);
    set(&mut rig, "/A", target(100_000));
    let mut run = rig.served(1, us(1000));
    run.issues("A", Stream::reads(8).stride(16));
    run.issues("B", Stream::reads(8).stride(16).from(10_000_000).depth(64));
    run.until(ms(13_000));
    let starved = stats(&mut run, "/A");
    assert!((10..20).contains(&starved.requests), "{starved:?}");
    assert!(starved.late * 10 > starved.requests * 8, "{starved:?}");
    assert_eq!(starved.held, Some(7), "one less than the depth");
}

#[test]
fn target_that_is_taken_away_holds_nobody() {
    let mut run = busy(&[("A", 1), ("B", 64)], &[("/A", 2000)]);
    run.until(ms(2000));
    assert!(stats(&mut run, "/A").held.is_some());
    set(&mut run.rig, "/A", GroupLimits::NONE);
    assert_eq!(stats(&mut run, "/A"), TargetStats::default());
    run.until(ms(2600));
    assert!(latency(&run, "A", ms(2100)) > us(3600));
}

/// What was in the device when targets came or changed is counted as it is served.
#[test]
fn counts_follow_targets_that_change_under_load() {
    let mut run = busy(&[("A", 16), ("B", 16), ("C", 16)], &[]);
    for (step, us) in [1200, 800, 3600, 1600, 20_000, 1000].into_iter().enumerate() {
        let group = ["/A", "/B", "/C"][step % 3];
        run.until(ms(100 * (step as u64 + 1)));
        set(&mut run.rig, group, target(us));
    }
    run.until(ms(1500));
    for group in ["/A", "/B", "/C"] {
        set(&mut run.rig, group, GroupLimits::NONE);
    }
    run.until(ms(1600));
    run.rig.elevator.check();
}
