//! A table for people whose columns are declared one by one: a heading, and what it has of a row.

use std::fmt::{Display, Write as _};

use comfy_table::{CellAlignment, Table, presets};
use paternoster_cli::output::alarming;

/// A table that is being declared.
pub(super) struct Columns<'a, T> {
    rows: &'a [T],
    columns: Vec<Column>,
}

struct Column {
    alignment: CellAlignment,
    heading: String,
    /// One for each row.
    cells: Vec<String>,
}

impl<'a, T> Columns<'a, T> {
    /// A table of these rows, without columns.
    pub(super) fn of(rows: &'a [T]) -> Self {
        Self { rows, columns: vec![] }
    }

    /// Adds a column of words.
    pub(super) fn words<D: Display>(&mut self, heading: &str, cell: impl Fn(&T) -> D) {
        self.add(CellAlignment::Left, heading, cell);
    }

    /// Adds a column of numbers.
    pub(super) fn numbers<D: Display>(&mut self, heading: &str, cell: impl Fn(&T) -> D) {
        self.add(CellAlignment::Right, heading, cell);
    }

    fn add<D: Display>(&mut self, alignment: CellAlignment, heading: &str, cell: impl Fn(&T) -> D) {
        let cells = self.rows.iter().map(|row| cell(row).to_string()).collect();
        self.columns.push(Column { alignment, heading: heading.to_owned(), cells });
    }

    /// The table, each line with an end and indented by one, in colour if its row is alarming.
    pub(super) fn show(&self, is_alarming: impl Fn(&T) -> bool) -> String {
        let mut table = Table::new();
        let headings = self.columns.iter().map(|column| &column.heading);
        table.load_style(presets::NOTHING).set_header(headings);
        for row in 0..self.rows.len() {
            table.add_row(self.columns.iter().map(|column| &column.cells[row]));
        }
        for (column, shown) in self.columns.iter().zip(table.column_iter_mut()) {
            shown.set_cell_alignment(column.alignment);
        }
        let rows = self.rows.iter().map(is_alarming);
        // The first line has the headings.
        let lines = table.lines().zip(std::iter::once(false).chain(rows));
        lines.fold(String::new(), |mut text, (line, is_alarming)| {
            let line = line.trim_end();
            let line = if is_alarming { alarming(line) } else { line.to_owned() };
            let _ = writeln!(text, " {line}");
            text
        })
    }
}
