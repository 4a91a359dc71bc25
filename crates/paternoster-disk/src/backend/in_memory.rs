//! Asks whether a file is on a file system in memory.

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// What `statfs(2)` calls tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// Returns whether the file is on a tmpfs or ramfs; not if it is not known. A device is not where
/// its name is: that is in memory.
pub fn is_in_memory(file: &Path) -> bool {
    if std::fs::metadata(file).is_ok_and(|seen| seen.file_type().is_block_device()) {
        return false;
    }
    let kind = rustix::fs::statfs(file).ok().and_then(|stat| u64::try_from(stat.f_type).ok());
    kind.is_some_and(|kind| IN_MEMORY.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By what the kernel lists of the same directories.
    #[test]
    fn file_is_in_memory_where_a_tmpfs_is_mounted() {
        let mounts = std::fs::read_to_string("/proc/mounts").expect("procfs is mounted");
        let mut tmpfs = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ');
            let (at, kind) = (fields.nth(1)?, fields.next()?);
            (kind == "tmpfs").then_some(at)
        });
        if let Some(at) = tmpfs.find(|at| Path::new(at).is_dir()) {
            assert!(is_in_memory(Path::new(at)), "{at}");
        }
        assert!(!is_in_memory(Path::new("/proc")), "procfs is none of them");
        assert!(!is_in_memory(Path::new("/nowhere")), "nothing is known of it");
    }
}
