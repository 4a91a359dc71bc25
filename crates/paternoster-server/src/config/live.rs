//! What is set of a disk while clients are served: what is in force of its keys, and a change of
//! some of them.
//!
//! ```text
//!   ctl set     with       keys that a request's body names; the rest stays ─┐
//!                                                                            ├─▶ the disk's
//!   ctl reload  take_live  keys that may change, as the file has them ───────┘   configuration
//! ```

use std::collections::BTreeMap;

use paternoster::{Hierarchy, SchedulerKind};
use paternoster_disk::BusyDepth;
use serde_json::Value;

use super::disk::{DiskConfig, check_live, choice};
use super::error::{Place, Problem};
use super::keys::written::{Form, Table, Written};
use super::keys::{At, DiskKeys, Key, Keys as _, Object, SchedulerWord};
use super::mistakes::Mistakes;
use super::polling::{PollMode, of_hybrid};
use crate::ctl::Settings;
use crate::depth::{self, Depth};

const SCHEDULER: &str = "scheduler";
const HIERARCHY: &str = "hierarchy";
const TUNABLES: &str = "tunables";
/// The file of the patch set that the hierarchies `flat` and `entities` are of.
const USE_HIERARCHY: &str = "use_hierarchy";
/// Linux's file for whether completions are polled for, which `ctl get` answers.
const IO_POLL: &str = "io_poll";

impl DiskConfig {
    /// The keys that may change, in the order of the table, with the values that are in force:
    /// those that the scheduler and the way to wait have, but for tunables. `scheduler` is the one
    /// in force; `scheduler_auto` behind it says whether `auto` has chosen it. `busy` is how many
    /// requests keep the back end busy.
    pub(crate) fn in_force(&self, busy: BusyDepth) -> Vec<(&'static str, Value)> {
        let kind = self.scheduler.kind();
        let keys = DiskKeys {
            scheduler: SchedulerWord::Named(kind),
            hierarchy: Some(self.hierarchy()),
            depth: Some(Depth::in_force(kind, self.keys.depth, busy)),
            ..self.keys.clone()
        };
        let live = settable(kind, keys.polling.poll).map(|key| (key.name, (key.show)(&keys)));
        let mut values: Vec<_> = live.collect();
        let behind = values.iter().position(|(name, _)| *name == SCHEDULER).map_or(0, |at| at + 1);
        values.insert(behind, ("scheduler_auto", self.scheduler.is_auto().into()));
        values
    }

    /// The keys that change with a restart, and their values; null is none.
    pub(crate) fn at_start(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let kind = self.backend.kind();
        let keys = DiskKeys::KEYS.iter().filter(|key| !key.live);
        keys.map(move |key| match key.name {
            "backend" => (key.name, kind.into()),
            name => (name, (key.show)(&self.keys)),
        })
    }

    /// The tunables of `hybrid`, also of a disk that waits otherwise: then these are the defaults.
    pub(crate) fn of_hybrid(&self) -> impl Iterator<Item = (&'static str, Value)> {
        of_hybrid().map(|key| (key.name, (key.show)(&self.keys)))
    }

    /// In what way groups share the disk under a scheduler that has such ways.
    pub(crate) fn hierarchy(&self) -> Hierarchy {
        self.keys.hierarchy.unwrap_or_default()
    }

    /// The tunables that are set, with that of the depth.
    pub(crate) fn tunables_to_set(&self) -> Vec<(String, i64)> {
        depth::with_tunable(self.scheduler.kind(), self.keys.depth, &self.tunables())
    }

    /// Takes all keys that may change from `file`.
    pub(crate) fn take_live(&mut self, file: &Self) {
        for key in DiskKeys::KEYS.iter().filter(|key| key.live) {
            (key.take)(&mut self.keys, &file.keys);
        }
        self.scheduler = file.scheduler;
    }

