//! Where the control socket is if nobody says: for the server and for whoever asks it, wherever
//! each is started.
//!
//! | what there is | the socket |
//! |---|---|
//! | `PATERNOSTER_CTL` | what it says |
//! | `RUNTIME_DIRECTORY`, which systemd gives a service | `ctl.sock` in the first of those |
//! | root | `/run/paternoster/ctl.sock`: the packaged unit's too, so that root finds it |
//! | `XDG_RUNTIME_DIR` | `paternoster/ctl.sock` in it |
//! | else | `paternoster-ctl.sock`, in the current directory |

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Names the control socket, for the server and for `paternoster ctl`.
pub const VARIABLE: &str = "PATERNOSTER_CTL";

/// The socket in the current directory, where there is no better place.
const HERE: &str = "paternoster-ctl.sock";

/// Only the user who runs the server may ask it.
pub(crate) const MODE: u32 = 0o600;

/// The directory of root's server, and of the packaged unit.
const OF_ROOT: &str = "/run/paternoster";

/// Returns where the control socket is if nobody says.
pub fn default_path() -> PathBuf {
    place(|name| std::env::var_os(name), rustix::process::geteuid().is_root())
}

fn place(variable: impl Fn(&str) -> Option<OsString>, is_root: bool) -> PathBuf {
    let written = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(path) = written(VARIABLE) {
        return path.into();
    }
    let first = |directories: OsString| {
        let first = directories.as_bytes().split(|&byte| byte == b':').next().unwrap_or_default();
        PathBuf::from(OsStr::from_bytes(first))
    };
    let directory = written("RUNTIME_DIRECTORY").map(first);
    let directory = directory.or_else(|| is_root.then(|| OF_ROOT.into()));
    let of_user =
        || written("XDG_RUNTIME_DIR").map(|of_user| Path::new(&of_user).join("paternoster"));
    match directory.or_else(of_user) {
        Some(directory) => directory.join("ctl.sock"),
        None => HERE.into(),
    }
}

/// Returns whether a directory of this name can be made for the default socket: it is not there,
/// and that in which it would be is.
pub(crate) fn is_directory_to_be_made(socket: &Path) -> bool {
    let Some(directory) = socket.parent().filter(|directory| !directory.as_os_str().is_empty())
    else {
        return false;
    };
    let parent = directory.parent().unwrap_or(Path::new("/"));
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    !directory.exists() && parent.is_dir() && rustix::fs::access(parent, access).is_ok()
}

/// Returns whether [`make_directory`] makes one.
pub(crate) fn makes_directory(socket: &Path) -> bool {
    socket == default_path() && is_directory_to_be_made(socket)
}

/// Makes the directory of the default socket where there is none: others may look in it, and the
/// socket itself is its server's alone.
pub(crate) fn make_directory(socket: &Path) -> io::Result<()> {
    if !makes_directory(socket) {
        return Ok(());
    }
    let Some(directory) = socket.parent() else { return Ok(()) };
    match DirBuilder::new().mode(0o755).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_asker_agree_on_the_place_wherever_they_are_started() {
        let all = [
            ("PATERNOSTER_CTL", "x.sock"),
            ("RUNTIME_DIRECTORY", "/run/pn:/run/other"),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
        ];
        let of = |known: &[(&str, &str)], is_root| {
            let value = |name: &str| known.iter().find(|(known, _)| *known == name);
            place(|name| value(name).map(|(_, value)| value.into()), is_root)
        };
        assert_eq!(of(&all, true), Path::new("x.sock"));
        assert_eq!(of(&all[1..], false), Path::new("/run/pn/ctl.sock"));
        assert_eq!(of(&all[2..], true), Path::new("/run/paternoster/ctl.sock"));
        assert_eq!(of(&all[2..], false), Path::new("/run/user/7/paternoster/ctl.sock"));
        assert_eq!(of(&[("XDG_RUNTIME_DIR", "")], false), Path::new("paternoster-ctl.sock"));
    }

    #[test]
    fn directory_is_made_where_there_is_none_and_where_it_can_be() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |path: &str| dir.path().join(path);
        assert!(is_directory_to_be_made(&at("new/ctl.sock")));
        assert!(!is_directory_to_be_made(&at("ctl.sock")), "its directory is there");
        assert!(!is_directory_to_be_made(&at("new/below/ctl.sock")), "two are missing");
        assert!(!is_directory_to_be_made(Path::new("ctl.sock")), "the current one is there");
    }
}
