//! Job files of `cases/`, each made of a report or an example of real life, and what fio 3.33 does
//! with it.
//!
//! fio's own figures were seen with the same file, on a small file or with `ioengine=null`. Where
//! it draws, a band of some deviations is allowed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::common::jobs::{jobs, run_on_servers as run};
use paternoster_lab::fio::{DataDirection, Io, IoOp, Stream};
use paternoster_lab::threads::Outcome;

/// A file, and what fio does with it.
struct Case {
    name: &'static str,
    text: &'static str,
    /// Of all its jobs, reads and writes.
    reads: RangeInclusive<u64>,
    writes: RangeInclusive<u64>,
    /// When the last job ends, in ms; nothing where that is a matter of the device.
    end: Option<RangeInclusive<u64>>,
}

macro_rules! case {
    ($name:literal, reads $reads:expr, writes $writes:expr, ends $end:expr) => {
        Case {
            name: $name,
            text: include_str!(concat!("../cases/", $name, ".fio")),
            reads: $reads,
            writes: $writes,
            end: $end,
        }
    };
}

/// What fio does. A rate is of each direction by itself. `bs` does not end `bssplit`: 16 MiB have
/// 455 I/Os of 36 KiB on average. `number_ios` counts in each of five loops. Of `io_size` and two
/// passes the job does the greater. A job that is ended wakes within a second of its pause. A read
/// each 3.28 s is more than the 1024 bytes a second that are asked for.
fn cases() -> Vec<Case> {
    vec![
        case!("rate-mix", reads 400..=400, writes 400..=400, ends Some(4000..=4010)),
        case!("bssplit-and-bs", reads 400..=510, writes 0..=0, ends None),
        case!("units-ki", reads 0..=0, writes 256..=256, ends None),
        case!("backwards", reads 16..=16, writes 0..=0, ends None),
        case!("threads", reads 16..=16, writes 0..=0, ends None),
        case!("rate-min-slow", reads 5..=5, writes 0..=0, ends Some(15_000..=15_010)),
        case!("exitall-pause", reads 11..=11, writes 0..=0, ends Some(1001..=2010)),
        case!("loops-number-ios", reads 50..=50, writes 0..=0, ends None),
        case!("bssplit-space", reads 0..=0, writes 256..=256, ends None),
        case!("loops-io-size", reads 32..=32, writes 0..=0, ends None),
        case!("server-sizes-once", reads 10_600..=11_900, writes 2600..=3000, ends None),
    ]
}

fn count(outcome: &Outcome, direction: DataDirection) -> u64 {
    outcome.results.iter().map(|result| result.directions[direction as usize].ios).sum()
}

#[test]
fn cases_of_real_life_do_what_fio_does() {
    let mut wrong = vec![];
    for case in cases() {
        let outcome = run(&jobs(case.text), 4);
        let [reads, writes] =
            [DataDirection::Read, DataDirection::Write].map(|direction| count(&outcome, direction));
        let end = outcome.end.since_start().as_nanos() / 1_000_000;
        let error = outcome.results.iter().find_map(|result| result.error);
        let is_right = case.reads.contains(&reads)
            && case.writes.contains(&writes)
            && case.end.is_none_or(|range| range.contains(&end))
            && error.is_none();
        if !is_right {
            wrong.push(format!(
                "{}: {reads} reads, {writes} writes, the last at {end} ms, error {error:?}",
                case.name
            ));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Every I/O of the only job of a file.
fn ios(text: &str) -> Vec<Io> {
    Stream::new(&jobs(text).jobs[0].pattern).collect()
}

/// The parts of all I/Os that each size has, in percent.
#[allow(clippy::cast_precision_loss, reason = "some thousands")]
fn parts(ios: &[Io]) -> BTreeMap<u64, f64> {
    let mut parts = BTreeMap::new();
    for io in ios {
        *parts.entry(io.bytes).or_insert(0.0) += 100.0 / ios.len() as f64;
    }
    parts
}

/// The job goes on from the start to the last block but one, as that is 8 KiB from the end.
#[test]
fn backwards_begins_at_the_start_and_goes_on_from_the_end() {
    let offsets: Vec<_> =
        ios(include_str!("../cases/backwards.fio")).iter().map(|io| io.offset).collect();
    let back = (0..15).rev().map(|block| block * 4096);
    assert_eq!(offsets, [0].into_iter().chain(back).collect::<Vec<_>>());
}

/// `bs=8k,64k`: in a mix each direction keeps its size, once all over the file and again and again.
#[test]
fn sizes_of_a_mix_are_those_of_its_directions() {
    let text = include_str!("../cases/sizes-by-direction.fio");
    for more in ["", "io_size=1g\n", "norandommap\n", "percentage_random=50\n"] {
        let ios = ios(&format!("{text}{more}"));
        let wanted = |io: &Io| if io.op == IoOp::Read { 8192 } else { 65_536 };
        let wrong = ios.iter().filter(|io| io.bytes != wanted(io)).count();
        assert_eq!(wrong, 0, "of {} with {more:?}", ios.len());
        // 64 MiB of 0.7 × 8 KiB + 0.3 × 64 KiB: some 2640, if number_ios does not end it before.
        assert!(ios.len() == 4000 || (2500..2800).contains(&ios.len()), "{} {more:?}", ios.len());
    }
}

/// fio 3.33 did 13,960 I/Os; 14.8 % of 512 bytes, 42.8 % of 4 KiB: large ones fit for long.
#[test]
fn file_that_is_visited_once_has_the_sizes_of_a_file_server() {
    let ios = ios(include_str!("../cases/server-sizes-once.fio"));
    let parts = parts(&ios);
    assert!((13_300..14_700).contains(&ios.len()), "{}", ios.len());
    assert!((parts[&512] - 15.0).abs() < 2.0, "{parts:?}");
    assert!((parts[&4096] - 43.0).abs() < 3.0, "{parts:?}");
    let mut spans: Vec<_> = ios.iter().map(|io| (io.offset, io.offset + io.bytes)).collect();
    spans.sort_unstable();
    assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "a block is visited twice");
}

/// 8 and 64 KiB, half each, wherever `bs` stands: 5 deviations of 455 draws are 12 percent.
#[test]
fn bs_does_not_end_bssplit() {
    let parts = parts(&ios(include_str!("../cases/bssplit-and-bs.fio")));
    assert_eq!(parts.keys().copied().collect::<Vec<_>>(), [8192, 65_536]);
    assert!((parts[&8192] - 50.0).abs() < 12.0, "{parts:?}");
}