    /// The same disk with these keys and tunables set, or else all that is wrong with them.
    /// Whether it is rotational says what `auto` takes.
    pub(crate) fn with(&self, set: &Settings, rotational: bool) -> Result<Self, String> {
        let mut mistakes = Mistakes::default();
        let mut draft = Object::new(At::from(self.name.clone()));
        draft.keys = DiskKeys { tunables: Vec::new(), ..self.keys.clone() };
        let mut tunables = Table::new();
        let mut times = BTreeMap::<&str, u32>::new();
        for (name, value) in &set.0 {
            let times = times.entry(hierarchy_or(name)).or_default();
            *times += 1;
            if *times > 1 {
                if *times == 2 {
                    mistakes.add(&Place::Body, Problem::SetTwice { name: name.clone() });
                }
                continue;
            }
            let written = Written::json(value);
            match DiskKeys::key(name).filter(|key| key.name != TUNABLES) {
                Some(key) if key.live => {
                    draft.set(key.name, &written, &mut mistakes);
                }
                Some(key) => {
                    mistakes.add(&Place::Body, Problem::NeedsRestart { key: key.name });
                }
                None => match (name.as_str(), use_hierarchy(value)) {
                    (IO_POLL, _) => mistakes.add(&Place::Body, Problem::IoPoll),
                    (USE_HIERARCHY, Some(hierarchy)) => {
                        let hierarchy = Written::json(&hierarchy.name().into());
                        draft.set(HIERARCHY, &hierarchy, &mut mistakes);
                    }
                    (USE_HIERARCHY, None) => {
                        let (key, found) = (USE_HIERARCHY.to_owned(), value.to_string());
                        let allowed = "0 (flat) or 1 (entities)".to_owned();
                        mistakes.add(&Place::Body, Problem::NotAllowed { key, found, allowed });
                    }
                    _ => tunables.push((At { value: name.clone(), place: Place::Body }, written)),
                },
            }
        }
        // `auto` has its say where it is named.
        let scheduler = if draft.states.scheduler.is_missing() {
            Some(self.scheduler)
        } else {
            choice(&draft, Some(rotational))
        };
        if let Some(scheduler) = scheduler {
            let (kind, poll) = (scheduler.kind(), draft.keys.polling.poll);
            let is_known =
                |(name, _): &(At<String>, _)| depth::other_tunable(kind, &name.value).is_ok();
            let unknown: Vec<_> = tunables.extract_if(.., |one| !is_known(one)).collect();
            if !unknown.is_empty() {
                let quoted: Vec<_> =
                    unknown.iter().map(|(name, _)| format!("{:?}", name.value)).collect();
                let (unknown, known) = (quoted.join(", "), names(kind, poll));
                let problem = Problem::NotSettable { names: unknown, scheduler: kind, known };
                mistakes.add(&Place::Body, scheduler.explain(problem));
            }
            let (form, place) = (Form::Table(tunables), Place::Body);
            let tunables = Written { form, place, shown: String::new() };
            draft.set(TUNABLES, &tunables, &mut mistakes);
        }
        check_live(&draft, scheduler, &mut mistakes);
        mistakes.problems()?;
        let mut disk = Self { scheduler: scheduler.unwrap_or(self.scheduler), ..self.clone() };
        let set = std::mem::take(&mut draft.keys.tunables);
        let stays = |name: &At<String>| set.iter().all(|(other, _)| other != name);
        disk.keys.tunables.retain(|(name, _)| stays(name));
        disk.keys.tunables.extend(set);
        let tunables = disk.keys.tunables;
        let polling = draft.keys.polling.in_force();
        disk.keys = DiskKeys { tunables, polling, ..draft.keys };
        Ok(disk)
    }
}

/// The keys of a disk that may be set under this scheduler and in this way to wait. Tunables are
/// set by their own names.
fn settable(
    scheduler: SchedulerKind,
    poll: PollMode,
) -> impl Iterator<Item = &'static Key<DiskKeys>> {
    let has_hierarchy = scheduler.check_hierarchy().is_ok();
    DiskKeys::KEYS.iter().filter(move |key| match key.name {
        HIERARCHY => has_hierarchy,
        TUNABLES => false,
        name => key.live && (poll == PollMode::Hybrid || of_hybrid().all(|of| of.name != name)),
    })
}

/// The names of all that may be set there.
fn names(scheduler: SchedulerKind, poll: PollMode) -> String {
    let keys = settable(scheduler, poll).map(|key| key.name);
    let has_hierarchy = scheduler.check_hierarchy().is_ok();
    let tunables = depth::other_tunables(scheduler).map(|info| info.name);
    let names = keys.chain(has_hierarchy.then_some(USE_HIERARCHY)).chain(tunables);
    names.collect::<Vec<_>>().join(", ")
}

/// The name of what is set: that of sysfs for a hierarchy sets the same.
fn hierarchy_or(name: &str) -> &str {
    if name == USE_HIERARCHY { HIERARCHY } else { name }
}

