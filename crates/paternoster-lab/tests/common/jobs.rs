//! Job files as text.

// Each test file uses what it needs.
#![allow(dead_code)]

use std::path::Path;
use std::sync::Arc;

use paternoster_lab::fio::{FileKey, JobFileError, Jobs, ReadAt, Surroundings};

/// The jobs of a file, for a device of 1 TiB.
pub(crate) fn jobs(text: &str) -> Jobs {
    jobs_on(text, 1 << 40)
}

/// The jobs of a file, for a device of so many bytes.
pub(crate) fn jobs_on(text: &str, device_bytes: u64) -> Jobs {
    let surroundings = Surroundings {
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        log: &|_| Err(std::io::ErrorKind::NotFound.into()),
        file_key: &FileKey::named,
        device_bytes,
        seed: 1,
    };
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
    let surroundings = Surroundings {
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        log: &log,
        file_key: &FileKey::named,
        device_bytes: 1 << 40,
        seed: 1,
    };
    Jobs::parse("test.fio", text.as_bytes(), &surroundings)
}
