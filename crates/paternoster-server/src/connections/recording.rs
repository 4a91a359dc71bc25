//! Recordings of what the scheduler decides, begun and ended while clients are served.

use std::sync::Weak;

use paternoster::TimedEvents;

use super::{Connections, DiskOwner};
use crate::recording::{Paths, Recorded, Recording};

impl Connections {
    /// Begins a recording for `reader`, and returns the paths of the groups; nothing where somebody
    /// else reads one.
    pub(super) fn begin_recording(&self, owner: &mut DiskOwner, reader: Weak<()>) -> Option<Paths> {
        end_recording(owner);
        if owner.trace().recording.is_some() {
            return None;
        }
        let clients = self.recorded(owner).into_iter();
        let clients = clients.map(|(ioc, client)| (ioc, client.party));
        owner.trace().recording = Some(Box::new(Recording::new(reader, clients.collect())));
        let root = owner.engine().elevator().groups().root();
        let tenants = self.tenants.iter().map(|(_, tenant)| (tenant.group, tenant.path.clone()));
        Some([(root, "/".to_owned())].into_iter().chain(tenants).collect())
    }
}

/// Hands over what was recorded; nothing where there is no recording.
pub(super) fn take_recorded(owner: &mut DiskOwner, room: TimedEvents) -> Option<Recorded> {
    owner.trace().recording.as_mut().map(|recording| recording.take(room))
}

/// Ends the recording if its reader has gone.
pub(super) fn end_recording(owner: &mut DiskOwner) {
    owner.trace().recording.take_if(|recording| recording.is_unread());
}
