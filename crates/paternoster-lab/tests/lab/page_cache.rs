//! Jobs that go through the page cache, over servers that take 100 µs for any command, so that the
//! time that the servers spent counts the commands.

use crate::common::jobs::jobs;
use paternoster::{Nanos, SchedulerKind, Sector};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, PageCacheParameters, run_jobs};
use paternoster_model::{Room, Servers};

fn run(text: &str, page_cache: PageCacheParameters) -> Outcome {
    let device = Servers::constant(
        2,
        Room { depth: 64, end: Sector(1 << 31) },
        Nanos::from_micros(100),
        Nanos::ZERO,
    );
    run_jobs(&jobs(text), &Setup::new(SchedulerKind::None), page_cache, device, |_| {})
        .expect("a run")
}

fn commands(outcome: &Outcome) -> u64 {
    outcome.device.spent.overhead.as_nanos() / 100_000
}

/// 64 MiB are 16,384 pages: windows of 4, 8 and 16 pages, then 512 of 32, the last one shorter.
const WINDOWS: u64 = 515;
const READER: &str = "ioengine=psync\nrw=read\nbs=4k\nsize=64m\nfadvise_hint=0\nfilename=a\n";

#[test]
fn two_readers_of_a_file_read_it_once() {
    let alone = run(&format!("[job]\n{READER}"), PageCacheParameters::default());
    assert_eq!(commands(&alone), WINDOWS);
    let both = run(&format!("[job]\nnumjobs=2\n{READER}"), PageCacheParameters::default());
    assert_eq!(commands(&both), WINDOWS);
    assert_eq!(both.end, alone.end, "the second finds what the first has asked for");
    assert_eq!(both.results[1].directions[0].bytes, 64 << 20);
}

/// A reader of another file, with twice the windows.
#[test]
fn readers_of_two_files_share_nothing() {
    let text = format!("[a]\n{READER}[b]\n{READER}filename=b\n");
    assert_eq!(commands(&run(&text, PageCacheParameters::default())), 2 * WINDOWS);
}

/// What fio does at the begin of each loop (seen with strace).
#[test]
fn invalidate_has_each_loop_read_the_file_again() {
    let loops = format!("[job]\nloops=2\n{READER}");
    assert_eq!(commands(&run(&loops, PageCacheParameters::default())), 2 * WINDOWS);
    let kept = format!("{loops}invalidate=0\n");
    assert_eq!(commands(&run(&kept, PageCacheParameters::default())), WINDOWS);
}

/// A cache of 32 MiB has lost the first half of the file when the second one is read.
#[test]
fn file_that_is_larger_than_memory_is_read_again() {
    let page_cache =
        PageCacheParameters { memory_bytes: 32 << 20, ..PageCacheParameters::default() };
    let kept = format!("[job]\nloops=2\n{READER}invalidate=0\n");
    assert_eq!(commands(&run(&kept, page_cache)), 2 * WINDOWS);
}

/// With windows of up to 64 pages: 4, 8, 16 and 32 pages, then 256 of 64, the last one shorter.
#[test]
fn mapped_file_is_read_ahead_of_as_by_calls() {
    let text = READER.replace("fadvise_hint=0", "fadvise_hint=1");
    assert_eq!(commands(&run(&format!("[job]\n{text}"), PageCacheParameters::default())), 260);
    let mapped = text.replace("psync", "mmap");
    assert_eq!(commands(&run(&format!("[job]\n{mapped}"), PageCacheParameters::default())), 260);
}

/// A block of 16 KiB is four pages. The kernel was told that the order is random: each page is read
/// by its own fault. Told nothing, it reads 32 pages around the first, in which the others are.
#[test]
fn fault_reads_a_page_or_those_around_it() {
    let text = "[job]\nioengine=mmap\nrw=randread\nbs=16k\nsize=64m\nnumber_ios=1\nfilename=a\n";
    let random = run(text, PageCacheParameters::default());
    assert_eq!((commands(&random), random.end.since_start()), (4, Nanos::from_micros(404)));
    let around = run(&format!("{text}fadvise_hint=0\n"), PageCacheParameters::default());
    assert_eq!((commands(&around), around.end.since_start()), (1, Nanos::from_micros(104)));
}
