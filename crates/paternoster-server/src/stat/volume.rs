//! A volume of a pool, as `stat` reports it.

use paternoster_disk::{FarStats, SyncStats, VolumeStats};

use super::FarStat;
use super::figures::figures;

figures! {
    /// A volume of a pool. Its counts begin when it is opened, also by a change that closes it.
    pub struct VolumeStat, "volume" by name, anew if reads falls,
        of (name: String, asked: VolumeStats, syncs: SyncStats, connected: u32,
            far: Option<FarStats>);
    /// Its name.
    name: String, Text = name;
    /// Commands of clients that read, since it was opened, as the next four.
    reads: u64, Counter, metric "volume_reads_total" = asked.reads;
    /// Commands of clients that write data.
    writes: u64, Counter, metric "volume_writes_total" = asked.writes;
    /// Bytes of those that read.
    read_bytes: u64, Counter, metric "volume_read_bytes_total" = asked.read_bytes;
    /// Bytes of those that write.
    written_bytes: u64, Counter, metric "volume_written_bytes_total" = asked.written_bytes;
    /// Its syncs that succeeded.
    syncs: u64, Counter, metric "volume_syncs_total" = syncs.succeeded;
    /// Whether a sync has failed: flushes and FUA writes get errors until it is reopened.
    sync_failed: bool, Flag, metric "volume_sync_failed" = syncs.failed;
    /// Clients that are connected to its exports.
    connections: u32, Gauge, metric "volume_connections" = connected;
    /// The server that it is an export of, if it is one.
    far: Option<FarStat>, Figures unless none = far.map(FarStat::of);
}
