//! When bios leave a plug, in which batches, and what has merged until then.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::arena::IocId;
use crate::elevator::{Limits, NoMerges};
use crate::request::{BioFlags, Op, Sector, SectorCount};

const A: u8 = 0;
const B: u8 = 1;

fn at(micros: u64) -> Instant {
    Instant::START + Nanos::from_micros(micros)
}

/// I/O contexts, by their number.
fn ioc(number: u32) -> IocId {
    slotmap::KeyData::from_ffi(u64::from(number) << 32 | u64::from(number)).into()
}

fn read(start: u64, sectors: u32) -> Bio {
    Bio::read(ioc(1), Sector(start), SectorCount(sectors)).with_user_data(start)
}

/// The `nth` of reads that never touch.
fn apart(nth: u64) -> Bio {
    read(nth * 100, 8)
}

type Left = Vec<(u8, Batch)>;

struct Sink<'a>(&'a mut Left);

impl HandOver<u8> for Sink<'_> {
    fn hand_over(&mut self, device: u8, batch: Batch) {
        self.0.push((device, batch));
    }
}

fn plug(left: &mut Left) -> Plug<u8, Sink<'_>> {
    Plug::new(PlugLimits::default(), Sink(left))
}

/// The names of the bios of each chain, in their orders.
fn names(batch: &Batch) -> Vec<Vec<u64>> {
    let of_chain = |chain: &Chain| chain.bios().iter().map(|bio| bio.user_data).collect();
    batch.chains.iter().map(of_chain).collect()
}

/// What left: the device, how many chains, and why.
fn depths(left: &Left) -> Vec<(u8, usize, FlushReason)> {
    left.iter().map(|(device, batch)| (*device, batch.chains.len(), batch.reason)).collect()
}

/// Scenario 1.
#[test]
fn thirty_third_bio_of_one_device_has_the_first_32_leave_in_their_order() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    for nth in 0..33 {
        plug.submit(at(0), A, apart(nth), &PlugRules::default());
    }
    assert_eq!(plug.chains.len(), 1);
    drop(plug);
    assert_eq!(depths(&left), [(A, 32, FlushReason::Full), (A, 1, FlushReason::Drop)]);
    assert_eq!(names(&left[0].1), (0..32).map(|nth| vec![nth * 100]).collect::<Vec<_>>());
}

/// Scenario 2.
#[test]
fn of_two_devices_64_leave_together_each_in_a_batch_of_its_own() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    for nth in 0..65 {
        plug.submit(at(0), if nth % 2 == 0 { A } else { B }, apart(nth), &PlugRules::default());
    }
    plug.flush(at(0), FlushReason::Yield);
    // Of one device again, 32 are the most again.
    for nth in 0..33 {
        plug.submit(at(0), B, apart(nth), &PlugRules::default());
    }
    drop(plug);
    assert_eq!(
        depths(&left),
        [
            (A, 32, FlushReason::Full),
            (B, 32, FlushReason::Full),
            (A, 1, FlushReason::Yield),
            (B, 32, FlushReason::Full),
            (B, 1, FlushReason::Drop),
        ]
    );
    assert_eq!(names(&left[1].1), (0..32).map(|nth| vec![nth * 200 + 100]).collect::<Vec<_>>());
}

/// Scenario 3.
#[test]
fn chain_of_128_kib_closes_the_plug_unless_merging_is_off() {
    for (nomerges, sectors, expected) in [
        (NoMerges::Off, 256, vec![(A, 1, FlushReason::Bytes), (A, 1, FlushReason::Drop)]),
        (NoMerges::SimpleOnly, 256, vec![(A, 1, FlushReason::Bytes), (A, 1, FlushReason::Drop)]),
        (NoMerges::Off, 248, vec![(A, 2, FlushReason::Drop)]),
        (NoMerges::All, 256, vec![(A, 33, FlushReason::Drop)]),
    ] {
        let mut left = vec![];
        let mut plug = plug(&mut left);
        plug.set_limits(at(0), PlugLimits::default().with_max_requests(64, 64));
        let rules = PlugRules::new(Limits::default(), nomerges);
        for start in (0..sectors).step_by(8) {
            plug.submit(at(0), A, read(start, 8), &rules);
        }
        plug.submit(at(0), A, read(90_000, 8), &rules);
        drop(plug);
        assert_eq!(depths(&left), expected, "{nomerges:?}, {sectors} sectors");
    }
}

