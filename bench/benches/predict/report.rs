//! The report of a scene: a row for each tenant and one for all.

use comfy_table::Table;
use paternoster_scene::markdown_table;
use paternoster_scene::statistics::Spread;

use crate::scenes::Entry;

/// How far a share or a throughput may be off, in parts of what was predicted.
pub(crate) const TOLERANCE: f64 = 0.05;

const MIB: f64 = (1 << 20) as f64;

/// What was predicted of a scene and what was measured.
pub(crate) struct Report {
    /// The scene, and its scheduler.
    title: String,
    rows: Vec<Row>,
}

/// A tenant, or all of them.
struct Row {
    name: String,
    /// In parts of all bytes.
    share: Pair,
    /// In bytes a second.
    rate: Pair,
}

/// What was predicted, of which the median counts, and what was measured.
struct Pair {
    predicted: f64,
    measured: Spread,
}

impl Report {
    /// Compares; each run has what each tenant got, in bytes a second.
    pub(crate) fn new(entry: &Entry, predicted: &[Vec<f64>], measured: &[Vec<f64>]) -> Self {
        let of_all = |run: &Vec<f64>| run.iter().sum::<f64>();
        let row = |name: &str, of: &dyn Fn(&Vec<f64>) -> f64| Row {
            name: name.to_owned(),
            share: Pair::new(predicted, measured, |run| of(run) / of_all(run)),
            rate: Pair::new(predicted, measured, of),
        };
        let names = entry.scene.tenants.iter().map(|tenant| tenant.name.as_str()).enumerate();
        let mut rows: Vec<_> = names.map(|(index, name)| row(name, &|run| run[index])).collect();
        rows.push(row("all", &of_all));
        Self { title: format!("{}, {}", entry.scene.name, entry.scheduler), rows }
    }

    /// Whether everything is as predicted.
    pub(crate) fn is_within(&self) -> bool {
        let mut pairs = self.rows.iter().flat_map(|row| [&row.share, &row.rate]);
        pairs.all(|pair| pair.error().abs() <= TOLERANCE)
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> Table {
        let title = self.title.as_str();
        let header = [title, "share", "server", "error", "MiB/s", "server", "spread", "error"];
        let mut table = markdown_table(header, 1);
        for Row { name, share, rate } in &self.rows {
            let [least, most] = [rate.measured.least, rate.measured.most].map(|rate| rate / MIB);
            table.add_row([
                name.clone(),
                format!("{:.1} %", 100.0 * share.predicted),
                format!("{:.1} %", 100.0 * share.measured.median),
                share.error_text(),
                format!("{:.2}", rate.predicted / MIB),
                format!("{:.2}", rate.measured.median / MIB),
                format!("{least:.2} to {most:.2}"),
                rate.error_text(),
            ]);
        }
        table
    }
}

impl Pair {
    fn new(predicted: &[Vec<f64>], measured: &[Vec<f64>], of: impl Fn(&Vec<f64>) -> f64) -> Self {
        let spread = |runs: &[Vec<f64>]| Spread::of(runs.iter().map(&of)).expect("there are runs");
        Self { predicted: spread(predicted).median, measured: spread(measured) }
    }

    /// In parts of what was predicted.
    fn error(&self) -> f64 {
        self.measured.median / self.predicted - 1.0
    }

    fn error_text(&self) -> String {
        format!("{:+.1} %", 100.0 * self.error())
    }
}
