//! Writes through the page cache over a disk: who pays for them, and in what order they leave.

use crate::common::jobs::jobs;
use paternoster::{Kernel, SchedulerKind};
use paternoster_lab::cache::Throttling;
use paternoster_lab::fio::DataDirection;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, PageCacheParameters, WritebackGroup, run_jobs};
use paternoster_model::open_device;

fn run(text: &str, scheduler: SchedulerKind, page_cache: PageCacheParameters) -> Outcome {
    run_with(text, &Setup::new(scheduler), page_cache)
}

fn run_with(text: &str, setup: &Setup, page_cache: PageCacheParameters) -> Outcome {
    let device = open_device("hdd-7200", 1).expect("it comes with the laboratory");
    run_jobs(&jobs(text), setup, page_cache, device, |_| {}).expect("a run")
}

fn written(outcome: &Outcome, job: usize) -> u64 {
    outcome.results[job].directions[DataDirection::Write as usize].bytes
}

/// Two writers of weights 100 and 800 with so many options; the part of the first one, in percent.
fn light_share(options: &str, page_cache: PageCacheParameters) -> u64 {
    light_share_with(options, &Setup::new(SchedulerKind::Cfq), page_cache)
}

fn light_share_with(options: &str, setup: &Setup, page_cache: PageCacheParameters) -> u64 {
    let text = format!(
        "[global]\nioengine=psync\nsize=1g\nramp_time=10s\nruntime=20s\ntime_based\n{options}\
         [light]\n; lab: group=/light weight=100\n[heavy]\n; lab: group=/heavy weight=800\n"
    );
    let outcome = run_with(&text, setup, page_cache);
    let [light, heavy] = [0, 1].map(|job| written(&outcome, job));
    100 * light / (light + heavy)
}

fn small_memory() -> PageCacheParameters {
    PageCacheParameters { memory_bytes: 256 << 20, ..PageCacheParameters::default() }
}

/// The flusher writes for both, in the root group: weights do not matter.
#[test]
fn buffered_writers_have_equal_shares_whatever_their_weights() {
    for order in ["rw=write\nbs=64k\n", "rw=randwrite\nbs=32k\n"] {
        let share = light_share(order, small_memory());
        assert!((48..=52).contains(&share), "{order:?}: {share} %");
    }
}

/// In 2.6.37 a writer above the limit writes dirty pages itself, and all asynchronous writes are in
/// CFQ's root group.
#[test]
fn buffered_writers_of_2010_have_equal_shares_too() {
    let mut setup = Setup::new(SchedulerKind::Cfq);
    setup.kernel = Some(Kernel::V2_6_37);
    let page_cache = PageCacheParameters { throttling: Throttling::WritesBack, ..small_memory() };
    for order in ["rw=write\nbs=64k\n", "rw=randwrite\nbs=32k\n"] {
        let share = light_share_with(order, &setup, page_cache);
        assert!((45..=55).contains(&share), "{order:?}: {share} %");
    }
}

/// Of 900, 100 are 11 %.
#[test]
fn direct_writers_have_shares_by_weight() {
    let share = light_share("rw=randwrite\nbs=32k\ndirect=1\n", small_memory());
    assert!((9..=14).contains(&share), "{share} %");
}

/// With a flusher for each group, the lighter one gets clearly less than half. How much less is the
/// scheduler's: CFQ does not idle for asynchronous writes.
#[test]
fn owners_of_files_pay_where_the_kernel_knows_them() {
    let page_cache =
        PageCacheParameters { writeback_group: WritebackGroup::Owner, ..small_memory() };
    let share = light_share("rw=write\nbs=64k\n", page_cache);
    assert!(share < 40, "{share} %");
}

/// 64 MiB of random blocks: the flusher sorts them.
#[test]
fn random_writes_leave_the_page_cache_in_order() {
    let job = "[job]\nioengine=psync\nrw=randwrite\nbs=4k\nsize=64m\nend_fsync=1\nfilename=a\n";
    let buffered = run(job, SchedulerKind::None, PageCacheParameters::default());
    let direct =
        run(&format!("{job}direct=1\n"), SchedulerKind::None, PageCacheParameters::default());
    let [buffered, direct] = [buffered, direct].map(|run| run.end.since_start().as_nanos());
    assert!(direct > 20 * buffered, "{direct} ns past the page cache, {buffered} ns through it");
}

#[test]
fn same_seed_gives_the_same_run() {
    let text = "[global]\nioengine=psync\nrw=randrw\nbs=16k\nsize=256m\nruntime=5s\ntime_based\n\
                fsync=64\n[a]\nfilename=a\n[b]\nfilename=a\n[c]\nioengine=mmap\nfilename=c\n";
    let run = || format!("{:?}", run(text, SchedulerKind::Bfq, small_memory()));
    assert_eq!(run(), run());
}
