//! The report of a scene: a row for each tenant and one for all.

use comfy_table::{CellAlignment, Table, presets};

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

/// Medians of what was predicted and what was measured.
struct Pair {
    predicted: f64,
    measured: f64,
    /// From the least to the most that was measured.
    spread: [f64; 2],
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
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        let title = self.title.as_str();
        table.set_header([title, "share", "server", "error", "MiB/s", "server", "spread", "error"]);
        for Row { name, share, rate } in &self.rows {
            let [least, most] = rate.spread.map(|rate| rate / MIB);
            table.add_row([
                name.clone(),
                format!("{:.1} %", 100.0 * share.predicted),
                format!("{:.1} %", 100.0 * share.measured),
                share.error_text(),
                format!("{:.2}", rate.predicted / MIB),
                format!("{:.2}", rate.measured / MIB),
                format!("{least:.2} to {most:.2}"),
                rate.error_text(),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl Pair {
    fn new(predicted: &[Vec<f64>], measured: &[Vec<f64>], of: impl Fn(&Vec<f64>) -> f64) -> Self {
        let sorted = |runs: &[Vec<f64>]| {
            let mut values: Vec<f64> = runs.iter().map(&of).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let (predicted, measured) = (sorted(predicted), sorted(measured));
        Self {
            predicted: predicted[predicted.len() / 2],
            measured: measured[measured.len() / 2],
            spread: [measured[0], measured[measured.len() - 1]],
        }
    }

    /// In parts of what was predicted.
    fn error(&self) -> f64 {
        self.measured / self.predicted - 1.0
    }

    fn error_text(&self) -> String {
        format!("{:+.1} %", 100.0 * self.error())
    }
}
