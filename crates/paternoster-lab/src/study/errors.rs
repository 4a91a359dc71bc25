//! The errors of predictions: their median, 90th percentile and worst.

use paternoster_scene::statistics::{median, quantile};
use serde::Serialize;

use super::cell::{Cell, Kind};

/// How far the predictions of a kind are off, whatever the direction, in [`Kind::error_unit`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// Of what.
    pub kind: Kind,
    /// How many cells there are.
    pub cells: usize,
    /// Half of the cells are not further off.
    pub median: f64,
    /// Nine of ten are not further off.
    pub p90: f64,
    /// The worst.
    pub worst: f64,
    /// Which cell that is.
    pub worst_cell: String,
    /// What they should be at most.
    pub aim: Option<Aim>,
    /// How many are near to what was published.
    pub near: Near,
}

/// How many figures are within so many percent of what was published, whatever their unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Near {
    /// How many there are.
    pub all: usize,
    /// Within 5 percent.
    pub within_5: usize,
    /// Within 10 percent.
    pub within_10: usize,
    /// Within 20 percent.
    pub within_20: usize,
}

/// What the computed percentage of a figure on a border may be off.
const ROUNDING: f64 = 1e-9;

impl Near {
    /// Of figures that no parameter was fitted to.
    pub(super) fn of<'a>(cells: impl Iterator<Item = &'a Cell>) -> Self {
        let mut near = Self::default();
        for cell in cells.filter(|cell| cell.is_predicted()) {
            let off = 100.0 * (cell.ours / cell.seed - 1.0).abs();
            near.all += 1;
            near.within_5 += usize::from(off <= 5.0 + ROUNDING);
            near.within_10 += usize::from(off <= 10.0 + ROUNDING);
            near.within_20 += usize::from(off <= 20.0 + ROUNDING);
        }
        near
    }
}

/// What the errors of a kind should be at most: the median, and the 90th percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Aim {
    /// The median.
    pub median: f64,
    /// The 90th percentile, if there is an aim for it.
    pub p90: Option<f64>,
}

impl Errors {
    /// What they should be at most, if there is an aim for the kind.
    fn aim_of(kind: Kind) -> Option<Aim> {
        match kind {
            Kind::Total => Some(Aim { median: 8.0, p90: Some(20.0) }),
            Kind::Share => Some(Aim { median: 2.5, p90: None }),
            Kind::Latency => Some(Aim { median: 0.5, p90: Some(0.5) }),
            Kind::Load => Some(Aim { median: 4.0, p90: Some(4.0) }),
            Kind::Group | Kind::Effect | Kind::Cost => None,
        }
    }

    /// Whether they are what they should be; nothing where there is no aim.
    pub fn are_within_aim(&self) -> Option<bool> {
        let Aim { median, p90 } = self.aim?;
        Some(self.median <= median && p90.is_none_or(|p90| self.p90 <= p90))
    }
}

/// The errors of the predictions of that kind, if there are any.
pub(super) fn errors(cells: &[Cell], kind: Kind) -> Option<Errors> {
    let predicted = cells.iter().filter(|cell| cell.kind == kind && cell.is_predicted());
    let mut by_error: Vec<_> = predicted.map(|cell| (cell.error().abs(), &cell.id)).collect();
    by_error.sort_by(|a, b| a.0.total_cmp(&b.0));
    let &(worst, worst_cell) = by_error.last()?;
    let sizes: Vec<f64> = by_error.iter().map(|(error, _)| *error).collect();
    Some(Errors {
        kind,
        cells: sizes.len(),
        p90: quantile(&sizes, 900)?,
        median: median(sizes)?,
        worst,
        worst_cell: worst_cell.clone(),
        aim: Errors::aim_of(kind),
        near: Near::of(cells.iter().filter(|cell| cell.kind == kind)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(id: &str, seed: f64, ours: f64) -> Cell {
        Cell {
            id: id.to_owned(),
            seed,
            ours,
            unit: "kB/s",
            calibrated: false,
            kind: Kind::Total,
            counted: true,
        }
    }

    /// Of errors 1, 2, … 10 %: half are at most 5.5, nine of ten at most 9.
    #[test]
    fn errors_are_told_by_rank_and_without_direction() {
        let mut cells: Vec<_> = (1..=10_i32)
            .map(|percent| {
                let sign = if percent % 2 == 0 { 1.0 } else { -1.0 };
                cell(&percent.to_string(), 100.0, 100.0 + sign * f64::from(percent))
            })
            .collect();
        cells.push(Cell { calibrated: true, ..cell("fitted", 100.0, 300.0) });
        cells.push(Cell { counted: false, ..cell("outlier", 100.0, 300.0) });
        cells.push(Cell { kind: Kind::Share, ..cell("share", 10.0, 30.0) });
        let errors = errors(&cells, Kind::Total).expect("there are totals");
        assert_eq!((errors.cells, errors.worst_cell.as_str()), (10, "10"));
        for (told, expected) in [(errors.median, 5.5), (errors.p90, 9.0), (errors.worst, 10.0)] {
            assert!((told - expected).abs() < 1e-9, "{told} and not {expected}");
        }
        assert_eq!(errors.near, Near { all: 10, within_5: 5, within_10: 10, within_20: 10 });
    }
}
