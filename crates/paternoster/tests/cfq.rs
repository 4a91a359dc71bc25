//! What CFQ's first cut decides: shares by weight, turns, classes and levels, the order within a
//! queue; then its tunables.
//!
//! A turn of a sync queue at level 4 is `quantum`, 8 requests; all have 8 sectors, and nothing
//! merges where a test does not say otherwise.

mod rig;

use std::collections::BTreeMap;

use paternoster::SchedulerKind;
use rig::*;

/// Requests of a turn.
const TURN: u64 = 8;

/// Submits `count` reads of each task, in a region of the device for each; `T17` is a read of T.
fn fill(rig: &mut Rig, tasks: &[&'static str], count: u64) {
    for (region, &task) in (1_u64..).zip(tasks) {
        for i in 0..count {
            let start = 1_000_000 * region + 16 * i;
            rig.submit(&format!("{task}{i}"), read(start..start + 8).by(task));
        }
    }
}

/// How many of the next `count` requests are of each task.
fn shares(rig: &mut Rig, count: usize) -> BTreeMap<char, u64> {
    let mut shares = BTreeMap::new();
    for name in rig.serve_up_to(count) {
        *shares.entry(name.chars().next().expect("a name")).or_default() += 1;
    }
    shares
}

fn assert_shares(shares: &BTreeMap<char, u64>, expected: &[(char, u64)]) {
    for &(task, expected) in expected {
        let got = shares.get(&task).copied().unwrap_or(0);
        assert!(got.abs_diff(expected) <= TURN, "{task}: {got}, not {expected}; all: {shares:?}");
    }
}

/// The tasks of `names`, by runs: `a×8 b×3`.
fn turns(names: &[String]) -> String {
    let task = |name: &String| name.chars().next().expect("a name");
    let runs = names.chunk_by(|a, b| task(a) == task(b));
    let told: Vec<_> = runs.map(|run| format!("{}×{}", task(&run[0]), run.len())).collect();
    told.join(" ")
}

fn by_weight(weights: [(&str, &str, u32); 3]) -> Rig {
    weights.into_iter().fold(Rig::cfq().without_merging(), |rig, (task, group, weight)| {
        rig.group(group, weight).task(task, "be/4", group)
    })
}

/// 100 : 200 : 400 of 700 requests.
#[test]
fn backlogged_groups_share_by_weight() {
    let mut rig = by_weight([("a", "/a", 100), ("b", "/b", 200), ("c", "/c", 400)]);
    fill(&mut rig, &["a", "b", "c"], 700);
    let shares = shares(&mut rig, 700);
    assert_shares(&shares, &[('a', 100), ('b', 200), ('c', 400)]);
}

/// The part of a group does not depend on how many tasks it has: a has 1 task, b has 4.
#[test]
fn tasks_share_the_part_of_their_group() {
    let mut rig = Rig::cfq().without_merging().group("/a", 100).group("/b", 100);
    rig = rig.task("a", "be/4", "/a");
    for task in ["p", "q", "r", "s"] {
        rig = rig.task(task, "be/4", "/b");
    }
    fill(&mut rig, &["p", "q", "r", "s", "a"], 400);
    let shares = shares(&mut rig, 400);
    assert_shares(&shares, &[('a', 200), ('p', 50), ('q', 50), ('r', 50), ('s', 50)]);
}

/// A has one child, B has four: half of the device for each of A and B, 1/8 for each of B's.
#[test]
fn nested_groups_share_what_their_parent_gets() {
    let mut rig = Rig::cfq().without_merging().group("/A", 100).group("/B", 100);
    rig = rig.group("/A/x", 100).task("a", "be/4", "/A/x");
    for (task, group) in [("p", "/B/p"), ("q", "/B/q"), ("r", "/B/r"), ("s", "/B/s")] {
        rig = rig.group(group, 100).task(task, "be/4", group);
    }
    fill(&mut rig, &["a", "p", "q", "r", "s"], 800);
    let shares = shares(&mut rig, 800);
    assert_shares(&shares, &[('a', 400), ('p', 100), ('q', 100), ('r', 100), ('s', 100)]);
}

/// The leaf weight is that of a group's own tasks against its child groups: 100 to 300.
#[test]
fn own_tasks_of_a_group_share_with_its_children() {
    let mut rig = Rig::cfq().without_merging().group("/a", 100).task("t", "be/4", "/a");
    rig = rig.group("/a/c", 300).task("c", "be/4", "/a/c");
    fill(&mut rig, &["t", "c"], 400);
    let shares = shares(&mut rig, 400);
    assert_shares(&shares, &[('t', 100), ('c', 300)]);
}

/// What is not used is not saved: alone for 400 requests, then with one that was away.
#[test]
fn group_that_comes_back_gains_nothing_by_its_pause() {
    let mut rig = Rig::cfq().without_merging().group("/a", 100).group("/b", 100);
    rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/b");
    rig.run(&[Submit("first of b", read(9_000_000..9_000_008).by("b")), Serve(&["first of b"])]);
    fill(&mut rig, &["a"], 800);
    assert_eq!(shares(&mut rig, 400), BTreeMap::from([('a', 400)]));
    for i in 0..400_u64 {
        let start = 2_000_000 + 16 * i;
        rig.submit(&format!("b{i}"), read(start..start + 8).by("b"));
    }
    let shares = shares(&mut rig, 200);
    assert_shares(&shares, &[('a', 100), ('b', 100)]);
}

/// Nor is anything lost: the one that was alone owes nothing to the one that comes.
#[test]
fn group_that_was_alone_keeps_its_share_when_another_comes() {
    let mut rig = by_weight([("a", "/a", 100), ("b", "/b", 200), ("c", "/c", 400)]);
    fill(&mut rig, &["a"], 1000);
    assert_eq!(shares(&mut rig, 300), BTreeMap::from([('a', 300)]));
    for i in 0..400_u64 {
        let start = 2_000_000 + 16 * i;
        rig.submit(&format!("b{i}"), read(start..start + 8).by("b"));
    }
    let shares = shares(&mut rig, 300);
    assert_shares(&shares, &[('a', 100), ('b', 200)]);
}

/// 1 : 1, and after the change 1 : 3.
#[test]
fn changed_weight_tells_at_once() {
    let mut rig = Rig::cfq().without_merging().group("/a", 100).group("/b", 100);
    rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/b");
    fill(&mut rig, &["a", "b"], 600);
    let equal = shares(&mut rig, 200);
    assert_shares(&equal, &[('a', 100), ('b', 100)]);
    rig.run(&[SetWeight("/b", 300)]);
    let changed = shares(&mut rig, 400);
    assert_shares(&changed, &[('a', 100), ('b', 300)]);
}

#[test]
fn classes_of_a_group_are_served_in_order() {
    let mut rig = Rig::cfq().without_merging();
    rig = rig.task("i", "idle", ROOT).task("b", "be/4", ROOT).task("r", "rt/4", ROOT);
    fill(&mut rig, &["i", "b", "r"], 12);
    assert_eq!(turns(&rig.serve_all()), "r×12 b×12 i×12");
}

/// Classes order the queues of one group; they win nothing against another group.
#[test]
fn real_time_gains_no_share_for_its_group() {
    let mut rig = Rig::cfq().without_merging().group("/a", 100).group("/b", 100);
    rig = rig.task("r", "rt/4", "/a").task("i", "idle", "/b");
    fill(&mut rig, &["r", "i"], 200);
    let shares = shares(&mut rig, 200);
    assert_shares(&shares, &[('r', 100), ('i', 100)]);
}

#[test]
fn tasks_of_a_group_take_turns() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    fill(&mut rig, &["a", "b"], 20);
    assert_eq!(turns(&rig.serve_all()), "a×8 b×8 a×8 b×8 a×4 b×4");
}

