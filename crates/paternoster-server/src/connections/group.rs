//! What is set of a group while it is served: weights, caps, reservations and latency targets.

use paternoster::GroupId;

use super::{Connections, DiskOwner};
use crate::config::ROOT;
use crate::ctl::{GroupError, GroupInForce};
use crate::messages::GroupSettings;

impl Connections {
    /// Changes what is set of a group, and returns what is in force then; none if the disk has no
    /// such group.
    pub(super) fn set_group(
        &self,
        owner: &mut DiskOwner,
        new: &GroupSettings,
    ) -> Option<Result<GroupInForce, GroupError>> {
        let GroupSettings { group, settings } = new;
        let disk = &self.label.config.name;
        let id = self.group_of(owner, group)?;
        let kind = owner.engine().elevator().scheduler().kind();
        if !kind.has_group_limits() && settings.limits_something() {
            let (disk, scheduler) = (disk.clone(), kind.name().to_owned());
            return Some(Err(GroupError::NoLimits { disk, scheduler }));
        }
        owner.administer(|elevator, now| {
            let group = &elevator.groups()[id];
            let (own, on_device) = settings.weights(group, disk);
            let weights_change = (own, on_device) != (group.configured(), group.on_device());
            let before = *group.limits();
            let limits = settings.limits(before);
            if weights_change {
                elevator.set_weight(now, id, own);
                elevator.set_device_weights(now, id, on_device);
            }
            if limits != before {
                elevator.set_group_limits(now, id, limits);
            }
        });
        let in_force = &owner.engine().elevator().groups()[id];
        Some(Ok(GroupInForce::of(group, in_force, disk, kind.has_weights())))
    }

    /// The group of that path.
    pub(super) fn group_of(&self, owner: &DiskOwner, path: &str) -> Option<GroupId> {
        if path == ROOT {
            return Some(owner.engine().elevator().groups().root());
        }
        self.tenants.find(path).map(|tenant| self.tenants[tenant].group)
    }
}
