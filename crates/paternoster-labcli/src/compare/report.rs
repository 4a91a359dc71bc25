//! What is printed of a comparison.

use anyhow::Result;
use paternoster_lab::compare::{Compared, Comparison, Interval, Measure};
use paternoster_scene::{plain_table, table_text};
use serde_json::json;

const MIB: f64 = (1 << 20) as f64;

/// A row for each figure under each scheduler but the first, with how far it is from the first's.
pub(super) fn text(schedulers: &[String], comparison: &Comparison) -> String {
    let [first, ..] = schedulers else { return String::new() };
    let header =
        ["SCHEDULER", "OF", "FIGURE", "VERDICT", first, "HERE", "DIFFERENCE", "95 % INTERVAL"];
    let mut table = plain_table(header, 4);
    let rows = comparison.rows();
    for row in &rows {
        table.add_row(cells(row, &schedulers[row.scheduler]));
    }
    let told = rows.iter().filter(|row| row.is_told_apart).count();
    table_text(&table)
        + &format!(
            "{} runs under each; {told} of {} figures are told apart from those under {first}, \
             judged together at 5 % (Holm); an interval is of its figure alone. What is not told \
             apart may differ all the same\n",
            comparison.pairs(),
            comparison.planned(),
        )
}

fn cells(row: &Compared, scheduler: &str) -> [String; 8] {
    let none = || "-".to_owned();
    let [first, here] =
        row.means.map_or([none(), none()], |means| means.map(|value| shown(row.measure, value)));
    let verdict = match (row.interval, row.is_told_apart) {
        (None, _) => "none, or 0, in some run",
        (Some(Interval { mean, .. }), true) if mean > 0.0 => "higher",
        (Some(_), true) => "lower",
        (Some(_), false) => "not told apart",
    };
    let part = |part: f64| match row.measure {
        Measure::ShareError => format!("{} points", signed(100.0 * part)),
        _ => format!("{} %", signed(100.0 * part)),
    };
    let [difference, interval] = row.interval.map_or([none(), none()], |it| {
        [part(it.mean), format!("{} to {}", part(it.low), part(it.high))]
    });
    let name = row.name.clone();
    let (scheduler, measure) = (scheduler.to_owned(), row.measure.to_string());
    [scheduler, name, measure, verdict.to_owned(), first, here, difference, interval]
}

/// With its sign, and as many digits as a small one needs.
fn signed(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        0.000_1..0.1 => format!("{value:+.4}"),
        _ => format!("{value:+.1}"),
    }
}

fn shown(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Throughput => format!("{:.1} MiB/s", value / MIB),
        Measure::ShareError => format!("{:.1} points", 100.0 * value),
        Measure::P50 | Measure::P99 | Measure::P999 => format!("{:.1} us", value / 1e3),
    }
}

/// The same with all digits.
pub(super) fn json(schedulers: &[String], comparison: &Comparison) -> Result<String> {
    let rows = comparison.rows().into_iter().map(|row| {
        let Compared { scheduler, name, measure, means, interval, is_told_apart, .. } = row;
        let difference = interval.map(|it| {
            let Interval { mean, low, high, p } = it;
            json!({"mean": mean, "low": low, "high": high, "p": p})
        });
        json!({
            "scheduler": schedulers[scheduler],
            "of": name,
            "measure": measure,
            "means": means,
            "difference": difference,
            "told_apart": is_told_apart,
        })
    });
    let value = json!({
        "schedulers": schedulers,
        "pairs": comparison.pairs(),
        "planned": comparison.planned(),
        "rows": rows.collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}
