//! Job files of fio: read, refused, and turned into I/Os; and what is told of their jobs.

mod any_log;
mod errors;
mod jobs;
mod options;
mod replay;
mod report;
mod stream;

use paternoster_lab::fio::{Io, IoOp, JobFileError, Jobs, Stream, Surroundings};

/// The device of the tests: 1 TiB.
const DEVICE_BYTES: u64 = 1 << 40;

/// Reads a job file with nothing around it.
fn read(text: &str) -> Result<Jobs, JobFileError> {
    read_bytes(text.as_bytes())
}

fn read_bytes(bytes: &[u8]) -> Result<Jobs, JobFileError> {
    let surroundings = Surroundings::without_files(DEVICE_BYTES, 1);
    Jobs::parse("a.fio", bytes, &surroundings)
}

/// The jobs of a job file that is right.
fn jobs(text: &str) -> Jobs {
    read(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Every I/O of the only job of a file with those options, separated by spaces.
fn ios(options: &str) -> Vec<Io> {
    let jobs = jobs(&format!("[j]\n{}\n", options.replace(' ', "\n")));
    assert_eq!(jobs.jobs.len(), 1, "{options}");
    Stream::new(&jobs.jobs[0].pattern).collect()
}

/// The I/Os that move data.
fn transfers(options: &str) -> Vec<Io> {
    let mut ios = ios(options);
    ios.retain(|io| !matches!(io.op, IoOp::Sync | IoOp::DataSync));
    ios
}
