//! Who has a block device or a lock that is refused, by name.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, Stat, major, minor};

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

/// The program of that process, where it is seen from here.
pub fn program(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("{} (pid {pid})", name.trim_end()))
}

/// The program that has locked that file, as far as the system says it.
pub(super) fn of_lock(file: &Stat) -> Option<String> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    program(locker(&locks, file.st_dev, file.st_ino)?)
}

/// The process that has locked a file: a line of `/proc/locks` has it in its fifth field, and the
/// file in its sixth, as two numbers of its device in hexadecimal digits and the inode.
fn locker(locks: &str, device: Dev, inode: u64) -> Option<u32> {
    let wanted = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = fields[..] else { return None };
        if file == wanted { pid.parse().ok() } else { None }
    })
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
    fn locker_of_a_file_is_found_and_those_that_wait_for_it_are_not() {
        let locks = "\
            1: FLOCK  ADVISORY  WRITE 812 08:11:4711 0 EOF\n\
            1: -> FLOCK  ADVISORY  WRITE 813 08:12:4711 0 EOF\n\
            2: POSIX  ADVISORY  WRITE 814 08:12:4711 0 EOF\n\
            3: FLOCK  ADVISORY  READ  815 08:12:4711 0 EOF\n";
        assert_eq!(locker(locks, makedev(8, 0x11), 4711), Some(812));
        assert_eq!(locker(locks, makedev(8, 0x12), 4711), Some(815));
        assert_eq!(locker(locks, makedev(8, 0x12), 4712), None);
        assert!(program(std::process::id()).is_some() && program(0).is_none());
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
