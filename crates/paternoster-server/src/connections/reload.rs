//! What the file says of the disk when it is read again: compared with what is in force, and made
//! so.

use std::collections::BTreeMap;

use paternoster::scheduler::Scheduler as _;
use paternoster::{
    DeviceWeights, Elevator, GroupId, GroupLimits, Hierarchy, Instant, SchedulerKind, Weight,
    Weights,
};
use serde_json::Value;

use super::settings::switch;
use super::{Connections, DiskOwner, Scheduler};
use crate::announce::has_finer;
use crate::config::{DiskConfig, DiskKeys, GroupKeys, Keys as _, PollMode, Polling};
use crate::ctl::Change;
use crate::depth::{self, Depth};
use crate::messages::{FileDisk, FileGroup};
use crate::recording::Sink;

/// What has to be done for the disk to be as the file says.
#[derive(Debug, Default)]
struct Plan {
    /// Another scheduler.
    scheduler: Option<SchedulerKind>,
    /// Whether `auto` has chosen it, if that differs.
    auto: Option<bool>,
    /// Another hierarchy.
    hierarchy: Option<Hierarchy>,
    /// The elevator's bound, if the depth is another one; the tunables fix it or have it learned.
    bound: Option<u32>,
    /// Another way to wait.
    polling: Option<Polling>,
    /// Whether tunables differ, or those that a later scheduler would get.
    resets_tunables: bool,
    /// Groups whose weights differ.
    weights: Vec<(GroupId, Weights, DeviceWeights)>,
    /// Groups whose limits differ.
    limits: Vec<(GroupId, GroupLimits)>,
    /// The same, to be shown.
    changes: Vec<Change>,
}

impl Connections {
    /// Returns what is in force otherwise than the file says.
    pub(super) fn compare(&self, owner: &DiskOwner, file: &FileDisk) -> Vec<Change> {
        self.plan(owner, file).changes
    }

    /// Makes the disk as the file says. Returns what was in force otherwise.
    pub(super) fn reload(&mut self, owner: &mut DiskOwner, file: &FileDisk) -> Vec<Change> {
        let plan = self.plan(owner, file);
        apply(owner, file, &plan);
        self.label.auto = plan.auto.unwrap_or(self.label.auto);
        if let Some(polling) = plan.polling {
            self.set_polling(owner, polling);
        }
        for change in &plan.changes {
            tracing::info!(disk = self.label.name, "the file changes {change}");
        }
        plan.changes
    }

    fn plan(&self, owner: &DiskOwner, file: &FileDisk) -> Plan {
        let mut plan = Plan::default();
        self.plan_settings(owner, &file.disk, &mut plan);
        for group in &file.groups {
            self.plan_weights(owner, group, &mut plan);
            self.plan_limits(owner, group, &mut plan);
        }
        plan
    }

    fn plan_settings(&self, owner: &DiskOwner, file: &DiskConfig, plan: &mut Plan) {
        let elevator = owner.engine().elevator();
        let mut note = |what: &str, from: Value, to: Value| {
            let place = format!("disk {:?}", self.label.name);
            plan.changes.push(Change { place, what: what.to_owned(), from, to });
        };
        let (current, wanted) = (elevator.scheduler().kind(), file.scheduler.kind());
        if current != wanted {
            note("scheduler", current.name().into(), wanted.name().into());
            plan.scheduler = Some(wanted);
        }
        let (old, new) = (self.label.auto, file.scheduler.is_auto());
        if old != new {
            note("scheduler_auto", old.into(), new.into());
            plan.auto = Some(new);
        }
        let has_hierarchy = wanted.check_hierarchy().is_ok();
        let new = has_hierarchy.then(|| file.keys.hierarchy.unwrap_or_default());
        // Another scheduler would have the one that was set last.
        let old = elevator.hierarchy();
        if let Some(new) = new.filter(|&new| old != Some(new)) {
            if plan.scheduler.is_none() || file.keys.hierarchy.is_some() {
                note("hierarchy", old.map(Hierarchy::name).into(), new.name().into());
            }
            plan.hierarchy = Some(new);
        }
        let busy = owner.backend().capabilities().depth;
        let (old, new) =
            (Depth::in_force(elevator), Depth::configured(wanted, file.keys.depth, busy));
        if old != new {
            note("depth", old.into(), new.into());
            plan.bound = Some(depth::bound(wanted, file.keys.depth, busy));
        }
        let (old, new) = (self.label.poll, file.keys.polling);
        if old != new {
            plan.polling = Some(new);
            note_polling(old, new, &mut note);
        }
        let (old, new) = (tunables(elevator), tunables(&as_in_file(elevator, file)));
        for (name, to) in &new {
            let from = old.get(name);
            // What the file does not set comes with a new scheduler.
            let is_shown = plan.scheduler.is_none() || is_written(file, name);
            let is_shown = is_shown && *name != depth::TUNABLE;
            if from != Some(to) && is_shown && !has_finer(wanted.tunables(), name) {
                let value = |value: i64| value_of(wanted, name, value);
                note(name, from.copied().map(value).into(), value(*to));
            }
        }
        plan.resets_tunables = old != new || elevator.tunables_set() != set_in_file(file);
    }

