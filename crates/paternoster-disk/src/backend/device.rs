//! On what devices a file is, and what sysfs says of them.
//!
//! ```text
//!   a block device: its number; a file: that of its file system; else the source of its mount
//!      │
//!      ▼
//!   /sys/dev/block/254:1 ─▶ …/block/dm-1       slaves/: each of them (LVM, dm-crypt, md)
//!   /sys/dev/block/7:0   ─▶ …/block/loop0      loop/backing_file: the devices of that file
//!   /sys/dev/block/8:1   ─▶ …/block/sda/sda1   partition: its disk
//!   /sys/dev/block/8:0   ─▶ …/block/sda        a whole device
//! ```
//!
//! File systems that are on no device, or on several (tmpfs, overlayfs, btrfs, NFS), have numbers
//! there that sysfs does not know. Where the source of such a mount is a block device, the file is
//! on that one; else its devices are unknown. A device of which nothing is known counts as
//! non-rotational: to idle where that does not pay costs more than not to idle where it does. So
//! does one of virtio, whatever it says: most say that they rotate, whatever the host has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use paternoster::SectorCount;
use rustix::fs::{Dev, major, minor};

/// Where sysfs lists block devices by number.
const DEVICES: &str = "/sys/dev/block";

/// Where it lists whole ones by name.
const NAMES: &str = "/sys/block";

/// Where the kernel lists what is mounted.
const MOUNTS: &str = "/proc/self/mountinfo";

/// How many devices may stand on each other: loop devices on files on loop devices, and so on.
const MOST_LAYERS: u32 = 16;

/// Whether a device is taken to be rotational, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotational {
    /// Whether it is.
    pub yes: bool,
    /// As a sentence.
    pub because: String,
    /// The device that says so and is not believed; none if there is none.
    pub disbelieved: Option<String>,
}

/// Returns whether the block device, or the one that the file is on, is rotational, as it says.
pub fn is_rotational(path: &Path, file: &Metadata) -> Rotational {
    seen(&Sysfs::default(), path, file).rotational
}

/// Returns the names of the whole devices that a file or block device is on, such as `sda`; none
/// where that is not known.
pub fn devices_of(path: &Path) -> BTreeSet<String> {
    let Ok(file) = fs::metadata(path) else { return BTreeSet::new() };
    seen(&Sysfs::default(), path, &file).devices
}

/// What sysfs says of a device.
#[derive(Clone)]
struct Seen {
    at: Instant,
    rotational: Rotational,
    devices: BTreeSet<String>,
}

/// For how long that is remembered: the thousands of images of a pool are on one device, and each
/// asks several times.
const REMEMBERED: Duration = Duration::from_secs(1);

/// What was said of block devices, and of what file systems are on, by their numbers.
static REMEMBER: Mutex<BTreeMap<Dev, Seen>> = Mutex::new(BTreeMap::new());

/// What sysfs says of a block device, or of the one that a file is on, or has said a moment ago.
fn seen(sysfs: &Sysfs, path: &Path, file: &Metadata) -> Seen {
    let at = Instant::now();
    let mut remembered = REMEMBER.lock().unwrap_or_else(PoisonError::into_inner);
    remembered.retain(|_, seen| at.duration_since(seen.at) < REMEMBERED);
    let number = number(file);
    if let Some(seen) = remembered.get(&number) {
        return seen.clone();
    }
    // Nobody else asks meanwhile: the answer is theirs too.
    let directory = sysfs.directory(path, file);
    let rotational = sysfs.says_of(&directory);
    let devices = sysfs.whole_devices(&directory, MOST_LAYERS);
    let seen = Seen { at, rotational, devices };
    remembered.insert(number, seen.clone());
    seen
}

/// The number of a block device, or of the file system that a file is on.
fn number(file: &Metadata) -> Dev {
    if file.file_type().is_block_device() { file.rdev() } else { file.dev() }
}

