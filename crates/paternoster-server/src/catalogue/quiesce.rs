//! Has the server behind a far volume restart, or show more bytes, while clients are connected.
//!
//! ```text
//!   quiesce:  requests wait ─▶ all is answered ─▶ FLUSH ─▶ disconnect
//!   resume:                                       new connections ─▶ requests go on
//! ```
//!
//! A connection shows the bytes that there were when it began, so a volume grows by both.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use paternoster_disk::{FarStats, QuiesceError, VolumeId};

use super::{Catalogue, Disk};
use crate::ctl::{CatalogueError, VolumeAnswer};

/// How long a volume that grows waits for its new connections: longer than one attempt takes.
const CONNECTED: Duration = Duration::from_secs(10);

/// How often it looks.
const LOOK: Duration = Duration::from_millis(5);

impl Catalogue {
    /// Disconnects from the server of a volume, once everything is durable.
    pub(crate) fn quiesce_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        let _turn = self.turn(name)?;
        let (pool, served) = self.served_volume(name)?;
        disconnect(&pool, name, served)?;
        self.volume(name)
    }

    /// Connects to the server of a volume again, and goes on with what waits.
    pub(crate) fn resume_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        let _turn = self.turn(name)?;
        let (pool, served) = self.served_volume(name)?;
        if far(&pool, name, served)?.is_quiesced() {
            pool.answer(&pool.owner.resume_volume(served))?;
        }
        self.volume(name)
    }

    /// Refuses something that a quiesced volume would let wait.
    pub(super) fn check_in_use(&self, name: &str) -> Result<(), CatalogueError> {
        // What is no volume of a pool is not quiesced.
        let Ok((pool, served)) = self.served_volume(name) else { return Ok(()) };
        match far(&pool, name, served) {
            Ok(far) if far.is_quiesced() => Err(CatalogueError::Quiesced(name.to_owned())),
            _ => Ok(()),
        }
    }

    fn served_volume(&self, name: &str) -> Result<(Arc<Disk>, VolumeId), CatalogueError> {
        let mut state = self.state();
        let volume = state.volume(name)?;
        let served = volume.stage.served();
        let served = served.ok_or_else(|| CatalogueError::NotServed(name.to_owned()))?;
        let of = volume.asked.of.clone();
        Ok((state.pool_of(&of)?, served))
    }
}

/// Has a far volume be connected anew, so that its server shows what it has now.
pub(super) fn connect_anew(
    pool: &Disk,
    name: &str,
    served: VolumeId,
) -> Result<(), CatalogueError> {
    if far(pool, name, served)?.is_quiesced() {
        return Err(CatalogueError::Quiesced(name.to_owned()));
    }
    disconnect(pool, name, served)?;
    pool.answer(&pool.owner.resume_volume(served))?;
    let begun = Instant::now();
    while far(pool, name, served)?.connections == 0 {
        if begun.elapsed() >= CONNECTED {
            let why = "it was disconnected to read the new size, and cannot be reached again";
            return Err(CatalogueError::NotOpened { name: name.to_owned(), why: why.to_owned() });
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

fn disconnect(pool: &Disk, name: &str, served: VolumeId) -> Result<(), CatalogueError> {
    let left = pool.certain_answer(&pool.owner.quiesce_volume(served))?;
    left.map_err(|why| CatalogueError::NotQuiesced { name: name.to_owned(), why: why.to_string() })
}

/// The server of a volume.
fn far(pool: &Disk, name: &str, served: VolumeId) -> Result<FarStats, CatalogueError> {
    let mut states = pool.answer(&pool.owner.volume_states(vec![served]))?;
    let state = states.remove(&served);
    let state = state.ok_or_else(|| CatalogueError::NotServed(name.to_owned()))?;
    state.far.ok_or_else(|| {
        let why = QuiesceError::NoServer.to_string();
        CatalogueError::NotQuiesced { name: name.to_owned(), why }
    })
}
