//! The log lines about a disk that fails, written the moment it happens.
//!
//! Reported are the first fault of each volume, operation and errno, the first failed sync of each
//! volume, what a back end has to say, and what others have done to the image. The image is looked
//! at after a fault, and at most once a second while the disk has anything to do, be it a client
//! that connects: nothing wakes up to look.

use std::collections::BTreeSet;

use paternoster::{Instant, Nanos};
use paternoster_disk::{Damage, DiskOp, Fault, Notice, VolumeId};

use super::{Connections, DiskOwner};

/// The least time between two looks at the image, but for those after faults.
const LOOK: Nanos = Nanos::from_millis(1_000);

/// What has been reported of one disk.
#[derive(Debug, Default)]
pub(super) struct Faults {
    kinds: BTreeSet<(VolumeId, DiskOp, i32)>,
    not_durable: BTreeSet<VolumeId>,
    damage: Option<Damage>,
    /// When the image was looked at last.
    looked_at: Option<Instant>,
}

impl Faults {
    /// Notes a fault. Returns whether it is the first of its volume, operation and errno.
    fn note(&mut self, fault: &Fault) -> bool {
        self.kinds.insert((fault.volume, fault.op, fault.errno.raw_os_error()))
    }

    /// Begins a look at the image if it is time for one. Returns whether it is.
    fn begin_look(&mut self, now: Instant) -> bool {
        let due = self.looked_at.is_none_or(|at| now.saturating_since(at) >= LOOK);
        if due {
            self.looked_at = Some(now);
        }
        due
    }
}

impl Connections {
    /// Reports what is new. Called before the outcomes of commands are taken, which are what leads
    /// from a fault to an export, and after every round.
    pub(super) fn report_faults(&mut self, owner: &mut DiskOwner) {
        for (_, notice) in owner.take_notices() {
            match notice {
                Notice::Info(text) => tracing::info!(disk = self.label.config.name, "{text}"),
                Notice::Warning(text) => tracing::warn!(disk = self.label.config.name, "{text}"),
            }
        }
        let faults = owner.take_faults();
        for fault in &faults {
            if self.faults.note(fault) {
                self.report_fault(fault);
            }
            if fault.poisons && self.faults.not_durable.insert(fault.volume) {
                tracing::error!(
                    disk = self.label.config.name,
                    "a sync has failed: every FLUSH and every FUA command gets EIO until the \
                     server restarts"
                );
            }
        }
        if self.faults.begin_look(owner.now()) || !faults.is_empty() {
            let damage = owner.backend(self.label.volume).damage();
            if let Some(damage) = damage.filter(|_| damage != self.faults.damage) {
                tracing::error!(disk = self.label.config.name, "{damage}");
            }
            self.faults.damage = damage;
        }
    }

    fn report_fault(&self, fault: &Fault) {
        let Fault { op, errno, piece, .. } = fault;
        let export = piece.and_then(|piece| {
            let client = self.register.get(self.transport.client_of(piece.tag)?)?;
            Some(client.export.name.as_str())
        });
        tracing::error!(
            disk = self.label.config.name,
            export,
            offset = piece.map(|piece| piece.offset),
            bytes = piece.map(|piece| piece.len),
            errno = errno.raw_os_error(),
            "a {op} failed: {errno}; further errors of this kind are not logged"
        );
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn fault_is_new_once_for_each_operation_and_errno() {
        let mut faults = Faults::default();
        let volume = VolumeId::default();
        let mut is_new =
            |op, errno| faults.note(&Fault { volume, op, errno, poisons: false, piece: None });
        assert!(is_new(DiskOp::Read, Errno::IO));
        assert!(!is_new(DiskOp::Read, Errno::IO));
        assert!(is_new(DiskOp::Write, Errno::IO));
        assert!(is_new(DiskOp::Write, Errno::NOSPC));
        assert!(!is_new(DiskOp::Write, Errno::IO));
    }

    #[test]
    fn the_image_is_looked_at_at_most_once_a_second() {
        let mut faults = Faults::default();
        let at = |millis| Instant::START + Nanos::from_millis(millis);
        let looks = [0, 10, 999, 1000, 1001, 5000].map(|millis| faults.begin_look(at(millis)));
        assert_eq!(looks, [true, false, false, true, false, true]);
    }
}
