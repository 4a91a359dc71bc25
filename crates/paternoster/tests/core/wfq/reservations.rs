//! Reservations.

use paternoster::{Event, FairWhy, GroupLimits, WfqEvent};

use crate::rig::*;
use crate::wfq::limits::{assert_near, busy, keeping, per_s, rate, set};
use crate::wfq::{groups, order, submit};

fn ops_reserved(rate: u64) -> GroupLimits {
    GroupLimits { min_iops: per_s(rate), ..GroupLimits::NONE }
}

/// Scenario 19: of 200 000 a second A has its 50 000, and the others by weight what is left.
/// Without it A has 10 of 2010, or 1000.
#[test]
fn reservation_is_kept_whatever_the_weight() {
    let tasks = [("A", 10), ("B", 1000), ("C", 1000)];
    let mut run = busy(&tasks, &[("/A", ops_reserved(50_000))]);
    run.until(ms(150));
    for (task, expected) in [("A", 50_000), ("B", 75_000), ("C", 75_000)] {
        assert_near(rate(&run, task, ms(50), ms(100)), expected, 1, task);
    }
    let mut run = busy(&tasks, &[]);
    run.until(ms(150));
    assert_near(rate(&run, "A", ms(50), ms(100)), 1000, 10, "A by weight");
}

/// Scenario 20: a third of 200 000 is more than 50 000.
#[test]
fn reservation_is_a_floor_and_no_extra() {
    let tasks = [("A", 1000), ("B", 1000), ("C", 1000)];
    let mut run = busy(&tasks, &[("/A", ops_reserved(50_000))]);
    run.until(ms(150));
    for task in ["A", "B", "C"] {
        assert_near(rate(&run, task, ms(50), ms(100)), 66_667, 1, task);
    }
}

/// Of 200 000 a second all others have a twentieth together, by their weights, whatever one or two
/// reserve.
#[test]
fn more_reserved_than_the_disk_has_leaves_a_twentieth_to_all_others() {
    let too_much = ops_reserved(1_000_000_000);
    let tasks = [("A", 10), ("B", 100), ("C", 300)];
    let mut run = keeping(64, &tasks, &[("/A", too_much)]);
    run.until(ms(150));
    for (task, expected) in [("A", 190_000), ("B", 2_500), ("C", 7_500)] {
        assert_near(rate(&run, task, ms(50), ms(100)), expected, 2, task);
    }
    let tasks = [("A", 10), ("B", 10), ("C", 100), ("D", 100)];
    let mut run = keeping(64, &tasks, &[("/A", too_much), ("/B", too_much)]);
    run.until(ms(150));
    let [a, b, c, d] = ["A", "B", "C", "D"].map(|task| rate(&run, task, ms(50), ms(100)));
    assert_near(a + b, 190_000, 2, "A and B");
    assert_near(c, 5_000, 2, "C");
    assert_near(d, 5_000, 2, "D");
}

/// The twentieth is of what is charged: 4 KiB count as 1.25 reads of no bytes, and 64 KiB as 5.
#[test]
fn twentieth_of_all_others_is_by_cost_and_is_for_siblings_of_a_nested_group_too() {
    let rig = Rig::wfq().set("depth", 20).set("cost", 3).group("/p", 100).group("/p/a", 100);
    let mut rig = rig.group("/p/x", 100).task("a", "be/4", "/p/a").task("x", "be/4", "/p/x");
    set(&mut rig, "/p/a", GroupLimits { min_bps: per_s(1 << 40), ..GroupLimits::NONE });
    let mut run = rig.served(16, us(80));
    run.issues("a", Stream::reads(8).stride(16).depth(64));
    run.issues("x", Stream::reads(128).stride(256).from(10_000_000).depth(32));
    run.until(ms(150));
    let [a, x] = ["a", "x"].map(|task| rate(&run, task, ms(50), ms(100)));
    let (of_a, of_x) = (a * 5 / 4, x * 5);
    assert_near(of_x, (of_a + of_x) / 20, 3, "x");
}

