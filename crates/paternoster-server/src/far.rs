//! Another NBD server as a disk: opened, and found to be what the configuration takes it for.

use anyhow::{Context as _, Result, bail};
use paternoster_disk::{NbdBackend, NbdOptions};

use crate::config::Config;

/// Connects to the server of the disk. `size` is what exports were laid out for.
pub(crate) fn open(
    config: &Config,
    (disk, volume): (usize, usize),
    options: &NbdOptions,
    size: u64,
) -> Result<NbdBackend> {
    let (name, uri) = (&config.disks[disk].volumes[volume].name, &options.uri);
    let backend = NbdBackend::open(options.clone())
        .with_context(|| format!("disk {name:?}: {uri} cannot be used"))?;
    let far = backend.opened();
    if far.size() != size {
        bail!("disk {name:?}: {uri} has {} bytes, where {size} were expected", far.size());
    }
    let mut exports = config.exports_of(disk, volume);
    if let Some(export) = exports.find(|export| !export.keys.read_only && far.is_read_only()) {
        bail!(
            "disk {name:?}: {uri} is read-only, and clients of export {:?} may write: it needs \
             read_only = true",
            export.name
        );
    }
    Ok(backend)
}
