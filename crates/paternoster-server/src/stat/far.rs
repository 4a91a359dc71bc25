//! Another NBD server that is a disk, as `stat` reports it.

use paternoster_disk::FarStats;

use super::figures::figures;

figures! {
    /// Another NBD server that is a disk.
    pub struct FarStat, of (stats: FarStats);
    /// Where it is.
    uri: String, Text = stats.uri.to_string();
    /// Connections to it now.
    connections: u32, Gauge = stats.connections;
    /// Connections that were lost, or given up.
    lost: u64, Total = stats.lost;
    /// Requests that were sent again on another connection.
    sent_again: u64, Total = stats.sent_again;
    /// Whether a connection was lost after writes that were not flushed: flushes get errors until
    /// it is opened again, by a restart or as a volume.
    in_doubt: bool, Flag = stats.in_doubt;
}