/// Scenario 4. A task on another thread (5) and another task's wait (6) need no more than that: a
/// plug belongs to its submitter, and `due` bounds how long one that goes on keeps a bio.
#[test]
fn all_leaves_before_the_owner_waits_and_an_empty_plug_hands_over_nothing() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    plug.flush(at(0), FlushReason::Wait);
    for nth in 0..3 {
        plug.submit(at(nth), A, apart(nth), &PlugRules::default());
    }
    plug.flush(at(10), FlushReason::Wait);
    plug.flush(at(11), FlushReason::Wait);
    assert!(plug.is_empty());
    assert_eq!(plug.stats().flushes(FlushReason::Wait), 1);
    drop(plug);
    assert_eq!(depths(&left), [(A, 3, FlushReason::Wait)]);
    assert_eq!(left[0].1.age, Nanos::from_micros(10));
}

#[test]
fn old_chains_leave_at_the_next_call() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    plug.submit(at(100), A, apart(0), &PlugRules::default());
    assert_eq!(plug.due(), Some(at(150)));
    plug.submit(at(149), A, apart(1), &PlugRules::default());
    // It would merge with the second, but that leaves first.
    plug.submit(at(150), A, read(108, 8), &PlugRules::default());
    plug.flush_if_old(at(199));
    plug.flush_if_old(at(200));
    assert_eq!(plug.due(), None);
    drop(plug);
    assert_eq!(depths(&left), [(A, 2, FlushReason::Age), (A, 1, FlushReason::Age)]);
}

/// Scenario 7.
#[test]
fn uses_nest_and_the_outermost_flushes() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    plug.begin();
    plug.submit(at(0), A, apart(0), &PlugRules::default());
    plug.begin();
    plug.submit(at(0), A, apart(1), &PlugRules::default());
    plug.finish(at(0));
    assert!(!plug.is_empty());
    plug.finish(at(0));
    assert!(plug.is_empty());
    drop(plug);
    assert_eq!(depths(&left), [(A, 2, FlushReason::Explicit)]);
}

#[test]
#[should_panic(expected = "finished as often as it is begun")]
fn use_that_was_not_begun_cannot_be_finished() {
    plug(&mut vec![]).finish(at(0));
}

#[test]
fn announcement_ends_with_its_use_and_an_inner_one_means_nothing() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    plug.begin();
    plug.announce(5);
    plug.submit(at(0), A, apart(0), &PlugRules::default());
    plug.finish(at(0));
    plug.begin();
    for nth in 0..5 {
        plug.submit(at(0), A, apart(nth), &PlugRules::default());
    }
    plug.begin();
    plug.announce(1);
    plug.submit(at(0), A, apart(5), &PlugRules::default());
    plug.finish(at(0));
    plug.finish(at(0));
    drop(plug);
    assert_eq!(depths(&left), [(A, 1, FlushReason::Explicit), (A, 6, FlushReason::Explicit)]);
}

#[test]
fn end_of_an_inner_use_has_what_is_old_leave() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    plug.begin();
    plug.begin();
    plug.submit(at(0), A, apart(0), &PlugRules::default());
    plug.finish(at(50));
    drop(plug);
    assert_eq!(depths(&left), [(A, 1, FlushReason::Age)]);
}

#[test]
fn other_limits_have_what_is_held_leave_first() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    for nth in 0..5 {
        plug.submit(at(0), A, apart(nth), &PlugRules::default());
    }
    plug.set_limits(at(0), PlugLimits::default().with_max_requests(2, 2));
    drop(plug);
    assert_eq!(depths(&left), [(A, 5, FlushReason::Explicit)]);
}

#[test]
#[should_panic(expected = "ends beyond sector")]
fn bio_beyond_the_last_sector_is_refused_as_it_comes() {
    plug(&mut vec![]).submit(at(0), A, read(u64::MAX - 4, 8), &PlugRules::default());
}

#[test]
#[should_panic(expected = "nothing else has none")]
fn read_of_nothing_is_refused_though_it_would_merge() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    plug.submit(at(0), A, read(100, 8), &PlugRules::default());
    plug.submit(at(0), A, read(108, 0), &PlugRules::default());
}