/// 8 × (9 − level) / 5: 14 at level 0, 8 at 4, 3 at 7.
#[test]
fn level_scales_the_turn() {
    let mut rig = Rig::cfq().without_merging();
    rig = rig.task("a", "be/0", ROOT).task("b", "be/4", ROOT).task("c", "be/7", ROOT);
    fill(&mut rig, &["a", "b", "c"], 30);
    assert_eq!(turns(&rig.serve_up_to(50)), "a×14 b×8 c×3 a×14 b×8 c×3");
}

/// The asynchronous writes of a group go into one queue, whoever makes them, and so merge; its
/// turn is 2/5 of a sync queue's: 3 requests.
#[test]
fn asynchronous_writes_of_a_group_share_a_queue() {
    let rig = Rig::cfq().group("/a", 100).group("/b", 100);
    let mut rig = rig.task("1", "be/4", "/a").task("2", "be/4", "/a").task("3", "be/4", "/b");
    rig.run(&[
        Submit("by 1", write(100..108).by("1")),
        BackMerge("by 2", write(108..116).by("2"), "by 1"),
        Submit("of the other group", write(116..124).by("3")),
        Submit("sync", write(116..124).by("1").sync()),
    ]);
    let mut rig = Rig::cfq().without_merging();
    rig = rig.task("w", "be/4", ROOT).task("v", "be/4", ROOT).task("r", "be/4", ROOT);
    for i in 0..8_u64 {
        let task = if i % 2 == 0 { "w" } else { "v" };
        rig.submit(&format!("w{i}"), write(16 * i..16 * i + 8).by(task));
    }
    fill(&mut rig, &["r"], 20);
    assert_eq!(turns(&rig.serve_all()), "w×3 r×8 w×3 r×8 w×2 r×4");
}

