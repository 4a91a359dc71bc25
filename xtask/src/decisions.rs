//! `cargo xtask decisions --since REV`: our decisions beside those of another commit of ours: the
//! golden of that name, with as many scenarios as are wanted.
//!
//! A change that is to leave every decision as it is (a rename, a type with walls, a faster list)
//! is checked by this on far more than what is recorded of Linux. Both programs run the same random
//! scenarios, and each pair of logs has to be the same to the byte, what schedulers say of
//! themselves included.

use crate::goldens::{self, SCENARIOS, Scenarios};
use anyhow::Result;

/// What to compare.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The commit whose decisions are the measure; it has all schedulers and tunables of this tree
    #[arg(long, value_name = "REV")]
    since: String,
    /// Scenarios for each scheduler
    #[arg(long, default_value_t = SCENARIOS.count)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    scenarios: u32,
    /// Where the random numbers begin
    #[arg(long, default_value_t = SCENARIOS.seed)]
    seed: u64,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let scenarios = Scenarios { count: args.scenarios, seed: args.seed };
    goldens::compare(&args.since, &["decisions".to_owned()], scenarios)
}
