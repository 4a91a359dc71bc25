//! The tunables of the elevator's scheduler: those that fit the device and those that were set by
//! name; and its hierarchy. All are kept when the scheduler is switched.
//!
//! ```text
//!   Linux's defaults  ──▶  what fits the medium  ──▶  what was set by name      the last one holds
//! ```

use super::Elevator;
use crate::any::SchedulerKind;
use crate::device::Device;
use crate::fitted::{Medium, fitted_tunables};
use crate::group::GroupEvent;
use crate::hierarchy::{Hierarchy, NoHierarchy};
use crate::scheduler::Scheduler;
use crate::time::Instant;
use crate::tunable::TunableError;

/// What is to differ from Linux's defaults, whatever the scheduler.
#[derive(Debug, Default)]
pub(super) struct Tuning {
    /// The medium that they fit; none leaves the defaults.
    medium: Option<Medium>,
    /// What the scheduler had when it was attached: its defaults, some of which depend on the
    /// device.
    attached: Vec<(&'static str, i64)>,
    /// The values set by name, each once, in the order in which they were last set, as two names
    /// may mean one tunable. Names that only an earlier scheduler has stay, as it may come back.
    set: Vec<(String, i64)>,
    /// The hierarchy that was set. It stays under schedulers that have none to choose, too.
    hierarchy: Option<Hierarchy>,
}

impl Tuning {
    fn remember(&mut self, name: &str, value: i64) {
        self.set.retain(|(known, _)| known != name);
        self.set.push((name.to_owned(), value));
    }
}

impl<S: Scheduler> Elevator<S> {
    /// Makes an elevator without requests, with the root group alone. Its scheduler gets the
    /// [`fitted_tunables`] of the medium, and so does each that it is [switched](Self::switch) to.
    /// With [`Elevator::new`] schedulers have Linux's defaults.
    ///
    /// `device` is what decisions depend on; `medium` chooses tunables, and does nothing else.
    /// They belong together: [`Device::disk`] and [`Medium::Rotational`], or
    /// [`Device::solid_state`] and one of the other two.
    pub fn fitted(scheduler: S, device: Device, medium: Medium, now: Instant) -> Self {
        let mut elevator = Self::new(scheduler, device, now);
        elevator.tuning.medium = Some(medium);
        elevator.tune();
        elevator
    }

    /// The value of a tunable of the scheduler, in its own unit.
    pub fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.scheduler.tunable(name)
    }

    /// Stores and returns `value` as Linux clamps it. The elevator remembers it for each scheduler
    /// that it is [switched](Self::switch) to and that takes it.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event.
    pub fn set_tunable(
        &mut self,
        now: Instant,
        name: &str,
        value: i64,
    ) -> Result<i64, TunableError> {
        self.advance(now);
        let value = [(name.to_owned(), value)];
        self.scheduler.set_tunables(&mut self.cx, &value)?;
        let set = self.scheduler.tunable(name)?;
        self.tuning.remember(name, set);
        self.admission.limits_changed();
        Ok(set)
    }

    /// Has the scheduler learn the depth from there on, as another of the device had learned it;
    /// one that learns none is as it was.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event.
    pub fn begin_at_depth(&mut self, now: Instant, depth: u32) {
        self.advance(now);
        self.scheduler.begin_at_depth(&mut self.cx, depth);
    }

    /// Forgets the tunables that were set by name, and remembers these in their place as if each
    /// were set in this order. The scheduler has then the defaults that it has on the device, over
    /// them what fits the medium, and over that those of these that it takes.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event.
    pub fn reset_tunables(&mut self, now: Instant, set: &[(String, i64)]) {
        self.advance(now);
        self.tuning.set.clear();
        for (name, value) in set {
            self.tuning.remember(name, *value);
        }
        let attached = self.tuning.attached.iter();
        let attached = attached.map(|&(name, value)| (name.to_owned(), value));
        let values: Vec<_> = attached.chain(self.wanted_tunables()).collect();
        self.set_known(&values);
        self.admission.limits_changed();
    }

    /// The tunables that were set by name, in the order in which they were last set, also those
    /// that the scheduler does not take.
    pub fn tunables_set(&self) -> &[(String, i64)] {
        &self.tuning.set
    }

    /// In what way the groups of the scheduler share the device, if that can be chosen.
    pub fn hierarchy(&self) -> Option<Hierarchy> {
        self.scheduler.hierarchy().ok()
    }

    /// Has the groups of the scheduler share the device in that way from now on. Requests stay with
    /// the scheduler; what they are served by begins afresh. The elevator remembers it for each
    /// scheduler that it is [switched](Self::switch) to and that takes it.
    ///
    /// # Panics
    ///
    /// Where `now` is before the last event.
    pub fn set_hierarchy(&mut self, now: Instant, to: Hierarchy) -> Result<(), NoHierarchy> {
        self.advance(now);
        self.scheduler.hierarchy()?;
        self.notify_group(self.cx.groups.root(), GroupEvent::Hierarchy(to));
        self.tuning.hierarchy = Some(to);
        Ok(())
    }

    /// The medium to which tunables are fitted; none with [`Elevator::new`].
    pub fn medium(&self) -> Option<Medium> {
        self.tuning.medium
    }

    /// Attaches the scheduler, and notes the tunables that it then has.
    pub(super) fn attach(&mut self) {
        self.scheduler.attach(&mut self.cx);
        let value = |name| self.scheduler.tunable(name).expect("its own table has the name");
        let table = self.scheduler.tunables().iter();
        self.tuning.attached = table.map(|info| (info.name, value(info.name))).collect();
    }

    /// Sets the tunables that fit the medium, then those set by name that the scheduler takes, and
    /// the hierarchy.
    pub(super) fn tune(&mut self) {
        let wanted = self.wanted_tunables();
        self.set_known(&wanted);
        if let Some(hierarchy) = self.tuning.hierarchy
            && self.scheduler.hierarchy().is_ok()
        {
            self.notify_group(self.cx.groups.root(), GroupEvent::Hierarchy(hierarchy));
        }
    }

    /// Sets tunables that the scheduler has.
    fn set_known(&mut self, values: &[(String, i64)]) {
        let set = self.scheduler.set_tunables(&mut self.cx, values);
        set.expect("it has these tunables");
    }

    /// What differs from the defaults, in the order in which it is to be set: the tunables that fit
    /// the medium, and those set by name that the scheduler takes.
    fn wanted_tunables(&self) -> Vec<(String, i64)> {
        // Nothing is fitted to a scheduler of another crate.
        let kind = self.scheduler.name().parse::<SchedulerKind>().ok();
        let fitted = match (kind, self.tuning.medium) {
            (Some(kind), Some(medium)) => fitted_tunables(kind, medium),
            _ => &[],
        };
        let table = self.scheduler.tunables();
        let taken = |name: &str, value| {
            table.iter().any(|info| info.name == name && info.accepts(value).is_ok())
        };
        let fitted = fitted.iter().map(|&(name, value)| (name.to_owned(), value));
        let wanted = fitted.chain(self.tuning.set.iter().cloned());
        wanted.filter(|(name, value)| taken(name, *value)).collect()
    }
}
