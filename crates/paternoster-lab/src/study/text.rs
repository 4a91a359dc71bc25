//! A study's outcome as text.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};

use super::cell::{Cell, Kind};
use super::collect::StudyReport;
use super::errors::Errors;

/// The outcome as tables for a terminal: the totals and effects, the errors, and the parameters,
/// those first that move the answer most.
pub fn text(report: &StudyReport) -> String {
    let mut text = format!("{}: {}\n\n", report.name, report.about);
    for part in [totals(report), errors(report), moves(report)] {
        let lines = part.lines().map(|line| line.trim_end().to_owned());
        lines.for_each(|line| writeln!(text, "{line}").expect("a string takes all"));
        text.push('\n');
    }
    text
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Cells but for those of groups, which are many.
fn totals(report: &StudyReport) -> Table {
    let mut table = table(["cell", "unit", "published", "ours", "error", ""]);
    let told = |cell: &&Cell| !matches!(cell.kind, Kind::Group | Kind::Share);
    for cell in report.cells.iter().filter(told) {
        let decimals = if matches!(cell.kind, Kind::Effect | Kind::Cost) { 2 } else { 0 };
        let remark = match (cell.counted, cell.calibrated) {
            (false, _) => "not counted",
            (true, true) => "calibrated",
            (true, false) => "",
        };
        table.add_row([
            cell.id.clone(),
            cell.unit.to_owned(),
            format!("{:.decimals$}", cell.seed),
            format!("{:.decimals$}", cell.ours),
            format!("{:+.1} %", cell.error()),
            remark.to_owned(),
        ]);
    }
    table
}

fn errors(report: &StudyReport) -> Table {
    let mut table = table(["predicted", "cells", "median", "p90", "aim", "worst", ""]);
    for errors in &report.errors {
        let unit = if errors.kind == Kind::Share { "points" } else { "%" };
        table.add_row([
            errors.kind.name().to_owned(),
            errors.cells.to_string(),
            format!("{:.1} {unit}", errors.median),
            format!("{:.1} {unit}", errors.p90),
            aim(errors, unit),
            format!("{:.1} {unit}", errors.worst),
            errors.worst_cell.clone(),
        ]);
    }
    table
}

fn aim(errors: &Errors, unit: &str) -> String {
    let (Some(aim), Some(reached)) = (errors.aim, errors.are_within_aim()) else {
        return String::new();
    };
    let p90 = aim.p90.map_or_else(String::new, |p90| format!(", {p90} {unit}"));
    format!("{} {unit}{p90}: {}", aim.median, if reached { "reached" } else { "missed" })
}

/// The parameters, those first that move a total most.
fn moves(report: &StudyReport) -> Table {
    let mut table = table(["parameter", "known", "value", "if", "median", "most", ""]);
    let mut rows: Vec<_> =
        report.moves.iter().flat_map(|by| by.moved.iter().map(move |moved| (by, moved))).collect();
    rows.sort_by(|a, b| b.1.most.abs().total_cmp(&a.1.most.abs()));
    for (by, moved) in rows {
        table.add_row([
            by.key.clone(),
            by.mark.to_owned(),
            by.value.clone(),
            moved.value.to_string(),
            format!("{:.1} %", moved.median),
            format!("{:+.1} %", moved.most),
            moved.most_cell.clone(),
        ]);
    }
    table
}
