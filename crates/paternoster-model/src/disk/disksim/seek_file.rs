//! A `.seek` file: measured seek times by distance.
//!
//! ```text
//!   Seek distances measured: 3
//!   1, 1.245
//!   2, 1.157
//!   10, 1.531
//! ```

use super::super::units::Millis;
use super::beside;
use super::fields::Source;
use crate::parameter_file::{ParameterError, Problem};

const HEADING: &str = "Seek distances measured:";

/// Reads the file `name`, which byte `at` of `from` names.
pub(super) fn read(
    from: &Source,
    name: &str,
    at: usize,
) -> Result<Vec<(u32, Millis)>, ParameterError> {
    let source = beside(from, "Full seek curve", name, at)?;
    let mut points = points(&source)?;
    points.sort_by_key(|&(distance, _)| distance);
    points.dedup_by_key(|&mut (distance, _)| distance);
    Ok(points)
}

fn points(source: &Source) -> Result<Vec<(u32, Millis)>, ParameterError> {
    let mut at = 0;
    let mut lines = source.text.split_inclusive('\n').filter_map(|line| {
        let begins = at;
        at += line.len();
        (!line.trim().is_empty()).then_some((begins, line.trim()))
    });
    let (heading_at, heading) = lines.next().unwrap_or((0, ""));
    let announced = heading.strip_prefix(HEADING).and_then(|count| count.trim().parse().ok());
    let Some(announced) = announced.filter(|&count: &usize| count > 0) else {
        let allowed = format!("`{HEADING}` and how many, at least 1");
        return Err(source.unexpected(heading_at, "the first line", heading, &allowed));
    };
    let points: Vec<_> = lines
        .take(announced)
        .map(|(begins, line)| {
            point(line).ok_or_else(|| {
                let allowed = "a distance in cylinders from 1, a comma, and a time in ms up to 1e5";
                source.unexpected(begins, "a line", line, allowed)
            })
        })
        .collect::<Result<_, _>>()?;
    if points.len() < announced {
        let what = format!("distance {} of {announced}", points.len() + 1);
        let allowed = "a line with a distance, a comma, and a time".to_owned();
        return Err(source.error(source.text.len(), Problem::Missing { what, allowed }));
    }
    Ok(points)
}

fn point(line: &str) -> Option<(u32, Millis)> {
    let (distance, time) = line.split_once(',')?;
    let distance = distance.trim().parse().ok().filter(|&distance: &u32| distance > 0)?;
    let time = time.trim().parse().ok().filter(|time: &f64| (0.0..=1e5).contains(time))?;
    Some((distance, Millis(time)))
}
