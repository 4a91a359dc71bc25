//! The borders of exports on a disk that takes whole blocks only: each lies between two blocks, or
//! a client's write to the block at its border would read and write its neighbour's bytes.

use std::ops::Range;

use anyhow::Result;
use paternoster_disk::Capabilities;
use thiserror::Error;

use crate::config::{BackendConfig, Config, ExportConfig};

/// A border of an export that lies inside a block.
#[derive(Debug, Error)]
#[error(
    "export {export:?} {does} at byte {border} of {what} {disk:?}, inside a block of {block} \
     bytes: {below} and {above} are the nearest borders that are allowed {why}"
)]
pub struct InsideBlock {
    export: String,
    does: &'static str,
    border: u64,
    what: &'static str,
    disk: String,
    block: u32,
    below: u64,
    above: u64,
    why: &'static str,
}

/// An export on a disk or volume, by their names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) export: &'a str,
    pub(crate) what: &'static str,
    pub(crate) disk: &'a str,
    /// Whether the disk is a file or device, whose blocks are those of direct I/O.
    pub(crate) is_file: bool,
}

impl Placed<'_> {
    /// Returns what is wrong with the beginning, and with the end, of the export's bytes on a disk
    /// of so many, in blocks of so many: the nearest borders that are allowed.
    pub(crate) fn inside_blocks(
        self,
        bytes: &Range<u64>,
        block: u32,
        end_of_disk: u64,
    ) -> [Option<InsideBlock>; 2] {
        [("begins", bytes.start), ("ends", bytes.end)].map(|(does, border)| {
            let below = border / u64::from(block) * u64::from(block);
            (border != below && border != end_of_disk).then(|| InsideBlock {
                export: self.export.to_owned(),
                does,
                border,
                what: self.what,
                disk: self.disk.to_owned(),
                block,
                below,
                above: end_of_disk.min(below + u64::from(block)),
                why: if self.is_file {
                    "under direct I/O; cache = \"page\" allows any"
                } else {
                    "by its server"
                },
            })
        })
    }
}

/// Refuses those exports of the volume that begin or end inside one of its blocks, where that was
/// not known when the configuration was checked, as what stands behind the volume did not say it.
pub(crate) fn check(
    config: &Config,
    (disk, volume): (usize, usize),
    exports: &[&ExportConfig],
    capabilities: &Capabilities,
) -> Result<()> {
    let &Capabilities { block, size, .. } = capabilities;
    let of = &config.disks[disk].volumes[volume];
    let is_file = matches!(of.backend, BackendConfig::File { .. });
    for export in exports {
        let what = config.disks[disk].what_of_volume();
        let placed = Placed { export: &export.name, what, disk: &of.name, is_file };
        let problems = placed.inside_blocks(&export.bytes(), block, size);
        if let Some(problem) = problems.into_iter().flatten().next() {
            return Err(problem.into());
        }
    }
    Ok(())
}