/// Scenario 21. A has had 19 of 20 of the first 1000, far beyond its weight. From then on one of
/// its advances is 100 of B's, and it is at most 16 of its own ahead.
#[test]
fn who_had_a_reservation_is_served_again_soon_after_it_ends() {
    let mut rig = groups(1, &[("A", 10), ("B", 1000)]);
    set(&mut rig, "/A", ops_reserved(1_000_000_000));
    submit(&mut rig, "A", 2000);
    submit(&mut rig, "B", 4000);
    for number in 1..=1000 {
        // The first is A's by weight.
        let of_others = number > 1 && number % 20 == 1;
        assert_eq!(order(&mut rig, 1), if of_others { "B" } else { "A" }, "{number}");
        rig.run(&[Advance(us(1))]);
    }
    set(&mut rig, "/A", GroupLimits::NONE);
    let served = order(&mut rig, 2000);
    let first = served.find('A').expect("it is served again");
    assert!(first <= 16 * 100, "after {first} of B");
    let rest = served[first..].matches('A').count();
    assert!(rest.abs_diff(served[first..].len() / 101) <= 1, "then by weight: {rest}");
}

/// In bytes: 100 MB a second of 4 KiB are 24 414.
#[test]
fn bytes_can_be_reserved_and_nested_groups_have_reservations_too() {
    let rig = Rig::wfq().set("depth", 20).group("/p", 1).group("/p/a", 1).group("/p/x", 1000);
    let rig = rig.group("/b", 1000).task("a", "be/4", "/p/a").task("b", "be/4", "/b");
    let mut rig = rig.task("x", "be/4", "/p/x");
    set(&mut rig, "/p/a", GroupLimits { min_bps: per_s(100_000_000), ..GroupLimits::NONE });
    let mut run = rig.served(16, us(80));
    for (at, task) in ["a", "x", "b"].into_iter().enumerate() {
        run.issues(task, Stream::reads(8).stride(16).from(at as u64 * 10_000_000).depth(32));
    }
    run.until(ms(150));
    assert_near(rate(&run, "a", ms(50), ms(100)), 24_414, 1, "a");
    assert!(rate(&run, "b", ms(50), ms(100)) > 170_000, "the rest is for b");
}

/// Both its own cap and one above it.
#[test]
fn cap_wins_over_a_reservation() {
    for capped in ["/p", "/p/a"] {
        let rig = Rig::wfq().set("depth", 1).set("burst", 1).group("/p", 100).group("/p/a", 100);
        let mut rig = rig.group("/b", 100).task("a", "be/4", "/p/a").task("b", "be/4", "/b");
        set(&mut rig, "/p/a", ops_reserved(1_000_000));
        let limits = if capped == "/p" { GroupLimits::NONE } else { ops_reserved(1_000_000) };
        set(&mut rig, capped, GroupLimits { riops: per_s(10), ..limits });
        submit(&mut rig, "a", 10);
        submit(&mut rig, "b", 10);
        assert_eq!(order(&mut rig, 5), "abbbb", "{capped}");
    }
}

/// What it gets by weight counts: one that is ahead of its reservation is not brought forward.
#[test]
fn only_who_is_behind_is_brought_forward() {
    let mut rig = groups(1, &[("A", 1000), ("B", 10)]);
    set(&mut rig, "/A", ops_reserved(1000));
    submit(&mut rig, "A", 100);
    submit(&mut rig, "B", 100);
    // The first are its credit of 10 ms: 10 of 1000 a second, and the one that is due now.
    assert_eq!(order(&mut rig, 11), "AAAAAAAAAAA");
    rig.events();
    order(&mut rig, 20);
    let why = |event| match event {
        Event::Wfq(WfqEvent::Chosen { why, .. }) => Some(why),
        _ => None,
    };
    let whys: Vec<_> = rig.events().into_iter().filter_map(why).collect();
    assert_eq!(whys, [FairWhy::Weight; 20]);
}
