//! A device of measured times, under jobs.

use paternoster::SchedulerKind;
use paternoster_lab::fio::{Jobs, Surroundings};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{JobRunError, Outcome, PageCacheParameters, run_jobs};
use paternoster_model::{Model, open_device};

fn run(job: &str) -> Result<Outcome, JobRunError> {
    let device = open_device("table-980pro", 1).expect("it comes along");
    let surroundings = Surroundings::without_files(device.end().0 * 512, 1);
    let text = format!("[job]\nioengine=libaio\ndirect=1\nbs=4k\nsize=8g\nruntime=1s\n{job}");
    let jobs = Jobs::parse("job.fio", text.as_bytes(), &surroundings).expect("a job file");
    run_jobs(
        &jobs,
        &Setup::new(SchedulerKind::None),
        PageCacheParameters::default(),
        device,
        |_| {},
    )
}

/// So many outstanding reads of which each takes `t` are `outstanding / t` a second. Measured were
/// 115,800 with 8, which is 69.08 µs each, and 375,700 with 32, which is 85.17 µs: with 20, in the
/// middle, 77.13 µs each and 259,300 a second.
#[test]
fn throughput_is_as_measured_and_on_a_line_of_times_between() {
    for (depth, expected) in [(8, 115_800), (20, 259_300), (32, 375_700)] {
        let outcome = run(&format!("rw=randread\niodepth={depth}\n")).expect("it reads");
        let ios = outcome.results[0].directions[0].ios;
        assert!(ios.abs_diff(expected) < expected / 200, "{depth} outstanding: {ios}");
    }
}

#[test]
fn what_was_not_measured_is_refused_by_the_place_and_the_name_of_the_job() {
    let refused = |job: &str| run(job).expect_err("it was not measured").to_string();
    let expected = "job.fio:7:1: job job has writes, which the device does not take";
    assert_eq!(refused("rw=randwrite\n"), expected);
    assert_eq!(refused("rw=randrw\n"), expected);
}
