//! What the file says of the disk when it is read again: compared with what is in force, and made
//! so.

use paternoster::{DeviceWeights, GroupId, GroupLimits, Weight, Weights};
use serde_json::Value;

use super::journal::note_changes;
use super::{Connections, DiskOwner};
use crate::config::{GroupKeys, Keys as _};
use crate::ctl::Change;
use crate::messages::{FileDisk, GroupOnDisk};

/// What has to be done for groups to be as the file says, or a request.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Groups whose weights differ.
    weights: Vec<(GroupId, Weights, DeviceWeights)>,
    /// Groups whose limits differ.
    limits: Vec<(GroupId, GroupLimits)>,
    /// The same and what differs of the disk's keys, to be shown.
    changes: Vec<Change>,
}

impl Plan {
    /// Does it. Returns what was otherwise.
    pub(super) fn apply(self, owner: &mut DiskOwner) -> Vec<Change> {
        let Self { weights, limits, changes } = self;
        owner.administer(|elevator, now| {
            for (group, weights, on_device) in weights {
                elevator.set_weight(now, group, weights);
                elevator.set_device_weights(now, group, on_device);
            }
            for (group, limits) in limits {
                elevator.set_group_limits(now, group, limits);
            }
        });
        note_changes(owner, &changes);
        changes
    }
}

impl Connections {
    /// Returns what is in force otherwise than the file says.
    pub(super) fn compare(&self, owner: &DiskOwner, file: &FileDisk) -> Vec<Change> {
        self.plan(owner, file).changes
    }

    /// Makes the disk as the file says. Returns what was in force otherwise.
    pub(super) fn reload(&mut self, owner: &mut DiskOwner, file: &FileDisk) -> Vec<Change> {
        let plan = self.plan(owner, file);
        self.apply_settings(owner, &file.disk);
        let changes = plan.apply(owner);
        for change in &changes {
            tracing::info!(disk = self.label.config.name, "the file changes {change}");
        }
        changes
    }

    fn plan(&self, owner: &DiskOwner, file: &FileDisk) -> Plan {
        let changes = self.changed_settings(owner, &file.disk);
        let mut plan = Plan { changes, ..Plan::default() };
        for group in &file.groups {
            self.plan_group(owner, group, &mut plan);
        }
        plan
    }

    /// Adds to a plan what has to be done for a group.
    pub(super) fn plan_group(&self, owner: &DiskOwner, group: &GroupOnDisk, plan: &mut Plan) {
        self.plan_weights(owner, group, plan);
        self.plan_limits(owner, group, plan);
    }

    fn plan_weights(&self, owner: &DiskOwner, file: &GroupOnDisk, plan: &mut Plan) {
        // It may have come or gone since the file was read.
        let Some(id) = self.group_of(owner, &file.path) else { return };
        let group = &owner.engine().elevator().groups()[id];
        let disk = &self.label.config.name;
        let known = plan.changes.len();
        let mut compare = |what: String, from: Value, to: Value| {
            if from != to {
                let place = format!("group {:?}", file.path);
                plan.changes.push(Change { place, what, from, to });
            }
        };
        let (old, new) = (group.configured(), file.weights);
        compare("weight".to_owned(), old.weight.value().into(), new.weight.value().into());
        compare("leaf_weight".to_owned(), old.leaf.value().into(), new.leaf.value().into());
        let (old, new) = (group.on_device(), file.on_device);
        let value = |weight: Option<Weight>| weight.map(Weight::value).into();
        compare(format!("weight_device.{disk}"), value(old.weight), value(new.weight));
        compare(format!("leaf_weight_device.{disk}"), value(old.leaf), value(new.leaf));
        if plan.changes.len() > known {
            plan.weights.push((id, file.weights, file.on_device));
        }
    }

    fn plan_limits(&self, owner: &DiskOwner, file: &GroupOnDisk, plan: &mut Plan) {
        // It may have come or gone since the file was read.
        let Some(id) = self.group_of(owner, &file.path) else { return };
        let in_force = owner.engine().elevator().groups()[id].limits();
        if *in_force == file.limits {
            return;
        }
        plan.limits.push((id, file.limits));
        let keys = |limits| GroupKeys { limits, ..GroupKeys::default() };
        let (old, new) = (keys(*in_force), keys(file.limits));
        for key in GroupKeys::part("limits") {
            let (from, to) = ((key.show)(&old), (key.show)(&new));
            if from != to {
                let place = format!("group {:?}", file.path);
                plan.changes.push(Change { place, what: key.name.to_owned(), from, to });
            }
        }
    }
}
