//! The rig refuses to look for a line that no event can make: a test that expects it not to be
//! emitted would always pass.

use crate::rig::{Emitted, Expect, NotEmitted, ROOT, Rig, lines::LINES, ms};

fn looked_for(rig: Rig, line: &'static str) {
    rig.task("a", "be/4", ROOT).task("ab", "be/4", ROOT).run(&[Expect(NotEmitted(line))]);
}

#[test]
#[should_panic(expected = "no line can begin with \"preemted\"")]
fn misspelt_word_is_refused() {
    looked_for(Rig::bfq(), "preemted");
}

#[test]
#[should_panic(expected = "no line can begin with \"merge\"")]
fn word_that_breaks_off_is_refused() {
    looked_for(Rig::bfq(), "merge");
}

#[test]
#[should_panic(expected = "no line can begin with \"raised c\"")]
fn task_that_is_not_there_is_refused() {
    looked_for(Rig::bfq(), "raised c");
}

#[test]
#[should_panic(expected = "no line can begin with \"expired a: Timeout\"")]
fn reason_that_the_scheduler_does_not_have_is_refused() {
    looked_for(Rig::cfq(), "expired a: Timeout");
}

#[test]
#[should_panic(expected = "no line can begin with \"raised\"")]
fn word_of_another_scheduler_is_refused() {
    looked_for(Rig::cfq(), "raised");
}

#[test]
#[should_panic(expected = "no line can begin with \"\"")]
fn no_word_at_all_is_refused() {
    looked_for(Rig::cfq(), "");
}

#[test]
#[should_panic(expected = "no line can begin with \"windows\"")]
fn look_at_a_served_device_is_as_strict() {
    Rig::cfq().served(1, ms(1)).emitted(&["windows"]);
}

#[test]
#[should_panic(expected = "no line can begin with \"slice z: 100 ms\"")]
fn line_that_should_be_emitted_is_looked_at_as_strictly() {
    Rig::cfq().run(&[Expect(Emitted("slice z: 100 ms"))]);
}

/// Up to the end of any word of the line.
#[test]
fn line_may_be_looked_for_by_any_beginning() {
    for line in [
        "raised",
        "raised a",
        "raised ab: 30",
        "raised async a: 30, for 10500 ms",
        "peak",
        "peak rate 15116",
        "expired a: TooIdle, charged 8 of 16384, slow, in flight 0",
        "preempted a by ab: Class",
        "priority a: be/4",
        "timer",
    ] {
        looked_for(Rig::bfq(), line);
    }
    for line in [
        "expired a: SliceUsed, used 9.5 ms, charged 3 requests, residue -2 ms, dispatched 9",
        "expired a: Empty, used 0 ms, charged 0 ms, no residue, dispatched 0, vdisktime 7",
        "workload /: Be SyncNoIdle for 300 ms",
        "idles a: 8 ms for its group",
        "window a: given up",
        "waiting: DeviceFull",
    ] {
        looked_for(Rig::cfq(), line);
    }
}

/// A beginning that is a line's own first words, so that a line is not refused by mistake.
#[test]
fn each_line_may_be_looked_for_by_its_first_words() {
    assert!(LINES.len() > 30);
    for line in LINES {
        line.by(|kind| looked_for(Rig::new(kind), line.first_words()));
    }
}
