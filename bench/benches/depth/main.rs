//! `cargo xtask bench depth`: scenes under several schedulers and seeds, in virtual time, as a
//! table in Markdown. The same seeds give the same table, on every machine.

mod options;
mod prices;
mod runs;
mod table;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use options::Options;
use runs::run_all;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("depth: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    // Cargo gives a bench this option.
    let options = Options::parse_from(std::env::args().filter(|arg| arg != "--bench"));
    let results = run_all(&options)?;
    match options.timeline() {
        Some(step) => table::timelines(&results, step),
        None if options.runs => table::runs(&results),
        None => table::sets(&results, &options),
    }
    Ok(())
}
