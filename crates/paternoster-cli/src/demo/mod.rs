//! `paternoster demo`: three tenants share one disk by weight, on nothing but this binary.
//!
//! ```text
//!   light   weight 100   16 connections × 16 ──┐ NBD
//!   middle  weight 200    4 connections × 16 ──┼─▶ unix sockets ──▶ server ──▶ modelled disk
//!   heavy   weight 400    2 queues × 32 ───────┘ shared memory (vhost-user)
//!
//!   a disk that serves 4 at once     none   whoever asks most gets most
//!                                    cfq    everyone gets its share
//!   a disk that serves 16 at once    none   the disk is busy, whoever asks most gets most
//!                                    cfq    everyone gets its share, of half of the disk
//!                                    wfq    everyone gets its share, and the disk is busy
//! ```

mod parallel;
mod report;
mod scene;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use paternoster::SchedulerKind;

use report::{Report, Verdict};
use scene::{DISK, PARALLEL};

/// See three tenants share one disk by weight: real clients, a modelled disk.
///
/// Two come by NBD, and the third as a virtual machine does, by shared memory (vhost-user). The
/// tenants differ in connections and queue depth, so that without weights the lightest wins. A
/// second disk, which serves many requests at once, shows what weights cost in throughput. Exit
/// status: 0 if every share with cfq, and with wfq on the second disk, is within 5 % of what its
/// weight entitles it to, 1 if not, 2 if this machine was too slow to say.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long it takes in all, in seconds: 10 to 3600
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(10..=3600))]
    seconds: u32,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // Three parts of ten for each scheduler of the first disk; the other four are the second's.
    let whole = Duration::from_secs(args.seconds.into());
    let (first, second) = (whole * 3 / 10, whole * 4 / 10 / 3);
    let progress = ProgressBar::new_spinner();
    progress.set_style(ProgressStyle::with_template("{spinner} {msg}")?);
    let show = |line: String| {
        progress.set_message(line);
        progress.tick();
    };
    let without = DISK.play(SchedulerKind::None, first, &show)?;
    let with = DISK.play(SchedulerKind::Cfq, first, &show)?;
    let play = |&kind: &_| Ok((kind, PARALLEL.play(kind, second, &show)?));
    let parallel: Result<Vec<_>> = parallel::SCHEDULERS.iter().map(play).collect();
    let parallel = parallel?;
    progress.finish_and_clear();

    let report = Report::new(&without, &with, &parallel);
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{}", report.text());
    }
    Ok(match report.verdict() {
        Verdict::Shared => {
            eprintln!(
                "every share with cfq and with wfq is within 5 % of what its weight entitles it to"
            );
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
