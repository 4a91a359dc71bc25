//! `ctl weight` and `ctl limit`, and `ctl get` and `ctl set` of a group: the change that they ask
//! for, and what is in force then.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, anyhow, bail};
use paternoster_server::config::limit_names;
use paternoster_server::ctl::{GroupAnswer, GroupChange};
use serde_json::Value;

use super::settings::{number_or_text, split};
use super::units::Bytes;

/// Returns whether what is named is a group, and no disk.
pub(super) fn is_group(name: &str) -> bool {
    name.starts_with('/')
}

/// The change that `NAME=VALUE` arguments ask for; a key of a table of disks is `NAME.DISK=VALUE`.
pub(super) fn change(group: &str, set: &[String], disk: Option<&str>) -> Result<GroupChange> {
    let mut change = GroupChange {
        group: group.to_owned(),
        set: BTreeMap::new(),
        disk: disk.map(str::to_owned),
    };
    for setting in set {
        let (name, value) = split(setting, "riops=1000 or wbps=max")?;
        let value = number_or_text(value);
        let twice = match name.split_once('.') {
            Some((key, disk)) => {
                let table = change
                    .set
                    .entry(key.to_owned())
                    .or_insert_with(|| Value::Object(serde_json::Map::new()));
                table
                    .as_object_mut()
                    .is_none_or(|table| table.insert(disk.to_owned(), value).is_some())
            }
            None => change.set.insert(name.to_owned(), value).is_some(),
        };
        if twice {
            bail!("{name} is set twice");
        }
    }
    Ok(change)
}

/// The same, and accepts limits only.
pub(super) fn limits(group: &str, set: &[String], disk: Option<&str>) -> Result<GroupChange> {
    let change = change(group, set, disk)?;
    let others = change.set.keys().filter(|name| limit_names().all(|limit| limit != **name));
    let others: Vec<_> = others.map(String::as_str).collect();
    if !others.is_empty() {
        let (others, known) = (others.join(", "), limit_names().collect::<Vec<_>>().join(", "));
        bail!("no limit: {others}; limits are: {known}");
    }
    Ok(change)
}

/// The change of a group's weights.
pub(super) fn weights(
    group: &str,
    weight: &str,
    leaf: Option<&str>,
    disk: Option<&str>,
) -> GroupChange {
    let weight = Some(("weight", weight)).into_iter().chain(leaf.map(|leaf| ("leaf_weight", leaf)));
    let set = weight.map(|(key, value)| (key.to_owned(), number_or_text(value))).collect();
    GroupChange { group: group.to_owned(), set, disk: disk.map(str::to_owned) }
}

/// The group's weights on each disk.
pub(super) fn show_weights(group: &str, answer: &GroupAnswer) -> String {
    let mut text = String::new();
    for disk in &answer.disks {
        let of_disk = |is: bool| if is { " (of this disk)" } else { "" };
        let weight = |key: &str| disk.settings.get(key).map(Value::to_string).unwrap_or_default();
        let _ = writeln!(
            text,
            "disk {}: {group} has weight {}{}, leaf weight {}{}{}",
            disk.disk,
            weight("weight"),
            of_disk(disk.weight_of_disk),
            weight("leaf_weight"),
            of_disk(disk.leaf_weight_of_disk),
            if disk.weights_apply { "" } else { "; no effect under the disk's scheduler" },
        );
    }
    text
}

/// The group's limits on each disk.
pub(super) fn show_limits(group: &str, answer: &GroupAnswer) -> String {
    let mut text = String::new();
    for disk in &answer.disks {
        let limits = in_words(&disk.limits);
        let limits = if limits.is_empty() { "no limits" } else { &limits };
        let _ = writeln!(text, "disk {}: {group} has {limits}", disk.disk);
    }
    text
}

/// What is set of the group, a line each as `ctl set` takes it, or the value of one name; behind
/// the disk if there are several.
pub(super) fn show(answer: &GroupAnswer, name: Option<&str>) -> Result<String> {
    let mut text = String::new();
    for disk in &answer.disks {
        let place = if answer.disks.len() > 1 { format!("{} ", disk.disk) } else { String::new() };
        if let Some(name) = name {
            let value = disk.settings.get(name).ok_or_else(|| {
                let known: Vec<_> = disk.settings.keys().map(String::as_str).collect();
                anyhow!("a group has no {name:?}; it has: {}", known.join(", "))
            })?;
            let _ = writeln!(text, "{place}{}", plain(value));
            continue;
        }
        for (name, value) in &disk.settings {
            let is_of_disk = match name.as_str() {
                "weight" => disk.weight_of_disk,
                "leaf_weight" => disk.leaf_weight_of_disk,
                _ => false,
            };
            // As the disk's own it is set again.
            let of_disk = if is_of_disk { format!("_device.{}", disk.disk) } else { String::new() };
            let _ = writeln!(text, "{place}{name}{of_disk}={}", plain(value));
        }
    }
    Ok(text)
}

