//! What is set of the disk, and changes of it while clients are served: those of a request, and the
//! whole of what the file says when it is read again.

use std::collections::BTreeMap;

use paternoster::scheduler::Scheduler as _;
use paternoster::{Administration, Elevator, Instant, SchedulerKind};
use serde_json::Value;

use super::journal::note_changes;
use super::{Connections, DiskOwner, Scheduler};
use crate::announce::has_finer;
use crate::config::DiskConfig;
use crate::ctl::{Change, SettingError, Settings, SettingsInForce};
use crate::depth::{self, Depth};
use crate::recording::Sink;

impl Connections {
    /// Returns what is in force.
    pub(super) fn settings(&self, owner: &DiskOwner) -> SettingsInForce {
        let config = &self.label.config;
        SettingsInForce {
            disk: config.name.clone(),
            settings: config.in_force(owner.depth()).into_iter().collect(),
            tunables: shown_tunables(owner.engine().elevator()),
            at_start: config.at_start().filter(|(_, value)| !value.is_null()).collect(),
        }
    }

    /// Does all that is asked for and returns what is in force then, or does nothing.
    pub(super) fn change_settings(
        &mut self,
        owner: &mut DiskOwner,
        set: &Settings,
    ) -> Result<SettingsInForce, SettingError> {
        if set.0.is_empty() {
            return Err(SettingError::Nothing);
        }
        let rotational = owner.engine().elevator().device().rotational;
        let wanted = self.label.config.with(set, rotational).map_err(SettingError::Refused)?;
        let changes = self.changed_settings(owner, &wanted);
        self.apply_settings(owner, &wanted);
        note_changes(owner, &changes);
        let names = set.0.iter().map(|(name, value)| format!("{name}={value}"));
        let names: Vec<_> = names.collect();
        let disk = &self.label.config.name;
        tracing::info!(disk, set = names.join(" "), "settings of a disk have changed");
        Ok(self.settings(owner))
    }

    /// Returns what is in force otherwise than in `wanted`.
    pub(super) fn changed_settings(&self, owner: &DiskOwner, wanted: &DiskConfig) -> Vec<Change> {
        let place = format!("disk {:?}", wanted.name);
        let mut changes = Vec::new();
        let mut note = |what: &str, from: Value, to: Value| {
            if from != to {
                let (place, what) = (place.clone(), what.to_owned());
                changes.push(Change { place, what, from, to });
            }
        };
        let config = &self.label.config;
        let kind = wanted.scheduler.kind();
        let switches = config.scheduler.kind() != kind;
        let old = config.of_hybrid().chain(config.in_force(owner.depth()));
        let old: BTreeMap<_, _> = old.collect();
        for (name, to) in wanted.in_force(owner.depth()) {
            // What the file does not set comes with a new scheduler.
            if name != "hierarchy" || !switches || wanted.keys.hierarchy.is_some() {
                note(name, old.get(name).cloned().unwrap_or_default(), to);
            }
        }
        let elevator = owner.engine().elevator();
        let (old, new) = (tunables(elevator), tunables(&as_wanted(elevator, wanted)));
        for (name, to) in new {
            let is_shown = !switches || is_written(wanted, name);
            let is_shown = is_shown && name != depth::TUNABLE;
            if is_shown && !has_finer(kind.tunables(), name) {
                let value = |value: i64| value_of(kind, name, value);
                note(name, old.get(name).copied().map(value).into(), value(to));
            }
        }
        changes
    }

    /// Applies all keys of `wanted` that may change.
    pub(super) fn apply_settings(&mut self, owner: &mut DiskOwner, wanted: &DiskConfig) {
        let kind = wanted.scheduler.kind();
        let set = wanted.tunables_to_set();
        owner.administer(|elevator, now| {
            let before = elevator.tunables_set().to_vec();
            let stays = |name: &String| set.iter().any(|(other, _)| other == name);
            // First, for a new scheduler to get these at once.
            let some_go = !before.iter().all(|(name, _)| stays(name));
            if some_go {
                elevator.reset_tunables(now, &set);
            }
            if elevator.scheduler().kind() != kind {
                switch(elevator, now, kind);
            }
            // No others: what a scheduler makes of a tunable may depend on when it is set.
            let new = if some_go { Vec::new() } else { not_set_yet(&before, &set) };
            for (name, value) in new {
                elevator.set_tunable(now, name, *value).expect("it was checked");
            }
            if elevator.hierarchy().is_some_and(|in_force| in_force != wanted.hierarchy()) {
                elevator.set_hierarchy(now, wanted.hierarchy()).expect("it has one");
            }
        });
        if self.label.config.keys.polling != wanted.keys.polling {
            owner.set_polling(wanted.keys.polling.policy());
        }
        self.label.config.take_live(wanted);
        self.follow_depth(owner);
    }

