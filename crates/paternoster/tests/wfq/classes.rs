//! The classes of a group.

use crate::rig::*;
use crate::{order, submit};

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
