//! Weights that change while their groups are served.

use super::{Connections, DiskOwner};
use crate::ctl::WeightsInForce;
use crate::messages::GroupWeights;

impl Connections {
    /// Changes a group's weights; those in force then. None if the disk has no such group.
    pub(super) fn set_weight(
        &self,
        owner: &mut DiskOwner,
        new: &GroupWeights,
    ) -> Option<WeightsInForce> {
        let tenant = self.tenants.iter().find(|tenant| tenant.path == new.group)?;
        let (id, now) = (tenant.group, owner.now());
        let elevator = owner.engine_mut().elevator_mut();
        let (own, on_device) = new.weights.of(&elevator.groups()[id]);
        elevator.set_weight(now, id, own.weight, own.leaf);
        elevator.set_device_weights(now, id, on_device);
        let group = &elevator.groups()[id];
        let in_force = WeightsInForce {
            disk: self.label.name.clone(),
            weight: group.weight().value(),
            leaf_weight: group.leaf_weight().value(),
            weight_of_disk: on_device.weight.is_some(),
            leaf_weight_of_disk: on_device.leaf.is_some(),
            weights_apply: self.label.weights_apply,
        };
        owner.settle();
        Some(in_force)
    }
}
