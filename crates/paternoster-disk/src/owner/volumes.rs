//! Volumes that come, grow and go while the owner serves others.

use std::io;

use paternoster::scheduler::Scheduler;
use thiserror::Error;

use super::Owner;
use crate::backend::{Backend, QuiesceError};
use crate::engine::{NoGrowth, NoVolume, VolumeId};

/// Why a volume has not grown.
#[derive(Debug, Error)]
pub enum GrowError {
    /// The engine refuses the size.
    #[error(transparent)]
    Refused(#[from] NoGrowth),
    /// The back end does.
    #[error(transparent)]
    Backend(#[from] io::Error),
}

impl<S: Scheduler> Owner<S> {
    /// Serves another volume, on that back end.
    pub fn add_volume(&mut self, backend: Box<dyn Backend>) -> Result<VolumeId, NoVolume> {
        let volume = self.engine.add_volume(&backend.capabilities())?;
        self.has_servers |= backend.servers_time().is_some();
        self.backends.add(volume, backend);
        self.backends.begin(&mut self.ring, volume);
        Ok(volume)
    }

    /// A volume has so many bytes from now on, which what is behind its back end already has.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn grow_volume(&mut self, volume: VolumeId, size: u64) -> Result<(), GrowError> {
        // A back end that has grown treats its last block otherwise.
        self.engine.check_growth(volume, size)?;
        self.backends.grow(volume, size)?;
        Ok(self.engine.grow_volume(volume, size)?)
    }

    /// Has what is asked of a volume wait, and its server left once everything is durable: see
    /// [`Backend::quiesce`].
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn quiesce_volume(&mut self, volume: VolumeId) -> Result<(), QuiesceError> {
        let now = self.now();
        self.backends.quiesce(volume, now)
    }

    /// Goes on with a volume that was quiesced.
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    pub fn resume_volume(&mut self, volume: VolumeId) {
        let now = self.now();
        self.backends.resume(volume, now);
    }

    /// Begins nothing of a volume any more: see [`Engine::close_volume`].
    ///
    /// # Panics
    ///
    /// Where there is no such volume.
    ///
    /// [`Engine::close_volume`]: crate::Engine::close_volume
    pub fn close_volume(&mut self, volume: VolumeId) {
        self.engine.close_volume(volume);
    }

    /// Forgets a volume that is idle. Returns its back end: to drop that may take time, as it may
    /// be the last that knows a file.
    ///
    /// # Panics
    ///
    /// Where it is not idle, or there is no such volume.
    pub fn remove_volume(&mut self, volume: VolumeId) -> Box<dyn Backend> {
        self.engine.remove_volume(volume);
        self.backends.remove(volume)
    }
}
