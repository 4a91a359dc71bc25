//! Job files over simple devices, against what can be worked out by hand.

use crate::common::jobs::jobs;
use paternoster::{Instant, Nanos, SchedulerKind, Sector};
use paternoster_lab::fio::DataDirection;
use paternoster_lab::result::drained_note;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, PageCacheParameters, run_jobs};
use paternoster_model::{Room, Servers};

const MIB: u64 = 1 << 20;

/// So many servers of 100 µs, whatever is read.
fn servers(servers: u32) -> Servers {
    Servers::constant(
        servers,
        Room { depth: 64, end: Sector(1 << 31) },
        Nanos::from_micros(100),
        Nanos::ZERO,
    )
}

fn run(text: &str, channels: u32) -> Outcome {
    let setup = Setup::new(SchedulerKind::None);
    run_jobs(&jobs(text), &setup, PageCacheParameters::default(), servers(channels), |_| {})
        .expect("a run")
}

fn reads(outcome: &Outcome, job: usize) -> (u64, u64) {
    let read = &outcome.results[job].directions[DataDirection::Read as usize];
    (read.ios, read.bytes)
}

/// Eight outstanding reads on four servers of 100 µs: 40,000 a second, from the end of the ramp to
/// the end of a second, each of 200 µs.
#[test]
fn deep_job_has_the_devices_throughput() {
    let text = "[global]\nioengine=libaio\ndirect=1\niodepth=8\nrw=randread\nbs=4k\nsize=1g\n\
                ramp_time=1s\nruntime=1s\ntime_based\n[job]\nfilename=/dev/a\n";
    let outcome = run(text, 4);
    let (ios, bytes) = reads(&outcome, 0);
    assert!((39_990..=40_010).contains(&ios), "{ios}");
    assert_eq!(bytes, ios * 4096);
    let read = &outcome.results[0].directions[0];
    assert_eq!(read.completion.percentile(50.0), Some(Nanos::from_micros(200)));
    assert_eq!(outcome.results[0].runtime.as_nanos() / 1_000_000, 1000);
}

/// One server: a read ends each 100 µs, at 100 to 1000 µs ten of them. The last one comes as the
/// runtime ends, so that none follows it, and the other 31 of 32 are drained: 31 of 41. Of a job
/// with one outstanding nothing is, and of one that runs until all is done neither.
#[test]
fn job_whose_queue_drains_after_its_runtime_is_noted() {
    let job = "[job]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\nsize=1m\n";
    let note = |options: &str| {
        let text = format!("{job}{options}");
        let outcome = run(&text, 1);
        (reads(&outcome, 0).0, drained_note(&jobs(&text), &outcome.results))
    };
    let deep = "75.6 % of the I/O of job completed after its runtime";
    let (ios, found) = note("iodepth=32\nruntime=1ms\ntime_based\n");
    assert_eq!(ios, 41);
    assert!(found.as_ref().is_some_and(|note| note.contains(deep)), "{found:?}");
    assert_eq!(note("iodepth=1\nruntime=1ms\ntime_based\n"), (10, None));
    assert_eq!(note("iodepth=32\n"), (256, None));
    // 2 % of 550 are 11: with 12 outstanding that many are drained, with 13 one more.
    assert_eq!(note("iodepth=12\nruntime=53900us\ntime_based\n"), (550, None));
    assert!(note("iodepth=13\nruntime=53900us\ntime_based\n").1.is_some());
}

/// Two reads, ten years apart: in between are 3 × 10¹⁴ windows of a microsecond without any.
#[test]
fn years_without_io_take_no_time_however_short_the_windows_are() {
    let text = "[job]\nrw=read\nsize=8k\ndirect=1\nthinktime=3650d\nbwavgtime=1us\n\
                iopsavgtime=1us\nfilename=/dev/a\n";
    let read = &run(text, 1).results[0].directions[0];
    // The first read ends after 100 µs, in the window from there on. The pause behind the second
    // read is over ten years later, too.
    let windows = 100 + 315_360_000_000_000 + 100;
    assert_eq!((read.ios, read.iops.count), (2, windows + 1));
    assert_eq!(read.iops.max, 1_000_000);
}

