//! What is set of the disk, and changes of it while clients are served.

use std::collections::BTreeMap;

use paternoster::scheduler::Scheduler as _;
use paternoster::{Administration, Instant, SchedulerKind};

use super::{Connections, DiskOwner, Scheduler};
use crate::config::{DiskKeys, PollMode, Polling, of_hybrid};
use crate::ctl::{CheckedSettings, NewSettings, SettingError, SettingsInForce};
use crate::depth::{self, Depth};

impl Connections {
    /// Returns what is in force.
    pub(super) fn settings(&self, owner: &DiskOwner) -> SettingsInForce {
        let elevator = owner.engine().elevator();
        let scheduler = elevator.scheduler();
        let value = |name| elevator.tunable(name).expect("a scheduler has its own tunables");
        let tunables = scheduler.tunables().iter();
        SettingsInForce {
            disk: self.label.name.clone(),
            scheduler: scheduler.name().to_owned(),
            scheduler_auto: self.label.auto,
            hierarchy: elevator.hierarchy().map(|hierarchy| hierarchy.name().to_owned()),
            depth: elevator.device().queue_depth,
            depth_learned: Depth::in_force(elevator) == Depth::Learned,
            plug: Some(self.label.plug),
            poll: self.label.poll.poll.name().to_owned(),
            hybrid: hybrid_in_force(self.label.poll),
            tunables: tunables
                .filter(|info| info.name != depth::TUNABLE)
                .map(|info| (info.name.to_owned(), value(info.name)))
                .collect(),
        }
    }

    /// Does all that is asked for and returns what is in force then, or does nothing.
    pub(super) fn change_settings(
        &mut self,
        owner: &mut DiskOwner,
        new: &NewSettings,
    ) -> Result<SettingsInForce, SettingError> {
        let rotational = owner.engine().elevator().device().rotational;
        let current = owner.engine().elevator().scheduler().kind();
        let checked = new.check(current, rotational, self.label.poll)?;
        apply(owner, &checked);
        if let Some(polling) = checked.polling {
            self.set_polling(owner, polling);
        }
        self.label.auto = checked.auto.unwrap_or(self.label.auto);
        let names = new.0.iter().map(|(name, value)| format!("{name}={value}"));
        let names: Vec<_> = names.collect();
        tracing::info!(
            disk = self.label.name,
            set = names.join(" "),
            "settings of a disk have changed"
        );
        Ok(self.settings(owner))
    }

    pub(super) fn set_polling(&mut self, owner: &mut DiskOwner, polling: Polling) {
        owner.set_polling(polling.policy());
        self.label.poll = polling;
    }
}

/// The tunables of `hybrid`, if it is that.
fn hybrid_in_force(polling: Polling) -> BTreeMap<String, i64> {
    let keys = DiskKeys { polling, ..DiskKeys::default() };
    let of_hybrid = of_hybrid().filter(|_| polling.poll == PollMode::Hybrid);
    let values =
        of_hybrid.filter_map(|key| Some((key.name.to_owned(), (key.show)(&keys).as_i64()?)));
    values.collect()
}

/// Switches to another scheduler, which goes on with the accounts and the recording of the one
/// before.
pub(super) fn switch(
    elevator: &mut Administration<'_, Scheduler>,
    now: Instant,
    kind: SchedulerKind,
) {
    let sink = std::mem::take(elevator.trace());
    elevator.switch(now, Scheduler::new(kind, sink));
}

fn apply(owner: &mut DiskOwner, checked: &CheckedSettings) {
    let depth = depth_to_set(owner, checked);
    owner.administer(|elevator, now| {
        if let Some(kind) = checked.scheduler {
            switch(elevator, now, kind);
        }
        if let Some(hierarchy) = checked.hierarchy {
            elevator.set_hierarchy(now, hierarchy).expect("it was checked");
        }
        if let Some((bound, fixed)) = depth {
            elevator.set_depth(bound);
            if elevator.tunable(depth::TUNABLE).is_ok() {
                let fixed = fixed.map_or(0, i64::from);
                elevator.set_tunable(now, depth::TUNABLE, fixed).expect("any depth is allowed");
            }
        }
        for &(name, value) in &checked.tunables {
            elevator.set_tunable(now, name, value).expect("it was checked");
        }
    });
}

/// Returns the elevator's bound and the depth that is fixed, if one of them changes. Another
/// scheduler gets the depth that was set before it; one that is as the back end says was not set.
fn depth_to_set(owner: &DiskOwner, checked: &CheckedSettings) -> Option<(u32, Option<u32>)> {
    let elevator = owner.engine().elevator();
    let busy = owner.backend().capabilities().depth;
    let before = elevator.scheduler().kind();
    let in_force = Depth::in_force(elevator);
    let is_default = in_force == Depth::configured(before, None, busy);
    let was_set = in_force.fixed().filter(|_| !is_default);
    let kind = checked.scheduler.unwrap_or(before);
    let fixed = checked.depth.map_or(was_set, Depth::fixed);
    let changes = checked.depth.is_some() || checked.scheduler.is_some();
    changes.then(|| (depth::bound(kind, fixed, busy), fixed))
}
