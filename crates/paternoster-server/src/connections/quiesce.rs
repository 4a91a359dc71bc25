//! Volumes whose server is to restart: who waits until it is disconnected.

use std::sync::mpsc;

use paternoster_disk::{FarStats, QuiesceError, Quiesced, VolumeId};

use super::{Connections, DiskOwner};

/// A volume that is being quiesced, and where it is told what has become of that.
#[derive(Debug)]
pub(super) struct Quiescing {
    volume: VolumeId,
    answer: mpsc::Sender<Result<(), QuiesceError>>,
}

impl Connections {
    /// Begins to quiesce a volume that is here.
    pub(super) fn quiesce(
        &mut self,
        owner: &mut DiskOwner,
        volume: VolumeId,
        answer: mpsc::Sender<Result<(), QuiesceError>>,
    ) {
        match owner.quiesce_volume(volume) {
            Ok(()) => self.quiescing.push(Quiescing { volume, answer }),
            // Whoever asked may have gone.
            Err(error) => _ = answer.send(Err(error)),
        }
    }

    /// Answers about volumes of which the end is known.
    pub(super) fn go_on_quiescing(&mut self, owner: &DiskOwner) {
        self.quiescing.retain(|one| {
            let is_here = self.label.volumes.is_here(one.volume);
            let state = is_here.then(|| quiesced(owner, one.volume));
            let result = match state {
                Some(Quiesced::UnderWay) => return true,
                Some(Quiesced::Yes) => Ok(()),
                Some(Quiesced::Failed(error)) => Err(error),
                // One that was removed has been resumed for that.
                Some(Quiesced::No) | None => Err(QuiesceError::Resumed),
            };
            let _ = one.answer.send(result);
            false
        });
    }
}

/// The server behind a volume, if it is one.
pub(super) fn far(owner: &DiskOwner, volume: VolumeId) -> Option<FarStats> {
    owner.backend(volume).far(owner.now())
}

/// Whether the server of a volume was disconnected.
fn quiesced(owner: &DiskOwner, volume: VolumeId) -> Quiesced {
    far(owner, volume).map_or(Quiesced::No, |far| far.quiesced)
}
