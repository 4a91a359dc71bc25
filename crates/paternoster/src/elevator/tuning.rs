//! The tunables of the elevator's scheduler: what fits the device, what was set by name, and how
//! both outlast the scheduler.
//!
//! ```text
//!   Linux's defaults  ──▶  what fits the medium  ──▶  what was set by name      the last one holds
//! ```

use super::Elevator;
use crate::any::SchedulerKind;
use crate::fitted::{Medium, fitted_tunables};
use crate::scheduler::{Device, Scheduler};
use crate::time::Instant;
use crate::tunable::TunableError;

/// What a scheduler's tunables are to be where they are not Linux's defaults.
#[derive(Debug, Default)]
pub(super) struct Tuning {
    /// What they are fitted to, if to anything.
    medium: Option<Medium>,
    /// What was set by name, each once, in the order in which it was last set: two names may be of
    /// one tunable. Names that only an earlier scheduler has stay, as it may come back.
    set: Vec<(String, i64)>,
}

impl Tuning {
    fn remember(&mut self, name: &str, value: i64) {
        self.set.retain(|(known, _)| known != name);
        self.set.push((name.to_owned(), value));
    }
}

impl<S: Scheduler> Elevator<S> {
    /// An elevator without requests, with the root group alone, whose scheduler has the
    /// [`fitted_tunables`] of the medium; so does each that it is [switched](Self::switch) to. With
    /// [`Elevator::new`] schedulers have Linux's defaults.
    pub fn fitted(scheduler: S, device: Device, medium: Medium) -> Self {
        let mut elevator = Self::new(scheduler, device);
        elevator.tuning.medium = Some(medium);
        elevator.tune(Instant::START);
        elevator
    }

    /// The value of a tunable of the scheduler, in its own unit.
    pub fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.scheduler.tunable(name)
    }

    /// Stores and returns `value` as Linux clamps it. It is remembered, and holds of each scheduler
    /// that the elevator is [switched](Self::switch) to and that takes it.
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
        let set = self.ask(now, |scheduler, cx| scheduler.set_tunable(cx, name, value))?;
        self.tuning.remember(name, set);
        self.admission.limits_changed();
        Ok(set)
    }

    /// Sets what fits the medium, and over it what was set by name and the scheduler takes.
    pub(super) fn tune(&mut self, now: Instant) {
        // A scheduler that is none of ours has nothing fitted.
        let kind = self.scheduler.name().parse::<SchedulerKind>().ok();
        let fitted = match (kind, self.tuning.medium) {
            (Some(kind), Some(medium)) => fitted_tunables(kind, medium),
            _ => &[],
        };
        let table = self.scheduler.tunables();
        let taken = |name: &str, value| {
            table.iter().any(|info| info.name == name && info.accepts(value).is_ok())
        };
        let set = self.tuning.set.iter().filter(|(name, value)| taken(name, *value));
        let mut wanted: Vec<(String, i64)> =
            fitted.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        wanted.extend(set.cloned());
        for (name, value) in wanted {
            let set = self.ask(now, |scheduler, cx| scheduler.set_tunable(cx, &name, value));
            set.expect("the scheduler's own table has the name");
        }
    }
}