#[test]
fn queue_is_served_in_sector_order_from_the_head_on() {
    Rig::cfq().without_merging().run(&[
        Submit("300", read(300..308)),
        Submit("100", read(100..108)),
        Submit("200", read(200..208)),
        Serve(&["100", "200", "300"]),
    ]);
}

/// One for the group that it left, as long as it has a request there, and one for its new group.
#[test]
fn queue_of_a_context_that_moved_goes_with_its_last_request() {
    let mut rig = Rig::cfq().without_merging().group("/a", 100).task("t", "be/4", "/a");
    rig.run(&[
        Submit("old", read(0..8).by("t")),
        Expect(Number("queues", 1)),
        Move("t", ROOT),
        Submit("new", read(100..108).by("t")),
        Expect(Number("queues", 2)),
        Serve(&["old", "new"]),
        Submit("newer", read(200..208).by("t")),
        Expect(Number("queues", 1)),
        Serve(&["newer"]),
        Exit("t"),
        Expect(Number("queues", 0)),
    ]);
}

/// The head is at 110: b, 6 ahead, is next, and a, 10 behind, is not. With b in a, a is.
#[test]
fn request_that_swallowed_the_next_one_is_next() {
    Rig::cfq().run(&[
        Submit("head", read(102..110)),
        Serve(&["head"]),
        Submit("a", read(100..108)),
        Submit("b", read(116..124)),
        Submit("far", read(9000..9008)),
        BackMerge("between", read(108..116), "a"),
        Expect(together("a", "b")),
        Serve(&["a"]),
        Expect(Done(&["a", "between", "b"])),
        Serve(&["far"]),
    ]);
}

/// The effect of `quantum`.
#[test]
fn quantum_is_the_length_of_a_turn() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[Set("quantum", 2)]);
    fill(&mut rig, &["a", "b"], 5);
    assert_eq!(turns(&rig.serve_all()), "a×2 b×2 a×2 b×2 a×1 b×1");
}

