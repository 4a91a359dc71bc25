//! What is printed of a set-up, and the same as JSON.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::contender::Contender;
use crate::figures::{DEMAND, Figures};
use crate::row::{Aim, Row};
use crate::verdict::Verdict;

/// All that was measured of a set-up.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    name: &'static str,
    about: &'static str,
    disk: String,
    /// What the disk takes for a request of the first tenant, in microseconds.
    service_us: Option<f64>,
    pub(crate) lines: Vec<Line>,
}

/// One contender.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    scheduler: String,
    /// Whether the aims are for this one.
    pub(crate) aimed_at: bool,
    figures: Figures,
    verdict: Verdict,
    /// Whether the verdict is a failure where the aim holds.
    pub(crate) fails: bool,
}

impl Line {
    pub(crate) fn new(
        row: &Row,
        contender: &Contender,
        figures: Figures,
        verdict: Verdict,
    ) -> Self {
        Self {
            scheduler: contender.label(),
            aimed_at: contender.is_aimed_at(row),
            figures,
            fails: verdict.fails(row),
            verdict,
        }
    }
}

impl Report {
    pub(crate) fn new(row: &Row, lines: Vec<Line>) -> Self {
        let service_us = row.service_of_first().map(|service| service.as_secs_f64() * 1e6);
        Self { name: row.name, about: row.about, disk: row.disk.to_string(), service_us, lines }
    }

    /// The table for people.
    pub(crate) fn print(&self, row: &Row) {
        let unit = if row.aim == Aim::Times { " of the disk's time" } else { "" };
        println!("{}: {}; {}\n", self.name, self.about, self.disk);
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header([
            "scheduler",
            &format!("worst error{unit}"),
            "Jain",
            "of `none`",
            "IOPS",
            "demand",
            "first gets",
            "p50 µs",
            "p99 µs",
            "cores",
            "others",
            "aim",
        ]);
        for line in &self.lines {
            table.add_row(line.cells());
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        println!("{table}\n");
    }
}

impl Line {
    fn cells(&self) -> [String; 12] {
        let Figures { jain, of_none, iops, demand, first, cores, .. } = &self.figures;
        [
            self.scheduler.clone(),
            self.error(),
            format!("{jain:.4}"),
            of_none.map_or_else(|| "–".to_owned(), |part| format!("{part:.3}")),
            format!("{iops:.0}"),
            format!("{demand:.3}"),
            format!("{:.1} %", 100.0 * first.share),
            format!("{:.0}", first.p50_us),
            format!("{:.0}", first.p99_us),
            format!("{:.2} + {:.2}", cores.clients, cores.server),
            format!("{:.2}", cores.others),
            self.verdict.to_string(),
        ]
    }

    /// In brackets where not all that it counts were short of the disk.
    fn error(&self) -> String {
        let Figures { worst_error_of_all, demand, .. } = self.figures;
        match worst_error_of_all.map(|error| 100.0 * error) {
            None => "–".to_owned(),
            Some(error) if demand < DEMAND => format!("({error:.1} %)"),
            Some(error) => format!("{error:.1} %"),
        }
    }
}
