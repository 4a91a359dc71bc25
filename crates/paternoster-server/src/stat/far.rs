//! Another NBD server that is a disk, as `stat` reports it.

use paternoster_disk::FarStats;

use super::figures::figures;

figures! {
    /// Another NBD server that is a disk.
    pub struct FarStat, of (stats: FarStats);
    /// Where it is.
    uri: String, Text = stats.uri.to_string();
    /// Connections to the remote server now.
    connections: u32, Gauge, metric "far_connections" = stats.connections;
    /// Connections to the remote server that were lost, or given up.
    lost: u64, Total, metric "far_lost_total" = stats.lost;
    /// Requests that were sent to the remote server again, on another connection.
    sent_again: u64, Total, metric "far_sent_again_total" = stats.sent_again;
    /// Whether a connection was lost after writes that were not flushed: flushes get errors until
    /// it is opened again, by a restart or as a volume.
    in_doubt: bool, Flag, metric "far_in_doubt" = stats.in_doubt;
    /// Whether it is disconnected for a restart: requests wait until the volume is resumed.
    quiesced: bool, Flag, metric "far_quiesced" = stats.is_quiesced();
    /// Median latency of the remote server's reads and writes in the last 10 to 20 seconds, if
    /// there were at least 16.
    p50_ns: Option<u64>, Gauge unless none, metric "far_p50_seconds" =
        stats.recent.map(|times| times.p50.as_nanos());
    /// 99th percentile of the latency of the remote server's reads and writes in the last 10 to 20
    /// seconds.
    p99_ns: Option<u64>, Gauge unless none, metric "far_p99_seconds" =
        stats.recent.map(|times| times.p99.as_nanos());
    /// Median latency of the remote server's reads and writes since it was opened.
    usual_p50_ns: Option<u64>, Gauge unless none, metric "far_usual_p50_seconds" =
        stats.usual.map(|times| times.p50.as_nanos());
    /// 99th percentile of the latency of the remote server's reads and writes since it was opened.
    usual_p99_ns: Option<u64>, Gauge unless none, metric "far_usual_p99_seconds" =
        stats.usual.map(|times| times.p99.as_nanos());
}
