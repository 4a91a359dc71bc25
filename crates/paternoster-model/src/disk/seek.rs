//! How long the arm takes to another cylinder: a curve over the distance in cylinders.
//!
//! ```text
//!   Points    measured distances, straight lines between them
//!   Formula   short seeks from a list; up to the knee  a + b·√distance;  beyond it  c + d·distance
//!   Lee       a·√(distance − 1) + b·(distance − 1) + c
//! ```

use super::units::{Millis, real};

/// A seek curve. No distance takes no time.
#[derive(Clone, Debug, PartialEq)]
pub enum SeekCurve {
    /// Measured times by distance in cylinders, distances rising, at least one. Below the first
    /// point the time is the first one's; beyond the last, the last line goes on.
    Points(Vec<(u32, Millis)>),
    /// A root, then a line.
    Formula(RootThenLine),
    /// Lee's equation from the times of one cylinder, of an average seek and of a full stroke.
    Lee(Lee),
}

/// Hewlett-Packard's formula: the arm accelerates over short distances and coasts over long ones.
#[derive(Clone, Debug, PartialEq)]
pub struct RootThenLine {
    /// The times of distances 1, 2, …, which the formula does not cover.
    pub short: Vec<Millis>,
    /// `a` and `b` of a + b·√distance.
    pub root: (Millis, Millis),
    /// `c` and `d` of c + d·distance.
    pub line: (Millis, Millis),
    /// The distance from which on the line holds.
    pub knee: f64,
}

/// The factors of Lee's equation.
#[derive(Clone, Debug, PartialEq)]
pub struct Lee {
    root: Millis,
    line: Millis,
    single: Millis,
}

impl Lee {
    /// The factors, from the times of one cylinder, of an average seek and of a full stroke.
    pub fn new(single: Millis, average: Millis, full: Millis, cylinders: u32) -> Self {
        let cylinders = real(cylinders.into());
        let Millis(root) = single * -10.0 + average * 15.0 - full * 5.0;
        let Millis(line) = single * 7.0 - average * 15.0 + full * 8.0;
        Self {
            root: Millis(root / (3.0 * cylinders.sqrt())),
            line: Millis(line / (3.0 * cylinders)),
            single,
        }
    }
}

impl SeekCurve {
    /// The time over that many cylinders.
    pub(super) fn time(&self, distance: u32) -> Millis {
        if distance == 0 {
            return Millis::ZERO;
        }
        match self {
            Self::Points(points) => between(points, distance),
            Self::Formula(formula) => formula.time(distance),
            Self::Lee(Lee { root, line, single }) => {
                let beyond = real(distance.into()) - 1.0;
                *root * beyond.sqrt() + *line * beyond + *single
            }
        }
    }
}

impl RootThenLine {
    fn time(&self, distance: u32) -> Millis {
        let short =
            usize::try_from(distance).ok().and_then(|distance| self.short.get(distance - 1));
        if let Some(time) = short {
            return *time;
        }
        let distance = real(distance.into());
        let ((root_at_0, root), (line_at_0, line)) = (self.root, self.line);
        if distance < self.knee {
            root_at_0 + root * distance.sqrt()
        } else {
            line_at_0 + line * distance
        }
    }
}

fn between(points: &[(u32, Millis)], distance: u32) -> Millis {
    let next = points.partition_point(|&(known, _)| known < distance);
    if let Some(&(known, time)) = points.get(next)
        && (known == distance || next == 0)
    {
        return time;
    }
    let upper = next.min(points.len() - 1);
    let (to, to_time) = points[upper];
    let Some(&(from, from_time)) = upper.checked_sub(1).and_then(|lower| points.get(lower)) else {
        return to_time;
    };
    let part = (real(distance.into()) - real(from.into())) / (real(to.into()) - real(from.into()));
    from_time + (to_time - from_time) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> SeekCurve {
        SeekCurve::Points(vec![(2, Millis(1.0)), (4, Millis(2.0)), (8, Millis(3.0))])
    }

    #[test]
    fn no_distance_takes_no_time() {
        assert_eq!(points().time(0), Millis::ZERO);
    }

    #[test]
    fn between_points_the_time_is_on_the_line() {
        let times: Vec<f64> = [1, 2, 3, 4, 5, 8, 12].iter().map(|&d| points().time(d).0).collect();
        assert_eq!(times, [1.0, 1.0, 1.5, 2.0, 2.25, 3.0, 4.0]);
    }

    #[test]
    fn single_point_holds_for_all_distances() {
        let curve = SeekCurve::Points(vec![(1, Millis(2.5))]);
        assert_eq!((curve.time(1), curve.time(900)), (Millis(2.5), Millis(2.5)));
    }

    #[test]
    fn formula_is_a_root_then_a_line_behind_a_list() {
        let curve = SeekCurve::Formula(RootThenLine {
            short: vec![Millis(0.7)],
            root: (Millis(1.0), Millis(0.5)),
            line: (Millis(3.0), Millis(0.01)),
            knee: 100.0,
        });
        let times: Vec<f64> = [1, 4, 100, 200].iter().map(|&d| curve.time(d).0).collect();
        assert_eq!(times, [0.7, 2.0, 4.0, 5.0]);
    }

    #[test]
    fn lees_equation_meets_the_single_seek_and_the_full_stroke() {
        // At distance C: a√(C−1) + b(C−1) + c. With many cylinders: (−3 min + 3 max)/3 + min.
        let curve = SeekCurve::Lee(Lee::new(Millis(2.0), Millis(8.0), Millis(16.0), 1_000_000));
        assert_eq!(curve.time(1), Millis(2.0));
        assert!((curve.time(1_000_000).0 - 16.0).abs() < 1e-3);
    }
}
