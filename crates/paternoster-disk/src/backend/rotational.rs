//! Asks sysfs whether the device behind a file is rotational.
//!
//! ```text
//!   /sys/dev/block/8:0 ─▶ …/block/sda        a disk:      queue/rotational
//!   /sys/dev/block/8:1 ─▶ …/block/sda/sda1   a partition: ../queue/rotational, that of its disk
//! ```
//!
//! File systems that are on no device, or on several (tmpfs, overlayfs, btrfs, NFS), have numbers
//! there that sysfs does not know. A device of which nothing is known counts as non-rotational: to
//! idle where that does not pay costs more than not to idle where it does.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use paternoster::SectorCount;
use rustix::fs::{Dev, major, minor};

/// Where sysfs lists block devices by number.
const DEVICES: &str = "/sys/dev/block";

/// Whether a device is rotational, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotational {
    /// Whether it says so.
    pub yes: bool,
    /// As a sentence.
    pub because: String,
}

/// Returns whether the block device, or the one that the file is on, says that it is rotational.
pub fn is_rotational(file: &Metadata) -> Rotational {
    says_rotational(Path::new(DEVICES), device_of(file))
}

/// Returns the bytes of a block device, as sysfs says them; none where it does not. Nothing is
/// opened.
pub fn device_size(device: &Metadata) -> Option<u64> {
    let number = device.rdev();
    let file = Path::new(DEVICES).join(format!("{}:{}/size", major(number), minor(number)));
    let sectors: u64 = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    sectors.checked_mul(SectorCount::SECTOR_BYTES.into())
}

/// Returns the path of that file of the queue of the device, or of the one that the file is on, and
/// what it says.
pub(super) fn queue_file(file: &Metadata, name: &str) -> Option<(PathBuf, String)> {
    read_queue_file(&queue_files(Path::new(DEVICES), device_of(file), name))
}

/// Returns what that file says of the block device itself, be it a part of a disk.
pub(super) fn device_file(device: &Metadata, name: &str) -> Option<String> {
    let number = device.rdev();
    let device = format!("{}:{}", major(number), minor(number));
    let said = std::fs::read_to_string(Path::new(DEVICES).join(device).join(name)).ok()?;
    Some(said.trim().to_owned())
}

fn device_of(file: &Metadata) -> Dev {
    if file.file_type().is_block_device() { file.rdev() } else { file.dev() }
}

/// Where a file of a queue may be: a device's own, or that of the disk that it is a part of.
fn queue_files(devices: &Path, device: Dev, name: &str) -> [PathBuf; 2] {
    let device = devices.join(format!("{}:{}", major(device), minor(device)));
    // The way up is from where the link leads, so it has to be left to the kernel.
    ["queue", "../queue"].map(|queue| device.join(queue).join(name))
}

fn read_queue_file(files: &[PathBuf]) -> Option<(PathBuf, String)> {
    let read = |file: &PathBuf| Some((file.clone(), std::fs::read_to_string(file).ok()?));
    let (file, said) = files.iter().find_map(read)?;
    Some((file, said.trim().to_owned()))
}

fn says_rotational(devices: &Path, device: Dev) -> Rotational {
    let files = queue_files(devices, device, "rotational");
    let Some((file, said)) = read_queue_file(&files) else {
        let because = format!("unknown: there is no {}", files[0].display());
        return Rotational { yes: false, because };
    };
    Rotational { yes: said == "1", because: format!("{} says {said:?}", file.display()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::makedev;

    use super::*;

    /// A sysfs with the disks `sda` (8:0, with a partition 8:1) and `vdb` (254:16), and a device
    /// without a queue, 7:0.
    fn sysfs(sda: &str, vdb: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |path: &str| dir.path().join(path);
        for (disk, said) in [("sda", sda), ("vdb", vdb)] {
            fs::create_dir_all(at(&format!("devices/{disk}/queue"))).expect("a directory");
            fs::write(at(&format!("devices/{disk}/queue/rotational")), said).expect("a file");
        }
        fs::create_dir_all(at("devices/sda/sda1")).expect("a directory");
        fs::create_dir_all(at("devices/loop0")).expect("a directory");
        fs::create_dir_all(at("dev/block")).expect("a directory");
        for (number, device) in
            [("8:0", "sda"), ("8:1", "sda/sda1"), ("254:16", "vdb"), ("7:0", "loop0")]
        {
            let target = format!("../../devices/{device}");
            symlink(target, at(&format!("dev/block/{number}"))).expect("a link");
        }
        dir
    }

    fn asked(sysfs: &tempfile::TempDir, (major, minor): (u32, u32)) -> bool {
        says_rotational(&sysfs.path().join("dev/block"), makedev(major, minor)).yes
    }

    #[test]
    fn disk_is_what_its_queue_says() {
        let sysfs = sysfs("1\n", "0\n");
        assert!(asked(&sysfs, (8, 0)));
        assert!(!asked(&sysfs, (254, 16)));
    }

    #[test]
    fn partition_is_what_its_disk_is() {
        assert!(asked(&sysfs("1\n", "0\n"), (8, 1)));
        assert!(!asked(&sysfs("0\n", "1\n"), (8, 1)));
    }

    #[test]
    fn device_of_which_nothing_is_known_is_non_rotational() {
        let sysfs = sysfs("1\n", "perhaps\n");
        for device in [(0, 42), (7, 0), (254, 16)] {
            assert!(!asked(&sysfs, device), "{device:?}");
        }
        assert!(!says_rotational(Path::new("/nowhere"), makedev(8, 0)).yes);
    }

    #[test]
    fn the_file_that_said_so_is_named_and_so_is_the_one_that_is_missing() {
        let sysfs = sysfs("1\n", "0\n");
        let devices = sysfs.path().join("dev/block");
        let because = |minor| says_rotational(&devices, makedev(8, minor)).because;
        let at = devices.display();
        assert_eq!(because(0), format!("{at}/8:0/queue/rotational says \"1\""));
        assert_eq!(because(1), format!("{at}/8:1/../queue/rotational says \"1\""));
        let missing = format!("unknown: there is no {at}/8:9/queue/rotational");
        assert_eq!(because(9), missing);
    }

    #[test]
    fn file_that_is_on_no_device_is_non_rotational() {
        assert!(!is_rotational(&fs::metadata("/proc/self/status").expect("procfs is mounted")).yes);
    }
}
