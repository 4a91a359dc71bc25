//! Another NBD server that is a disk, as `stat` reports it.

use paternoster_disk::FarStats;
use serde::{Deserialize, Serialize};

/// Another NBD server that is a disk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FarStat {
    /// Where it is.
    pub uri: String,
    /// Connections to it now.
    pub connections: u32,
    /// Connections that were lost, or given up.
    pub lost: u64,
    /// Requests that were sent again on another connection.
    pub sent_again: u64,
    /// Whether writes were answered and not flushed when one was lost: flushes get errors until the
    /// restart.
    pub in_doubt: bool,
}

impl From<FarStats> for FarStat {
    fn from(stats: FarStats) -> Self {
        let FarStats { uri, connections, lost, sent_again, in_doubt } = stats;
        Self { uri: uri.to_string(), connections, lost, sent_again, in_doubt }
    }
}