/// Reads of 100 µs, each 150 µs on its way before: 4,000 a second with one outstanding. Four
/// outstanding are on their way together: four times as many.
#[test]
fn way_to_the_scheduler_is_gone_by_all_at_once() {
    let mut setup = Setup::new(SchedulerKind::None);
    setup.way = Nanos::from_micros(150);
    for (depth, expected) in [(1, 4_000), (4, 16_000)] {
        let text = format!(
            "[job]\nioengine=libaio\niodepth={depth}\ndirect=1\nrw=randread\nbs=4k\nsize=1g\n\
             runtime=1s\nfilename=/dev/a\n"
        );
        let outcome =
            run_jobs(&jobs(&text), &setup, PageCacheParameters::default(), servers(4), |_| {});
        let (ios, _) = reads(&outcome.expect("a run"), 0);
        assert!((expected..=expected + depth).contains(&ios), "{ios}");
    }
}

/// A thinking job: 10 reads of 100 µs, then 9 ms: 1,000 reads a second.
#[test]
fn job_thinks_after_so_many_reads() {
    let text = "[job]\nioengine=psync\ndirect=1\nrw=read\nbs=4k\nsize=1g\nruntime=1s\n\
                thinktime=9ms\nthinktime_blocks=10\nfilename=/dev/a\n";
    let (ios, _) = reads(&run(text, 1), 0);
    assert!((1000..=1010).contains(&ios), "{ios}");
}

/// 4 MiB a second in reads of 64 KiB are 64 reads a second, one each 15.625 ms.
#[test]
fn rate_holds_a_job_back() {
    let text = "[job]\nioengine=psync\ndirect=1\nrw=randread\nbs=64k\nsize=1g\nruntime=2s\n\
                rate=4m\nfilename=/dev/a\n";
    let (ios, _) = reads(&run(text, 1), 0);
    assert!((127..=129).contains(&ios), "{ios}");
}

/// The second job starts when the first has ended: 1,024 reads of 4 KiB take 102.4 ms each.
#[test]
fn stonewall_has_jobs_run_one_after_the_other() {
    let text = "[global]\nioengine=psync\ndirect=1\nrw=read\nbs=4k\nsize=4m\nfilename=/dev/a\n\
                [first]\n[second]\nstonewall\n";
    let outcome = run(text, 1);
    assert_eq!((reads(&outcome, 0), reads(&outcome, 1)), ((1024, 4 * MIB), (1024, 4 * MIB)));
    assert_eq!(outcome.end.since_start(), Nanos::from_micros(2048 * 100));
}

/// The short job ends after 10.24 ms, and the long one with it.
#[test]
fn exitall_ends_the_others() {
    let text = "[global]\nioengine=psync\ndirect=1\nrw=read\nbs=4k\nexitall\nfilename=/dev/a\n\
                [short]\nsize=400k\n[long]\nsize=1g\n";
    let outcome = run(text, 2);
    assert_eq!(reads(&outcome, 0).0, 100);
    assert!((100..=101).contains(&reads(&outcome, 1).0), "{:?}", reads(&outcome, 1));
}

/// Windows of 128 KiB take 100 µs, and 32 µs to copy. The next but one is asked for as the next is
/// waited for: two of them in 132 µs, 1,894 MiB a second, a little less while windows grow. A
/// reader that goes past the page cache has one read of 4 KiB in 100 µs.
#[test]
fn buffered_reader_is_read_ahead_of() {
    let file = "bs=4k\nsize=256m\nruntime=1s\nfadvise_hint=0\nfilename=/dev/a\n";
    let buffered = run(&format!("[job]\nioengine=psync\nrw=read\n{file}"), 2);
    let (_, bytes) = reads(&buffered, 0);
    let us = buffered.end.since_start().as_nanos() / 1000;
    let mib_a_s = bytes / MIB * 1_000_000 / us;
    assert!((1850..=1895).contains(&mib_a_s), "{mib_a_s} MiB/s");
    let direct = run(&format!("[job]\nioengine=psync\ndirect=1\nrw=read\n{file}"), 2);
    assert_eq!(reads(&direct, 0).0, 10_000);
}

/// What is expected of the end, in ms, each time that a run says how far it has come, with the end
/// at which it came out.
fn expected_ends(text: &str, channels: u32) -> (Vec<Option<u64>>, u64) {
    let ms = |at: Instant| at.since_start().as_nanos() / 1_000_000;
    let mut expected = Vec::new();
    let setup = Setup::new(SchedulerKind::None);
    let outcome =
        run_jobs(&jobs(text), &setup, PageCacheParameters::default(), servers(channels), |run| {
            expected.push(run.expected_end().map(ms));
        });
    (expected, ms(outcome.expect("a run").end))
}

