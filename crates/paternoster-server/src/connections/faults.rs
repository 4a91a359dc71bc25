//! The log lines about a disk that fails, written the moment it happens.
//!
//! Reported are the first fault of each volume, operation and errno, the first failed sync of each
//! volume, what a back end has to say, and what others have done to the image. The image is looked
//! at after a fault, and at most once a second while the disk has anything to do, be it a client
//! that connects: nothing wakes up to look.

use std::collections::BTreeSet;

use paternoster_disk::{DiskOp, Fault, Notice, VolumeId};

use super::{Connections, DiskOwner};

/// What has been reported of one disk.
#[derive(Debug, Default)]
pub(super) struct Faults {
    kinds: BTreeSet<(VolumeId, DiskOp, i32)>,
    not_durable: BTreeSet<VolumeId>,
}

impl Faults {
    /// Nothing was reported of a volume that is gone.
    pub(super) fn forget(&mut self, volume: VolumeId) {
        self.kinds.retain(|(of, ..)| *of != volume);
        self.not_durable.remove(&volume);
    }

    /// Notes a fault. Returns whether it is the first of its volume, operation and errno.
    fn note(&mut self, fault: &Fault) -> bool {
        self.kinds.insert((fault.volume, fault.op, fault.errno.raw_os_error()))
    }
}

impl Connections {
    /// Reports what is new. Called before the outcomes of commands are taken, which are what leads
    /// from a fault to an export, and after every round.
    pub(super) fn report_faults(&mut self, owner: &mut DiskOwner) {
        for (volume, notice) in owner.take_notices() {
            let (disk, volume) = (&self.label.config.name, self.label.volumes.name(volume));
            match notice {
                Notice::Info(text) => tracing::info!(disk, volume, "{text}"),
                Notice::Warning(text) => tracing::warn!(disk, volume, "{text}"),
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
                    volume = self.label.volumes.name(fault.volume),
                    "a sync has failed: every FLUSH and every FUA command gets EIO until the \
                     server restarts, or the volume is reopened"
                );
            }
        }
        let after_fault = faults.first().map(|fault| fault.volume);
        for (volume, damage) in self.label.volumes.look(owner, after_fault) {
            let (disk, volume) = (&self.label.config.name, self.label.volumes.name(volume));
            tracing::error!(disk, volume, "{damage}");
        }
    }

    fn report_fault(&self, fault: &Fault) {
        let Fault { volume, op, errno, piece, .. } = fault;
        let export = piece.and_then(|piece| {
            let client = self.register.get(self.doors.client_of(piece.tag)?)?;
            Some(client.export.name.as_str())
        });
        tracing::error!(
            disk = self.label.config.name,
            volume = self.label.volumes.name(*volume),
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
}
