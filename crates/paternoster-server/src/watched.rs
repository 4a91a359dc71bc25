//! Threads whose ends are reported: that of one that fails ends the server.

use std::io;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, anyhow};

use crate::rings;

/// Starts a thread that reports when it fails, by an error or by a panic.
pub(crate) fn spawn(
    name: &str,
    watch: &Watchers,
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<JoinHandle<io::Result<()>>> {
    let Watchers { failures, alive } = watch.clone();
    let watch = Watch { name: name.to_owned(), failures: Some(failures), _alive: alive };
    let watched = move || {
        let result = work().map_err(rings::explained);
        match &result {
            Ok(()) => watch.ended_well(),
            Err(error) => tracing::error!("{}: {error}", watch.name),
        }
        result
    };
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(watched).with_context(|| format!("cannot start the thread of {name}"))
}

/// Waits for the end of a thread.
pub(crate) fn join(thread: JoinHandle<io::Result<()>>) -> Result<()> {
    let result = thread.join().map_err(|_| anyhow!("its thread panicked"))?;
    Ok(result?)
}

/// Where the ends of threads are reported.
#[derive(Clone, Debug)]
pub(crate) struct Watchers {
    /// Takes a sentence where one has failed.
    pub(crate) failures: mpsc::Sender<String>,
    /// Closed when all of them have ended.
    pub(crate) alive: mpsc::Sender<()>,
}

/// Reports the end of a thread: every one by dropping `_alive`, and a failure in words too.
struct Watch {
    name: String,
    failures: Option<mpsc::Sender<String>>,
    _alive: mpsc::Sender<()>,
}

impl Watch {
    fn ended_well(mut self) {
        self.failures = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(failures) = self.failures.take() {
            // Where nobody watches, the end is seen when the thread is joined.
            let _ = failures.send(format!("the thread of {} has failed", self.name));
        }
    }
}
