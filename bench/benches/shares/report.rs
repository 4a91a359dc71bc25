//! What is printed of a set-up, and the same as JSON.

use paternoster_scene::markdown_table;
use serde::Serialize;

use crate::contender::is_aimed_at;
use crate::figures::{DEMAND, Figures};
use crate::measure::Measured;
use crate::row::{Aim, Row};
use crate::verdict::Verdict;

/// All that was measured of a set-up.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) disk: String,
    pub(crate) aim: Aim,
    /// What the disk takes for a request of the first tenant, in microseconds.
    service_us: Option<f64>,
    pub(crate) lines: Vec<Line>,
}

/// One contender.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// The scheduler, and what is set of it.
    pub(crate) scheduler: String,
    /// Whether something is set.
    pub(crate) is_variant: bool,
    /// Whether the aims are for this one.
    pub(crate) aimed_at: bool,
    pub(crate) figures: Figures,
    pub(crate) verdict: Verdict,
    /// Whether the verdict is a failure where the aim holds.
    pub(crate) fails: bool,
}

impl Line {
    fn new(row: &Row, measured: Measured) -> Self {
        let Measured { contender, figures, verdict } = measured;
        Self {
            scheduler: contender.to_string(),
            is_variant: !contender.tunables.is_empty(),
            aimed_at: is_aimed_at(&contender, row),
            figures,
            fails: verdict.fails(row),
            verdict,
        }
    }
}

impl Report {
    pub(crate) fn new(row: &Row, measured: Vec<Measured>) -> Self {
        let lines = measured.into_iter().map(|one| Line::new(row, one)).collect();
        let service_us = row.service_of_first().map(|service| service.as_secs_f64() * 1e6);
        Self {
            name: row.name,
            about: row.about,
            disk: row.disk.to_string(),
            aim: row.aim,
            service_us,
            lines,
        }
    }

    /// The table for people.
    pub(crate) fn print(&self, row: &Row) {
        let unit = if row.aim == Aim::Times { " of the disk's time" } else { "" };
        println!("{}: {}; {}\n", self.name, self.about, self.disk);
        let error = format!("worst error{unit}");
        let header = [
            "scheduler",
            &error,
            "Jain",
            "of `none`",
            "IOPS",
            "depth",
            "demand",
            "first gets",
            "p50 µs",
            "p99 µs",
            "cores",
            "others",
            "aim",
        ];
        let mut table = markdown_table(header, 1);
        for line in &self.lines {
            table.add_row(line.cells());
        }
        println!("{table}\n");
    }
}

impl Line {
    fn cells(&self) -> [String; 13] {
        let Figures { jain, of_none, iops, depth, demand, first, cores, .. } = &self.figures;
        [
            self.scheduler.clone(),
            self.error(),
            format!("{jain:.4}"),
            of_none.map_or_else(|| "–".to_owned(), |part| format!("{part:.3}")),
            format!("{iops:.0}"),
            depth.to_string(),
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
    pub(crate) fn error(&self) -> String {
        let Figures { worst_error_of_all, demand, .. } = self.figures;
        match worst_error_of_all.map(|error| 100.0 * error) {
            None => "–".to_owned(),
            Some(error) if demand < DEMAND => format!("({error:.1} %)"),
            Some(error) => format!("{error:.1} %"),
        }
    }
}
