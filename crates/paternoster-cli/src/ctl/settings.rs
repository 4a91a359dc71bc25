//! `ctl get` and `ctl set` of a disk: what is set of it, a line each as `ctl set` takes it.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, anyhow, bail};
use paternoster::{Hierarchy, SchedulerKind};
use paternoster_server::ctl::{DiskChange, SettingsAnswer, SettingsInForce};
use serde_json::Value;

/// The change that `NAME=VALUE` arguments ask for.
pub(super) fn change(disk: &str, settings: &[String]) -> Result<DiskChange> {
    let settings = settings.iter().map(|setting| {
        let (name, value) = split(setting, "scheduler=bfq or slice_idle=4")?;
        Ok((name.to_owned(), number_or_text(value)))
    });
    Ok(DiskChange { disk: disk.to_owned(), set: settings.collect::<Result<_>>()? })
}

/// Name and value of a `NAME=VALUE`.
pub(super) fn split<'a>(setting: &'a str, examples: &str) -> Result<(&'a str, &'a str)> {
    setting
        .split_once('=')
        .with_context(|| format!("{setting:?}: NAME=VALUE is allowed, such as {examples}"))
}

pub(super) fn number_or_text(text: &str) -> Value {
    text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from)
}

/// The settings of the disk of that name.
pub(super) fn of<'a>(disk: &str, answer: &'a SettingsAnswer) -> Result<&'a SettingsInForce> {
    let found = answer.disks.iter().find(|settings| settings.disk == disk);
    found.ok_or_else(|| {
        let known = answer.disks.iter().map(|settings| format!("{:?}", settings.disk));
        let known = known.collect::<Vec<_>>().join(", ");
        anyhow!("there is no disk {disk:?}; there are: {known}")
    })
}

/// All that is in force.
pub(super) fn show(settings: &SettingsInForce) -> String {
    let mut text = String::new();
    for (name, value) in lines(settings) {
        let _ = writeln!(text, "{name}={value}");
    }
    text
}

/// The value of one setting.
pub(super) fn show_one(settings: &SettingsInForce, name: &str) -> Result<String> {
    let mut lines = lines(settings);
    lines.extend(aliases(settings));
    if let Some((_, value)) = lines.iter().find(|(known, _)| *known == name) {
        return Ok(format!("{value}\n"));
    }
    let known: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    if let (Some(hierarchy), "use_hierarchy") = (settings.settings.get("hierarchy"), name) {
        let hierarchy = shown(hierarchy);
        bail!("hierarchy={hierarchy} is neither use_hierarchy=0 (flat) nor 1 (entities)");
    }
    let SettingsInForce { disk, .. } = settings;
    let scheduler = scheduler(settings);
    bail!("disk {disk:?} has no {name:?} under {scheduler}; it has: {}", known.join(", "));
}

/// What the file `blkio.use_hierarchy` of post 3's patches says of a hierarchy; none of one that is
/// neither of its two.
pub(super) fn use_hierarchy(hierarchy: &str) -> Option<u8> {
    match hierarchy.parse() {
        Ok(Hierarchy::Flat) => Some(0),
        Ok(Hierarchy::Entities) => Some(1),
        _ => None,
    }
}

/// What Linux's `queue/io_poll` says of a way to wait: whether completions may be polled for.
fn io_poll(poll: &str) -> u8 {
    u8::from(poll != "interrupt")
}

/// What is read by names of sysfs that say the same as another one, and the keys that `ctl set`
/// does not take.
fn aliases(settings: &SettingsInForce) -> Vec<(&str, String)> {
    let text = |name| settings.settings.get(name).and_then(Value::as_str);
    let used = text("hierarchy").and_then(use_hierarchy);
    let used = used.map(|used| ("use_hierarchy", used.to_string()));
    let io_poll = text("poll").map(|poll| ("io_poll", io_poll(poll).to_string()));
    let at_start = settings.at_start.0.iter().map(|(name, value)| (name.as_str(), shown(value)));
    used.into_iter().chain(io_poll).chain(at_start).collect()
}

/// Names and values, as `ctl set` takes them; also that `auto` has chosen the scheduler.
fn lines(settings: &SettingsInForce) -> Vec<(&str, String)> {
    let kind = scheduler(settings).parse::<SchedulerKind>();
    let tunable = |name: &str, value: i64| match kind.as_ref().map(|kind| kind.tunable(name)) {
        Ok(Ok(info)) => info.shown(value).into_owned(),
        // A server of another version may have other ones.
        _ => value.to_string(),
    };
    let keys = settings.settings.0.iter().filter(|(_, value)| *value != Value::Bool(false));
    let keys = keys.map(|(name, value)| (name.as_str(), shown(value)));
    let tunables = settings.tunables.iter();
    keys.chain(tunables.map(|(name, value)| (name.as_str(), tunable(name, *value)))).collect()
}

/// The scheduler in force.
fn scheduler(settings: &SettingsInForce) -> &str {
    settings.settings.get("scheduler").and_then(Value::as_str).unwrap_or_default()
}

/// A value as `ctl set` takes it; a flag as in sysfs.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => u8::from(*flag).to_string(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(hierarchy: &str, poll: &str) -> SettingsInForce {
        let settings: [(&str, Value); 5] = [
            ("scheduler", "cfq".into()),
            ("scheduler_auto", false.into()),
            ("hierarchy", hierarchy.into()),
            ("depth", 32.into()),
            ("poll", poll.into()),
        ];
        SettingsInForce {
            disk: "d".to_owned(),
            settings: settings.into_iter().collect(),
            tunables: [("slice_idle".to_owned(), 8)].into(),
            at_start: [("plug", Value::from("on"))].into_iter().collect(),
        }
    }

    /// Posts 3 and 4: `use_hierarchy` and `io_poll` are read by their names in sysfs.
    #[test]
    fn names_of_sysfs_are_read_back() {
        let hybrid = settings("entities", "hybrid");
        let all = "scheduler=cfq\nhierarchy=entities\ndepth=32\npoll=hybrid\nslice_idle=8\n";
        assert_eq!(show(&hybrid), all, "what ctl set takes, once each");
        for name in ["use_hierarchy", "io_poll"] {
            assert_eq!(show_one(&hybrid, name).expect("it is there"), "1\n", "{name}");
        }
        let flat = settings("flat", "interrupt");
        for (name, value) in [("use_hierarchy", "0\n"), ("io_poll", "0\n"), ("plug", "on\n")] {
            assert_eq!(show_one(&flat, name).expect("it is there"), value, "{name}");
        }
        let neither = show_one(&settings("leaf-weight", "auto"), "use_hierarchy");
        assert_eq!(
            neither.expect_err("neither").to_string(),
            "hierarchy=leaf-weight is neither use_hierarchy=0 (flat) nor 1 (entities)"
        );
    }
}
