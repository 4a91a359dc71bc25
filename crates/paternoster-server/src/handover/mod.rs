//! One server goes on where another stops, and clients notice a pause at most.
//!
//! ```text
//!   predecessor                                      successor: serve FILE --take-over
//!        ◀── hello ────────────────────────────────────  has read its file
//!    offer, sockets that listen, images ───────────────▶  opens nothing that it gets here
//!        ◀── prepared ─────────────────────────────────  could serve
//!    ┌ accepts nobody, lets the device finish
//!    │ sockets of clients, state ──────────────────────▶  reads it
//!    │   ◀── ready ────────────────────────────────────
//!    └ go ─────────────────────────────────────────────▶  serves, and accepts who has waited
//!    ends, and touches nothing
//! ```
//!
//! Before `go` only the predecessor serves, after it only the successor. What goes wrong before
//! that has the predecessor go on, and the other one ends with an error. The
//! sockets, images and clients are the very descriptors, so locks stay held, nobody reconnects,
//! and the kernel reports a failed write-back to whoever serves.

mod decision;
mod message;
mod predecessor;
mod state;
mod store;
mod successor;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) use self::decision::HandOver;
pub(crate) use self::predecessor::{Source, leave_to_manager, serve};
#[cfg(test)]
pub(crate) use self::state::{LeftConnection, read_back, written};
pub(crate) use self::store::DescriptorStore;
pub(crate) use self::successor::Successor;

/// Where a server with that control socket waits for another one to take over: the same path with
/// `handover` for `ctl` in the name of the file, or with `.handover` behind it.
pub(crate) fn socket_of(ctl: &Path) -> PathBuf {
    let name = ctl.file_name().unwrap_or_default();
    let other = match name.to_str() {
        Some(name) if name.contains("ctl") => OsString::from(name.replacen("ctl", "handover", 1)),
        _ => {
            let mut other = name.to_owned();
            other.push(".handover");
            other
        }
    };
    ctl.with_file_name(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_control_socket_has_a_socket_of_its_own_beside_it() {
        let of = |ctl: &str| socket_of(Path::new(ctl)).display().to_string();
        assert_eq!(of("/run/paternoster/ctl.sock"), "/run/paternoster/handover.sock");
        assert_eq!(of("paternoster-ctl.sock"), "paternoster-handover.sock");
        assert_eq!(of("/run/pn/a.sock"), "/run/pn/a.sock.handover");
    }
}
