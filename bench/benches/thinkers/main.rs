//! `cargo xtask bench thinkers`: what a client keeps of a disk beside one that thinks.
//!
//! ```text
//!   paternoster_lab::thinkers ──▶ grid.rs   all cells, in virtual time
//!                          └────▶ live.rs   six of them: a server, sockets, clients, in real time
//! ```
//!
//! Status 1 where a client keeps less of what it is due than it is promised.

mod grid;
mod live;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

/// The options.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench thinkers",
    about = "What a client keeps of a disk beside one that thinks"
)]
struct Options {
    /// Only the grid in virtual time, or only the rows of a real server
    #[arg(long, value_name = "PART")]
    only: Option<Part>,

    /// Print a line for each cell of the grid
    #[arg(long)]
    cells: bool,

    /// Cells of the grid in whose line all of these stand, as in `--cells`; all unless told
    words: Vec<String>,

    /// Cargo gives a bench this option.
    #[arg(long, hide = true)]
    bench: bool,
}

/// A part of the bench.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Grid,
    Live,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let mut short = 0;
    if options.only != Some(Part::Live) {
        short += grid::run(&options.words, options.cells)?;
    }
    if options.only != Some(Part::Grid) {
        short += live::run()?;
    }
    Ok(if short == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
