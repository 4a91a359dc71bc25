//! Another NBD server as a disk: opened, and found to be what the configuration takes it for.

use anyhow::{Context as _, Result, bail};
use paternoster_disk::{NbdBackend, NbdOptions};

use crate::config::ExportConfig;

/// Connects to the server of the disk of that name and those exports. The size is what they were
/// laid out for.
pub(crate) fn open(
    (name, options, size): (&str, &NbdOptions, u64),
    exports: &[&ExportConfig],
) -> Result<NbdBackend> {
    let uri = &options.uri;
    let backend = NbdBackend::open(options.clone())
        .with_context(|| format!("disk {name:?}: {uri} cannot be used"))?;
    let far = backend.opened();
    if far.size() != size {
        bail!("disk {name:?}: {uri} has {} bytes, where {size} were expected", far.size());
    }
    let mut written = exports.iter().filter(|export| !export.keys.read_only);
    if let Some(export) = written.find(|_| far.is_read_only()) {
        bail!(
            "disk {name:?}: {uri} is read-only, and clients of export {:?} may write: it needs \
             read_only = true",
            export.name
        );
    }
    Ok(backend)
}
