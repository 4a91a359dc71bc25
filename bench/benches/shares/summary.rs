//! What is printed of all set-ups at the end: a table for each kind of aim, as in `docs/shares.md`,
//! and how many aims were reached.

use paternoster_scene::markdown_table;

use crate::contender::AIMED_AT;
use crate::report::{Line, Report};
use crate::row::Aim;
use crate::verdict::Verdict;

/// The kinds of aims, and what the cells of their tables say.
const TABLES: [(Aim, &str); 4] = [
    (Aim::Shares, "worst error of a share in a second, part of the throughput of `none`"),
    (Aim::Times, "worst error of a share of the disk's time, part of the busy time of `none`"),
    (Aim::Depth, "requests a second, of the learned depth also as a part of the best fixed one"),
    (Aim::Soon, "the first tenant's p50 and p99 in µs, part of the throughput of `none`"),
];

/// Prints the tables.
pub(crate) fn print(reports: &[Report]) {
    for (aim, what) in TABLES {
        let of_kind: Vec<_> = reports.iter().filter(|report| report.aim == aim).collect();
        if let Some(first) = of_kind.first() {
            println!("{what}:\n");
            let names = first.lines.iter().map(|line| line.column(aim));
            let heads = ["set-up", "disk"].map(str::to_owned).into_iter().chain(names);
            let heads: Vec<_> = heads.chain(["aim".to_owned()]).collect();
            // Its columns hold words, too.
            let columns = heads.len();
            let mut table = markdown_table(heads, columns);
            for report in of_kind {
                table.add_row(report.row());
            }
            println!("{table}\n");
        }
    }
}

impl Report {
    fn row(&self) -> Vec<String> {
        let aimed = self.lines.iter().find(|line| line.aimed_at);
        let verdict = aimed.map_or_else(|| "–".to_owned(), |line| line.verdict.to_string());
        let cells = self.lines.iter().map(|line| line.cell(self.aim));
        let heads = [self.about.to_owned(), self.disk.clone()].into_iter();
        heads.chain(cells).chain([verdict]).collect()
    }
}

impl Line {
    /// Variants of a scheduler have settings of their own in each row, but for fixed depths.
    fn column(&self, aim: Aim) -> String {
        if aim == Aim::Depth {
            return format!("`{}`", self.scheduler);
        }
        let scheduler = self.scheduler.split(':').next().unwrap_or_default();
        if self.is_variant { format!("`{scheduler}`, told") } else { format!("`{scheduler}`") }
    }

    fn cell(&self, aim: Aim) -> String {
        let figures = &self.figures;
        let what = match aim {
            Aim::Depth => {
                let best = figures.of_best_fixed.map(|part| format!(", {part:.2}"));
                return format!("{:.0}{}", figures.iops, best.unwrap_or_default());
            }
            Aim::Shares | Aim::Times => self.error(),
            Aim::Soon => format!("{:.0} / {:.0}", figures.first.p50_us, figures.first.p99_us),
        };
        match figures.of_none {
            Some(part) => format!("{what}, {part:.2}"),
            None => what,
        }
    }
}

/// Says how many aims were reached, and returns how many were missed.
pub(crate) fn sum_up(reports: &[Report]) -> usize {
    let all = reports.iter().flat_map(|report| report.lines.iter().map(move |line| (report, line)));
    let aims: Vec<_> = all.filter(|(_, line)| line.aimed_at).collect();
    let named = |is_so: fn(&Line) -> bool| -> Vec<&str> {
        aims.iter().filter(|(_, line)| is_so(line)).map(|(report, _)| report.name).collect()
    };
    let passed = named(|line| line.verdict == Verdict::Pass);
    let failed = named(|line| line.fails);
    let open = named(|line| line.verdict == Verdict::NotShort && !line.fails);
    println!("{AIMED_AT}: {} of {} set-ups as aimed at", passed.len(), aims.len());
    if !failed.is_empty() {
        println!("missed: {}", failed.join(", "));
    }
    if !open.is_empty() {
        println!("not short of the disk, so that nothing is shown: {}", open.join(", "));
    }
    failed.len()
}
