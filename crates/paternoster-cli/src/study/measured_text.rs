//! What was measured, as tables for a terminal and for the page.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use paternoster_lab::report::PageTable;

use super::measure::{Factor, Measured, Measurement};

/// The columns, and what each is of.
const COLUMNS: [&str; 13] = [
    "way",
    "devices",
    "submitters",
    "kIOPS",
    "least to most",
    "CPU µs",
    "path µs",
    "waits %",
    "locks",
    "contended",
    "wake-ups",
    "futex",
    "batch",
];

const NOTE: &str = "Measured here, on real threads and a null device that is done at once; \
    CPU µs, locks, contended locks, wake-ups and futex calls (without those of locks) are for an \
    I/O; path is the CPU time beyond that of a direct call; waits is the submitters' time waiting \
    for locks; batch is what reached a device at once, its mean and its longest.";

fn cells(way: &Measured) -> [String; 13] {
    let kilo = |iops: f64| format!("{:.0}", iops / 1e3);
    [
        way.way.to_owned(),
        way.devices.to_string(),
        way.submitters.to_string(),
        kilo(way.iops.median),
        format!("{} to {}", kilo(way.iops.least), kilo(way.iops.most)),
        format!("{:.3}", way.cpu_us_per_io.median),
        format!("{:.3}", way.path_us_per_io),
        format!("{:.1}", way.lock_wait_percent),
        format!("{:.3}", way.locks_per_io),
        format!("{:.3}", way.contended_per_io),
        format!("{:.4}", way.wakeups_per_io),
        format!("{:.4}", way.futex_per_io),
        format!("{:.1}, {}", way.batch_mean, way.batch_longest),
    ]
}

/// The tables, and the factors below them.
pub(super) fn text(measured: &Measurement) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(COLUMNS);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for way in &measured.ways {
        table.add_row(cells(way));
    }
    let mut text = format!("plugging, measured: {}\n\n", setting(measured));
    for line in table.lines() {
        writeln!(text, "{}", line.trim_end()).expect("a string takes all");
    }
    writeln!(text, "\n{NOTE}\n").expect("a string takes all");
    for line in factor_lines(measured) {
        writeln!(text, "{line}").expect("a string takes all");
    }
    text.push('\n');
    text
}

/// The same for the page.
pub(super) fn page_table(measured: &Measurement) -> PageTable {
    let mut notes = vec![setting(measured), NOTE.to_owned()];
    notes.extend(factor_lines(measured));
    PageTable {
        title: "plugging, measured on this machine".to_owned(),
        notes,
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: measured.ways.iter().map(|way| cells(way).to_vec()).collect(),
    }
}

fn setting(measured: &Measurement) -> String {
    let setting = &measured.setting;
    let load = setting.load_average.map_or_else(String::new, |it| format!(", load average {it}"));
    format!(
        "{} processors{load}; {}, batches of {} of {} outstanding, {} owner, polling {} µs; \
         medians of {} runs",
        setting.processors,
        setting.scheduler,
        setting.batch,
        setting.iodepth,
        setting.owners,
        setting.poll_us,
        setting.runs
    )
}

/// A line for each number of submitters and devices.
fn factor_lines(measured: &Measurement) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for beside in
        measured.factors.chunk_by(|a, b| a.devices == b.devices && a.submitters == b.submitters)
    {
        let told = |factor: &Factor| {
            let times = factor.times.map_or_else(|| "?".to_owned(), |it| format!("{it:.1}"));
            format!("{} × {times}", factor.way)
        };
        let told: Vec<_> = beside.iter().map(told).collect();
        let Factor { devices, submitters, .. } = beside[0];
        lines.push(format!(
            "CPU time of the path by that of plug+rings, {devices} devices, {submitters} \
             submitters: {}",
            told.join(", ")
        ));
    }
    lines
}
