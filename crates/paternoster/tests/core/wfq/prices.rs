//! What requests cost.

use paternoster::BioFlags;

use crate::rig::*;
use crate::wfq::{counts, groups, submit_sized};

/// Scenario 8. A read of 4 KiB costs 1.25 op, one of 1 MiB 65: 52 times as much.
#[test]
fn bytes_cost_as_much_as_a_part_of_an_op() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]).set("cost", 3);
    submit_sized(&mut rig, "A", 520, read, 8);
    submit_sized(&mut rig, "B", 10, read, 2048);
    let counts = counts(&mut rig, 530 / 2);
    assert!(counts["A"].abs_diff(52 * counts["B"]) <= 52, "{counts:?}");
    rig.run(&[Expect(Emitted("fair dispatch A: 1250")), Expect(Emitted("fair dispatch B: 65000"))]);
}

#[test]
fn price_of_bytes_and_what_is_priced_can_be_set() {
    for (cost, op_bytes, charge) in [
        (1, 512, "1000"),  // by requests
        (2, 4096, "1000"), // 4 KiB by bytes alone
        (2, 512, "8000"),
        (3, 512, "9000"),
        (3, 4_194_304, "1000"), // 0.98 thousandths
    ] {
        let mut rig = groups(1, &[("A", 100)]).set("cost", cost).set("cost_op_bytes", op_bytes);
        rig.run(&[Submit("a", read(0..8).by("A")), Serve(&["a"])]);
        let mut events = rig.events().into_iter().filter_map(|event| rig.line_of(&event));
        let line = events.find(|line| line.starts_with("fair dispatch")).expect("it is told");
        assert!(line.starts_with(&format!("fair dispatch a: {charge}")), "{cost}: {line}");
    }
}

/// Writes, trims and zeroes cost their factor; the latter two have no bytes.
#[test]
fn what_changes_the_device_has_a_factor() {
    let mut rig = groups(1, &[("A", 100)]).set("cost", 3).set("cost_write", 300);
    rig.run(&[
        Submit("w", write(0..8).by("A")),
        Submit("t", discard(1000..9000).by("A")),
        Submit("z", zeroes(10_000..18_000).by("A")),
        Submit("r", read(20_000..20_008).by("A")),
        Serve(&["w", "t", "z", "r"]),
        Expect(Emitted("fair dispatch w: 3750")),
        Expect(Emitted("fair dispatch t: 3000")),
        Expect(Emitted("fair dispatch z: 3000")),
        Expect(Emitted("fair dispatch r: 1250")),
    ]);
}

/// Scenario 23.
#[test]
fn write_with_fua_has_a_factor_of_its_own() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]).set("cost_fua", 200);
    submit_sized(&mut rig, "A", 200, |range| write(range).flag(BioFlags::FUA), 8);
    submit_sized(&mut rig, "B", 200, write, 8);
    let counts = counts(&mut rig, 150);
    assert!((2 * counts["A"]).abs_diff(counts["B"]) <= 2, "{counts:?}");
}

/// A write after a flush still bypasses: it has to come behind what was flushed.
#[test]
fn write_with_preflush_bypasses_it() {
    let mut rig = groups(1, &[("A", 100)]);
    rig.run(&[
        Submit("a", read(0..8).by("A")),
        Submit("p", write(100..108).by("A").flag(BioFlags::PREFLUSH | BioFlags::FUA)),
        Serve(&["p", "a"]),
        Expect(NotEmitted("fair dispatch p")),
    ]);
}

/// Scenario 24.
#[test]
fn bios_of_one_tenant_merge_and_are_charged_together() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]).set("cost", 3).task("A2", "be/4", "/A");
    rig.run(&[
        SetNoMerges(paternoster::NoMerges::Off),
        SetDepth(0),
        Submit("a", read(0..8).by("A")),
        Submit("b", read(8..16).by("B")),
        BackMerge("a2", read(8..16).by("A2"), "a"),
        Submit("c", read(108..116).by("A")),
        FrontMerge("c0", read(100..108).by("A"), "c"),
        SetDepth(1),
        Serve(&["a", "b", "c"]),
        // 1 op and 8 KiB of 16; 1 op and 4 KiB.
        Expect(Emitted("fair dispatch a: 1500")),
        Expect(Emitted("fair dispatch b: 1250")),
        Expect(Emitted("fair dispatch c: 1500")),
    ]);
}

#[test]
fn bio_of_another_class_does_not_merge() {
    let mut rig = groups(1, &[("A", 100)]).task("rt", "rt/4", "/A");
    rig.run(&[
        SetNoMerges(paternoster::NoMerges::Off),
        SetDepth(0),
        Submit("a", read(0..8).by("A")),
        Submit("b", read(8..16).by("rt")),
        Expect(apart("a", "b")),
    ]);
}
