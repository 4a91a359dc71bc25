//! A busy machine: threads that do nothing but compute, one for each processor.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};

/// The threads, until it is dropped.
pub(crate) struct Hogs {
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    pub(crate) fn start() -> Result<Self> {
        let mut hogs = Self { done: Arc::default(), threads: Vec::new() };
        let processors = thread::available_parallelism().context("the number of processors")?;
        for _ in 0..processors.get() {
            let done = Arc::clone(&hogs.done);
            let compute = move || {
                while !done.load(Ordering::Relaxed) {
                    spin_loop();
                }
            };
            let thread = thread::Builder::new().name("hog".to_owned()).spawn(compute);
            hogs.threads.push(thread.context("a thread that computes")?);
        }
        Ok(hogs)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("it only computes");
        }
    }
}
