//! `ctl get` and `ctl set`: what is set of a disk, a line each as `ctl set` takes it.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, anyhow, bail};
use paternoster::SchedulerKind;
use paternoster_server::ctl::{DiskChange, NewSettings, SettingsAnswer, SettingsInForce};
use serde_json::Value;

/// The change that `NAME=VALUE` arguments ask for.
pub(super) fn change(disk: &str, settings: &[String]) -> Result<DiskChange> {
    let settings = settings.iter().map(|setting| {
        let (name, value) = setting.split_once('=').with_context(|| {
            format!("{setting:?}: NAME=VALUE is allowed, such as scheduler=bfq or slice_idle=4")
        })?;
        Ok((name.to_owned(), number_or_text(value)))
    });
    let set = NewSettings(settings.collect::<Result<_>>()?);
    Ok(DiskChange { disk: disk.to_owned(), set })
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
    let lines = lines(settings);
    if let Some((_, value)) = lines.iter().find(|(known, _)| *known == name) {
        return Ok(format!("{value}\n"));
    }
    let known: Vec<_> = lines.iter().map(|(name, _)| *name).collect();
    let SettingsInForce { disk, scheduler, .. } = settings;
    bail!("disk {disk:?} has no {name:?} under {scheduler}; it has: {}", known.join(", "));
}

/// Names and values.
fn lines(settings: &SettingsInForce) -> Vec<(&str, String)> {
    let SettingsInForce { scheduler, scheduler_auto, hierarchy, tunables, .. } = settings;
    let depth = if settings.depth_learned { "learned" } else { &settings.depth.to_string() };
    let auto = scheduler_auto.then(|| ("scheduler_auto", "1".to_owned()));
    let hierarchy = hierarchy.iter().map(|hierarchy| ("hierarchy", hierarchy.clone()));
    let kind = scheduler.parse::<SchedulerKind>();
    let shown = |name: &str, value: i64| match kind.as_ref().map(|kind| kind.tunable(name)) {
        Ok(Ok(info)) => info.shown(value).into_owned(),
        // A server of another version may have other ones.
        _ => value.to_string(),
    };
    let hybrid = settings.hybrid.iter().map(|(name, value)| (name.as_str(), value.to_string()));
    let tunables = tunables.iter().map(|(name, value)| (name.as_str(), shown(name, *value)));
    let first = std::iter::once(("scheduler", scheduler.clone())).chain(auto).chain(hierarchy);
    let whole = [("depth", depth.to_owned()), ("poll", settings.poll.clone())];
    first.chain(whole).chain(hybrid).chain(tunables).collect()
}
