//! The keys of what the server reports: of its figures the names, as the figures are measured.

use super::recipes::{output_of, write};
use crate::commit::Build;
use anyhow::{Context, Result, bail};
use paternoster_bench::KilledOnDrop;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A disk of each kind, under every scheduler, with one export each.
const SERVED: [(&str, &str); 6] = [
    ("cfq", "backend = \"modelled\"\nservers = 4\nservice_us = 200"),
    ("wfq", "backend = \"modelled\"\nservers = 4\nservice_us = 200\npoll = \"hybrid\""),
    ("bfq", "backend = \"memory\""),
    ("kyber", "backend = \"memory\""),
    ("mq-deadline", "backend = \"memory\""),
    ("none", "backend = \"memory\""),
];
/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// Writes the keys of `ctl stat --json` and of `demo --json`.
pub(super) fn make(build: &Build, out: &Path) -> Result<()> {
    write(out, "stat", &keys_of(&stat(build)?)?)?;
    let mut demo = Command::new(build.server());
    // Its exit status says how this machine does.
    let output = demo.args(["demo", "--json", "--seconds", "10"]).output();
    let output = output.context("the program does not start")?;
    write(out, "demo", &keys_of(&String::from_utf8(output.stdout)?)?)
}

/// What a server that nobody uses says of itself.
fn stat(build: &Build) -> Result<String> {
    let dir = tempfile::tempdir().context("a temporary directory")?;
    let disks = SERVED.map(|(name, disk)| {
        format!(
            "[disks.{name}]\nsize = \"1M\"\nscheduler = \"{name}\"\n{disk}\n\
             [exports.{name}]\ndisk = \"{name}\"\n"
        )
    });
    let toml = format!("unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n{}", disks.concat());
    fs::write(dir.path().join("c.toml"), toml)?;
    let mut server = Command::new(build.server());
    let server = server.args(["serve", "c.toml"]).current_dir(dir.path());
    let server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _server = KilledOnDrop(server.context("the program does not start")?);
    let began = Instant::now();
    while !dir.path().join("ctl.sock").exists() {
        if began.elapsed() > START {
            bail!("the server has no control socket after {START:?}");
        }
        sleep(Duration::from_millis(20));
    }
    let mut ctl = Command::new(build.server());
    ctl.env("PATERNOSTER_CTL", dir.path().join("ctl.sock"));
    output_of(ctl.args(["ctl", "stat", "--json"]))
}

/// The path of every value in a JSON text, a line each.
fn keys_of(json: &str) -> Result<String> {
    let value: Value = serde_json::from_str(json).with_context(|| format!("JSON: {json:?}"))?;
    let mut keys = BTreeSet::new();
    collect("", &value, &mut keys);
    Ok(keys.into_iter().map(|key| key + "\n").collect())
}

/// Adds the paths of the values below `value`, which is at `path`.
fn collect(path: &str, value: &Value, keys: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                collect(&format!("{path}.{key}"), value, keys);
            }
            return;
        }
        Value::Array(values) => {
            for value in values {
                collect(&format!("{path}[]"), value, keys);
            }
            return;
        }
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
    };
    keys.insert(format!("{path} {kind}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named_once_and_with_their_types() {
        let json = r#"{"a":[{"b":1},{"b":2},{"b":null}],"c":{"d":"x"}}"#;
        let keys = keys_of(json).expect("it is JSON");
        assert_eq!(keys, ".a[].b null\n.a[].b number\n.c.d text\n");
    }
}