#[test]
#[should_panic(expected = "a request has 1 to")]
fn limits_without_a_bound_are_refused() {
    let _ = PlugRules::new(Limits::default().with_max_sectors(u32::MAX), NoMerges::Off);
}

#[test]
fn announced_bios_leave_with_the_last_of_them_and_one_or_two_do_not_wait() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    for announced in [3, 1, 2, 0] {
        plug.announce(announced);
        for nth in 0..announced.max(1) {
            plug.submit(at(0), A, apart(nth.into()), &PlugRules::default());
        }
    }
    assert!(!plug.is_empty(), "none was announced: the last one waits");
    drop(plug);
    let explicit = |chains| (A, chains, FlushReason::Explicit);
    let expected = [explicit(3), explicit(1), explicit(1), explicit(1), (A, 1, FlushReason::Drop)];
    assert_eq!(depths(&left), expected);
}

#[test]
fn flushes_and_durable_writes_do_not_wait_and_stay_behind_what_came_before() {
    let write = Bio::write(ioc(1), Sector(108), SectorCount(8));
    for durable in
        [Bio::flush(ioc(1)), write.with_flags(BioFlags::FUA), write.with_flags(BioFlags::PREFLUSH)]
    {
        let mut left = vec![];
        let mut plug = plug(&mut left);
        plug.submit(at(0), A, Bio { op: Op::Write, ..apart(1) }, &PlugRules::default());
        plug.submit(at(0), A, durable.with_user_data(7), &PlugRules::default());
        assert!(plug.is_empty());
        drop(plug);
        assert_eq!(depths(&left), [(A, 2, FlushReason::Explicit)], "{durable:?}");
        assert_eq!(names(&left[0].1), [[100], [7]], "and they do not merge");
    }
}

#[test]
fn nothing_waits_in_a_plug_that_is_off() {
    let limits = PlugLimits::default();
    for off in [
        PlugLimits::OFF,
        limits.with_max_requests(0, 64),
        limits.with_max_requests(32, 0),
        limits.with_flush_bytes(0),
        limits.with_max_age(Nanos::ZERO),
    ] {
        let mut left = vec![];
        let mut plug = plug(&mut left);
        plug.set_limits(at(0), off);
        for nth in 0..3 {
            plug.submit(at(0), A, read(nth * 8, 8), &PlugRules::default());
            assert!(plug.is_empty(), "{off:?}");
        }
        drop(plug);
        assert_eq!(depths(&left), [(A, 1, FlushReason::Explicit); 3], "{off:?}");
    }
}

/// What two bios come to: one chain of both, or two.
fn together(first: Bio, second: Bio, rules: &PlugRules) -> bool {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    plug.submit(at(0), A, first, rules);
    plug.submit(at(0), B, read(5000, 8), rules);
    plug.submit(at(0), A, second, rules);
    drop(plug);
    left[0].1.chains.len() == 1
}

#[test]
fn adjacent_bios_of_one_context_and_operation_merge_behind_and_before() {
    let rules = PlugRules::default();
    let first = read(100, 8);
    let write = |start| Bio { op: Op::Write, ..read(start, 8) };
    assert!(together(first, read(108, 8), &rules));
    assert!(together(first, read(92, 8), &rules));
    assert!(together(write(100), write(108), &rules));
    assert!(!together(first, read(109, 8), &rules), "a gap");
    assert!(!together(first, read(104, 8), &rules), "an overlap");
    assert!(!together(first, write(108), &rules), "another operation");
    assert!(!together(first, Bio { ioc: ioc(2), ..read(108, 8) }, &rules), "another context");
    let alone = |bio: Bio| bio.with_flags(BioFlags::NO_MERGE);
    assert!(!together(first, alone(read(108, 8)), &rules), "a bio that never merges");
    assert!(!together(alone(first), read(108, 8), &rules), "behind a bio that never merges");
    let zeroes = |start| Bio { op: Op::WriteZeroes, ..read(start, 8) };
    assert!(!together(zeroes(100), zeroes(108), &rules), "zeroes carry no data to gather");
    let limits = Limits::default();
    let none = PlugRules::new(limits, NoMerges::All);
    assert!(!together(first, read(108, 8), &none), "merging is off");
    let simple = PlugRules::new(limits, NoMerges::SimpleOnly);
    assert!(together(first, read(108, 8), &simple), "no table is looked at");
}

