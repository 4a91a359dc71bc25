//! Weights that change while their groups are served.

use super::{Connections, DiskOwner};
use crate::ctl::WeightsInForce;
use crate::messages::GroupWeights;

impl Connections {
    /// Changes a group's weights, and returns those that are in force then; none if the disk has no
    /// such group.
    pub(super) fn set_weight(
        &self,
        owner: &mut DiskOwner,
        new: &GroupWeights,
    ) -> Option<WeightsInForce> {
        let tenant = self.tenants.iter().find(|tenant| tenant.path == new.group)?;
        let id = tenant.group;
        let on_device = owner.administer(|elevator, now| {
            let (own, on_device) = new.weights.of(&elevator.groups()[id]);
            elevator.set_weight(now, id, own);
            elevator.set_device_weights(now, id, on_device);
            on_device
        });
        let group = &owner.engine().elevator().groups()[id];
        Some(WeightsInForce {
            disk: self.label.name.clone(),
            weight: group.weight().value(),
            leaf_weight: group.leaf_weight().value(),
            weight_of_disk: on_device.weight.is_some(),
            leaf_weight_of_disk: on_device.leaf.is_some(),
            weights_apply: owner.engine().elevator().scheduler().kind().has_weights(),
        })
    }
}
