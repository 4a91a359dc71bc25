//! Chooses by what operations are carried out, and tries that out before the server starts.
//!
//! ```text
//!   engine = "io_uring"   io_uring, or a refusal that says what is missing
//!   engine = "threads"    threads
//!   engine = "auto"       io_uring; where the machine does not permit it, threads and a warning
//! ```
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

use crate::config::EngineChoice;

const NEEDED: &str = "io_uring is not available: Linux 6.1 or later is needed, with the sysctl \
                      kernel.io_uring_disabled = 0, and no sandbox that forbids it";

/// Returns the engine of all rings of the server, of which there will be so many: one for each
/// owner, each connection thread and the acceptor.
pub(crate) fn choose(choice: EngineChoice, count: usize) -> Result<IoEngine> {
    let error = match choice {
        EngineChoice::Named(engine) => {
            return try_out(engine, count).map(|()| engine);
        }
        EngineChoice::Auto => match try_out(IoEngine::IoUring, count) {
            Ok(()) => return Ok(IoEngine::IoUring),
            Err(error) => error,
        },
    };
    try_out(IoEngine::Threads, count)?;
    tracing::warn!("engine = \"auto\" takes threads, which are slower: {error:#}");
    Ok(IoEngine::Threads)
}

/// Makes so many rings at once, and lets them go.
fn try_out(engine: IoEngine, count: usize) -> Result<()> {
    // On a thread of its own: a ring may leave work behind that interrupts its thread.
    let trial = thread::spawn(move || {
        let rings: io::Result<Vec<_>> = (0..count).map(|_| Ring::<()>::new(engine)).collect();
        rings.map(drop)
    });
    let tried = trial.join().map_err(|_| anyhow!("the thread that tries rings out panicked"))?;
    match tried {
        Err(error) if is_about_locked_memory(&error) => Err(explained(error).into()),
        tried if engine == IoEngine::IoUring => tried.context(NEEDED),
        tried => tried.context("there are no rings by threads"),
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
