//! Work that is no request is charged too, where it is done for a group: syncs, and what a command
//! looks up.

use paternoster::scheduler::Work;

use crate::rig::*;
use crate::wfq::{groups, order, submit};

/// A device of four channels and 400 µs, which may have four requests: 10,000 ops a second. A keeps
/// eight reads outstanding for 50 ms; B has no request.
fn known_speed() -> Served {
    let mut run = groups(4, &[("A", 100), ("B", 200)]).served(4, us(400));
    run.issues("A", Stream::reads(8).stride(16).from(1_000_000).depth(8));
    run.until(ms(50));
    assert_eq!(run.rig.number("speed_ops_per_s"), Some(10_000));
    run.rig.events();
    run
}

/// By how many thousandths of an op a weight B starts after v, if it comes now.
fn ahead(rig: &mut Rig) -> u64 {
    rig.run(&[Submit("b", read(0..8).by("B"))]);
    let lines: Vec<_> = rig.events().iter().filter_map(|event| rig.line_of(event)).collect();
    let busy = lines.iter().find_map(|line| line.strip_prefix("fair busy /B: "));
    let (start, v) = busy.and_then(|tag| tag.split_once(" at ")).expect("B becomes busy");
    let number = |text: &str| text.parse::<u64>().expect("thousandths");
    number(start) - number(v.split(',').next().expect("a number"))
}

/// In 8 ms the device does 80 ops. One of four that are in it had a quarter of that, 20; two waited
/// for the sync, so B is charged 10. At weight 200 that is 0.05.
#[test]
fn sync_costs_what_a_request_would_have_had_of_the_device_meanwhile() {
    let mut run = known_speed();
    run.rig.charge("/B", Work::Sync { took: ms(8), waiters: 2 });
    assert_eq!(ahead(&mut run.rig), 50);
}

/// 10 ops for each of two groups, 20 for one that is alone: 0.1 at weight 200.
#[test]
fn sync_for_one_alone_costs_it_all() {
    let mut run = known_speed();
    run.rig.charge("/B", Work::Sync { took: ms(8), waiters: 1 });
    assert_eq!(ahead(&mut run.rig), 100);
}

/// 0.005 at weight 200.
#[test]
fn sync_costs_one_op_while_the_speed_is_not_known() {
    let mut rig = groups(4, &[("A", 100), ("B", 200)]);
    rig.charge("/B", Work::Sync { took: ms(8), waiters: 2 });
    assert_eq!(ahead(&mut rig), 5);
}

/// It enters at v and is 3 ops ahead: 0.015 at weight 200. What it does not use of the time before
/// does not pay for that.
#[test]
fn ops_of_an_idle_group_are_charged_from_where_the_others_are() {
    let mut run = known_speed();
    run.rig.charge("/B", Work::Ops(3));
    assert_eq!(ahead(&mut run.rig), 15);
}

/// Of equal weights, and A has three ops to make up for before its next request.
#[test]
fn ops_of_a_busy_group_are_made_up_for() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]);
    submit(&mut rig, "A", 10);
    submit(&mut rig, "B", 10);
    rig.charge("/A", Work::Ops(3));
    assert_eq!(order(&mut rig, 10), "BBBABABABA");
}
