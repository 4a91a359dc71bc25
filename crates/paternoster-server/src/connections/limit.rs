//! Caps, reservations and latency targets that change while their groups are served.

use super::{Connections, DiskOwner};
use crate::config::limits_in_numbers;
use crate::ctl::{LimitError, LimitsInForce};
use crate::messages::NewGroupLimits;

impl Connections {
    /// Changes a group's limits, and returns those that are in force then; none if the disk has no
    /// such group.
    pub(super) fn set_limits(
        &self,
        owner: &mut DiskOwner,
        new: &NewGroupLimits,
    ) -> Option<Result<LimitsInForce, LimitError>> {
        let id = self.tenants.iter().find(|tenant| tenant.path == new.group)?.group;
        let kind = owner.engine().elevator().scheduler().kind();
        if !kind.has_group_limits() && !new.limits.only_removes() {
            let (disk, scheduler) = (self.label.name.clone(), kind.name().to_owned());
            return Some(Err(LimitError::NoLimits { disk, scheduler }));
        }
        let limits = owner.administer(|elevator, now| {
            let limits = new.limits.over(*elevator.groups()[id].limits());
            elevator.set_group_limits(now, id, limits);
            limits
        });
        let (disk, limits) = (self.label.name.clone(), limits_in_numbers(&limits));
        Some(Ok(LimitsInForce { disk, limits }))
    }
}
