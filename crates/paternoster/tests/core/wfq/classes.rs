//! The classes of a group.

use paternoster::GroupLimits;

use crate::rig::*;
use crate::wfq::limits::{per_s, set};
use crate::wfq::{order, submit, submit_sized};

fn classes() -> Rig {
    let rig = Rig::wfq().set("depth", 1).group("/A", 100).task("R", "rt/4", "/A");
    rig.task("B", "be/4", "/A").task("I", "idle", "/A")
}

/// Scenario 15, the second part: one of 16.
#[test]
fn lower_class_gets_one_of_16_only_once_it_has_waited_for_class_age() {
    let mut rig = classes();
    submit(&mut rig, "R", 200);
    submit(&mut rig, "B", 200);
    assert_eq!(order(&mut rig, 40), "R".repeat(40));
    rig.run(&[Advance(ms(999))]);
    assert_eq!(order(&mut rig, 40), "R".repeat(40));
    rig.run(&[Advance(ms(1))]);
    let one = format!("{}B", "R".repeat(15));
    assert_eq!(order(&mut rig, 48), one.repeat(3));
}

#[test]
fn each_lower_class_gets_one_of_16_the_more_urgent_first() {
    let mut rig = classes().set("class_age", 5);
    for task in ["R", "B", "I"] {
        submit(&mut rig, task, 100);
    }
    rig.run(&[Advance(ms(5))]);
    // Behind 15 of higher classes: B, and then at once I, which counts B as well.
    assert_eq!(order(&mut rig, 33), format!("{0}BI{0}BI", "R".repeat(15))[..33]);
}

#[test]
fn class_that_waits_for_nobody_begins_to_wait_anew() {
    let mut rig = classes();
    submit(&mut rig, "R", 1);
    submit(&mut rig, "B", 50);
    rig.run(&[Advance(ms(900))]);
    assert_eq!(order(&mut rig, 2), "RB");
    submit(&mut rig, "R", 50);
    rig.run(&[Advance(ms(999))]);
    assert_eq!(order(&mut rig, 30), "R".repeat(30));
}

/// Groups share by weight whatever their classes.
#[test]
fn class_has_no_priority_over_another_group() {
    let rig = classes().group("/other", 100).task("O", "idle", "/other");
    let mut rig = rig;
    submit(&mut rig, "R", 50);
    submit(&mut rig, "O", 50);
    assert_eq!(order(&mut rig, 10), "RORORORORO");
}

/// A scrub of the idle class got half of a drive: one request of 16 was let through, and its
/// requests had merged to 1 MiB. Prices: 4 KiB cost 1.25 op, 1 MiB 65; a write twice that. Of what
/// is charged the lower class gets a sixteenth, within one of its own requests.
#[test]
fn lower_class_gets_a_sixteenth_by_cost_whatever_its_requests_are() {
    type Requests = (fn(std::ops::Range<u64>) -> Io, u64, u64);
    let small: Requests = (read, 8, 1250);
    let large: Requests = (read, 2048, 65_000);
    let small_writes: Requests = (write, 8, 2500);
    let large_writes: Requests = (write, 2048, 130_000);
    let kinds = [small, large, small_writes, large_writes];
    for higher in kinds {
        for lower in kinds {
            let mut rig = classes().set("cost", 3).set("cost_write", 200).set("class_age", 5);
            let [(io, sectors, cost), (lower_io, lower_sectors, lower_cost)] = [higher, lower];
            // 40 turns of the dearer of both.
            let all = 40 * 15 * cost.max(lower_cost);
            submit_sized(&mut rig, "R", all / cost + 200, io, sectors);
            submit_sized(&mut rig, "I", all / lower_cost + 200, lower_io, lower_sectors);
            rig.run(&[Advance(ms(5))]);
            let (mut of_higher, mut of_lower) = (0, 0);
            while of_higher < all {
                match order(&mut rig, 1).as_str() {
                    "R" => of_higher += cost,
                    _ => of_lower += lower_cost,
                }
            }
            let off = (of_higher / 15).abs_diff(of_lower);
            assert!(off <= lower_cost + cost, "{higher:?} {lower:?}: {of_higher} to {of_lower}");
        }
    }
}

/// R is charged 65 a request, and I has earned one for each 18.75 of that: three, three, four.
#[test]
fn what_a_lower_class_has_earned_and_not_used_stays_its_own() {
    let mut rig = classes().set("cost", 3).set("class_age", 5);
    submit_sized(&mut rig, "R", 20, read, 2048);
    submit_sized(&mut rig, "I", 50, read, 8);
    rig.run(&[Advance(ms(5))]);
    assert_eq!(order(&mut rig, 13), "RIIIRIIIRIIII");
}

/// Of a class that may not be served what it has earned does not pile up: with the cap gone it has
/// one turn, and then one of 16.
#[test]
fn class_that_a_cap_holds_has_one_turn_afterwards() {
    let mut rig = classes().set("class_age", 5).set("burst", 1);
    let one_write_a_second = GroupLimits { wiops: per_s(1), ..GroupLimits::NONE };
    submit(&mut rig, "R", 300);
    submit_sized(&mut rig, "I", 50, write, 8);
    set(&mut rig, "/A", one_write_a_second);
    rig.run(&[Advance(ms(5))]);
    let held = order(&mut rig, 200);
    assert!(held.matches('I').count() <= 1, "{held}");
    set(&mut rig, "/A", GroupLimits::NONE);
    let sixteenth = format!("I{}", "R".repeat(15));
    assert_eq!(order(&mut rig, 32), sixteenth.repeat(2));
}

/// It was charged as it was dispatched first, so it has earned it.
#[test]
fn request_of_a_lower_class_that_is_handed_back_has_its_turn_at_once() {
    let mut rig = classes().set("class_age", 5);
    submit(&mut rig, "R", 100);
    rig.run(&[
        Submit("first", read(0..8).by("I")),
        Submit("later", read(1000..1008).by("I")),
        Advance(ms(5)),
    ]);
    assert_eq!(order(&mut rig, 15), "R".repeat(15));
    rig.run(&[
        Expect(dispatched("first")),
        Requeue("first"),
        Expect(dispatched("first")),
        Complete("first"),
    ]);
    assert_eq!(order(&mut rig, 16), format!("{}l", "R".repeat(15)));
}
