//! `cargo xtask`: builds xtask in the environment in which xtask builds everything else.
//!
//! Half of the workspace is built with xtask. Cargo would build that again where the environment
//! differs from the one in which xtask calls cargo:
//!
//! ```text
//!   cargo xtask ─▶ this program ─▶ cargo build xtask ─▶ xtask ─▶ cargo test, cargo build, …
//!                       └── what is changed here holds for all of them
//! ```
//!
//! - `cargo run` says where the package is that it runs, `CARGO_MANIFEST_DIR`, which the build
//!   script of ring looks at.
//! - Under continuous integration nothing is left for a next time: no incremental builds.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "xtask"]);
    match in_our_environment(&mut build).status() {
        Ok(status) if status.success() => {}
        Ok(_) => return ExitCode::FAILURE,
        Err(error) => return failed(&format!("cargo does not start: {error}")),
    }
    let Ok(own) = env::current_exe() else { return failed("it is not known where xtask is") };
    let mut xtask = Command::new(own.with_file_name("xtask"));
    let error = in_our_environment(xtask.args(env::args_os().skip(1))).exec();
    failed(&format!("xtask does not start: {error}"))
}

/// The same for cargo and for xtask.
fn in_our_environment(command: &mut Command) -> &mut Command {
    let is_where = |name: &str| name.starts_with("CARGO_MANIFEST_");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_where)) {
        command.env_remove(name);
    }
    if env::var_os("CI").is_some() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

fn failed(why: &str) -> ExitCode {
    eprintln!("cargo xtask: {why}");
    ExitCode::FAILURE
}
