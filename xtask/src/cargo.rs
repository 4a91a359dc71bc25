//! Building with cargo, and running commands whose failure is an error.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The cargo that has built us, in the same environment: what we were built with is not built
/// again.
pub(crate) fn command() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Cargo's target directory.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

/// Cargo's home: its settings, and what it has downloaded.
pub(crate) fn home() -> Result<PathBuf> {
    match std::env::var_os("CARGO_HOME") {
        Some(home) => Ok(home.into()),
        None => Ok(std::env::home_dir().context("there is no home directory")?.join(".cargo")),
    }
}

/// Builds the server's program as it is released, and says where it is.
pub(crate) fn paternoster() -> Result<PathBuf> {
    let args =
        ["build", "-q", "--release", "--locked", "-p", "paternoster-cli", "--bin", "paternoster"];
    executable(&args, "paternoster")
}

/// Builds the server's program as tests have it, and says where it is. That takes no time where
/// they have been built, and the release's optimisation takes minutes.
pub(crate) fn tested() -> Result<PathBuf> {
    tested_program("paternoster")
}

/// The same of the laboratory's program.
pub(crate) fn tested_laboratory() -> Result<PathBuf> {
    tested_program("paternoster-lab")
}

fn tested_program(name: &str) -> Result<PathBuf> {
    // Of the whole workspace: else dependencies have other features, and are built again.
    executable(&["build", "-q", "--locked", "--workspace", "--bin", name], name)
}

/// Runs cargo with `args`, which build the executable target `name`, and says where it is.
pub(crate) fn executable(args: &[&str], name: &str) -> Result<PathBuf> {
    let output = command()
        .args(args)
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not start")?;
    if !output.status.success() {
        bail!("cargo {} failed: {}", args.join(" "), output.status);
    }
    let messages = String::from_utf8(output.stdout).context("cargo's messages")?;
    executable_in(&messages, name)
        .with_context(|| format!("cargo {} made no executable {name}", args.join(" ")))
}

/// The path of the executable target `name` in cargo's JSON messages.
fn executable_in(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// Installs a program of crates.io below the target directory, where it is not there yet. Returns
/// where it is. It runs for a second: to optimise it would take minutes.
pub(crate) fn tool(name: &str, version: &str) -> Result<PathBuf> {
    let tools = target_dir().join("tools");
    let mut install = command();
    install.args(["install", "--quiet", "--locked", "--debug", name, "--version"]);
    install.arg(format!("={version}")).arg("--root").arg(&tools).stdout(Stdio::null());
    // It is built in a directory of its own, whose lock nobody else waits for.
    install.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("CARGO_TARGET_DIR");
    run(&mut install).with_context(|| format!("{name} cannot be installed"))?;
    Ok(tools.join("bin").join(name))
}

/// Runs `command`, whose output goes where ours goes; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).display().to_string();
    let status = command.status().with_context(|| format!("{name} does not start"))?;
    if status.success() { Ok(()) } else { bail!("{name} failed: {status}") }
}

/// Runs `command`, and returns what it prints; an exit status other than 0 is an error, with what
/// it says of that.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{name} does not start"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("{name} failed: {}: {said}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} prints no UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nothing_that_xtask_is_built_with_is_built_again_for_the_tests() {
        let built = |of: &[&str]| {
            let mut tree = command();
            tree.args(["tree", "--offline", "-e", "features", "--prefix", "none"]);
            let lines = output(tree.args(["--format", "{p} [{f}]"]).args(of)).expect("a tree");
            let packages = lines.lines().filter(|line| line.contains('['));
            packages.map(|line| line.replace(" (*)", "")).collect::<BTreeSet<_>>()
        };
        let (ours, all) = (built(&["--package", "xtask"]), built(&["--workspace"]));
        assert!(ours.len() > 50);
        let again: Vec<_> = ours.difference(&all).collect();
        assert!(again.is_empty(), "xtask/Cargo.toml lacks features of {again:?}");
    }

    #[test]
    fn executable_is_found_among_the_messages_of_cargo() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
{"reason":"compiler-artifact","target":{"name":"paternoster"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"paternoster"},"executable":"/t/paternoster"}
{"reason":"build-finished","success":true}"#;
        let path = executable_in(messages, "paternoster");
        assert_eq!(path.as_deref(), Some(Path::new("/t/paternoster")));
        assert_eq!(executable_in(messages, "missing"), None);
    }
}