    fn plan_weights(&self, owner: &DiskOwner, file: &FileGroup, plan: &mut Plan) {
        let tenant = self.tenants.iter().find(|tenant| tenant.path == file.path);
        let id = tenant.expect("the groups are those of the disk").group;
        let group = &owner.engine().elevator().groups()[id];
        let disk = &self.label.name;
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

    fn plan_limits(&self, owner: &DiskOwner, file: &FileGroup, plan: &mut Plan) {
        let tenant = self.tenants.iter().find(|tenant| tenant.path == file.path);
        let id = tenant.expect("the groups are those of the disk").group;
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

/// Notes the name if that is another one, and the tunables of a new `hybrid` that are others than
/// they were, or than they are unless they are set.
fn note_polling(old: Polling, new: Polling, note: &mut impl FnMut(&str, Value, Value)) {
    let keys = |polling| DiskKeys { polling, ..DiskKeys::default() };
    let (old, new) = (keys(old), keys(new));
    for key in DiskKeys::part("polling") {
        let (from, to) = ((key.show)(&old), (key.show)(&new));
        let is_in_force = key.name == "poll" || new.polling.poll == PollMode::Hybrid;
        if is_in_force && from != to {
            note(key.name, from, to);
        }
    }
}

/// The tunables that the file sets, with that of the depth.
fn set_in_file(file: &DiskConfig) -> Vec<(String, i64)> {
    depth::with_tunable(file.scheduler.kind(), file.keys.depth, &file.tunables())
}

/// A value of a tunable, as a word where it has words.
fn value_of(scheduler: SchedulerKind, name: &str, value: i64) -> Value {
    match scheduler.tunable(name) {
        Ok(info) if !info.words.is_empty() => info.shown(value).into(),
        _ => value.into(),
    }
}

/// All tunables of the scheduler and their values.
fn tunables(elevator: &Elevator<Scheduler>) -> BTreeMap<&'static str, i64> {
    let value = |name| elevator.tunable(name).expect("a scheduler has its own tunables");
    elevator.scheduler().tunables().iter().map(|info| (info.name, value(info.name))).collect()
}

/// An elevator of its own with the scheduler and the tunables that the file wants for the disk.
fn as_in_file(elevator: &Elevator<Scheduler>, file: &DiskConfig) -> Elevator<Scheduler> {
    let scheduler = Scheduler::new(file.scheduler.kind(), Sink::default());
    let (device, now) = (*elevator.device(), Instant::START);
    let mut wanted = match elevator.medium() {
        Some(medium) => Elevator::fitted(scheduler, device, medium, now),
        None => Elevator::new(scheduler, device, now),
    };
    wanted.reset_tunables(now, &set_in_file(file));
    wanted
}

/// Returns whether the file sets the tunable, by either name.
fn is_written(file: &DiskConfig, name: &str) -> bool {
    let coarse = name.strip_suffix("_us").unwrap_or(name);
    file.tunables().iter().any(|(written, _)| written == name || written == coarse)
}

fn apply(owner: &mut DiskOwner, file: &FileDisk, plan: &Plan) {
    owner.administer(|elevator, now| {
        // First, for a new scheduler to get these at once.
        if plan.resets_tunables {
            elevator.reset_tunables(now, &set_in_file(&file.disk));
        }
        if let Some(kind) = plan.scheduler {
            switch(elevator, now, kind);
        }
        if let Some(hierarchy) = plan.hierarchy {
            elevator.set_hierarchy(now, hierarchy).expect("it was checked");
        }
        if let Some(bound) = plan.bound {
            elevator.set_depth(bound);
        }
        for &(group, weights, on_device) in &plan.weights {
            elevator.set_weight(now, group, weights);
            elevator.set_device_weights(now, group, on_device);
        }
        for &(group, limits) in &plan.limits {
            elevator.set_group_limits(now, group, limits);
        }
    });
}
