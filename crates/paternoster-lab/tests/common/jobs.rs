//! Job files as text.

// Each test file uses what it needs.
#![allow(dead_code)]

use paternoster_lab::fio::{Jobs, Surroundings};

/// The jobs of a file, for a device of 1 TiB.
pub(crate) fn jobs(text: &str) -> Jobs {
    jobs_on(text, 1 << 40)
}

/// The jobs of a file, for a device of so many bytes.
pub(crate) fn jobs_on(text: &str, device_bytes: u64) -> Jobs {
    let surroundings = Surroundings {
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        device_bytes,
        seed: 1,
    };
    Jobs::parse("test.fio", text.as_bytes(), &surroundings).expect("a good job file")
}
