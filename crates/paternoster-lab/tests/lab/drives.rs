//! The models of drives against what is published of them. Each test says which parameters follow
//! from the figures that it compares with.

#![allow(clippy::cast_precision_loss)] // counts are small

use crate::common::jobs::jobs;
use paternoster::SchedulerKind;
use paternoster_lab::fio::DataDirection;
use paternoster_lab::host::Host;
use paternoster_lab::result::DirectionResult;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::run_jobs;
use paternoster_model::open_device;

/// What direct I/O did to a drive that had nothing else to do.
struct Measured {
    iops: f64,
    mb_per_s: f64,
    mean_us: f64,
    /// The median and the 99th percentile.
    p50_us: f64,
    p99_us: f64,
}

/// Runs a job of these options for so many milliseconds, a quarter of it before it counts.
fn measure(device: &str, host: &str, options: &str, ms: u32) -> Measured {
    let job = format!(
        "[job]\nioengine=libaio\ndirect=1\ntime_based\nsize=100g\nramp_time={}ms\nruntime={ms}ms\n\
         {options}\n",
        ms / 4
    );
    let drive = open_device(device, 2).expect("it comes with the laboratory");
    let jobs = jobs(&job);
    let mut setup = Setup::new(SchedulerKind::None);
    let host = Host::open(host).expect("it comes with the laboratory");
    host.set_up(&mut setup, drive.as_ref());
    let outcome = run_jobs(&jobs, &setup, host.page_cache, drive, |_| {}).expect("it runs");
    let directions = &outcome.results[0].directions;
    let busy = |direction: &&DirectionResult| direction.ios > 0;
    let done = directions.iter().find(busy).expect("something was done");
    let seconds = done.runtime.as_nanos() as f64 / 1e9;
    let percentile =
        |percent| done.completion.percentile(percent).expect("there are some").as_nanos() as f64;
    Measured {
        iops: done.ios as f64 / seconds,
        mb_per_s: done.bytes as f64 / seconds / 1e6,
        mean_us: done.completion.moments().mean() / 1e3,
        p50_us: percentile(50.0) / 1e3,
        p99_us: percentile(99.0) / 1e3,
    }
}

/// Claims that `ours` is what is published, within so many percent.
fn within(percent: f64, what: &str, ours: f64, published: f64) {
    let off = 100.0 * (ours / published - 1.0);
    println!("{what}: {ours:.1}, published {published}: {off:+.1} %");
    assert!(off.abs() <= percent, "{what}: {ours:.1}, published {published}: {off:+.1} %");
}

/// The link follows from the first figure, the controller's time from the mean of the other two.
#[test]
fn plextor_reads_and_writes_as_fast_as_published() {
    let run = |options: &str| measure("ssd-plextor-m5s", "free", options, 400);
    within(2.0, "sequential", run("rw=read\nbs=128k\niodepth=4").mb_per_s, 515.0);
    within(5.0, "random reads", run("rw=randread\nbs=4k\niodepth=32").iops, 73_900.0);
    within(5.0, "random writes", run("rw=randwrite\nbs=4k\niodepth=32").iops, 69_300.0);
    // Not published: the guess that its file names.
    let writes = measure("ssd-plextor-m5s", "free", "rw=write\nbs=128k\niodepth=32", 2000);
    within(3.0, "sequential writes", writes.mb_per_s, 390.0);
}

/// A random reader beside ten sequential ones, all with nothing between them and the drive, waits
/// as long as the drive's queue allows; beside ten random ones it does not.
#[test]
fn plextor_has_random_readers_wait_behind_sequential_ones() {
    let beside = |others: &str| {
        let drive = open_device("ssd-plextor-m5s", 2).expect("it comes with the laboratory");
        let job = format!(
            "[global]\nioengine=libaio\ndirect=1\ntime_based\nruntime=500ms\n\
             [one]\nrw=randread\nbs=4k\nsize=1g\n\
             [others]\n{others}\nsize=4g\noffset_increment=4g\nnumjobs=10\niodepth=3\n"
        );
        let jobs = jobs(&job);
        let (setup, host) = (Setup::new(SchedulerKind::None), Host::open("free").expect("known"));
        let outcome = run_jobs(&jobs, &setup, host.page_cache, drive, |_| {}).expect("it runs");
        let reads = &outcome.results[0].directions[DataDirection::Read as usize];
        reads.completion.moments().mean() / 1e6
    };
    let [sequential_ms, random_ms] = ["rw=read\nbs=128k", "rw=randread\nbs=4k"].map(beside);
    assert!(sequential_ms >= 20.0, "longest_wait_ms is 20: {sequential_ms} ms");
    assert!(random_ms <= 1.0, "30 commands of 14 us are before it: {random_ms} ms");
}

/// From anandtech.com 11209: 4 KiB random reads. The drive's parameters follow from the mean with
/// one outstanding and from the IOPS with 16. By Little's law 16 outstanding at 584,800 a second
/// are 27.4 us each; the published mean is 25.5, so that fewer than 16 were outstanding.
#[test]
fn optane_reads_as_published() {
    let run = |depth: u32| {
        measure("optane-p4800x", "free", &format!("rw=randread\nbs=4k\niodepth={depth}"), 300)
    };
    let one = run(1);
    within(3.0, "mean of one, us", one.mean_us, 8.9);
    within(5.0, "IOPS of one", one.iops, 108_300.0);
    within(12.0, "p99 of one, us", one.p99_us, 10.0);
    let sixteen = run(16);
    within(3.0, "IOPS of sixteen", sixteen.iops, 584_800.0);
    within(10.0, "mean of sixteen, us", sixteen.mean_us, 25.5);
    within(25.0, "p99 of sixteen, us", sixteen.p99_us, 41.0);
}

/// `data/980pro/bs.csv`: random reads, 32 outstanding. From 8 KiB on: the time of a chunk that is
/// read with others is fitted to them. The row of 4 KiB, 1.06 GB/s or 259,000 a second, contradicts
/// the 375,700 that 32 processes do (`none.csv`) and the 343,000 that one does (`qd.csv`), which
/// the model has.
#[test]
fn samsung_reads_greater_blocks_as_measured() {
    for row in include_str!("../data/980pro/bs.csv").lines().skip(2) {
        let (kib, gb_per_s) = row.split_once(',').expect("two columns");
        let gb_per_s: f64 = gb_per_s.parse().expect("a number");
        let options = format!("rw=randread\nbs={kib}k\niodepth=32");
        let ours = measure("nvme-980pro", "ten-cores", &options, 100).mb_per_s / 1e3;
        within(10.0, &format!("{kib} KiB, GB/s"), ours, gb_per_s);
    }
}

/// Published of drives of its kind: a write that the buffer takes is some 20 us, and sustained
/// random writes of 4 KiB are 70,000 to 130,000 a second. Reads in sequence are bound by the link.
#[test]
fn samsung_writes_to_its_buffer_until_that_is_full() {
    let run = |options: &str, ms| measure("nvme-980pro", "ten-cores", options, ms);
    let one = run("rw=randwrite\nbs=4k\niodepth=1", 100);
    within(15.0, "a write into the buffer, us", one.p50_us, 20.0);
    let sustained = run("rw=randwrite\nbs=4k\niodepth=32", 4000).iops;
    assert!((70_000.0..=130_000.0).contains(&sustained), "{sustained} writes a second");
    let sequential = run("rw=read\nbs=128k\niodepth=32", 100).mb_per_s;
    within(5.0, "reads in sequence, MB/s", sequential, 6900.0);
}
