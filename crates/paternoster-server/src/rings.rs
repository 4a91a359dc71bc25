//! Tries io_uring out before the server starts, and explains why it is not available.
//!
//! The rings of a user lock memory, some 90 KiB each on Linux 6.18 as they are here, and the kernel
//! counts those of the trial for a moment after they have gone. So the message asks for more than
//! twice of that.

use std::io;
use std::thread;

use anyhow::{Context as _, Result, anyhow};
use paternoster_disk::{IoEngine, Ring};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};

const NEEDED: &str = "io_uring is not available: Linux 6.1 or later is needed, with the sysctl \
                      kernel.io_uring_disabled = 0, and no sandbox that forbids it";

/// Makes a ring for the thread that calls this. All rings of the server are made here.
pub(crate) fn new<T>() -> io::Result<Ring<T>> {
    Ring::new(IoEngine::IoUring)
}

/// Makes so many rings at once, and lets them go: as many as there will be owners and acceptors.
pub(crate) fn try_out(count: usize) -> Result<()> {
    // On a thread of its own: a ring may leave work behind that interrupts its thread.
    let trial = thread::spawn(move || {
        let rings: io::Result<Vec<_>> = (0..count).map(|_| new::<()>()).collect();
        rings.map(drop)
    });
    let tried = trial.join().map_err(|_| anyhow!("the thread that tries io_uring panicked"))?;
    match tried {
        Err(error) if is_about_locked_memory(&error) => Err(explained(error).into()),
        tried => tried.context(NEEDED),
    }
}

/// The error of a thread that has a ring, with what to do where too little memory may be locked.
pub(crate) fn explained(error: io::Error) -> io::Error {
    if !is_about_locked_memory(&error) {
        return error;
    }
    let limit = getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX);
    let message = format!(
        "too little memory may be locked for io_uring: {limit} bytes for all programs of user {} \
         together; 256 KiB for each disk and 256 KiB besides are enough; raise it with \
         `ulimit -l`, or with LimitMEMLOCK= in a unit of systemd: {error}",
        geteuid().as_raw()
    );
    io::Error::new(error.kind(), message)
}

/// Without a limit, which root has not, it is memory itself that is short.
fn is_about_locked_memory(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NOMEM)
        && getrlimit(Resource::Memlock).current.is_some()
        && !geteuid().is_root()
}
