//! Volumes whose server is to restart: who waits until it has been left.

use std::sync::mpsc;

use paternoster_disk::{QuiesceError, Quiesced, VolumeId};

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
            // Of one that has gone whoever asked hears nothing.
            let is_here = self.label.volumes.is_here(one.volume);
            let state = is_here.then(|| quiesced(owner, one.volume));
            let result = match state {
                Some(Quiesced::UnderWay) => return true,
                Some(Quiesced::Yes) => Ok(()),
                Some(Quiesced::Failed(error)) => Err(error),
                Some(Quiesced::No) | None => Err(QuiesceError::Resumed),
            };
            let _ = one.answer.send(result);
            false
        });
    }
}

/// Whether the server of a volume has been left.
pub(super) fn quiesced(owner: &DiskOwner, volume: VolumeId) -> Quiesced {
    owner.backend(volume).far().map_or(Quiesced::No, |far| far.quiesced)
}
