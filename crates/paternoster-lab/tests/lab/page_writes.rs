//! Writes through the page cache, against times and rates worked out by hand. A page is copied in
//! 1 µs.

use crate::common::jobs::jobs;
use crate::common::recorder::recorder;
use paternoster::{Nanos, SchedulerKind, Sector, SectorCount};
use paternoster_lab::JournalPlace;
use paternoster_lab::cache::Throttling;
use paternoster_lab::fio::DataDirection;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, PageCacheParameters, run_jobs};
use paternoster_model::{Command, Op};

const MIB: u64 = 1 << 20;

/// Runs the jobs over two servers of 100 µs. Returns what the device was told, too.
fn run(text: &str, page_cache: PageCacheParameters) -> (Outcome, Vec<(Nanos, Command)>) {
    let (device, log) = recorder(2, us(100), Nanos::ZERO);
    let setup = Setup::new(SchedulerKind::None);
    let outcome = run_jobs(&jobs(text), &setup, page_cache, device, |_| {}).expect("a run");
    let log = log.take();
    (outcome, log)
}

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

fn ops(log: &[(Nanos, Command)]) -> Vec<(Nanos, Op, u32)> {
    log.iter().map(|&(at, command)| (at, command.op, command.sectors.0)).collect()
}

fn sync_time(outcome: &Outcome, job: usize) -> u64 {
    outcome.results[job].syncs.moments().max()
}

/// 40 MiB are below the 409 MiB above which they would be written at once. The first page is dirty
/// after 1 µs, and 30 s old when the flushers look for the sixth time, each 5 s.
#[test]
fn burst_stays_in_memory_for_thirty_seconds() {
    let burst = "[burst]\nioengine=psync\nrw=write\nbs=4k\nsize=40m\nfilename=a\n[reader]\n\
                 ioengine=psync\ndirect=1\nrw=read\nbs=4k\nsize=4k\nfilename=b\n";
    let (outcome, log) = run(&format!("{burst}startdelay=29s\n"), PageCacheParameters::default());
    let read = (Nanos::from_secs(29), Op::Read, 8);
    assert_eq!(ops(&log), [read], "the burst has reached no device");
    let latency = outcome.results[0].directions[DataDirection::Write as usize].completion.moments();
    assert_eq!((latency.min(), latency.max()), (1000, 1000), "a copy");

    let (_, log) = run(&format!("{burst}startdelay=31s\n"), PageCacheParameters::default());
    let (at, first) = log[0];
    assert_eq!((at, first.op), (Nanos::from_secs(30) + us(1), Op::Write));
    let written: u32 = log[..log.len() - 1].iter().map(|(_, command)| command.sectors.0).sum();
    assert_eq!(written, 40 * 2048);
}

/// 10 % of 1 GiB are 26,214 pages: the next one, after 26.215 ms, has the flusher write.
#[test]
fn what_is_above_the_background_limit_is_written_at_once() {
    let page_cache =
        PageCacheParameters { memory_bytes: 1 << 30, ..PageCacheParameters::default() };
    let text = "[job]\nioengine=psync\nrw=write\nbs=4k\nsize=120m\nfilename=a\n";
    let (_, log) = run(text, page_cache);
    assert_eq!((log[0].0, log[0].1.op), (us(26_215), Op::Write));
}

/// The device writes a KiB in 10 µs: 102.4 MB/s.
#[test]
fn writer_above_the_limit_is_as_fast_as_the_device() {
    for throttling in [Throttling::Sleeps, Throttling::WritesBack] {
        let page_cache = PageCacheParameters {
            memory_bytes: 256 * MIB,
            throttling,
            ..PageCacheParameters::default()
        };
        let text = "[job]\nioengine=psync\nrw=write\nbs=64k\nsize=8g\nramp_time=10s\nruntime=20s\n\
                    time_based\nfilename=a\n[twin]\nioengine=psync\nrw=write\nbs=4k\nsize=8g\n\
                    ramp_time=10s\nruntime=20s\ntime_based\nfilename=b\n";
        let (device, _) = recorder(1, Nanos::ZERO, us(10));
        let setup = Setup::new(SchedulerKind::None);
        let outcome = run_jobs(&jobs(text), &setup, page_cache, device, |_| {}).expect("a run");
        let [one, other] = [0, 1].map(|job| {
            let write = &outcome.results[job].directions[DataDirection::Write as usize];
            write.bytes / 20
        });
        let rate = one + other;
        assert!(rate.abs_diff(102_400_000) < 5_120_000, "{throttling:?}: {rate} bytes a second");
        assert!(one.abs_diff(other) < rate / 20, "{throttling:?}: {one} and {other}");
    }
}

const FOUR_PAGES: &str = "[job]\nioengine=psync\nrw=write\nbs=4k\nsize=16k\n";

/// The pages are written in 100 µs, and then the device flushes in 100 µs.
#[test]
fn fsync_waits_for_the_data_and_the_flush() {
    let (outcome, log) = run(&format!("{FOUR_PAGES}end_fsync=1\n"), PageCacheParameters::default());
    assert_eq!(ops(&log), [(us(4), Op::Write, 32), (us(104), Op::Flush, 0)]);
    assert_eq!(sync_time(&outcome, 0), 200_000);
    assert_eq!(outcome.end.since_start(), us(204));
}

#[test]
fn each_loop_ends_with_a_sync_of_what_it_wrote() {
    let (_, log) =
        run(&format!("{FOUR_PAGES}fsync_on_close=1\nloops=2\n"), PageCacheParameters::default());
    let expected = [Op::Write, Op::Flush, Op::Write, Op::Flush];
    assert_eq!(log.iter().map(|(_, command)| command.op).collect::<Vec<_>>(), expected);
}

