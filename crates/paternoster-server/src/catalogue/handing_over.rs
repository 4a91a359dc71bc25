//! What is served stays as it is while another server takes over.

use std::sync::MutexGuard;

use paternoster_disk::Fd;

use super::{Catalogue, Store, UnderWay, Volume};

/// Nothing that is served changes for as long as this is there.
pub(crate) struct Unchanging<'c> {
    catalogue: &'c Catalogue,
    _following: MutexGuard<'c, UnderWay>,
}

impl Catalogue {
    /// Has nothing change, unless something does.
    pub(crate) fn hold_changes(&self) -> Result<Unchanging<'_>, String> {
        let busy = |_| "a reload, a change of a group or disk, or another hand-over is under way";
        let following = self.following.try_lock().map_err(busy)?;
        if following.goes_on() {
            return Err("what a reload has begun is under way".to_owned());
        }
        let mut state = self.state();
        if let Some(name) = state.changing.first() {
            return Err(format!("an operation is under way: {name:?} is being changed"));
        }
        // Its record does not say so, and the next server would serve it.
        let is_told = |volume: &&Volume| {
            let record = volume.asked.recorded.as_ref();
            let is_going = record.is_some_and(|record| record.removing.is_some());
            volume.stage.served().is_some() || !(volume.sync_failed || is_going)
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