/// The first stage ends after 500 ms + 1 s + 4 s, the second one 3 s later.
#[test]
fn end_of_jobs_with_a_runtime_is_known_from_the_start() {
    let text = "[global]\nioengine=psync\ndirect=1\nrw=randread\nbs=4k\nsize=1g\ntime_based\n\
                filename=/dev/a\n[first]\nstartdelay=500ms\nramp_time=1s\nruntime=4s\n\
                [second]\nstonewall\nruntime=3s\n";
    let (expected, end) = expected_ends(text, 1);
    assert_eq!(end, 8500);
    // 80,000 reads are two events each, and the run tells every 65,536.
    assert!(expected.len() >= 2, "{expected:?}");
    assert!(expected.iter().all(|&ms| ms == Some(8500)), "{expected:?}");
}

/// 100,000 reads of 100 µs take 10 s at one pace. Beside them the short job reads as fast, and the
/// end of its 60,000 after 6 s is the end of both.
#[test]
fn end_of_jobs_that_end_by_bytes_follows_from_their_pace() {
    let alone = "[global]\nioengine=psync\ndirect=1\nrw=read\nbs=4k\nfilename=/dev/a\n\
                 [long]\nsize=400000k\n";
    let (expected, end) = expected_ends(alone, 2);
    assert_eq!(end, 10_000);
    assert!(!expected.is_empty());
    assert!(expected.iter().all(|&ms| ms.is_some_and(|ms| ms.abs_diff(10_000) <= 1)));
    let both = format!("{alone}[short]\nsize=240000k\nexitall\n");
    let (expected, end) = expected_ends(&both, 2);
    assert_eq!(end, 6000);
    assert!(!expected.is_empty());
    assert!(expected.iter().all(|&ms| ms.is_some_and(|ms| ms.abs_diff(6000) <= 1)));
}

#[test]
fn end_is_not_guessed_where_a_job_has_neither_a_runtime_nor_begun() {
    let text = "[global]\nioengine=psync\ndirect=1\nrw=read\nbs=4k\nfilename=/dev/a\n\
                [first]\nsize=400000k\n[second]\nstonewall\nsize=400000k\n";
    let (expected, end) = expected_ends(text, 1);
    assert_eq!(end, 20_000);
    assert_eq!(expected.first(), Some(&None));
    assert!(expected.last().is_some_and(|last| last.is_some_and(|ms| ms.abs_diff(20_000) <= 1)));
}

/// A read of 100 µs at a time, for a year, ended by hand: 10,000 a second for as long as it ran. Of
/// the second job, which would begin later, there is nothing, and no time in which both had
/// something to do.
#[test]
fn run_that_is_ended_tells_of_the_time_until_then() {
    let text = "[global]\nioengine=psync\ndirect=1\nrw=randread\nbs=4k\nsize=1g\ntime_based\n\
                runtime=365d\nfilename=/dev/a\n[now]\nramp_time=1s\n[later]\nstartdelay=364d\n";
    let setup = Setup::new(SchedulerKind::None);
    let outcome =
        run_jobs(&jobs(text), &setup, PageCacheParameters::default(), servers(1), |run| {
            run.end_here();
        });
    let outcome = outcome.expect("a run");
    assert!(outcome.interrupted && outcome.end.since_start() < Nanos::from_secs(10));
    let [now, later] = outcome.results.as_slice() else { panic!("two jobs") };
    let counted = outcome.end.since_start().saturating_sub(Nanos::from_secs(1));
    assert_eq!(now.runtime, counted);
    let reads = now.directions[0].ios;
    assert!(reads.abs_diff(counted.as_nanos() / 100_000) <= 1, "{reads} reads");
    assert_eq!((later.runtime, later.directions[0].ios), (Nanos::ZERO, 0));
    assert_eq!(now.together, Nanos::ZERO);
    let whole = run("[job]\nioengine=psync\ndirect=1\nrw=read\nsize=1m\n", 1);
    assert!(!whole.interrupted && whole.results[0].together == whole.results[0].runtime);
}
