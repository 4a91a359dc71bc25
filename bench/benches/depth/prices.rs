//! The table of scenes of prices: which part each tenant gets of what it gets alone, and which
//! prices the last scheduler has in the end.

#![allow(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]

use paternoster::Nanos;
use paternoster_lab::closed_loop::{Prices, Watched};
use paternoster_scene::Scheduler;
use paternoster_scene::statistics::mean;

use crate::runs::SceneResults;
use crate::table::{BACKLOGGED, greatest, mean_and_greatest};

/// By how many times a price that counts as settled differs from its last value at most.
const CLOSE: f64 = 1.25;

/// A row for each scene.
pub(crate) fn table(results: &[&SceneResults<'_>], schedulers: &[Scheduler]) {
    let names: Vec<_> = schedulers.iter().map(|scheduler| format!(" `{scheduler}` |")).collect();
    let last = schedulers.last().expect("there is one");
    println!(
        "Parts of what each tenant gets alone under `{last}`, and in brackets the greatest \
         difference of the two."
    );
    println!();
    println!("| device |{} U in KiB | writes, FUA % | settled after s |", names.concat());
    println!("|---|{}---|---|---|", "---|".repeat(names.len()));
    for SceneResults { entry, schedulers, alone } in results {
        let scene = &entry.scene;
        let cells: String = schedulers.iter().map(|(_, runs)| parts(runs, alone)).collect();
        let runs = &schedulers.last().expect("there is one").1;
        println!("| {}: {} |{cells}{}", scene.name, scene.about, prices(runs));
    }
}

/// The parts that the two tenants have on average, and the greatest difference of the two.
fn parts(runs: &[Watched], alone: &[Vec<Watched>]) -> String {
    let rate = |run: &Watched, tenant: usize| run.tenants[tenant].requests as f64 / run.seconds;
    let of = |tenant: usize| -> Vec<f64> {
        let pairs = runs.iter().zip(&alone[tenant]);
        pairs.map(|(run, alone)| rate(run, tenant) / rate(alone, 0)).collect()
    };
    let (one, other) = (of(0), of(1));
    let differences: Vec<f64> = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).collect();
    let backlogged = runs.iter().map(|run| run.backlogged()).fold(1.0, f64::min);
    let note = if backlogged < BACKLOGGED { " nb" } else { "" };
    let (one, other) = (mean(one), mean(other));
    format!(" {one:.2} : {other:.2} ({:.2}){note} |", greatest(&differences))
}

/// The prices at the end, and when they came close to that.
fn prices(runs: &[Watched]) -> String {
    let last = |of: fn(&Prices) -> i64| -> Option<Vec<f64>> {
        runs.iter().map(|run| Some(of(&run.samples.last()?.prices?) as f64)).collect()
    };
    let range = |values: Option<Vec<f64>>, unit: f64| {
        let Some(values) = values else { return "–".to_owned() };
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min) / unit;
        let highest = greatest(&values) / unit;
        let digits = usize::from(highest < 10.0);
        format!("{lowest:.digits$} to {highest:.digits$}")
    };
    let op_bytes = range(last(|prices| prices.op_bytes), 1024.0);
    let writes = range(last(|prices| prices.write_percent), 1.0);
    let fua = range(last(|prices| prices.fua_percent), 1.0);
    let settled: Option<Vec<f64>> = runs.iter().map(settled_after).collect();
    let settled = settled.map_or("–".to_owned(), |after| mean_and_greatest(&after, 1));
    format!(" {op_bytes} | {writes}, {fua} | {settled} |")
}

/// The seconds until all prices stay within a quarter of their last values; none where the
/// scheduler says no prices.
fn settled_after(run: &Watched) -> Option<f64> {
    let last = run.samples.last()?.prices?;
    let is_close = |prices: Option<Prices>| {
        let near = |value: i64, last: i64| {
            let times = value as f64 / last as f64;
            (1.0 / CLOSE..=CLOSE).contains(&times)
        };
        prices.is_some_and(|prices| {
            near(prices.op_bytes, last.op_bytes)
                && near(prices.write_percent, last.write_percent)
                && near(prices.fua_percent, last.fua_percent)
        })
    };
    let far = run.samples.iter().rfind(|sample| !is_close(sample.prices));
    Some(far.map_or(Nanos::ZERO, |sample| sample.at).as_nanos() as f64 / 1e9)
}
