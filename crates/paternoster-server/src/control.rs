//! What the control plane asks of a running server: messages to the owners of its disks.

use std::time::Duration;

use crate::ctl::{Control, StatError};
use crate::messages::OwnerHandle;
use crate::stat::Stat;

/// How long the owner of a disk may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks a running server for its statistics.
#[derive(Clone, Debug)]
pub struct ControlHandle {
    owners: Vec<OwnerHandle>,
}

impl ControlHandle {
    pub(crate) fn new(owners: Vec<OwnerHandle>) -> Self {
        Self { owners }
    }
}

impl Control for ControlHandle {
    fn stat(&self) -> Result<Stat, StatError> {
        let asked: Vec<_> = self.owners.iter().map(OwnerHandle::stat).collect();
        let answers = asked.into_iter().map(|answer| answer.recv_timeout(PATIENCE));
        let disks: Result<Vec<_>, _> = answers.collect();
        disks.map(Stat::new).map_err(|error| StatError(format!("a disk does not answer: {error}")))
    }
}
