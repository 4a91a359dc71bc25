//! What the program says of configurations that are wrong: a right one, with one line changed.

use super::recipes::write;
use crate::commit::Build;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A configuration that is right, with every kind of table.
const RIGHT: &str = include_str!("right.toml");
/// Values that a key is given beside its own.
const VALUES: [&str; 9] =
    ["0", "-1", "1.5", "9223372036854775807", "\"\"", "\"x\"", "true", "[]", "{ a = 1 }"];

/// Writes what is said of each change, in the order of the lines.
pub(super) fn make(build: &Build, out: &Path) -> Result<()> {
    let dir = tempfile::tempdir().context("a temporary directory")?;
    let disk = fs::File::create(dir.path().join("disk.img"))?;
    disk.set_len(1 << 20)?;
    let mut said = String::new();
    for (name, text) in changes() {
        fs::write(dir.path().join("c.toml"), &text)?;
        let mut command = Command::new(build.server());
        command.args(["serve", "--check", "c.toml"]).current_dir(dir.path());
        let output = command.output().context("the program does not start")?;
        let code = output.status.code();
        writeln!(said, "{name}: {code:?}\n{}", String::from_utf8_lossy(&output.stderr))?;
    }
    write(out, "said", &said)
}

/// The right file and the changed ones, each with a name.
fn changes() -> Vec<(String, String)> {
    let lines: Vec<_> = RIGHT.lines().collect();
    let with = |at: usize, new: &str| {
        let mut changed = lines.clone();
        changed[at] = new;
        changed.join("\n")
    };
    let mut changes = vec![("as it is".to_owned(), RIGHT.to_owned())];
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        changes.push((format!("without {line}"), with(at, "")));
        changes.push((format!("twice {line}"), with(at, &format!("{line}\n{line}"))));
        if let Some((key, _)) = line.split_once(" = ") {
            for value in VALUES {
                let line = format!("{key} = {value}");
                changes.push((line.clone(), with(at, &line)));
            }
            let line = line.replace(key, &format!("{key}x"));
            changes.push((line.clone(), with(at, &line)));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_gets_every_value() {
        let keys = RIGHT.lines().filter(|line| line.contains(" = ")).count();
        assert!(keys >= 50, "{keys}");
        assert!(changes().len() > keys * (VALUES.len() + 3));
    }
}
