//! Measured times from a TOML file, such as `devices/table-980pro.toml`.

use std::collections::BTreeMap;
use std::ops::Range;

use paternoster::{Nanos, Sector, SectorCount};

use super::{TableParameters, Times};
use crate::Op;
use crate::parameter_file::{Keys, ParameterError, Problem, exactly, micros};

type Read<T> = Result<T, ParameterError>;

/// Times in µs, more than any device takes for anything.
const MICROS: std::ops::RangeInclusive<f64> = 0.0..=1e7;

/// A measured time.
struct Row {
    op: Op,
    size: SectorCount,
    outstanding: u32,
    time: Nanos,
    /// Where it stands.
    span: Range<usize>,
}

impl TableParameters {
    /// Reads the keys of a file of this kind.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Read<Self> {
        let end = Sector(keys.whole("sectors", 8..=1 << 50)?);
        let rotational = keys.flag("rotational")?;
        let discard = micros(keys.number("discard_us", MICROS)?);
        let flush = micros(keys.number("flush_us", MICROS)?);
        let rows = keys.tables("times", Row::read)?;
        let times = |op: Op| grid(keys, rows.iter().filter(|row| row.op == op));
        let (reads, writes) = (times(Op::Read)?, times(Op::Write)?);
        Ok(Self { end, rotational, reads, writes, discard, flush })
    }
}

impl Row {
    fn read(keys: &mut Keys<'_>) -> Read<Self> {
        let op = keys.one_of("op", &[("read", Op::Read), ("write", Op::Write)])?;
        let kib = keys.number("kib", 0.5..=1e6)?;
        let Some(sectors) = exactly(2.0 * kib) else {
            let (what, found) = ("`kib`".to_owned(), kib.to_string());
            let allowed = "a whole number of sectors, of 0.5 each".to_owned();
            return Err(keys.refuse(Problem::Unexpected { what, found, allowed }));
        };
        let outstanding = keys.small("outstanding", 1..=65_536)?;
        let time = micros(keys.number("us", MICROS)?);
        let size = SectorCount(sectors);
        Ok(Self { op, size, outstanding, time, span: keys.span() })
    }
}

/// The grid of these rows; none where there is no row.
fn grid<'r>(keys: &Keys<'_>, rows: impl Iterator<Item = &'r Row>) -> Read<Option<Times>> {
    let mut by_size: BTreeMap<SectorCount, BTreeMap<u32, &Row>> = BTreeMap::new();
    for row in rows {
        let twice = by_size.entry(row.size).or_default().insert(row.outstanding, row).is_some();
        if twice {
            let (what, found) = ("`times`".to_owned(), format!("a second {}", cell(row)));
            let allowed = "one for each size and number outstanding".to_owned();
            let problem = Problem::Unexpected { what, found, allowed };
            return Err(keys.refuse_at(&row.span, problem));
        }
    }
    let Some(columns) = by_size.values().max_by_key(|columns| columns.len()) else {
        return Ok(None);
    };
    let outstanding: Vec<u32> = columns.keys().copied().collect();
    for columns in by_size.values() {
        // None has more of them, so that one which lacks none has no other.
        let mut all = std::iter::once(1).chain(outstanding.iter().copied());
        if let Some(count) = all.find(|count| !columns.contains_key(count)) {
            let row = *columns.values().next().expect("a size has a row");
            let lacks = Row { outstanding: count, span: row.span.clone(), ..*row };
            let what = format!("a row of `times` for {}", cell(&lacks));
            let allowed = "there for each size with each number outstanding, from 1 on".to_owned();
            return Err(keys.refuse_at(&row.span, Problem::Missing { what, allowed }));
        }
    }
    let rows = by_size.values().map(|columns| columns.values().map(|row| row.time).collect());
    let rows = rows.collect();
    Ok(Some(Times { sizes: by_size.into_keys().collect(), outstanding, rows }))
}

/// What a row is for.
fn cell(row: &Row) -> String {
    let op = if row.op == Op::Write { "write" } else { "read" };
    let kib = f64::from(row.size.0) / 2.0;
    format!("{op} of {kib} KiB with {} outstanding", row.outstanding)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Kind, describe_text};

    const HEAD: &str = "kind = \"table\"\nname = \"t\"\nabout = \"a\"\nvalid = \"v\"\n\
                        sectors = 1000\nrotational = false\ndiscard_us = 0\nflush_us = 0\n";

    /// Rows of op, KiB, outstanding and µs, each on four lines from line 9 on.
    fn file(rows: &[(&str, f64, u32, f64)]) -> String {
        let rows = rows.iter().map(|(op, kib, outstanding, us)| {
            format!(
                "[[times]]\nop = \"{op}\"\nkib = {kib}\noutstanding = {outstanding}\nus = {us}\n"
            )
        });
        HEAD.to_owned() + &rows.collect::<String>()
    }

    fn read(text: &str) -> Result<TableParameters, String> {
        match describe_text(Path::new("t.toml"), text).map_err(|error| error.to_string())?.kind {
            Kind::Table(table) => Ok(*table),
            other => panic!("{other:?} is no table"),
        }
    }

    #[test]
    fn rows_in_any_order_are_a_grid() {
        let rows = [
            ("read", 8.0, 4, 80.0),
            ("read", 4.0, 1, 50.0),
            ("write", 0.5, 1, 20.0),
            ("read", 8.0, 1, 60.5),
            ("read", 4.0, 4, 70.0),
        ];
        let table = read(&file(&rows)).expect("a grid");
        let us = |ns: [u64; 2]| ns.map(Nanos::new).to_vec();
        let reads = Times {
            sizes: vec![SectorCount(8), SectorCount(16)],
            outstanding: vec![1, 4],
            rows: vec![us([50_000, 70_000]), us([60_500, 80_000])],
        };
        assert_eq!(table.reads, Some(reads));
        let rows = vec![vec![Nanos::from_micros(20)]];
        let sizes = vec![SectorCount(1)];
        assert_eq!(table.writes, Some(Times { sizes, outstanding: vec![1], rows }));
    }

    #[test]
    fn what_is_no_grid_is_refused_at_the_row_of_the_size() {
        let first = ("read", 4.0, 1, 50.0);
        let error = |rows: &[_]| read(&file(rows)).expect_err("it is no grid");
        let gap = [first, ("read", 4.0, 8, 70.0), ("read", 8.0, 1, 60.0)];
        assert_eq!(
            error(&gap),
            "t.toml:19:1: a row of `times` for read of 8 KiB with 8 outstanding is missing; it is \
             there for each size with each number outstanding, from 1 on"
        );
        let second = error(&[first, first]);
        assert!(second.starts_with("t.toml:14:1: `times` is a second read of 4 KiB"), "{second}");
        let late = error(&[("read", 4.0, 2, 50.0)]);
        assert!(late.contains("t.toml:9:1") && late.contains("with 1 outstanding"), "{late}");
        let half = error(&[("read", 0.7, 1, 50.0)]);
        assert!(half.contains("`kib` is 0.7"), "{half}");
        let none = error(&[]);
        assert!(none.contains("`times` is missing"), "{none}");
        let empty = read(&format!("times = []\n{HEAD}")).expect_err("it is empty");
        assert!(empty.starts_with("t.toml:1:9: `times` is []"), "{empty}");
    }
}
