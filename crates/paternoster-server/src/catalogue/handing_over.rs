//! What is served stays as it is while another server takes over.

use std::sync::MutexGuard;

use paternoster_disk::Fd;

use super::{Catalogue, Store, UnderWay};

/// Nothing that is served changes for as long as this is there.
pub(crate) struct Unchanging<'c> {
    catalogue: &'c Catalogue,
    _following: MutexGuard<'c, UnderWay>,
}

impl Catalogue {
    /// Has nothing change, unless something does.
    pub(crate) fn hold_changes(&self) -> Result<Unchanging<'_>, String> {
        let following = self.following();
        if following.goes_on() {
            return Err("what a reload has begun is under way".to_owned());
        }
        let mut state = self.state();
        if let Some(name) = state.changing.first() {
            return Err(format!("an operation is under way: {name:?} is being changed"));
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
