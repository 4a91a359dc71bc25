//! Random reads of a fast drive by many processes behind each scheduler, as the table under "Hosts"
//! of docs/laboratory.md has them: shorter runs than those of the table.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::jobs::jobs;
use paternoster::SchedulerKind;
use paternoster_lab::host::Host;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::run_jobs;
use paternoster_model::open_device;

/// Thousands of reads a second by so many processes with 128 outstanding each.
fn rate(scheduler: SchedulerKind, processes: u32) -> f64 {
    let text = format!(
        "[readers]\nioengine=io_uring\ndirect=1\nrw=randread\nbs=4k\nsize=10g\niodepth=128\n\
         ramp_time=5ms\nruntime=40ms\ntime_based\ngroup_reporting\nnumjobs={processes}\n"
    );
    let drive = open_device("nvme-980pro", 1).expect("it comes along");
    let host = Host::open("ten-cores").expect("it comes along");
    let mut setup = Setup::new(scheduler);
    host.set_up(&mut setup, drive.as_ref());
    setup.nr_requests = Some(2560);
    let outcome = run_jobs(&jobs(&text), &setup, host.page_cache, drive, |_| {}).expect("a run");
    let rates = outcome.results.iter().map(|job| {
        let reads = f64::from(u32::try_from(job.directions[0].ios).expect("they are few"));
        reads / Duration::from_nanos(job.runtime.as_nanos()).as_secs_f64()
    });
    rates.sum::<f64>() / 1000.0
}

/// The row of the table that begins so, by processes.
fn row(document: &str, name: &str) -> BTreeMap<u32, f64> {
    let cells = |name: &str| -> Vec<String> {
        let start = format!("| {name} | ");
        let line = document.lines().find_map(|line| line.strip_prefix(start.as_str()));
        let line = line.unwrap_or_else(|| panic!("no row {name}"));
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let numbers = |cells: (String, String)| Some((cells.0.parse().ok()?, cells.1.parse().ok()?));
    cells("processes").into_iter().zip(cells(name)).filter_map(numbers).collect()
}

#[test]
fn reads_a_second_are_those_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/laboratory.md");
    let document = std::fs::read_to_string(path).expect("the document is there");
    for name in ["none", "kyber", "mq-deadline", "bfq"] {
        let row = row(&document, name);
        for processes in [1, 4, 8] {
            let (said, ours) = (row[&processes], rate(name.parse().expect("a name"), processes));
            let text = format!("{name}, {processes} processes: {ours}, {said} in the table");
            assert!((ours / said - 1.0).abs() <= 0.03, "{text}");
        }
    }
}

/// The drive is the limit for the first two, and what is done under the lock for the others.
#[test]
fn many_processes_have_the_schedulers_in_their_order() {
    for processes in [8, 16] {
        let [none, kyber, mq_deadline, bfq] = ["none", "kyber", "mq-deadline", "bfq"]
            .map(|name| rate(name.parse().expect("a name"), processes));
        let text = format!("{processes} processes: {none}, {kyber}, {mq_deadline}, {bfq}");
        assert!(none >= kyber * 0.995 && kyber > 1.2 * mq_deadline, "{text}");
        assert!(mq_deadline > 1.2 * bfq, "{text}");
    }
}
