//! What is set of a group while it is served: weights, caps, reservations and latency targets.

use paternoster::GroupId;

use super::reload::Plan;
use super::{Connections, DiskOwner};
use crate::config::ROOT;
use crate::ctl::{GroupError, GroupInForce};
use crate::messages::{GroupOnDisk, GroupSettings};

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
        let known = &owner.engine().elevator().groups()[id];
        let (weights, on_device) = settings.weights(known, disk);
        let limits = settings.limits(*known.limits());
        let wanted = GroupOnDisk { path: group.clone(), weights, on_device, limits };
        let mut plan = Plan::default();
        self.plan_group(owner, &wanted, &mut plan);
        plan.apply(owner);
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