fn use_hierarchy(value: &Value) -> Option<Hierarchy> {
    match value.as_u64()? {
        0 => Some(Hierarchy::Flat),
        1 => Some(Hierarchy::Entities),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BackendConfig, Polling, SchedulerChoice};

    fn disk(scheduler: impl Into<SchedulerChoice>) -> DiskConfig {
        let (keys, backend) = (DiskKeys::default(), BackendConfig::Memory { size: 1 });
        DiskConfig::whole("d".to_owned(), keys, backend, scheduler.into())
    }

    fn settings(json: &str) -> Settings {
        serde_json::from_str(json).expect("an object")
    }

    /// What is set of a rotational disk under cfq.
    fn set(json: &str) -> Result<DiskConfig, String> {
        disk(SchedulerKind::Cfq).with(&settings(json), true)
    }

    fn refused(json: &str) -> String {
        set(json).expect_err(json)
    }

    #[test]
    fn tunables_are_those_of_the_scheduler_that_is_to_be_in_force() {
        let json = r#"{"writes_starved": 1, "fifo_batch": 8, "depth": 16,
                       "scheduler": "mq-deadline"}"#;
        let wanted = set(json).expect("allowed");
        assert_eq!(wanted.scheduler, SchedulerKind::MqDeadline.into());
        assert_eq!(wanted.keys.depth, Some(Depth::Fixed(16)));
        let tunables = [("writes_starved", 1), ("fifo_batch", 8)];
        assert_eq!(wanted.tunables(), tunables.map(|(name, value)| (name.to_owned(), value)));
        let refused = refused(r#"{"slice_idle": 0, "scheduler": "mq-deadline"}"#);
        assert!(
            refused.starts_with("\"slice_idle\" cannot be set under mq-deadline; what can be set"),
            "{refused}"
        );
    }

    /// Those that were set before stay, and the last that was set counts.
    #[test]
    fn tunables_are_set_over_those_before_in_their_order() {
        let first = set(r#"{"slice_idle": 4, "quantum": 2}"#).expect("allowed");
        let second = first.with(&settings(r#"{"slice_idle": 5}"#), true).expect("allowed");
        let expected = [("quantum", 2), ("slice_idle", 5)];
        assert_eq!(second.tunables(), expected.map(|(name, value)| (name.to_owned(), value)));
        // A scheduler that does not have them leaves them for another.
        let other = second.with(&settings(r#"{"scheduler": "none"}"#), true).expect("allowed");
        assert_eq!(other.tunables().len(), 2);
    }

    /// Post 4: who writes to Linux's `io_poll` hears of `poll`; what `hybrid` has is in the list.
    #[test]
    fn names_of_sysfs_that_are_not_set_name_what_is() {
        assert_eq!(
            refused(r#"{"io_poll": 1}"#),
            "io_poll is set by poll: interrupt is 0; auto, classic and hybrid are 1"
        );
        assert!(refused(r#"{"plug": "off"}"#).contains("changes with a restart"));
        let hybrid = "io_poll_delay, io_poll_part, io_poll_hyb_use_min, io_poll_hyb_adjust";
        assert!(refused(r#"{"poll": "hybrid", "speed": 1}"#).contains(hybrid));
        assert!(!refused(r#"{"speed": 1}"#).contains(hybrid));
    }

    #[test]
    fn value_that_has_words_is_one_of_them_or_its_number() {
        for json in
            [r#"{"cost": "bytes", "scheduler": "wfq"}"#, r#"{"cost": 2, "scheduler": "wfq"}"#]
        {
            assert_eq!(set(json).expect("allowed").tunables(), [("cost".to_owned(), 2)]);
        }
    }

    #[test]
    fn tunables_of_hybrid_polling_are_set_with_it_or_where_it_is() {
        let polling = |json| set(json).map(|disk| disk.keys.polling);
        let hybrid =
            Polling { io_poll_hyb_use_min: 1, io_poll_hyb_adjust: 2000, ..PollMode::Hybrid.into() };
        let all =
            polling(r#"{"io_poll_hyb_use_min": 1, "poll": "hybrid", "io_poll_hyb_adjust": 2000}"#);
        assert_eq!(all, Ok(hybrid));
        assert_eq!(polling(r#"{"poll": "classic"}"#), Ok(PollMode::Classic.into()));
        // One of them, where the others stay; another mode has none of them.
        let mut before = disk(SchedulerKind::Cfq);
        before.keys.polling = hybrid;
        let one = before.with(&settings(r#"{"io_poll_delay": 7}"#), true).expect("it is hybrid");
        assert_eq!(one.keys.polling, Polling { io_poll_delay: 7, ..hybrid });
        let auto = one.with(&settings(r#"{"poll": "auto"}"#), true).expect("allowed");
        assert_eq!(auto.keys.polling, PollMode::Auto.into());
        for (json, expected) in [
            (
                r#"{"io_poll_delay": 7}"#,
                "io_poll_delay has no effect with poll = \"auto\"; it is allowed with poll = \
                 \"hybrid\"",
            ),
            (
                r#"{"poll": "hybrid", "io_poll_delay": -2}"#,
                "io_poll_delay = -2: -1 to 4294967 µs is allowed",
            ),
            (
                r#"{"poll": "no"}"#,
                "poll = \"no\": \"auto\", \"interrupt\", \"classic\" or \"hybrid\" is allowed",
            ),
        ] {
            assert_eq!(polling(json), Err(expected.to_owned()));
        }
    }

    #[test]
    fn depth_is_learned_where_wfq_is_to_be_in_force() {
        let depth = |json| set(json).map(|disk| disk.keys.depth);
        let learned = depth(r#"{"depth": "learned", "scheduler": "wfq"}"#);
        assert_eq!(learned, Ok(Some(Depth::Learned)));
        assert_eq!(
            refused(r#"{"depth": "learned"}"#),
            "depth = \"learned\": cfq learns none; 1 to 1024 requests is allowed"
        );
        assert_eq!(
            refused(r#"{"depth": 0, "scheduler": "wfq"}"#),
            "depth = 0: 1 to 1024 requests, or \"learned\" under wfq, is allowed"
        );
        // What was learned is for the next scheduler as if nothing was set.
        let learned = disk(SchedulerKind::Wfq).with(&settings(r#"{"depth": "learned"}"#), false);
        let next = learned.expect("wfq").with(&settings(r#"{"scheduler": "bfq"}"#), false);
        let in_force = next.expect("allowed").in_force(BusyDepth::any(16));
        assert!(in_force.contains(&("depth", 16.into())), "{in_force:?}");
    }

    /// As in the patch set, which refuses what is not 0 or 1.
    #[test]
    fn use_hierarchy_is_another_name_of_two_hierarchies() {
        let hierarchy = |json| set(json).expect("allowed").keys.hierarchy;
        assert_eq!(hierarchy(r#"{"use_hierarchy": 0}"#), Some(Hierarchy::Flat));
        assert_eq!(hierarchy(r#"{"use_hierarchy": 1}"#), Some(Hierarchy::Entities));
        assert_eq!(hierarchy(r#"{"hierarchy": "leaf-weight"}"#), Some(Hierarchy::LeafWeight));
        for found in ["2", "-1", "1.0", "0.5", "\"1\"", "\"entities\"", "true", "null", "[1]"] {
            let refused = refused(&format!(r#"{{"use_hierarchy": {found}}}"#));
            let allowed = "0 (flat) or 1 (entities) is allowed";
            assert_eq!(refused, format!("use_hierarchy = {found}: {allowed}"));
        }
        for kind in SchedulerKind::ALL.into_iter().filter(|&kind| kind != SchedulerKind::Cfq) {
            let json = format!(r#"{{"use_hierarchy": 1, "scheduler": "{kind}"}}"#);
            let none = "has no hierarchy to choose; cfq has: leaf-weight, flat, entities";
            assert_eq!(refused(&json), format!("{kind} {none}"));
        }
    }

    #[test]
    fn auto_takes_what_fits_the_disk_and_says_so_where_that_lacks_something() {
        let auto =
            |json: &str, rotational| disk(SchedulerKind::Cfq).with(&settings(json), rotational);
        let json = r#"{"scheduler": "auto", "slice_idle": 4}"#;
        let wanted = auto(json, true).expect("cfq has it");
        assert_eq!(wanted.scheduler, SchedulerChoice::Auto { rotational: true });
        assert_eq!(wanted.tunables(), [("slice_idle".to_owned(), 4)]);
        let why = "takes this one (auto: wfq, as the disk does not rotate)";
        let refused = auto(json, false).expect_err("cfq's");
        let under = "\"slice_idle\" cannot be set under wfq; what can be set is: scheduler, depth";
        assert!(refused.starts_with(under) && refused.ends_with(why), "{refused}");
        let json = r#"{"scheduler": "auto", "hierarchy": "flat"}"#;
        let refused = auto(json, false).expect_err("cfq's");
        let under = "wfq has no hierarchy to choose; cfq has: ";
        assert!(refused.starts_with(under) && refused.ends_with(why), "{refused}");
    }

    /// What a disk is may have changed since, and holds from the next start.
    #[test]
    fn auto_has_its_say_where_it_is_named() {
        let before = disk(SchedulerChoice::Auto { rotational: true });
        let other = before.with(&settings(r#"{"depth": 3}"#), false).expect("allowed");
        assert_eq!(other.scheduler, before.scheduler);
        let named = before.with(&settings(r#"{"scheduler": "auto"}"#), false).expect("allowed");
        assert_eq!(named.scheduler, SchedulerChoice::Auto { rotational: false });
    }

    #[test]
    fn everything_wrong_is_named_with_what_is_allowed() {
        for (json, message) in [
            (r#"{"depth": 4, "depth": 4}"#, "depth is set twice; once is allowed"),
            (r#"{"depth": 0}"#, "depth = 0: 1 to 1024 requests"),
            (r#"{"depth": "4"}"#, "depth = \"4\": 1 to 1024 requests"),
            (r#"{"quantum": 1.5}"#, "quantum = 1.5: a whole number is allowed"),
            (r#"{"slice_idle": -1}"#, "slice_idle = -1: 0 to "),
            (r#"{"scheduler": "wfq", "cost": "lern"}"#, "cost = \"lern\": one of learn, "),
            (r#"{"scheduler": "wfq", "cost": "2"}"#, "cost = \"2\": a whole number"),
            (r#"{"scheduler": "deadline"}"#, "scheduler = \"deadline\": \"auto\", \"none\", "),
            (r#"{"hierarchy": "deep"}"#, "hierarchy = \"deep\": \"leaf-weight\", "),
            (r#"{"use_hierarchy": 1, "hierarchy": "flat"}"#, "hierarchy is set twice"),
            (
                r#"{"a": 1, "quantum": 2, "b": 3, "quantum": 4, "quantum": 5}"#,
                "quantum is set twice; once is allowed; \"a\", \"b\" cannot be set under cfq; ",
            ),
            (r#"{"scheduler": 3}"#, "scheduler = 3: \"auto\", \"none\", "),
            (
                r#"{"depth": 0, "plug": "on", "poll": "fast"}"#,
                "depth = 0: 1 to 1024 requests, or \"learned\" under wfq, is allowed; plug is set \
                 in the file and changes with a restart; poll = \"fast\": ",
            ),
        ] {
            let refused = refused(json);
            assert!(refused.starts_with(message), "{json}: {refused}");
        }
    }

    #[test]
    fn in_force_are_the_keys_that_the_scheduler_and_the_way_to_wait_have() {
        let in_force = |disk: &DiskConfig| -> Vec<String> {
            let values = disk.in_force(BusyDepth::any(16)).into_iter();
            values.map(|(name, value)| format!("{name}={value}")).collect()
        };
        let auto = disk(SchedulerChoice::Auto { rotational: false });
        let expected =
            ["scheduler=\"wfq\"", "scheduler_auto=true", "depth=\"learned\"", "poll=\"auto\""];
        assert_eq!(in_force(&auto), expected);
        let hybrid = set(r#"{"poll": "hybrid", "io_poll_delay": 7}"#).expect("allowed");
        let expected = [
            "scheduler=\"cfq\"",
            "scheduler_auto=false",
            "hierarchy=\"leaf-weight\"",
            "depth=16",
            "poll=\"hybrid\"",
            "io_poll_delay=7",
            "io_poll_part=50",
            "io_poll_hyb_use_min=0",
            "io_poll_hyb_adjust=0",
        ];
        assert_eq!(in_force(&hybrid), expected);
    }

    /// A file that is read again changes nothing that needs a restart.
    #[test]
    fn only_what_may_change_is_taken_from_a_file() {
        let (mut served, mut file) = (disk(SchedulerKind::Cfq), disk(SchedulerKind::Bfq));
        file.keys.plug = false;
        file.keys.depth = Some(Depth::Fixed(3));
        served.take_live(&file);
        assert_eq!((served.keys.plug, served.keys.depth), (true, Some(Depth::Fixed(3))));
        assert_eq!(served.scheduler, SchedulerKind::Bfq.into());
    }
}
