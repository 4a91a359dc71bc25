//! A study's outcome as text.

use std::fmt::Write as _;

use comfy_table::Table;
use paternoster_scene::{plain_table, table_text};

use super::Word;
use super::cell::{Cell, Kind};
use super::collect::StudyReport;
use super::errors::{Errors, Near};

/// The outcome as tables for a terminal: what short words mean, the totals and effects, the errors,
/// and the parameters, those first that move the answer most.
pub fn text(report: &StudyReport) -> String {
    let mut text = format!("{}: {}\n\n", report.name, report.about);
    for Word { word, meaning } in &report.words {
        writeln!(text, "{word}: {meaning}").expect("a string takes all");
    }
    text.push('\n');
    add(&mut text, &totals(report));
    for footnote in &report.footnotes {
        writeln!(text, "{footnote}\n").expect("a string takes all");
    }
    add(&mut text, &errors(report));
    text += &near(report);
    add(&mut text, &moves(report));
    for page in &report.tables {
        writeln!(text, "{}", page.title).expect("a string takes all");
        let mut part = plain_table(page.columns.clone(), 1);
        part.add_rows(&page.rows);
        add(&mut text, &part);
    }
    let mut notes: Vec<_> = report.tables.iter().flat_map(|page| &page.notes).collect();
    notes.dedup();
    for note in notes {
        writeln!(text, "{note}\n").expect("a string takes all");
    }
    text
}

fn add(text: &mut String, table: &Table) {
    text.push_str(&table_text(table));
    text.push('\n');
}

/// Cells but for those of groups, which are many.
fn totals(report: &StudyReport) -> Table {
    let mut table = plain_table(["cell", "unit", "published", "ours", "error", ""], 1);
    let told = |cell: &&Cell| !matches!(cell.kind, Kind::Group | Kind::Share);
    for cell in report.cells.iter().filter(told) {
        let decimals = match cell.kind {
            Kind::Effect | Kind::Cost => 2,
            Kind::Latency | Kind::Load => 1,
            _ => 0,
        };
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
            format!("{:+.1} {}", cell.error(), cell.kind.error_unit()),
            remark.to_owned(),
        ]);
    }
    table
}

fn errors(report: &StudyReport) -> Table {
    let mut table = plain_table(
        ["predicted", "cells", "<= 5 %", "<= 10 %", "<= 20 %", "median", "p90", "aim", "worst", ""],
        1,
    );
    for errors in &report.errors {
        let unit = errors.kind.error_unit();
        table.add_row([
            errors.kind.name().to_owned(),
            errors.cells.to_string(),
            errors.near.within_5.to_string(),
            errors.near.within_10.to_string(),
            errors.near.within_20.to_string(),
            format!("{:.1} {unit}", errors.median),
            format!("{:.1} {unit}", errors.p90),
            aim(errors, unit),
            format!("{:.1} {unit}", errors.worst),
            errors.worst_cell.clone(),
        ]);
    }
    table
}

/// How many figures are near to what was published.
fn near(report: &StudyReport) -> String {
    let Near { all, within_5, within_10, within_20 } = report.near;
    format!(
        "Of {all} cells of {} that no parameter was fitted to, {within_5} are within 5 % of \
         what was published, {within_10} within 10 %, {within_20} within 20 %.\n\n",
        report.name
    )
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
    let mut table = plain_table(["parameter", "known", "value", "if", "median", "most", ""], 1);
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
