//! Volumes and exports that nobody enters any more, and whose clients have time to leave.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use paternoster::Nanos;
use paternoster_disk::VolumeId;

use super::{Catalogue, Disk, Stage};
use crate::config::Wanted;
use crate::connections::{Removal, Removed};
use crate::ctl::CatalogueError;

/// A volume or an export whose clients are leaving.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) of: Wanted,
    disk: Arc<Disk>,
    answer: mpsc::Receiver<Removed>,
    /// What the owner has answered when they had left.
    left: Option<Removed>,
}

impl Leaving {
    fn new(of: &Wanted, disk: Arc<Disk>, answer: mpsc::Receiver<Removed>) -> Self {
        Self { of: of.clone(), disk, answer, left: None }
    }

    /// Waits until its clients have left, no longer than that. Returns whether they have, or
    /// nobody can say it any more.
    pub(super) fn has_left_by(&mut self, deadline: Instant) -> bool {
        if self.left.is_some() {
            return true;
        }
        let wait = deadline.saturating_duration_since(Instant::now());
        match self.answer.recv_timeout(wait) {
            Ok(removed) => self.left = Some(removed),
            Err(mpsc::RecvTimeoutError::Timeout) => return false,
            Err(mpsc::RecvTimeoutError::Disconnected) => {}
        }
        true
    }
}

impl Catalogue {
    /// Has the clients of a volume leave, and nobody come.
    pub(super) fn volume_leaves(
        &self,
        of: &Wanted,
        served: VolumeId,
        drain: Nanos,
        sync: bool,
    ) -> Result<Leaving, CatalogueError> {
        let disk = self.pool_of(of)?;
        self.state().volume(&of.name)?.stage = Stage::Draining(served);
        self.exports.change(&of.name, |entry| entry.is_leaving = true);
        let answer = disk.owner.remove_volume(Removal { volume: served, drain, sync });
        Ok(Leaving::new(of, disk, answer))
    }

    /// The same of an export; none if it is not served.
    pub(super) fn export_leaves(
        &self,
        of: &Wanted,
        drain: Nanos,
    ) -> Result<Option<Leaving>, CatalogueError> {
        let disk = {
            let mut state = self.state();
            let export = state.export(&of.name)?;
            let Some(number) = export.stage.served() else { return Ok(None) };
            export.stage = Stage::Draining(number);
            state.disk(number).cloned()
        };
        let Some((disk, entry)) = disk.zip(self.exports.get(&of.name)) else { return Ok(None) };
        self.exports.change(&of.name, |entry| entry.is_leaving = true);
        let answer = disk.owner.remove_export(Arc::clone(&entry.export), drain);
        Ok(Some(Leaving::new(of, disk, answer)))
    }

    /// Waits until the clients have left; from then on it is not served.
    pub(super) fn left(&self, leaving: Leaving) -> Result<Removed, CatalogueError> {
        let Leaving { of, disk, answer, left } = leaving;
        let left = match left {
            Some(left) => left,
            None => disk.certain_answer(&answer)?,
        };
        self.exports.remove(&of.name);
        self.change_groups(|groups| groups.leave(&of.group(), disk.number));
        Ok(left)
    }
}
