//! The cells: a figure of a tenant each, as it was predicted and as the server then had it.

use std::fmt::Write as _;

use comfy_table::Table;
use paternoster::Nanos;
use paternoster_lab::replay::{Errors, Figures};
use paternoster_scene::Scene;
use paternoster_scene::markdown_table;
use paternoster_scene::statistics::median;

/// What a replay predicts of each tenant, and how far that may be off.
pub(crate) struct Predicted {
    pub(crate) tenants: Vec<(Figures, Errors)>,
}

/// What is compared of a tenant: its name, how far it may be off, and how to find it.
struct Figure {
    name: &'static str,
    allowed: f64,
    of: fn(&Errors) -> Option<f64>,
}

const FIGURES: [Figure; 4] = [
    Figure { name: "share", allowed: 0.05, of: |errors| errors.share },
    Figure { name: "throughput", allowed: 0.05, of: |errors| errors.throughput },
    Figure { name: "p50", allowed: 0.10, of: |errors| errors.p50 },
    Figure { name: "p99", allowed: 0.25, of: |errors| errors.p99 },
];

/// In how many cells the error has to be allowed, and in how many the interval has to hold.
const WITHIN: f64 = 0.9;
const COVERED: f64 = 0.85;

/// A cell.
struct Cell {
    title: String,
    tenant: String,
    figure: &'static Figure,
    /// By how much what was predicted is off what was measured, as a part of that.
    error: f64,
    plus_minus: f64,
}

/// All cells.
#[derive(Default)]
pub(crate) struct Cells(Vec<Cell>);

impl Cells {
    /// Adds those of a pair; `live` has the figures of each run.
    pub(crate) fn add(
        &mut self,
        title: &str,
        scene: &Scene,
        predicted: &Predicted,
        live: &[Vec<Figures>],
    ) {
        for (index, (tenant, (figures, plus_minus))) in
            scene.tenants.iter().zip(&predicted.tenants).enumerate()
        {
            let measured = middle(live, index);
            let errors = Errors::of(figures, &measured);
            for figure in &FIGURES {
                let (Some(error), plus_minus) = ((figure.of)(&errors), (figure.of)(plus_minus))
                else {
                    continue;
                };
                let (title, tenant) = (title.to_owned(), tenant.name.clone());
                let plus_minus = plus_minus.unwrap_or_default();
                self.0.push(Cell { title, tenant, figure, error, plus_minus });
            }
        }
    }

    /// A row for each tenant of a pair.
    pub(crate) fn table(&self) -> Table {
        let names = FIGURES.iter().map(|figure| figure.name);
        let header: Vec<_> = ["pair", "tenant"].into_iter().chain(names).collect();
        let mut table = markdown_table(header, 2);
        for row in
            self.0.chunk_by(|one, next| (&one.title, &one.tenant) == (&next.title, &next.tenant))
        {
            let cells = row.iter().map(|cell| {
                let Cell { error, plus_minus, .. } = cell;
                let mark = if cell.is_within(1.0) { "" } else { " !" };
                format!("{:+.1} % (± {:.1}){mark}", 100.0 * error, 100.0 * plus_minus)
            });
            let first = [row[0].title.clone(), row[0].tenant.clone()];
            table.add_row(first.into_iter().chain(cells));
        }
        table
    }

    /// In how many cells the error is allowed, twice that, and within the interval.
    pub(crate) fn summary(&self) -> String {
        let percent = |is: &dyn Fn(&Cell) -> bool| 100.0 * self.part(is);
        let mut text = format!(
            "{} cells: {:.0} % within what is allowed (bar {:.0}), {:.0} % within twice that (bar \
             100), {:.0} % within their own ± (bar {:.0})",
            self.0.len(),
            percent(&|cell| cell.is_within(1.0)),
            100.0 * WITHIN,
            percent(&|cell| cell.is_within(2.0)),
            percent(&Cell::is_covered),
            100.0 * COVERED,
        );
        for figure in &FIGURES {
            let errors = self.0.iter().filter(|cell| cell.figure.name == figure.name);
            let mut errors: Vec<_> = errors.map(|cell| cell.error.abs()).collect();
            errors.sort_by(f64::total_cmp);
            let worst = errors.last().copied().unwrap_or_default();
            let middle = median(errors).unwrap_or_default();
            let _ = write!(
                text,
                "\n{}: median {:.1} %, worst {:.1} %, allowed {:.0} %",
                figure.name,
                100.0 * middle,
                100.0 * worst,
                100.0 * figure.allowed
            );
        }
        text
    }

    pub(crate) fn are_within(&self) -> bool {
        self.part(&|cell| cell.is_within(1.0)) >= WITHIN
            && self.part(&|cell| cell.is_within(2.0)) >= 1.0
            && self.part(&Cell::is_covered) >= COVERED
    }

    #[allow(clippy::cast_precision_loss, reason = "some hundreds")]
    fn part(&self, is: &dyn Fn(&Cell) -> bool) -> f64 {
        self.0.iter().filter(|cell| is(cell)).count() as f64 / self.0.len().max(1) as f64
    }
}

impl Cell {
    fn is_within(&self, times: f64) -> bool {
        self.error.abs() <= times * self.figure.allowed
    }

    fn is_covered(&self) -> bool {
        self.error.abs() <= self.plus_minus
    }
}

/// The median of each figure of a tenant.
pub(crate) fn middle(runs: &[Vec<Figures>], tenant: usize) -> Figures {
    let runs = runs.iter().map(|run| &run[tenant]);
    let of = |value: fn(&Figures) -> f64| median(runs.clone().map(value)).unwrap_or_default();
    let nanos = |value: fn(&Figures) -> Nanos| {
        let mut all: Vec<_> = runs.clone().map(value).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    Figures {
        iops: of(|figures| figures.iops),
        bytes_per_second: of(|figures| figures.bytes_per_second),
        share: of(|figures| figures.share),
        p50: nanos(|figures| figures.p50),
        p99: nanos(|figures| figures.p99),
    }
}