/// As of `/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda`.
fn is_below_virtio(device: &Path) -> bool {
    device.components().any(|part| {
        let number = part.as_os_str().to_str().and_then(|part| part.strip_prefix("virtio"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

/// Returns the bytes of a block device, as sysfs says them; none where it does not. Nothing is
/// opened.
pub fn device_size(device: &Metadata) -> Option<u64> {
    let sectors: u64 = device_file(device, "size")?.parse().ok()?;
    sectors.checked_mul(SectorCount::SECTOR_BYTES.into())
}

/// Returns the path of that file of the queue of the block device, and what it says.
pub(super) fn queue_file(device: &Metadata, name: &str) -> Option<(PathBuf, String)> {
    read_queue_file(&Sysfs::default().numbered(device.rdev()), name)
}

/// Returns what that file says of the block device itself, be it a part of a disk.
pub(super) fn device_file(device: &Metadata, name: &str) -> Option<String> {
    let said = fs::read_to_string(Sysfs::default().numbered(device.rdev()).join(name)).ok()?;
    Some(said.trim().to_owned())
}

/// What the kernel says of devices and mounts, in files.
struct Sysfs {
    devices: PathBuf,
    names: PathBuf,
    mounts: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self { devices: DEVICES.into(), names: NAMES.into(), mounts: MOUNTS.into() }
    }
}

impl Sysfs {
    /// The directory of the block device, or of the one that the file is on; it may not be there.
    fn directory(&self, path: &Path, file: &Metadata) -> PathBuf {
        let own = self.numbered(number(file));
        if file.file_type().is_block_device() || own.exists() {
            return own;
        }
        let source = self.mount_source(path).and_then(|source| fs::metadata(source).ok());
        match source.filter(|source| source.file_type().is_block_device()) {
            Some(source) => self.numbered(source.rdev()),
            None => own,
        }
    }

    fn numbered(&self, device: Dev) -> PathBuf {
        self.devices.join(format!("{}:{}", major(device), minor(device)))
    }

    /// What is mounted where the file is: of the mounts above it the nearest, and of several there
    /// the last.
    fn mount_source(&self, path: &Path) -> Option<PathBuf> {
        let path = fs::canonicalize(path).ok()?;
        let mounts = fs::read_to_string(&self.mounts).ok()?;
        let mounts = mounts.lines().filter_map(mount);
        let above = mounts.filter(|(point, _)| path.starts_with(point));
        above.max_by_key(|(point, _)| point.components().count()).map(|(_, source)| source)
    }

    /// Whether the device of that directory is rotational.
    fn says_of(&self, directory: &Path) -> Rotational {
        let Some((file, said)) = read_queue_file(directory, "rotational") else {
            let missing = directory.join("queue/rotational");
            let because = format!("unknown: there is no {}", missing.display());
            return Rotational { yes: false, because, disbelieved: None };
        };
        let claims = said == "1";
        let because = format!("{} says {said:?}", file.display());
        let devices = if claims { self.whole_devices(directory, MOST_LAYERS) } else { [].into() };
        if !devices.is_empty() && devices.iter().all(|device| self.is_virtio(device)) {
            let because = because + ", as virtio says of most disks";
            return Rotational { yes: false, because, disbelieved: devices.into_iter().next() };
        }
        Rotational { yes: claims, because, disbelieved: None }
    }

    /// Returns whether the whole device of that name is one of virtio's.
    fn is_virtio(&self, name: &str) -> bool {
        let device = fs::canonicalize(self.names.join(name));
        device.is_ok_and(|device| is_below_virtio(&device))
    }

    fn devices_of(&self, path: &Path, layers: u32) -> BTreeSet<String> {
        let Ok(file) = fs::metadata(path) else { return BTreeSet::new() };
        self.whole_devices(&self.directory(path, &file), layers)
    }

    /// The names of the whole devices below one. One of which nothing is known has none.
    fn whole_devices(&self, directory: &Path, layers: u32) -> BTreeSet<String> {
        let Ok(device) = fs::canonicalize(disk_of(directory)) else { return BTreeSet::new() };
        let Some(layers) = layers.checked_sub(1) else { return BTreeSet::new() };
        let below = fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
        let below: Vec<_> = below.map(|entry| entry.path()).collect();
        if !below.is_empty() {
            return below.iter().flat_map(|below| self.whole_devices(below, layers)).collect();
        }
        // A file that is deleted is on a device that nobody can tell any more.
        if let Ok(file) = fs::read_to_string(device.join("loop/backing_file")) {
            return self.devices_of(Path::new(file.trim_end_matches('\n')), layers);
        }
        device.file_name().map(|name| name.to_string_lossy().into_owned()).into_iter().collect()
    }
}

/// Reads a file of a device's queue: a device's own, or that of the disk that it is a part of.
fn read_queue_file(directory: &Path, name: &str) -> Option<(PathBuf, String)> {
    let file = disk_of(directory).join("queue").join(name);
    let said = fs::read_to_string(&file).ok()?;
    Some((file, said.trim().to_owned()))
}

/// The disk that a device is a part of, else the device.
fn disk_of(directory: &Path) -> PathBuf {
    if directory.join("partition").exists() {
        // The way up is from where the link leads, so it has to be left to the kernel.
        directory.join("..")
    } else {
        directory.to_owned()
    }
}

/// Where something is mounted, and what, of a line such as
/// `36 35 0:32 / /data rw shared:1 - btrfs /dev/sda2 rw,subvol=/`.
fn mount(line: &str) -> Option<(PathBuf, PathBuf)> {
    let (mounted, what) = line.split_once(" - ")?;
    let point = mounted.split(' ').nth(4)?;
    let source = what.split(' ').nth(1)?;
    Some((unescaped(point), unescaped(source)))
}

/// A path in which spaces and the like are written as `\040`.
fn unescaped(text: &str) -> PathBuf {
    let (mut path, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|_| first == b'\\');
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        path.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(path))
}

#[cfg(test)]
mod tests;
