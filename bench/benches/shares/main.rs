//! `cargo xtask bench shares`: whether every tenant gets its weight while the disk stays busy, by
//! real clients of real servers, as the tables of `docs/shares.md`.
//!
//! ```text
//!   rows.rs ──▶ measure.rs ──────▶ figures.rs ──▶ verdict.rs ──▶ report.rs
//!   set-ups     contender.rs:      error, Jain,   as aimed at?   tables, JSON
//!               server, clients    latency                        summary.rs
//! ```
//!
//! A set-up is served by each scheduler in turn, a second at a time, `none` first; throughput is
//! compared within a round, and the median of the rounds counts.

mod contender;
mod cpu;
mod figures;
mod hogs;
mod measure;
mod report;
mod row;
mod rows;
mod summary;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use contender::AIMED_AT;
use measure::measure;
use paternoster::SchedulerKind;
use report::Report;
use row::Row;
use rows::rows;

/// The options.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench shares",
    about = "Whether every tenant gets its weight while the disk stays busy",
    after_help = "With --throttled alone: three tenants on a loop device that the kernel \
                  throttles, on ranges of it and on volumes of a pool, as root"
)]
struct Options {
    /// Set-ups whose name contains one of these; all unless told
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    rows: Vec<String>,

    /// How many windows of a second each scheduler gets on each set-up
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,

    /// The schedulers, beside `none`, with which each is compared
    #[arg(long, value_delimiter = ',', default_value = "cfq,bfq,wfq")]
    schedulers: Vec<SchedulerKind>,

    /// Write all that was measured to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Fail where `wfq` misses an aim
    #[arg(long)]
    check: bool,

    /// Print the names of the set-ups, and what they are
    #[arg(long)]
    list: bool,

    /// Cargo gives a bench this option
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    if options.list {
        for Row { name, about, disk, .. } in rows() {
            println!("{name}: {about}; {disk}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rows = chosen(&options.rows)?;
    let mut schedulers = vec![SchedulerKind::None];
    schedulers.extend(options.schedulers.iter().filter(|kind| **kind != SchedulerKind::None));
    if options.check && !schedulers.iter().any(|kind| kind.name() == AIMED_AT) {
        bail!("--check is about {AIMED_AT}, which is not among the schedulers");
    }

    let began = Instant::now();
    let mut reports = Vec::new();
    for row in &rows {
        let measured = measure(row, &schedulers, options.seconds)
            .with_context(|| format!("set-up {}", row.name))?;
        let report = Report::new(row, measured);
        report.print(row);
        reports.push(report);
    }
    summary::print(&reports);
    println!("measured in {:.0} s", began.elapsed().as_secs_f64());
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&reports)?;
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let failed = summary::sum_up(&reports);
    Ok(if options.check && failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The set-ups whose names contain one of the patterns; all where there is none.
fn chosen(patterns: &[String]) -> Result<Vec<Row>> {
    let is_chosen = |row: &Row| {
        patterns.is_empty() || patterns.iter().any(|pattern| row.name.contains(pattern.as_str()))
    };
    let (chosen, others): (Vec<_>, Vec<_>) = rows().into_iter().partition(is_chosen);
    if chosen.is_empty() {
        let names: Vec<_> = others.iter().map(|row| row.name).collect();
        bail!("no set-up is called {}; there are: {}", patterns.join(" or "), names.join(", "));
    }
    Ok(chosen)
}
