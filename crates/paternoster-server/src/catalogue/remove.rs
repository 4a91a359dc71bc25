//! Removes a volume that was made by request: its clients have time to leave.

use super::Catalogue;
use super::durable::removal_failed;
use crate::connections::Removed;
use crate::ctl::{CatalogueError, Data, RemovalQuestion};

impl Catalogue {
    /// Removes a volume; it is gone when this returns, which may take as long as its clients have
    /// to leave.
    pub(crate) fn remove_volume(
        &self,
        name: &str,
        question: &RemovalQuestion,
    ) -> Result<(), CatalogueError> {
        let drain = question.drain()?;
        let _turn = self.turn(name)?;
        let (of, served, has_own_group) = {
            let mut state = self.state();
            state.check_no_exports(name)?;
            let volume = state.made(name)?;
            if question.data == Data::Delete && !volume.asked.of.is_new() {
                let location = volume.backend.location().unwrap_or_default();
                return Err(CatalogueError::NotMadeHere(location));
            }
            (volume.asked.of.clone(), volume.stage.served(), volume.asked.has_own_group)
        };
        let pool = self.pool_of(&of)?;
        self.record_removal(&of, question.data).inspect_err(|_| self.record_again(name))?;
        let mut synced = Ok(());
        let mut locked = None;
        if let Some(served) = served {
            let sync = question.data == Data::Keep;
            let leaving = self.volume_leaves(&of, served, drain, sync)?;
            let Removed { backend, synced: of_sync } = self.left(leaving)?;
            (locked, synced) = (backend, of_sync);
        }
        let brought = if has_own_group { self.keep_brought(&of) } else { Ok(()) };
        let ended = brought.and_then(|()| match question.data {
            Data::Delete => self.delete_image(&of),
            Data::Keep => self.sync_name(&of),
        });
        if let Err(error) = ended.and_then(|()| self.forget(&of)) {
            // It stays known, so that it can be asked for again.
            self.state().made(name)?.stage = removal_failed(&error);
            return Err(error);
        }
        // Until here nobody else could have taken the image. What closing it takes is not the
        // owner's time.
        drop(locked);
        self.state().volumes.remove(name);
        let data = question.data;
        tracing::info!(disk = pool.name, volume = name, ?data, "a volume is removed");
        synced.map_err(|errno| {
            let (name, why) = (name.to_owned(), errno.to_string());
            CatalogueError::NotDurable { name, why }
        })
    }
}
