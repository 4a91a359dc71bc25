//! The tests of the workspace: cargo builds them, two lanes run them beside each other, and the
//! documentation's come last.
//!
//! Tests of servers and disks wait for sockets, timers and rings, and leave a core idle, which
//! tests of schedulers and of the laboratory want. Each program runs as `cargo test` runs it.

use crate::cargo;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// How the programs are built, and how the documentation's tests are run.
const BUILD: &str = "test --workspace --locked --no-run --message-format=json-render-diagnostics";
const DOCTESTS: &str = "test --workspace --no-fail-fast --locked --doc";

/// Packages whose tests wait more than they compute.
const WAITING: [&str; 5] = [
    "paternoster-bench",
    "paternoster-cli",
    "paternoster-disk",
    "paternoster-load",
    "paternoster-server",
];

/// Variables of the environment.
pub(crate) type Env<'a> = [(&'a str, &'a Path)];

/// A program of tests.
struct Program {
    package: String,
    /// Its path, and where it runs: the folder of its package.
    path: PathBuf,
    folder: PathBuf,
    /// What it is made of, from its package's folder.
    source: PathBuf,
}

/// Runs all tests.
pub(crate) fn run(env: &Env<'_>) -> Result<()> {
    let waits = |program: &Program| WAITING.contains(&program.package.as_str());
    let lanes: (Vec<_>, Vec<_>) = build()?.into_iter().partition(waits);
    let mut failed = thread::scope(|scope| {
        let waiting = scope.spawn(|| run_all(&lanes.0, env));
        let computing = run_all(&lanes.1, env);
        [computing, waiting.join().expect("a lane does not panic")].concat()
    });
    let programs = lanes.0.len() + lanes.1.len();
    println!("{programs} programs of tests ran, {} failed; now the documentation's", failed.len());
    if let Err(error) = cargo::run(cargo::command().args(DOCTESTS.split(' ')).envs(env.to_vec())) {
        failed.push(format!("{DOCTESTS}: {error:#}"));
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("; ")) }
}

/// Runs these one after the other. Returns those that failed.
fn run_all(programs: &[Program], env: &Env<'_>) -> Vec<String> {
    let mut failed = vec![];
    for program in programs {
        let name = format!("{} {}", program.package, program.source.display());
        println!("     Running {name}");
        let start = Instant::now();
        let output = Command::new(&program.path)
            .current_dir(&program.folder)
            .envs(env.to_vec())
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .stdin(Stdio::null())
            .output();
        match output {
            Ok(output) => {
                // At once, so that what two lanes say does not mix.
                let said = [output.stdout, output.stderr].concat();
                let seconds = start.elapsed().as_secs_f64();
                println!("     Ran {name} in {seconds:.1} s\n{}", String::from_utf8_lossy(&said));
                if !output.status.success() {
                    failed.push(name);
                }
            }
            Err(error) => failed.push(format!("{name} does not start: {error}")),
        }
    }
    failed
}

/// Builds all of them.
fn build() -> Result<Vec<Program>> {
    let mut command = cargo::command();
    let output = command.args(BUILD.split(' ')).stderr(Stdio::inherit()).output();
    let output = output.context("cargo does not start")?;
    if !output.status.success() {
        bail!("cargo {BUILD} failed: {}", output.status);
    }
    programs(&String::from_utf8(output.stdout).context("cargo's messages")?)
}

/// What cargo says of something that it has made.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The programs of tests in cargo's messages.
fn programs(messages: &str) -> Result<Vec<Program>> {
    let mut programs = vec![];
    for line in messages.lines() {
        // Other messages lack some of the keys.
        let Ok(artifact) = serde_json::from_str::<Artifact>(line) else { continue };
        let Some(path) = artifact.executable.filter(|_| artifact.profile.test) else { continue };
        let folder = artifact.manifest_path.parent().context("a manifest without a folder")?;
        let source = artifact.target.src_path;
        let source = source.strip_prefix(folder).unwrap_or(&source).to_owned();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let package = if name == "bench" { "paternoster-bench".into() } else { name };
        programs.push(Program {
            package: package.into_owned(),
            path,
            folder: folder.to_owned(),
            source,
        });
    }
    if programs.is_empty() {
        bail!("cargo {BUILD} made no program of tests");
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn programs_of_tests_are_those_that_cargo_made_for_tests_and_can_run() {
        let artifact = |source: &str, test: bool, executable: Option<&str>| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": "/r/crates/a/Cargo.toml",
                "target": {"src_path": format!("/r/crates/a/{source}")},
                "profile": {"test": test},
                "executable": executable,
            })
        };
        let messages = [
            artifact("src/lib.rs", false, None),
            artifact("examples/e.rs", false, Some("/t/e")),
            artifact("tests/t.rs", true, Some("/t/t")),
            json!({"reason": "build-finished", "success": true}),
        ];
        let messages = messages.map(|message| message.to_string()).join("\n");
        let programs = programs(&messages).expect("there is one");
        let [Program { package, path, folder, source }] = &programs[..] else { panic!("one") };
        assert_eq!((package.as_str(), path.as_path()), ("a", Path::new("/t/t")));
        assert_eq!(
            (folder.as_path(), source.as_path()),
            (Path::new("/r/crates/a"), Path::new("tests/t.rs"))
        );
        assert!(super::programs("{}").is_err());
    }

    #[test]
    fn packages_that_wait_are_there() {
        for package in WAITING {
            let folder = package.replace("paternoster-bench", "../bench");
            assert!(Path::new("../crates").join(folder).is_dir(), "{package}");
        }
    }
}
