//! Tables of what was run, as Markdown.

use paternoster::Nanos;
use paternoster_lab::closed_loop::{Owner, Set, Watched};
use paternoster_scene::Scheduler;
use paternoster_scene::statistics::mean;

use crate::options::Options;
use crate::prices;
use crate::runs::SceneResults;

/// A tenant counts as always backlogged from this part of the time on: what it misses of its share
/// because it asked for nothing is then at most a hundredth.
pub(crate) const BACKLOGGED: f64 = 0.99;

/// A table for each set.
pub(crate) fn sets(results: &[SceneResults<'_>], options: &Options) {
    let main = options.schedulers.last().expect("there is one");
    let owner =
        if options.owner() == Owner::Noisy { ", owner stalled 20 times a second" } else { "" };
    println!(
        "{} seeds{owner}; the mean, and in brackets the worst. nb: a tenant was not always \
         backlogged, so that nothing was promised. What is not named is of `{main}`.",
        options.seeds
    );
    for set in Set::ALL {
        let results: Vec<_> = results.iter().filter(|result| result.entry.set == set).collect();
        if !results.is_empty() {
            println!();
            match set {
                Set::Devices | Set::Crowds => scenes(&results, &options.schedulers),
                Set::Victims => victims(&results, &options.schedulers),
                Set::Changes => changes(&results, &options.schedulers),
                Set::Prices => prices::table(&results, &options.schedulers),
            }
        }
    }
}

/// The last scheduler in detail, beside the first.
fn scenes(results: &[&SceneResults<'_>], schedulers: &[Scheduler]) {
    let (base, others) = schedulers.split_first().expect("there is one");
    let others: Vec<_> = others.iter().map(|other| format!(" `{other}` |")).collect();
    println!(
        "| device | `{base}` |{} error | in a second | D | in flight | victim p50 / p99 µs | \
         `{base}`'s |",
        others.concat()
    );
    println!("|---|---|{}---|---|---|---|---|---|", "---|".repeat(others.len()));
    for SceneResults { entry, schedulers, .. } in results {
        let scene = &entry.scene;
        let base = &schedulers[0].1;
        let ratios: String = schedulers[1..].iter().map(|(_, runs)| ratio(runs, base)).collect();
        let runs = &schedulers.last().expect("there is one").1;
        println!(
            "| {}: {} | {} |{ratios} {} | {} | {} | {:.0} | {} | {} |",
            scene.name,
            scene.about,
            rate(mean(base.iter().map(|run| run.throughput()))),
            error(runs),
            seconds_error(runs),
            depth(runs),
            mean(runs.iter().map(in_flight)),
            victim(runs),
            victim(base),
        );
    }
}

/// What the victim gets under each.
fn victims(results: &[&SceneResults<'_>], schedulers: &[Scheduler]) {
    let names: Vec<_> = schedulers.iter().map(|scheduler| format!(" `{scheduler}` |")).collect();
    println!("| the victim's requests a second, of all |{}", names.concat());
    println!("|---|{}", "---|".repeat(names.len()));
    for SceneResults { entry, schedulers, .. } in results {
        let scene = &entry.scene;
        let cells: String = schedulers.iter().map(|(_, runs)| victim_rate(runs)).collect();
        println!("| {}: {} |{cells}", scene.name, scene.about);
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn victim_requests(run: &Watched) -> f64 {
    run.light().map_or(0.0, |victim| victim.requests as f64 / run.seconds)
}

fn victim_rate(runs: &[Watched]) -> String {
    let rates: Vec<f64> = runs.iter().map(victim_requests).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    format!(
        " {} ({}) of {} |",
        rate(mean(rates)),
        rate(least),
        rate(mean(runs.iter().map(|run| run.throughput())))
    )
}

/// How long each takes.
fn changes(results: &[&SceneResults<'_>], schedulers: &[Scheduler]) {
    let names: Vec<_> = schedulers.iter().map(|scheduler| format!(" `{scheduler}` |")).collect();
    println!("| ms until 95 % of the throughput, 1.5 times the depth |{}", names.concat());
    println!("|---|{}", "---|".repeat(names.len()));
    for SceneResults { entry, schedulers, .. } in results {
        let scene = &entry.scene;
        let cells: String = schedulers.iter().map(|(_, runs)| settling(runs)).collect();
        println!("| {}: {} |{cells}", scene.name, scene.about);
    }
}

fn settling(runs: &[Watched]) -> String {
    let ms = |span: Nanos| u32::try_from(span.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
    let throughput: Vec<_> = runs.iter().map(|run| ms(run.settling().throughput).into()).collect();
    let depth = runs.iter().filter_map(|run| run.settling().depth);
    let depth: Vec<_> = depth.map(|span| ms(span).into()).collect();
    let cell = |ms: &[f64]| mean_and_greatest(ms, 0);
    let depth = if depth.is_empty() { "–".to_owned() } else { cell(&depth) };
    format!(" {}, {depth} |", cell(&throughput))
}

/// A row for each run.
pub(crate) fn runs(results: &[SceneResults<'_>]) {
    println!(
        "| device | scheduler | seed | a second | error | worst second | backlogged | D mean | \
         D last | in flight | victim p50 | p99 |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (scheduler, seed, name, run) in each_run(results) {
        let worst = run.seconds_errors.iter().copied().fold(0.0, f64::max);
        let (mean, last) =
            run.depth().map_or(("–".to_owned(), "–".to_owned()), |(mean, last)| {
                (format!("{mean:.1}"), last.to_string())
            });
        println!(
            "| {name} | {scheduler} | {seed} | {} | {:.2} | {:.1} | {:.3} | {mean} | {last} | \
             {:.1} | {} | {} |",
            rate(run.throughput()),
            100.0 * run.share_error(),
            100.0 * worst,
            run.backlogged(),
            in_flight(run),
            victim_us(run, 0.5),
            victim_us(run, 0.99),
        );
    }
}

/// A quantile of the victim's latency in a run, if there is a victim.
fn victim_us(run: &Watched, quantile: f64) -> String {
    let victim = run.light().filter(|victim| victim.requests > 0);
    victim.map_or("–".to_owned(), |victim| format!("{:.0}", victim.latency_us(quantile)))
}

/// What happened in each step of each run.
pub(crate) fn timelines(results: &[SceneResults<'_>], step: Nanos) {
    for (scheduler, seed, name, run) in each_run(results) {
        println!("# {name}, {scheduler}, seed {seed}: ms, a second, D, in flight");
        let mut last = run.samples[0];
        for &sample in &run.samples {
            let span = sample.at.saturating_sub(last.at);
            if span < step {
                continue;
            }
            let rate = (sample.completed - last.completed) * 1_000_000_000 / span.as_nanos();
            let depth = sample.depth.map_or("–".to_owned(), |depth| depth.to_string());
            let ms = sample.at.as_nanos() / 1_000_000;
            println!("{ms}\t{rate}\t{depth}\t{}", sample.in_flight);
            last = sample;
        }
    }
}

/// All runs, each with its scheduler, its seed and the name of its scene.
fn each_run<'a>(
    results: &'a [SceneResults<'a>],
) -> impl Iterator<Item = (&'a Scheduler, usize, &'a str, &'a Watched)> {
    results.iter().flat_map(|SceneResults { entry, schedulers, .. }| {
        schedulers.iter().flat_map(|(scheduler, runs)| {
            let seeds = (1..).zip(runs);
            seeds.map(|(seed, run)| (*scheduler, seed, entry.scene.name.as_str(), run))
        })
    })
}

/// The throughput beside that of the base with the same seed.
fn ratio(runs: &[Watched], base: &[Watched]) -> String {
    let ratios = runs.iter().zip(base).map(|(run, base)| run.throughput() / base.throughput());
    let ratios: Vec<f64> = ratios.collect();
    let mean = mean(ratios.iter().copied());
    let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    format!(" {mean:.3} ({worst:.3}) |")
}

/// The share error in percent.
fn error(runs: &[Watched]) -> String {
    let errors: Vec<f64> = runs.iter().map(|run| 100.0 * run.share_error()).collect();
    let backlogged = runs.iter().map(|run| run.backlogged()).fold(1.0, f64::min);
    let note = if backlogged < BACKLOGGED { " nb" } else { "" };
    mean_and_greatest(&errors, 1) + note
}

/// That of single seconds.
fn seconds_error(runs: &[Watched]) -> String {
    let all = runs.iter().flat_map(|run| &run.seconds_errors).map(|error| 100.0 * error);
    let all: Vec<f64> = all.collect();
    mean_and_greatest(&all, 1)
}

/// The depth while it counts, and its last values.
fn depth(runs: &[Watched]) -> String {
    let depths: Vec<_> = runs.iter().filter_map(Watched::depth).collect();
    let lasts = depths.iter().map(|(_, last)| *last);
    match (lasts.clone().min(), lasts.max()) {
        (Some(least), Some(most)) => {
            let mean = mean(depths.iter().map(|(mean, _)| *mean));
            format!("{mean:.0} ({least} to {most})")
        }
        _ => "–".to_owned(),
    }
}

fn in_flight(run: &Watched) -> f64 {
    run.in_flight.expect("the laboratory looks")
}

fn victim_latency(run: &Watched, quantile: f64) -> f64 {
    run.light().map_or(0.0, |victim| victim.latency_us(quantile))
}

fn victim(runs: &[Watched]) -> String {
    let p99: Vec<f64> = runs.iter().map(|run| victim_latency(run, 0.99)).collect();
    let p50 = mean(runs.iter().map(|run| victim_latency(run, 0.5)));
    format!("{p50:.0} / {}", mean_and_greatest(&p99, 0))
}

/// Requests a second.
fn rate(rate: f64) -> String {
    if rate >= 10_000.0 { format!("{:.1} k", rate / 1000.0) } else { format!("{rate:.0}") }
}

/// The mean, and the greatest in brackets.
pub(crate) fn mean_and_greatest(values: &[f64], digits: usize) -> String {
    let mean = mean(values.iter().copied());
    format!("{mean:.digits$} ({:.digits$})", greatest(values))
}

pub(crate) fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
