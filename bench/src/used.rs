//! What a process uses of the machine beside processor time.

use std::fs;

use anyhow::{Context as _, Result};

/// What it uses at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Memory of its own.
    pub anonymous_kib: u64,
    /// Memory that it shares with others by descriptors, as far as it has touched that.
    pub shared_kib: u64,
    /// Open descriptors.
    pub descriptors: usize,
}

impl Used {
    /// What the process of that number uses.
    pub fn by(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = |name: &'static str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).context(name)?;
            Ok(kib.trim().parse()?)
        };
        let (anonymous_kib, shared_kib) = (kib("RssAnon:")?, kib("RssShmem:")?);
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
        Ok(Self { anonymous_kib, shared_kib, descriptors })
    }
}