    /// Puts the depth in force that follows from the settings and the volumes, which have changed.
    pub(super) fn follow_depth(&self, owner: &mut DiskOwner) {
        let config = &self.label.config;
        let depth = Depth::in_force(config.scheduler.kind(), config.keys.depth, owner.depth());
        owner.administer(|elevator, _| {
            if elevator.device().queue_depth != depth.bound() {
                elevator.set_depth(depth.bound());
            }
        });
    }
}

/// Returns what of `set` has not been set before in this order: of two names of one tunable the one
/// that is set last counts.
fn not_set_yet<'s, T: PartialEq>(before: &[T], set: &'s [T]) -> Vec<&'s T> {
    let mut left = before;
    let mut new = Vec::new();
    for one in set {
        match left.iter().position(|other| other == one) {
            Some(at) => left = &left[at + 1..],
            None => new.push(one),
        }
    }
    new
}

/// Switches to another scheduler, which goes on with the accounts and the recording of the one
/// before.
fn switch(elevator: &mut Administration<'_, Scheduler>, now: Instant, kind: SchedulerKind) {
    let sink = std::mem::take(elevator.trace());
    elevator.switch(now, Scheduler::new(kind, sink));
}

/// All tunables of the scheduler and their values.
fn tunables(elevator: &Elevator<Scheduler>) -> BTreeMap<&'static str, i64> {
    let value = |name| elevator.tunable(name).expect("a scheduler has its own tunables");
    elevator.scheduler().tunables().iter().map(|info| (info.name, value(info.name))).collect()
}

/// Those without the one that the disk's depth sets.
pub(super) fn shown_tunables(elevator: &Elevator<Scheduler>) -> BTreeMap<String, i64> {
    let shown = tunables(elevator).into_iter().filter(|(name, _)| *name != depth::TUNABLE);
    shown.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A value of a tunable, as a word where it has words.
fn value_of(scheduler: SchedulerKind, name: &str, value: i64) -> Value {
    match scheduler.tunable(name) {
        Ok(info) if !info.words.is_empty() => info.shown(value).into(),
        _ => value.into(),
    }
}

/// An elevator of its own with the scheduler and the tunables that are wanted for the disk.
fn as_wanted(elevator: &Elevator<Scheduler>, wanted: &DiskConfig) -> Elevator<Scheduler> {
    let scheduler = Scheduler::new(wanted.scheduler.kind(), Sink::default());
    let (device, now) = (*elevator.device(), Instant::START);
    let mut made = match elevator.medium() {
        Some(medium) => Elevator::fitted(scheduler, device, medium, now),
        None => Elevator::new(scheduler, device, now),
    };
    made.reset_tunables(now, &wanted.tunables_to_set());
    made
}

/// Returns whether the tunable is set, by either name.
fn is_written(wanted: &DiskConfig, name: &str) -> bool {
    let coarse = name.strip_suffix("_us").unwrap_or(name);
    wanted.tunables().iter().any(|(written, _)| written == name || written == coarse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_before_in_its_order_is_not_set_again() {
        let new = |before: &[u8], set: &[u8]| -> Vec<u8> {
            not_set_yet(before, set).into_iter().copied().collect()
        };
        assert_eq!(new(&[1, 2, 3], &[1, 2, 3]), [0; 0]);
        assert_eq!(new(&[1, 2], &[1, 4, 2]), [4], "in between");
        assert_eq!(new(&[1, 2], &[2, 1]), [1], "set again, behind its other name");
        assert_eq!(new(&[], &[1, 2]), [1, 2]);
    }
}
