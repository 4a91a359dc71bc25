//! The borders of exports on a disk that takes whole blocks only: each lies between two blocks, or
//! a client's write to the block at its border would read and write its neighbour's bytes.

use anyhow::{Result, bail};
use paternoster_disk::Capabilities;

use crate::config::{BackendConfig, Config};

/// Refuses exports of the disk that begin or end inside one of its blocks, with the nearest borders
/// that do not.
pub(crate) fn check(config: &Config, disk: usize, capabilities: &Capabilities) -> Result<()> {
    let &Capabilities { block, size: end_of_disk, .. } = capabilities;
    let name = &config.disks[disk].name;
    for export in config.exports.iter().filter(|export| export.disk == disk) {
        let end = export.offset + export.size;
        for (does, border) in [("begins", export.offset), ("ends", end)] {
            let below = border / u64::from(block) * u64::from(block);
            if border == below || border == end_of_disk {
                continue;
            }
            let above = end_of_disk.min(below + u64::from(block));
            let why = match config.disks[disk].backend {
                BackendConfig::File { .. } => "under direct I/O; cache = \"page\" allows any",
                _ => "by its server",
            };
            bail!(
                "export {:?} {does} at byte {border} of disk {name:?}, inside a block of {block} \
                 bytes: {below} and {above} are the nearest borders that are allowed {why}",
                export.name
            );
        }
    }
    Ok(())
}
