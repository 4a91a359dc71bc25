//! Who has a block device that is refused, by name.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, major, minor};

/// Where the system says it.
struct System<'a> {
    /// Block devices by number.
    devices: &'a Path,
    /// The mounts, as `/proc/self/mountinfo` has them.
    mounts: &'a str,
}

/// Who has the device of that number, as far as the system says it: a sentence.
pub(super) fn of(device: Dev) -> String {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    System { devices: Path::new("/sys/dev/block"), mounts: &mounts }.holder(device)
}

impl System<'_> {
    fn holder(&self, device: Dev) -> String {
        let number = format!("{}:{}", major(device), minor(device));
        let own = self.devices.join(&number);
        let mut parts = vec![(number, own.clone())];
        parts.extend(partitions(&own));
        let mounted = parts.iter().find_map(|(number, _)| self.mounted_at(number));
        let held = || parts.iter().find_map(|(_, part)| held_by(part));
        match mounted {
            Some(at) => format!("it is mounted at {at}"),
            None => match held() {
                Some(holder) => format!("{holder} has it"),
                None => "another program or device has it".to_owned(),
            },
        }
    }

    /// Where the device is mounted: its number is the third field of a line, the place the fifth.
    fn mounted_at(&self, number: &str) -> Option<&str> {
        self.mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(2);
            (fields.next()? == number).then(|| fields.nth(1)).flatten()
        })
    }
}

/// The partitions of a disk: the number of each, and its directory.
fn partitions(disk: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(disk).into_iter().flatten().flatten();
    let parts = entries.filter_map(|entry| {
        let path = entry.path();
        path.join("partition").exists().then_some(())?;
        let number = fs::read_to_string(path.join("dev")).ok()?;
        Some((number.trim().to_owned(), path))
    });
    parts.collect()
}

/// The device that is made of this one (md, device mapper), by the name that its users know.
fn held_by(device: &Path) -> Option<String> {
    let holder = fs::read_dir(device.join("holders")).ok()?.flatten().next()?;
    let kernel_name = holder.file_name().to_string_lossy().into_owned();
    let name = fs::read_to_string(holder.path().join("dm/name"));
    Some(name.map_or(kernel_name.clone(), |name| format!("{kernel_name} ({})", name.trim())))
}

#[cfg(test)]
mod tests {
    use rustix::fs::makedev;

    use super::*;

    const MOUNTS: &str = "\
        22 1 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n\
        29 1 8:1 / /srv/data rw,relatime shared:1 - ext4 /dev/sda1 rw\n";

    /// A sysfs with the disk 8:0, its partition 8:1, the disks 8:16, of which dm-3 is made, and
    /// 8:32, of which md0 is.
    fn sysfs() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let file = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("it is made");
            fs::write(path, text).expect("it is written");
        };
        file("8:0/sda1/partition", "1\n");
        file("8:0/sda1/dev", "8:1\n");
        file("8:16/holders/dm-3/dm/name", "vg-root\n");
        file("8:32/holders/md0/size", "8\n");
        root
    }

    #[test]
    fn holder_is_named() {
        let root = sysfs();
        let system = System { devices: root.path(), mounts: MOUNTS };
        let holder = |minor| system.holder(makedev(8, minor));
        assert_eq!(holder(1), "it is mounted at /srv/data");
        assert_eq!(holder(0), "it is mounted at /srv/data", "a part of it is");
        assert_eq!(holder(16), "dm-3 (vg-root) has it");
        assert_eq!(holder(32), "md0 has it");
        assert_eq!(holder(48), "another program or device has it");
    }
}
