//! How long a processor that idles may take to wake up, as the kernel is asked through
//! `/dev/cpu_dma_latency` (`Documentation/power/pm_qos_interface.rst`).
//!
//! A deep idle state saves power and takes its time to leave, so that an interrupt is told of late.
//! Who sleeps for a known time is not hurt as much: the kernel's idle governor knows when the timer
//! is due, and takes no state that is left later than that.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};

/// A request that no processor takes longer to wake up, which holds while this is there. The kernel
/// follows the strictest of all such requests, on all processors.
#[derive(Debug)]
pub struct CpuLatency {
    /// The kernel forgets the request when it is closed.
    _file: File,
}

impl CpuLatency {
    /// Where the kernel is asked.
    pub const PATH: &str = "/dev/cpu_dma_latency";

    /// Asks for at most so many µs; 0 is to poll instead of idling.
    ///
    /// # Errors
    ///
    /// Where the file cannot be opened or written: mostly it is root's.
    pub fn hold(most_us: u32) -> io::Result<Self> {
        let most = i32::try_from(most_us).unwrap_or(i32::MAX);
        let mut file = OpenOptions::new().write(true).open(Self::PATH)?;
        file.write_all(&most.to_ne_bytes())?;
        Ok(Self { _file: file })
    }
}
