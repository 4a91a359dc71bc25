//! `ctl limit`: the change that it asks for, and its output: the limits in force, a line a disk.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use paternoster_server::ctl::{LimitAnswer, LimitChange};

use super::settings::number_or_text;
use super::units::Bytes;

/// The change that `NAME=VALUE` arguments ask for.
pub(super) fn change(group: &str, limits: &[String], disk: Option<&str>) -> Result<LimitChange> {
    let mut set = BTreeMap::new();
    for limit in limits {
        let (name, value) = limit.split_once('=').with_context(|| {
            format!("{limit:?}: NAME=VALUE is allowed, such as riops=1000 or wbps=max")
        })?;
        if set.insert(name.to_owned(), number_or_text(value)).is_some() {
            bail!("{name} is set twice");
        }
    }
    Ok(LimitChange { group: group.to_owned(), set, disk: disk.map(str::to_owned) })
}

/// The group's limits on each disk.
pub(super) fn show(group: &str, answer: &LimitAnswer) -> String {
    let mut text = String::new();
    for disk in &answer.disks {
        let limits = in_words(&disk.limits);
        let limits = if limits.is_empty() { "no limits" } else { &limits };
        let _ = writeln!(text, "disk {}: {group} has {limits}", disk.disk);
    }
    text
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
    use paternoster_server::ctl::LimitsInForce;

    use super::*;

    #[test]
    fn disk_is_a_line_with_all_limits_of_the_group() {
        let limits = [("riops".to_owned(), 1000), ("wbps".to_owned(), 10 << 20)].into();
        let some = LimitsInForce { disk: "a".to_owned(), limits };
        let none = LimitsInForce { disk: "b".to_owned(), ..LimitsInForce::default() };
        let expected = "\
disk a: /g has riops 1000, wbps 10 MiB
disk b: /g has no limits
";
        assert_eq!(show("/g", &LimitAnswer::new(vec![some, none])), expected);
    }

    #[test]
    fn arguments_are_names_and_values() {
        let change = |limits: &[&str]| {
            let limits: Vec<_> = limits.iter().map(|&limit| limit.to_owned()).collect();
            change("/g", &limits, None).map_err(|error| error.to_string())
        };
        let set = change(&["riops=5", "wbps=10M"]).expect("right").set;
        let set: Vec<_> = set.iter().map(|(name, value)| format!("{name} {value}")).collect();
        assert_eq!(set, ["riops 5", "wbps \"10M\""]);
        let refused = change(&["riops"]).expect_err("no value");
        assert_eq!(refused, "\"riops\": NAME=VALUE is allowed, such as riops=1000 or wbps=max");
        assert_eq!(change(&["riops=1", "riops=2"]).expect_err("twice"), "riops is set twice");
    }
}