/// The effect of `fifo_expire_sync`; the fifo is looked at once a turn, here for each request.
#[test]
fn fifo_expire_sync_says_when_a_late_read_is_served_out_of_order() {
    for (expire, order) in [(10, ["far", "near"]), (11, ["near", "far"])] {
        let mut rig = Rig::cfq().without_merging();
        rig.run(&[
            Set("quantum", 1),
            Set("fifo_expire_sync", expire),
            Submit("far", read(9000..9008)),
            Submit("first", read(0..8)),
            Submit("near", read(100..108)),
            Serve(&["first"]),
            Advance(ms(10)),
        ]);
        assert_eq!(rig.serve_all(), order, "fifo_expire_sync {expire}");
    }
}

/// The effect of `fifo_expire_async`.
#[test]
fn fifo_expire_async_says_when_a_late_write_is_served_out_of_order() {
    for (expire, order) in [(10, ["far", "near"]), (11, ["near", "far"])] {
        let mut rig = Rig::cfq().without_merging();
        rig.run(&[
            Set("quantum", 1),
            Set("fifo_expire_async", expire),
            Submit("far", write(9000..9008)),
            Submit("first", write(0..8)),
            Submit("near", write(100..108)),
            Serve(&["first"]),
            Advance(ms(10)),
        ]);
        assert_eq!(rig.serve_all(), order, "fifo_expire_async {expire}");
    }
}

/// The effects of `back_seek_penalty` and `back_seek_max`. From the head at 1000, `ahead` is 300
/// sectors away and `behind` 100, which are 50 KiB: twice 100 are nearer than 300, four times are
/// not; and where only 49 KiB may be gone back, `behind` is left to another sweep.
#[test]
fn way_back_is_penalized_and_limited() {
    let cases = [
        (16_384, 2, ["behind", "ahead"]),
        (16_384, 4, ["ahead", "behind"]),
        (50, 2, ["behind", "ahead"]),
        (49, 2, ["ahead", "behind"]),
    ];
    for (max, penalty, order) in cases {
        let mut rig = Rig::cfq().without_merging();
        rig.run(&[
            Set("back_seek_max", max),
            Set("back_seek_penalty", penalty),
            Submit("head", read(992..1000)),
            Serve(&["head"]),
            Submit("ahead", read(1300..1308)),
            Submit("behind", read(900..908)),
        ]);
        assert_eq!(rig.serve_all(), order, "back_seek_max {max}, back_seek_penalty {penalty}");
    }
}

#[test]
fn values_out_of_range_are_clamped_as_linux_clamps_them() {
    let uint_max = i64::from(u32::MAX);
    let table = [
        ("quantum", 0, 1),
        ("quantum", i64::MAX, uint_max),
        ("fifo_expire_sync", 0, 1),
        ("fifo_expire_sync", i64::MAX, uint_max),
        ("fifo_expire_async", -1, 1),
        ("fifo_expire_async", i64::MAX, uint_max),
        ("back_seek_max", -1, 0),
        ("back_seek_max", i64::MAX, uint_max),
        ("back_seek_penalty", 0, 1),
        ("back_seek_penalty", i64::MAX, uint_max),
    ];
    let mut rig = Rig::cfq();
    for (name, value, stored) in table {
        assert_eq!(rig.elevator.set_tunable(rig.now, name, value), Ok(stored), "{name} = {value}");
        assert_eq!(rig.elevator.tunable(name), Ok(stored), "{name} = {value}");
    }
    // The greatest values of all do not overflow.
    let mut rig = rig.task("a", "be/0", ROOT);
    fill(&mut rig, &["a"], 30);
    assert_eq!(rig.serve_all().len(), 30);
}

#[test]
fn unknown_tunable_is_refused_with_what_there_is() {
    let mut rig = Rig::cfq();
    let error = rig.elevator.set_tunable(rig.now, "fifo_batch", 8).expect_err("mq-deadline's");
    let told = "cfq has no tunable \"fifo_batch\"; it has: quantum, fifo_expire_sync, \
                fifo_expire_async, back_seek_max, back_seek_penalty";
    assert_eq!(error.to_string(), told);
    assert_eq!(SchedulerKind::Cfq.tunable("fifo_batch"), Err(error));
}
