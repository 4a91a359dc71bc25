//! Job files as text, and servers that run them.

use std::path::Path;
use std::sync::Arc;

use paternoster::{Nanos, SchedulerKind, Sector};
use paternoster_lab::fio::{JobFileError, Jobs, ReadAt, Surroundings};
use paternoster_lab::sim::Setup;
use paternoster_lab::threads::{Outcome, PageCacheParameters, run_jobs};
use paternoster_model::{Room, Servers};

/// The jobs of a file, for a device of 1 TiB.
pub(crate) fn jobs(text: &str) -> Jobs {
    jobs_on(text, 1 << 40)
}

/// The jobs of a file, for a device of so many bytes.
pub(crate) fn jobs_on(text: &str, device_bytes: u64) -> Jobs {
    let surroundings = Surroundings::without_files(device_bytes, 1);
    Jobs::parse("test.fio", text.as_bytes(), &surroundings).expect("a good job file")
}

/// The jobs of a file that replays logs, by their paths, for a device of 1 TiB.
pub(crate) fn jobs_with_logs(
    text: &str,
    logs: &[(&str, Arc<dyn ReadAt>)],
) -> Result<Jobs, JobFileError> {
    let log = |path: &Path| {
        let log = logs.iter().find(|(known, _)| Path::new(known) == path);
        log.map(|(_, log)| Arc::clone(log)).ok_or_else(|| std::io::ErrorKind::NotFound.into())
    };
    let surroundings = Surroundings { log: &log, ..Surroundings::without_files(1 << 40, 1) };
    Jobs::parse("test.fio", text.as_bytes(), &surroundings)
}

/// Runs them over so many servers of 100 µs, whatever is asked for, without a scheduler.
pub(crate) fn run_on_servers(jobs: &Jobs, servers: u32) -> Outcome {
    let device = Servers::constant(
        servers,
        Room { depth: 64, end: Sector(1 << 31) },
        Nanos::from_micros(100),
        Nanos::ZERO,
    );
    let setup = Setup::new(SchedulerKind::None);
    run_jobs(jobs, &setup, PageCacheParameters::default(), device, |_| {}).expect("a run")
}
