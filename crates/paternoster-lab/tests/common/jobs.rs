//! Job files as text.

use paternoster_lab::fio::{Jobs, Surroundings};

/// The jobs of a file, for a device of 1 TiB.
pub(crate) fn jobs(text: &str) -> Jobs {
    let surroundings = Surroundings {
        variable: &|_| None,
        file: &|_| Err(std::io::ErrorKind::NotFound.into()),
        device_bytes: 1 << 40,
        seed: 1,
    };
    Jobs::parse("test.fio", text.as_bytes(), &surroundings).expect("a good job file")
}
