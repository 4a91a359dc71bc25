//! `cargo xtask bench volumes`: what it costs that volumes come, stay, sync and go.
//!
//! ```text
//!   many.rs         what ten thousand take that nobody uses
//!   first_read.rs   how soon one that is made can be read, while others load the pool
//!   idle.rs         what a thousand that nobody uses take from those that work
//!   syncs.rs        how late readers of one are while another is flushed all the time
//!   soak.rs         whether anything is left of those that are gone
//! ```
//!
//! Status 1 where one of them is not as the design of volumes asks for.

mod first_read;
mod idle;
mod many;
mod rig;
mod soak;
mod syncs;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};

/// The options.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench volumes",
    about = "How soon a new volume can be read, what idle ones and syncs cost others, and what is \
             left of those that are gone"
)]
struct Options {
    /// What to measure; all unless told
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    parts: Vec<Part>,

    /// Volumes to make
    #[arg(long, value_name = "VOLUMES", default_value_t = 1000,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=5000))]
    made: usize,

    /// Tenants that read all the time meanwhile, at most eight
    #[arg(long, value_name = "TENANTS", default_value_t = rig::LOADERS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=8))]
    loaders: usize,

    /// Clients that make them at once
    #[arg(long, value_name = "CLIENTS", default_value_t = MAKERS,
          value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    makers: usize,

    /// Make volumes that are there after a restart; they may take as long as three syncs more
    #[arg(long)]
    durable: bool,

    /// Read first from volumes of a modelled pool, 16 times 80 µs, in place of files
    #[arg(long, conflicts_with = "durable")]
    modelled: bool,

    /// For how long to make and remove volumes
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    soak: u64,

    /// How many to make, and to remove, in a second of that
    #[arg(long, value_name = "VOLUMES", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,

    /// How often to compare seconds with and without idle volumes or syncs
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,

    /// Cargo gives a bench this option.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    // Before any other has made the process larger.
    Many,
    FirstRead,
    Idle,
    Syncs,
    Soak,
}

/// Clients that make volumes at once.
const MAKERS: usize = 8;

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let mut are_met = true;
    for part in Part::value_variants() {
        if !options.parts.is_empty() && !options.parts.contains(part) {
            continue;
        }
        let is_met = match part {
            Part::FirstRead => first_read::measure(&options),
            Part::Many => many::measure(),
            Part::Idle => idle::measure(options.pairs),
            Part::Syncs => syncs::measure(options.pairs),
            Part::Soak => {
                soak::measure(options.durable, Duration::from_secs(options.soak), options.rate)
            }
        };
        let is_met = is_met.with_context(|| format!("{part:?}"))?;
        println!("is met: {is_met}\n");
        are_met &= is_met;
    }
    Ok(if are_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
