//! The requests in the device, for messages that name what a slow device works on.

use paternoster::scheduler::Scheduler;

use super::{DiskOp, Engine, InTheDevice};

/// A request in the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InDevice {
    /// What it does.
    pub op: DiskOp,
    /// First byte on its volume.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

impl<S: Scheduler> Engine<S> {
    /// Returns the requests in the device, in no order. A sync is not among them: see
    /// [`Engine::is_syncing`].
    pub fn in_device(&self) -> impl Iterator<Item = InDevice> {
        self.in_device.values().chain(self.paused.started()).map(|InTheDevice { order, .. }| {
            let first = self.pieces.piece(order[0]);
            let each = order.iter().map(|&piece| self.pieces.piece(piece));
            InDevice {
                op: (&first.kind).into(),
                offset: first.offset,
                len: each.map(|piece| u64::from(piece.len)).sum(),
            }
        })
    }

    /// Returns whether a sync is in flight, or about to be.
    pub fn is_syncing(&self) -> bool {
        !self.pieces.volumes.are_synced()
    }
}
