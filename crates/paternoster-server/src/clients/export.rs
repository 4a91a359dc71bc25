//! An export of a disk, shared by all threads that serve its clients, and the key of its tenant.

use std::sync::Arc;

use paternoster::IoPrio;
use paternoster_disk::{VolumeId, VolumePlace};
use slotmap::new_key_type;

use super::pool::Pool;

new_key_type! {
    /// Names a tenant of a disk, on all threads; none that comes later has the same.
    pub(crate) struct TenantId;
}

/// An export of the disk.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) name: String,
    pub(crate) volume: VolumeId,
    /// Where the volume lies.
    pub(crate) place: VolumePlace,
    /// Where on the volume it starts, in bytes.
    pub(crate) offset: u64,
    pub(crate) io_prio: IoPrio,
    /// Whether clients may see it; else it stands for a volume that is no export.
    pub(crate) is_offered: bool,
    pub(crate) tenant: TenantId,
    /// The memory of its tenant.
    pub(crate) memory: Arc<Pool>,
}

impl Export {
    /// What its connection of that number is called.
    pub(crate) fn connection(&self, number: u64) -> String {
        format!("{}#{number}", self.name)
    }
}
