//! The table of a scene: a row for each tenant under each scheduler; and how tables look here.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, Row, Table, TableStyle, presets};

use crate::outcome::{Outcome, TenantOutcome};
use crate::scene::Scene;
use crate::scheduler::Scheduler;

const MIB: f64 = (1 << 20) as f64;
/// A tenant counts as always backlogged from this part of the time on.
const BACKLOGGED: f64 = 0.99;

/// A table without rows and without lines. All columns but the first `words` have numbers, and are
/// aligned to the right.
pub fn plain_table(header: impl Into<Row>, words: usize) -> Table {
    aligned(presets::NOTHING, header, words)
}

/// The same as Markdown has it.
pub fn markdown_table(header: impl Into<Row>, words: usize) -> Table {
    aligned(presets::ASCII_MARKDOWN, header, words)
}

fn aligned(style: TableStyle, header: impl Into<Row>, words: usize) -> Table {
    let mut table = Table::new();
    table.load_style(style).set_header(header);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Its lines, without white space at their ends.
pub fn table_text(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// Makes the table.
pub fn table(outcomes: &[(Scheduler, Outcome)]) -> Table {
    let header =
        ["SCHEDULER", "TENANT", "WEIGHT", "IOPS", "MiB/s", "SHARE", "DUE", "DEMAND", "P50", "P99"];
    let mut table = plain_table(header, 2);
    for (scheduler, outcome) in outcomes {
        for tenant in &outcome.tenants {
            table.add_row(row(&scheduler.to_string(), outcome, tenant));
        }
    }
    table
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn row(scheduler: &str, outcome: &Outcome, tenant: &TenantOutcome) -> Vec<String> {
    let rate = tenant.requests as f64 / outcome.seconds;
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    let (share, due) = if tenant.light {
        ("–".to_owned(), "–".to_owned())
    } else {
        let share = outcome.share(tenant).map_or_else(|| "–".to_owned(), percent);
        (share, percent(outcome.entitled(tenant)))
    };
    vec![
        scheduler.to_owned(),
        tenant.name.clone(),
        tenant.weight.to_string(),
        format!("{rate:.0}"),
        format!("{:.1}", rate * f64::from(tenant.block) / MIB),
        share,
        due,
        percent(tenant.backlogged),
        format!("{:.0} us", tenant.latency_us(0.5)),
        format!("{:.0} us", tenant.latency_us(0.99)),
    ]
}

impl Outcome {
    /// What a reader should know before the shares: whether the scheduler had anything to order,
    /// what shares are of, and who asked for less than its share without saying so.
    pub fn notes(&self, scene: &Scene) -> Vec<String> {
        let most = self.tenants.iter().map(|tenant| tenant.backlogged).fold(0.0, f64::max);
        if most < 1.0 - BACKLOGGED {
            return vec![
                "the device took every request at once: no scheduler has anything to order".into(),
            ];
        }
        let sizes: BTreeSet<_> = self.tenants.iter().map(|tenant| tenant.block).collect();
        let mut notes = vec![];
        if scene.service().is_none() && sizes.len() > 1 {
            notes.push(
                "shares count requests, large as small: what one costs this device is no one number"
                    .to_owned(),
            );
        }
        let idle = self.tenants.iter().filter(|it| !it.light && it.backlogged < BACKLOGGED);
        let note = |tenant: &TenantOutcome| {
            let part = 100.0 * tenant.backlogged;
            let name = &tenant.name;
            format!(
                "{name} had a request waiting in {part:.0} % of the time: less was promised to it"
            )
        };
        notes.extend(idle.map(note));
        notes
    }
}