/// A value as an argument has it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Limits by their keys, in words.
pub(super) fn in_words(limits: &BTreeMap<String, u64>) -> String {
    let shown = limits.iter().map(|(key, &value)| {
        if key.ends_with("bps") {
            format!("{key} {}", Bytes(value))
        } else if key == "latency_target" {
            format!("{key} {value} us")
        } else {
            format!("{key} {value}")
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use paternoster_server::ctl::GroupInForce;
    use serde_json::json;

    use super::*;

    fn in_force(disk: &str, settings: Value) -> GroupInForce {
        let settings = serde_json::from_value(settings).expect("an object");
        GroupInForce { disk: disk.to_owned(), settings, ..GroupInForce::default() }
    }

    #[test]
    fn disk_is_a_line_that_says_whose_weight_holds() {
        let own = in_force("a", json!({"weight": 300, "leaf_weight": 50}));
        let own = GroupInForce { weights_apply: true, ..own };
        let of_disk = in_force("b", json!({"weight": 7, "leaf_weight": 50}));
        let of_disk = GroupInForce { weight_of_disk: true, ..of_disk };
        let expected = "\
disk a: /g has weight 300, leaf weight 50
disk b: /g has weight 7 (of this disk), leaf weight 50; no effect under the disk's scheduler
";
        assert_eq!(show_weights("/g", &GroupAnswer::new(vec![own, of_disk])), expected);
    }

    #[test]
    fn disk_is_a_line_with_all_limits_of_the_group() {
        let limits = [("riops".to_owned(), 1000), ("wbps".to_owned(), 10 << 20)].into();
        let some = GroupInForce { limits, ..in_force("a", json!({})) };
        let none = in_force("b", json!({}));
        let expected = "\
disk a: /g has riops 1000, wbps 10 MiB
disk b: /g has no limits
";
        assert_eq!(show_limits("/g", &GroupAnswer::new(vec![some, none])), expected);
    }

    #[test]
    fn settings_are_shown_as_they_are_set_and_behind_the_disk_if_there_are_several() {
        let on = |disk| in_force(disk, json!({"riops": "max", "weight": 7}));
        let one = GroupAnswer::new(vec![on("a")]);
        assert_eq!(show(&one, None).expect("it is there"), "riops=max\nweight=7\n");
        let own = GroupInForce { weight_of_disk: true, ..on("a") };
        let own = show(&GroupAnswer::new(vec![own]), None).expect("it is there");
        assert_eq!(own, "riops=max\nweight_device.a=7\n");
        let two = GroupAnswer::new(vec![on("a"), on("b")]);
        assert_eq!(show(&two, Some("weight")).expect("it is there"), "a 7\nb 7\n");
        let refused = show(&two, Some("depth")).expect_err("a disk's").to_string();
        assert_eq!(refused, "a group has no \"depth\"; it has: riops, weight");
    }

    #[test]
    fn arguments_are_names_and_values() {
        let change = |limits: &[&str]| {
            let limits: Vec<_> = limits.iter().map(|&limit| limit.to_owned()).collect();
            change("/g", &limits, None).map_err(|error| error.to_string())
        };
        let set = change(&["riops=5", "wbps=10M", "weight_device.a=7"]).expect("right").set;
        assert_eq!(json!(set), json!({"riops": 5, "wbps": "10M", "weight_device": {"a": 7}}));
        let refused = change(&["riops"]).expect_err("no value");
        assert_eq!(refused, "\"riops\": NAME=VALUE is allowed, such as riops=1000 or wbps=max");
        for twice in [&["riops=1", "riops=2"][..], &["w.a=1", "w.a=2"], &["w=1", "w.a=2"]] {
            assert!(change(twice).expect_err("twice").ends_with(" is set twice"), "{twice:?}");
        }
    }
}