fn with_journal() -> PageCacheParameters {
    let place = JournalPlace { start: Sector(1 << 20), sectors: SectorCount(1024) };
    PageCacheParameters { journal: Some(place), ..PageCacheParameters::default() }
}

/// The data, two blocks side by side, a flush, and the commit block: 100 µs each.
#[test]
fn fsync_on_a_journal_waits_for_a_commit() {
    let (outcome, log) = run(&format!("{FOUR_PAGES}end_fsync=1\n"), with_journal());
    let expected = [
        (us(4), Op::Write, 32),
        (us(104), Op::Write, 8),
        (us(104), Op::Write, 8),
        (us(204), Op::Flush, 0),
        (us(304), Op::Write, 8),
    ];
    assert_eq!(ops(&log), expected);
    assert!(log[4].1.durable);
    assert_eq!(sync_time(&outcome, 0), 400_000);
    let text = format!("{FOUR_PAGES}fdatasync=4\nnumber_ios=5\nloops=2\n");
    let (outcome, _) = run(&text, with_journal());
    assert_eq!(sync_time(&outcome, 0), 200_000, "fdatasync needs no commit");
}

/// Two jobs sync at one time and share a commit. The third asks 100 µs later, when that runs, and
/// gets one of its own: its blocks wait till 404 µs.
#[test]
fn fsyncs_share_a_commit_unless_it_runs() {
    let text = format!("{FOUR_PAGES}end_fsync=1\nnumjobs=2\n");
    let (outcome, log) = run(&text, with_journal());
    let commits = log.iter().filter(|(_, command)| command.durable).count();
    assert_eq!((commits, sync_time(&outcome, 0), sync_time(&outcome, 1)), (1, 400_000, 400_000));

    let text = format!(
        "{FOUR_PAGES}end_fsync=1\n[late]\nioengine=psync\nrw=write\nbs=4k\nsize=4k\n\
                        end_fsync=1\nstartdelay=103us\n"
    );
    let (outcome, log) = run(&text, with_journal());
    let commits = log.iter().filter(|(_, command)| command.durable).count();
    assert_eq!(commits, 2);
    assert_eq!(sync_time(&outcome, 1), 600_000, "from 104 µs on: till 404, and 300 of its own");
}

/// A copy, the page, a flush.
#[test]
fn write_with_dsync_is_durable_when_it_is_done() {
    let (outcome, log) = run(&format!("{FOUR_PAGES}sync=dsync\n"), PageCacheParameters::default());
    assert_eq!(log.len(), 8);
    assert_eq!(outcome.end.since_start(), us(4 * 201));
    let write = &outcome.results[0].directions[DataDirection::Write as usize];
    assert_eq!(write.completion.moments().max(), 201_000);
}

/// Each of the 16 pages is read before the first of its four writes.
#[test]
fn page_is_read_before_a_part_of_it_is_written() {
    let job = "[job]\nioengine=psync\nrw=write\nfilename=a\n";
    let (outcome, log) = run(&format!("{job}bs=1k\nsize=64k\n"), PageCacheParameters::default());
    assert_eq!(log.len(), 16);
    assert!(log.iter().all(|(_, command)| (command.op, command.sectors.0) == (Op::Read, 8)));
    assert_eq!(outcome.end.since_start(), us(64 + 16 * 100));
    let (_, log) = run(&format!("{job}bs=5k\nsize=5k\n"), PageCacheParameters::default());
    assert_eq!(ops(&log), [], "behind the end of the file nothing is left to keep");
}

#[test]
fn what_was_written_is_read_from_memory() {
    let text = "[global]\nioengine=psync\nbs=4k\nsize=1m\nfilename=a\ninvalidate=0\n\
                [writer]\nrw=write\n[reader]\nstonewall\nrw=read\n";
    let (outcome, log) = run(text, PageCacheParameters::default());
    assert_eq!(ops(&log), []);
    assert_eq!(outcome.end.since_start(), us(512));
}

/// A loop begins by dropping what is clean, and what is dirty is written.
#[test]
fn invalidate_has_dirty_pages_written() {
    let (_, log) = run(&format!("{FOUR_PAGES}loops=2\n"), PageCacheParameters::default());
    assert_eq!(ops(&log), [(us(4), Op::Write, 32)]);
}

/// Four faults read a page each, though all of it is overwritten; then msync writes them at once.
#[test]
fn mapped_page_is_read_before_it_is_written() {
    let mapped = FOUR_PAGES.replace("psync", "mmap") + "fadvise_hint=random\n";
    let (_, log) = run(&format!("{mapped}end_fsync=1\n"), PageCacheParameters::default());
    let reads = (0..4).map(|page| (us(101 * page), Op::Read, 8));
    let syncs = [(us(404), Op::Write, 32), (us(504), Op::Flush, 0)];
    assert_eq!(ops(&log), reads.chain(syncs).collect::<Vec<_>>());
}

/// What fio does with `direct=1` where nothing can go past the page cache: an msync after each I/O
/// (seen with strace). `sync=1` changes nothing.
#[test]
fn direct_mapped_write_is_synced_at_once() {
    let mapped = FOUR_PAGES.replace("psync", "mmap") + "fadvise_hint=random\n";
    let (outcome, log) = run(&format!("{mapped}direct=1\n"), PageCacheParameters::default());
    assert_eq!(log.len(), 4 * 3);
    assert_eq!(outcome.end.since_start(), us(4 * 301));
    let (_, log) = run(&format!("{mapped}sync=1\n"), PageCacheParameters::default());
    assert_eq!(log.len(), 4);
}
