//! Checks what a configuration needs of the machine: directories, permissions, memory. It is looked
//! at, as the user who asks; nothing is opened or changed.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::disk::{BackendConfig, Checked, VolumeConfig};
use super::draft::Draft;
use super::error::{Mistake, Problem};
use super::keys::At;
use super::mistakes::Mistakes;

/// Returns whether a unix socket can be made at this path.
pub(super) fn check_socket(path: &At<PathBuf>) -> Result<(), Mistake> {
    let directory = match path.value.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let shown = || (path.value.clone(), directory.to_owned());
    let seen = fs::metadata(directory).or_else(|reason| {
        let (socket, directory) = shown();
        path.refuse(Problem::NoDirectory { path: socket, directory, reason })
    })?;
    if !seen.is_dir() {
        let (socket, directory) = shown();
        return path.refuse(Problem::NotADirectory { path: socket, directory });
    }
    // It is locked while the socket is made, for which it is opened.
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    rustix::fs::access(directory, access).or_else(|errno| {
        let ((socket, directory), reason) = (shown(), errno.into());
        path.refuse(Problem::ClosedDirectory { path: socket, directory, uid: uid(), reason })
    })?;
    // A socket is replaced where nobody listens on it, which is seen at the start.
    match fs::symlink_metadata(&path.value) {
        Ok(seen) if !seen.file_type().is_socket() => {
            path.refuse(Problem::NotASocket { path: path.value.clone() })
        }
        _ => Ok(()),
    }
}

/// Returns whether this user may use the file of a disk as its exports need it.
pub(super) fn check_file_access(path: &At<PathBuf>, is_written: bool) -> Result<(), Mistake> {
    let may = |access| rustix::fs::access(&path.value, access).map_err(io::Error::from);
    let (file, uid) = (path.value.clone(), uid());
    if let Err(reason) = may(Access::READ_OK) {
        return path.refuse(Problem::Unreadable { path: file, uid, reason });
    }
    match may(Access::WRITE_OK) {
        Err(reason) if is_written => path.refuse(Problem::Unwritable { path: file, uid, reason }),
        _ => Ok(()),
    }
}

/// Notes the disk with which those in memory no longer fit into the machine's.
pub(super) fn check_memory(draft: &Draft, disks: &[Checked], mistakes: &mut Mistakes) {
    let has = memory();
    let mut needs: u64 = 0;
    for (written, disk) in draft.disks.iter().zip(disks) {
        let size = |volume: &VolumeConfig| match &volume.backend {
            BackendConfig::Nbd { .. } => 0,
            backend => backend.size().unwrap_or_default(),
        };
        let volumes = disk.config.iter().flat_map(|disk| &disk.volumes);
        let did_fit = needs <= has;
        needs = volumes.map(size).fold(needs, u64::saturating_add);
        if did_fit && needs > has {
            let place = written.states.size.place().unwrap_or(&written.name.place);
            let (what, disk) = (disk.what(), disk.name.clone());
            mistakes.add(place, Problem::TooMuchMemory { what, disk, needs, has });
        }
    }
}

/// The bytes of memory and swap that the machine has, and lets this process have.
fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    let bytes = |units: u64| u64::from(info.mem_unit).saturating_mul(units);
    let limit = control_group_limit().unwrap_or(u64::MAX);
    bytes(info.totalram).min(limit).saturating_add(bytes(info.totalswap))
}

/// The least `memory.max` of this process's control group and those above it, in bytes.
fn control_group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit = |group: &Path| {
        let file = Path::new("/sys/fs/cgroup").join(group).join("memory.max");
        fs::read_to_string(file).ok()?.trim().parse().ok()
    };
    Path::new(own).ancestors().filter_map(limit).min()
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
