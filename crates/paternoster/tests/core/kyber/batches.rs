//! Whose turn it is.

use crate::kyber::{deep, dispatch_all, submit};
use crate::rig::*;

/// The kinds of what is dispatched, by the first letter of their names: how many of each in a row.
fn runs(rig: &mut Rig) -> Vec<(String, u32)> {
    let mut runs: Vec<(String, u32)> = vec![];
    while let Some(name) = rig.dispatch() {
        match runs.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => runs.push((name, 1)),
        }
    }
    runs
}

fn as_text(runs: &[(String, u32)]) -> String {
    let runs: Vec<String> = runs.iter().map(|(name, count)| format!("{count} {name}")).collect();
    runs.join(", ")
}

/// Scenario 1.
#[test]
fn reads_go_in_batches_of_16_and_writes_in_batches_of_8() {
    let mut rig = deep();
    submit(&mut rig, read, "R", 40);
    submit(&mut rig, write, "W", 20);
    assert_eq!(as_text(&runs(&mut rig)), "16 R, 8 W, 16 R, 8 W, 8 R, 4 W");
}

#[test]
fn discards_and_others_go_one_at_a_time_between_them() {
    let mut rig = deep();
    submit(&mut rig, zeroes, "O", 3);
    submit(&mut rig, discard, "D", 3);
    submit(&mut rig, write, "W", 9);
    submit(&mut rig, read, "R", 17);
    let expected = "16 R, 8 W, 1 D, 1 O, 1 R, 1 W, 1 D, 1 O, 1 D, 1 O";
    assert_eq!(as_text(&runs(&mut rig)), expected);
}

#[test]
fn domain_alone_begins_one_batch_after_the_other() {
    let mut rig = deep();
    submit(&mut rig, discard, "D", 3);
    assert_eq!(as_text(&runs(&mut rig)), "3 D");
    rig.run(&[Expect(Number("cur_domain", 2)), Expect(Number("batching", 1))]);
}

/// Scenario 2.
#[test]
fn domain_that_runs_dry_loses_its_turn_and_the_next_one_begins_a_batch() {
    let mut rig = deep();
    submit(&mut rig, read, "R", 5);
    dispatch_all(&mut rig);
    rig.run(&[
        Expect(Number("batching", 5)),
        Submit("w", write(5000..5008)),
        Expect(dispatched("w")),
        Expect(Number("cur_domain", 1)),
        Expect(Number("batching", 1)),
        // It was the turn of reads; now they have to wait for the writes' batch.
        Submit("r", read(6000..6008)),
        Submit("w2", write(7000..7008)),
        Expect(dispatched("w2")),
        Expect(dispatched("r")),
    ]);
}

/// The elevator does not ask in vain, so a batch that ran dry goes on when more of it comes first.
#[test]
fn batch_goes_on_after_a_time_without_requests() {
    let mut rig = deep();
    submit(&mut rig, read, "R", 5);
    dispatch_all(&mut rig);
    rig.run(&[Advance(ms(50)), Expect(Nothing), Submit("w", write(5000..5008))]);
    submit(&mut rig, read, "R", 20);
    assert_eq!(as_text(&runs(&mut rig)), "11 R, 1 w, 9 R");
}

/// Each is given its order by arrival, whatever the task and its priority.
#[test]
fn neither_sectors_nor_priorities_matter() {
    deep().task("rt", "rt/0", ROOT).task("idle", "idle", ROOT).run(&[
        Submit("far", read(9000..9008).by("idle")),
        Submit("near", read(0..8)),
        Submit("urgent", read(4000..4008).by("rt")),
        Serve(&["far", "near", "urgent"]),
    ]);
}

#[test]
fn flush_and_what_is_to_be_durable_bypass_the_turns_and_take_no_token() {
    use paternoster::BioFlags;
    deep().run(&[
        Submit("r", read(0..8)),
        Submit("w", write(100..108)),
        Submit("flush", flush()),
        Submit("durable", write(200..208).flag(BioFlags::FUA)),
        Expect(dispatched("flush")),
        Expect(dispatched("durable")),
        Expect(dispatched("r")),
        Expect(Number("write_tokens_busy", 0)),
        Complete("durable"),
        Expect(Timeout(None)),
        Expect(dispatched("w")),
        Expect(Number("write_tokens_busy", 1)),
    ]);
}
