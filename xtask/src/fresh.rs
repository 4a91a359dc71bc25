//! `cargo xtask fresh`: README's commands on a machine that has only what README asks for.
//!
//! The machine is a Debian 12 of mmdebstrap's smallest set, below cargo's target directory, with a
//! C compiler, git, this machine's Rust, and a clone of what is committed. Stages, each after the
//! one before; a failure ends the run with the stage's name, and the machine is removed either way
//! (after a kill, by the next run):
//!
//!   root        Debian is installed
//!   toolchain   its compilers start
//!   sources     the clone is there, and its crates are downloaded
//!   first       README's first command succeeds
//!   commands    those after it do, in their order
//!
//! It takes as long as those commands do on a machine that has built nothing, some twenty minutes.

mod machine;

use crate::{debian, packages};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use machine::Machine;
use paternoster_bench::NotRun;
use std::time::Instant;

/// The heading over the commands.
const HEADING: &str = "## Two commands";

/// How far to go.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The last stage to run
    #[arg(long, value_enum, default_value_t = Stage::Commands)]
    until: Stage,
}

/// The stages, in their order.
#[derive(Clone, Copy, PartialEq, PartialOrd, ValueEnum)]
enum Stage {
    /// Debian is installed
    Root,
    /// Its compilers start
    Toolchain,
    /// The clone is there, and its crates are downloaded
    Sources,
    /// README's first command succeeds
    First,
    /// Those after it do
    Commands,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    debian::require("it")?;
    packages::require(&["git"]).map_err(|error| NotRun(format!("{error:#}")))?;
    let readme = std::fs::read_to_string("README.md").context("reading README.md")?;
    let commands = commands(&readme);
    let [first, others @ ..] = &commands[..] else {
        bail!("README.md has no commands under \"{HEADING}\"");
    };
    let machine = stage("root", Machine::install)?;
    if args.until >= Stage::Toolchain {
        stage("toolchain", || machine.run("cc --version && cargo --version"))?;
    }
    if args.until >= Stage::Sources {
        stage("sources", || {
            machine.clone_repository()?;
            machine.run("cargo fetch --locked")
        })?;
    }
    if args.until >= Stage::First {
        stage("first", || machine.run(first))?;
    }
    if args.until >= Stage::Commands {
        stage("commands", || others.iter().try_for_each(|line| machine.run(line)))?;
    }
    Ok(())
}

/// Runs one stage, and says how long it took.
fn stage<T>(name: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== fresh: {name}");
    let start = Instant::now();
    let made = act().with_context(|| format!("stage {name}"))?;
    println!("== fresh: {name}: {:.1} s", start.elapsed().as_secs_f64());
    Ok(made)
}

/// The commands of the first block under [`HEADING`], without their comments.
fn commands(readme: &str) -> Vec<&str> {
    let lines = readme.lines().skip_while(|line| *line != HEADING);
    let block = lines.skip_while(|line| *line != "```sh").skip(1);
    let block = block.take_while(|line| *line != "```");
    let code = block.map(|line| line.split(" #").next().unwrap_or(line).trim());
    code.filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_under_the_heading() {
        let text = "```sh\nbefore\n```\n## Two commands\n\ntext\n\n```sh\na b   # c\n\nd\n```\n\
                    ```sh\nafter\n```\n";
        assert_eq!(commands(text), ["a b", "d"]);
        assert_eq!(commands("# Another\n```sh\na\n```\n"), [""; 0]);
    }

    #[test]
    fn readme_has_the_commands_that_are_tried() {
        let expected = ["cargo run --release -- demo", "cargo xtask test"];
        assert_eq!(commands(include_str!("../../README.md")), expected);
    }
}
