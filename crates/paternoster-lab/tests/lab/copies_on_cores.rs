//! Copies out of the page cache take time of the cores that there are.

use crate::common::jobs::jobs;
use paternoster::{Nanos, SchedulerKind, Sector};
use paternoster_lab::fio::DataDirection;
use paternoster_lab::host::Host;
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, run_jobs};
use paternoster_model::{Room, Servers};

/// Four jobs that read the same MiB out of the page cache for 250 ms, on so many cores of a host.
/// One page takes 1 us to copy.
fn readers(host: &str, cores: u32) -> Outcome {
    let text = "[a]\nfilename=/dev/a\nrw=read\nsize=1m\nruntime=250ms\ntime_based\ninvalidate=0\n\
                numjobs=4\n";
    let end = Sector(1 << 31);
    let fixed = Nanos::from_micros(1);
    let device = Servers::constant(1, Room { depth: 64, end }, fixed, Nanos::ZERO);
    let host = Host::open(host).expect("it comes along");
    let mut setup = Setup::new(SchedulerKind::None);
    host.set_up(&mut setup, &device);
    setup.cores = cores;
    run_jobs(&jobs(text), &setup, host.page_cache, device, |_| {}).expect("it runs")
}

/// In what a core can copy in 250 ms, 250,000 pages; the MiB is read from the device once, which
/// takes less than a millisecond.
fn copied(outcome: &Outcome) -> f64 {
    let results = outcome.results.iter();
    let ios =
        results.map(|result| result.directions[DataDirection::Read as usize].ios).sum::<u64>();
    f64::from(u32::try_from(ios).expect("a million at most")) / 250_000.0
}

fn millis(span: Nanos) -> u64 {
    span.as_nanos() / 1_000_000
}

#[test]
fn core_copies_for_one_job_at_a_time() {
    for (cores, expected) in [(1, 1.0), (2, 2.0), (4, 4.0), (10, 4.0)] {
        let outcome = readers("ten-cores", cores);
        let found = copied(&outcome);
        assert!((0.97..=1.0).contains(&(found / expected)), "{cores} cores: {found}");
        let worked = cores.min(4) * 250;
        let busy = millis(outcome.cpu.busy);
        assert!(busy.abs_diff(worked.into()) < 8, "{cores} cores: {busy} ms");
    }
}

#[test]
fn each_job_has_a_core_to_copy_where_io_costs_nothing() {
    let outcome = readers("free", 1);
    assert!((0.97..=1.0).contains(&(copied(&outcome) / 4.0)), "{}", copied(&outcome));
}
