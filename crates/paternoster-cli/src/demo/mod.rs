//! `paternoster demo`: three tenants share one disk by weight, on nothing but this binary.
//!
//! ```text
//!   light   weight 100   16 connections × 16 ─┐
//!   middle  weight 200    4 connections × 16 ─┼─▶ unix socket ──▶ server ──▶ modelled disk
//!   heavy   weight 400    2 connections × 32 ─┘
//!
//!   first with `none`: whoever asks most gets most; then with `cfq`: everyone gets its share
//! ```

mod report;
mod scene;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use paternoster::SchedulerKind;

use report::{Report, Verdict};
use scene::Scene;

/// See three tenants share one disk by weight: real NBD clients, a modelled disk.
///
/// The tenants differ in connections and queue depth, so that without weights the lightest wins.
/// Exit status: 0 if every share with cfq is within 5 % of what its weight entitles to, 1 if not,
/// 2 if this machine was too slow to say.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long it takes in all, in seconds
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(4..=3600))]
    seconds: u32,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let phase = Duration::from_secs(args.seconds.into()) / 2;
    let progress = ProgressBar::new_spinner();
    progress.set_style(ProgressStyle::with_template("{spinner} {msg}")?);
    let show = |line: String| {
        progress.set_message(line);
        progress.tick();
    };
    let without = Scene::new(SchedulerKind::None)?.play(phase, &show)?;
    let with = Scene::new(SchedulerKind::Cfq)?.play(phase, &show)?;
    progress.finish_and_clear();

    let report = Report::new(&without, &with);
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{}", report.table());
    }
    Ok(match report.verdict() {
        Verdict::Shared => {
            eprintln!("every share with cfq is within 5 % of what its weight entitles it to");
            ExitCode::SUCCESS
        }
        Verdict::Unfair(what) => {
            eprintln!("paternoster: {what}");
            ExitCode::FAILURE
        }
        Verdict::TooSlow(what) => {
            eprintln!("paternoster: {what}");
            ExitCode::from(2)
        }
    })
}
