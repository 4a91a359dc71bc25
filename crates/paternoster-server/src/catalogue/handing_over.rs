//! What is served stays as it is while another server takes over.

use std::sync::{MutexGuard, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use paternoster_disk::Fd;

use super::{Catalogue, Store, UnderWay, Volume};

/// How long whoever changes something is waited for, and how soon to look again.
const SOON: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);

/// Nothing that is served changes for as long as this is there.
pub(crate) struct Unchanging<'c> {
    catalogue: &'c Catalogue,
    _following: MutexGuard<'c, UnderWay>,
}

impl Catalogue {
    /// Has nothing change, unless something does.
    pub(crate) fn hold_changes(&self) -> Result<Unchanging<'_>, String> {
        let following = self.following_soon()?;
        if following.goes_on() {
            return Err("what a reload has begun is under way".to_owned());
        }
        let mut state = self.state();
        if let Some(name) = state.changing.first() {
            return Err(format!("an operation is under way: {name:?} is being changed"));
        }
        // Its record does not say why, and the next server would try to serve it.
        let is_told = |volume: &&Volume| {
            let is_lost = volume.sync_failed || !volume.asked.is_of_file;
            volume.stage.served().is_some() || !is_lost
        };
        if let Some(volume) = state.volumes.values().find(|volume| !is_told(volume)) {
            return Err(format!(
                "volume {:?} is not served: reopen it, or remove it, first",
                volume.asked.of.name
            ));
        }
        state.is_handing_over = true;
        drop(state);
        Ok(Unchanging { catalogue: self, _following: following })
    }

    /// The lock of [`following`](Self::following), unless somebody has it for long: whoever has to
    /// end cannot wait.
    fn following_soon(&self) -> Result<MutexGuard<'_, UnderWay>, String> {
        let begun = Instant::now();
        loop {
            match self.following.try_lock() {
                Ok(following) => return Ok(following),
                Err(TryLockError::Poisoned(poisoned)) => return Ok(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) if begun.elapsed() < SOON => thread::sleep(LOOK),
                Err(TryLockError::WouldBlock) => {
                    let busy = "a reload, a change of a group or disk, or another hand-over";
                    return Err(format!("{busy} is under way"));
                }
            }
        }
    }

    /// What another server needs beside the files of disks: the directory of records, and the
    /// sockets on which virtual machines attach.
    pub(crate) fn to_hand_over(&self) -> Vec<Fd> {
        let store = self.store.as_ref().map(Store::descriptor);
        let sockets = self.exports.listening().into_iter().map(|one| one.socket.clone());
        store.into_iter().chain(sockets).collect()
    }
}

impl Drop for Unchanging<'_> {
    fn drop(&mut self) {
        self.catalogue.state().is_handing_over = false;
    }
}