#[test]
fn chain_keeps_the_limits_and_never_merges_again_after_it_refused_a_bio() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    let rules = PlugRules::new(Limits::default().with_max_sectors(20), NoMerges::Off);
    plug.submit(at(0), A, read(100, 8), &rules);
    plug.submit(at(0), A, read(108, 8), &rules);
    plug.submit(at(0), A, read(116, 8), &rules);
    // The chain [100, +16) is not the newest any more.
    plug.submit(at(0), A, read(96, 4), &rules);
    drop(plug);
    assert_eq!(names(&left[0].1), [vec![100, 108], vec![116], vec![96]]);
    assert!(left[0].1.chains[0].whole().flags.contains(BioFlags::NO_MERGE));
    assert!(!left[0].1.chains[1].whole().flags.contains(BioFlags::NO_MERGE));

    // Memory that does not end where the device could skip to the next is no such refusal.
    let gap = PlugRules::new(Limits::default().with_virt_boundary(4095), NoMerges::Off);
    let mut chain = Chain::from(read(100, 9));
    assert!(!chain.take(&read(109, 8), &gap));
    assert!(chain.take(&read(92, 8), &gap));
    assert_eq!((chain.sector(), chain.sectors()), (Sector(92), SectorCount(17)));
}

/// The owner knows other names than the submitter; the order and the ranges stay.
#[test]
fn bios_of_a_chain_are_given_other_names() {
    let mut left = vec![];
    let mut plug = plug(&mut left);
    for (name, sector) in [(7, 8), (8, 0), (9, 16)] {
        plug.submit(at(0), 0, read(sector, 8).with_user_data(name), &PlugRules::default());
    }
    drop(plug);
    let chain = &mut left[0].1.chains[0];
    let (ioc, sectors) = (chain.bios()[0].ioc, chain.sectors());
    chain.rename(|name| (ioc, name * 100));
    let names: Vec<_> = chain.bios().iter().map(|bio| bio.user_data).collect();
    assert_eq!((names, chain.sectors()), (vec![700, 800, 900], sectors));
}

proptest! {
    /// Whatever is submitted leaves once, with its device, a chain behind all older chains of that
    /// device, and never more at a time than the limits say.
    #[test]
    fn every_bio_leaves_once_in_order(
        calls in vec((0..3u8, 0..40u64, 0..30u64, 0..8u8), 1..300),
        of_one in 1..10u32,
        of_several in 1..10u32,
    ) {
        let mut left = vec![];
        let mut plug = plug(&mut left);
        let mut now = at(0);
        plug.set_limits(now, PlugLimits::default().with_max_requests(of_one, of_several));
        let mut submitted: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        for (name, (device, place, micros, call)) in (0..).zip(calls) {
            now = now + Nanos::from_micros(micros);
            if call == 0 {
                plug.flush(now, FlushReason::Wait);
            }
            submitted.entry(device).or_default().push(name);
            let bio = read(place * 8, 8).with_user_data(name);
            plug.submit(now, device, bio, &PlugRules::default());
            prop_assert!(plug.due().is_none_or(|due| due > now));
            let first = plug.chains.first().map(|(device, _)| *device);
            let several = plug.chains.iter().any(|(device, _)| Some(*device) != first);
            let most = if several { of_several.max(of_one) } else { of_one };
            prop_assert!(plug.chains.len() <= most as usize);
        }
        drop(plug);
        let mut seen: BTreeMap<u8, Vec<u64>> = BTreeMap::new();
        for (device, batch) in &left {
            prop_assert!(!batch.chains.is_empty());
            prop_assert!(batch.chains.len() <= of_one.max(of_several) as usize);
            let first_names: Vec<_> = batch.chains.iter().map(|c| c.bios()[0].user_data).collect();
            prop_assert!(first_names.is_sorted());
            let mut all: Vec<u64> = names(batch).concat();
            all.sort_unstable();
            // Batches of one device do not interleave.
            let before = seen.entry(*device).or_default();
            prop_assert!(before.last() < all.first());
            before.extend(all);
        }
        prop_assert_eq!(seen, submitted);
    }
}
