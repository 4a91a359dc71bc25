//! Rates and pauses, beside what fio 3.33 did with the same options and `ioengine=null`.

use std::ops::RangeInclusive;

use crate::common::jobs::{jobs, run_on_servers};
use paternoster_lab::threads::Outcome;

/// Runs a job with these options, separated by spaces, that takes no time for its I/O.
fn run(options: &str) -> Outcome {
    let lines = options.replace(' ', "\n");
    run_on_servers(&jobs(&format!("[j]\nioengine=null\nsize=64m\n{lines}\n")), 1)
}

/// Its reads and writes.
fn ios(options: &str) -> [u64; 2] {
    let outcome = run(options);
    let [read, write, _] = &outcome.results[0].directions;
    [read.ios, write.ios]
}

/// Where one direction has to wait, the other goes on: fio 3.33 did these numbers.
#[test]
fn rates_of_a_mix_hold_each_direction_by_itself() {
    let rows = [
        ("rw=randrw rwmixread=70 rate_iops=100 runtime=4", [400, 400]),
        ("rw=rw rate_iops=100,20 runtime=4", [400, 80]),
        ("rw=randrw rwmixread=90 rate=400k,40k runtime=4", [400, 40]),
        ("rw=randrw rwmixread=100 rate_iops=100 runtime=2", [200, 0]),
    ];
    for (options, wanted) in rows {
        assert_eq!(ios(&format!("{options} time_based")), wanted, "{options}");
    }
}

/// A Poisson process of n events has a deviation of √n; five of them are allowed. Sizes do not
/// matter, and a rate in bytes is one of I/Os of the least size.
#[test]
fn poisson_rates_count_ios() {
    let sizes = "bssplit=4k/50:64k/50";
    let rows: [(&str, RangeInclusive<u64>); 4] = [
        ("rate_iops=100", 840..=1160),
        ("rate_iops=100 bssplit=4k/50:64k/50", 840..=1160),
        ("rate=4m bssplit=4k/50:64k/50", 9_700..=10_750),
        ("bs=64k rate=6400k", 840..=1160),
    ];
    for (options, wanted) in rows {
        let [reads, _] =
            ios(&format!("rw=read {options} rate_process=poisson runtime=10 time_based"));
        assert!(wanted.contains(&reads), "{options}: {reads}");
    }
    // Evenly, 400 KiB a second are 12 I/Os of 34 KiB a second: fio did 63 in 5 s.
    let [reads, _] = ios(&format!("rw=read {sizes} rate_iops=100 runtime=5 time_based"));
    assert!((40..90).contains(&reads), "{reads}");
}

/// In 5 s, of 100 I/Os a second; in parentheses what fio 3.33 did. A pause that is longer than the
/// interval takes that in, a shorter one puts the next I/O off.
#[test]
fn pause_that_is_ignored_costs_what_it_takes() {
    let rows = [
        // 9 intervals of 10 ms and 50 ms are 10 I/Os (358).
        ("rw=read thinktime=50ms thinktime_blocks=10", 355..=360),
        // 4 intervals and 20 ms are 5 I/Os (417).
        ("rw=read thinktime=20ms thinktime_blocks=5", 415..=420),
        // 20 ms each (242: fio wakes late).
        ("rw=read thinktime=20ms", 249..=251),
        // 10 + 2 ms each (417).
        ("rw=read thinktime=2ms", 415..=418),
        // 5 intervals and 2 ms are 5 I/Os (481).
        ("rw=read thinktime=2ms thinktime_blocks=5", 480..=483),
        // The direction that the pause was not for catches up: 5 I/Os each 30 ms (834).
        ("rw=rw thinktime=20ms thinktime_blocks=5", 825..=840),
    ];
    for (options, wanted) in rows {
        let options = format!("{options} rate_iops=100 runtime=5 time_based");
        let sum: u64 = ios(&format!("{options} rate_ignore_thinktime=1")).iter().sum();
        let wanted: RangeInclusive<u64> = wanted;
        assert!(wanted.contains(&sum), "{options}: {sum}");
    }
}

/// What fio 3.33 did: 100 reads of the ramp do not count, and 150 behind it end the job; those of
/// each loop; where they are done within the ramp, the job ends there.
#[test]
fn number_of_ios_is_counted_behind_the_ramp() {
    let end = |options| {
        let outcome = run(&format!("rw=read rate_iops=100 ramp_time=1 {options}"));
        let [read, ..] = &outcome.results[0].directions;
        (read.ios, outcome.end.since_start().as_nanos() / 1_000_000)
    };
    assert_eq!(end("number_ios=150"), (150, 2490));
    assert_eq!(end("number_ios=100 loops=2"), (200, 2990));
    assert_eq!(end("number_ios=50").1, 490);
}

/// The others wake in a second of their pause, and one that was to begin later does not.
#[test]
fn end_of_a_job_ends_the_pauses_of_others() {
    let global = "[global]\nioengine=null\nsize=4m\nrw=read\n";
    let ends = "[a]\nstartdelay=1300ms\nnumber_ios=10\nexitall\n";
    // So did fio, but for the last, which it ended at once.
    for (other, reads, end) in [
        ("thinktime=12s", 1, 2000),
        ("rate_iops=1", 2, 2000),
        ("thinktime=1700ms", 1, 1700),
        ("startdelay=7s", 0, 2000),
    ] {
        let text = format!("{global}{ends}[b]\n{other}\n");
        let outcome = run_on_servers(&jobs(&text), 1);
        let ended = outcome.end.since_start().as_nanos() / 1_000_000;
        assert_eq!((outcome.results[1].directions[0].ios, ended), (reads, end), "{other}");
    }
}
