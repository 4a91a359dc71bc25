//! The tables of a post on iostest: rows of what each group got.

use paternoster_scene::statistics;
use serde::Deserialize;

/// A row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) setting: Setting,
    /// Which table it is of, from 1.
    pub(super) table: u32,
    /// Whether it counts; an outlier is shown only.
    pub(super) counted: bool,
    /// The name of each group, and its kB/s.
    pub(super) groups: Vec<(String, f64)>,
}

/// What a row was measured with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Setting {
    /// As iostest names it: `b`uffered or `d`irect, `s`equential or `r`andom, `r`eaders or
    /// `w`riters.
    pub(super) workload: String,
    pub(super) block_kib: u32,
    pub(super) slice_idle_ms: u32,
    /// Jobs of each group.
    pub(super) jobs: u32,
}

impl Setting {
    /// What its workload is, letter by letter.
    pub(super) fn workload_in_words(&self) -> String {
        let word = |letter| match letter {
            'b' => "buffered",
            'd' => "direct",
            's' => "sequential",
            _ => "random",
        };
        let whole = &self.workload;
        let (how, who) = whole.split_at(whole.len() - 1);
        let who = if who == "w" { "writers" } else { "readers" };
        how.chars().map(word).chain([who]).collect::<Vec<_>>().join(" ")
    }

    /// Its name in reports.
    pub(super) fn name(&self) -> String {
        let Self { workload, slice_idle_ms, jobs, .. } = self;
        format!("{workload} slice_idle={slice_idle_ms} NR={jobs}")
    }
}

/// A line of the file: one group of one row.
#[derive(Debug, Deserialize)]
struct Line {
    table: u32,
    workload: String,
    block_kib: u32,
    slice_idle_ms: u32,
    jobs: u32,
    counted: String,
    group: String,
    kb_per_s: f64,
}

/// Reads the tables of a file that comes with the laboratory.
///
/// # Panics
///
/// If it is none.
pub(super) fn rows(text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    for line in reader.deserialize() {
        let Line { table, workload, block_kib, slice_idle_ms, jobs, counted, group, kb_per_s } =
            line.expect("a table of a post");
        let setting = Setting { workload, block_kib, slice_idle_ms, jobs };
        let known = rows.last_mut().filter(|row| row.table == table && row.setting == setting);
        match known {
            Some(row) => row.groups.push((group, kb_per_s)),
            None => rows.push(Row {
                setting,
                table,
                counted: counted == "yes",
                groups: vec![(group, kb_per_s)],
            }),
        }
    }
    rows
}

/// The settings that were measured, each once, in the order of their names.
pub(super) fn settings(rows: &[Row]) -> Vec<Setting> {
    let mut settings: Vec<_> = rows.iter().map(|row| row.setting.clone()).collect();
    settings.sort();
    settings.dedup();
    settings
}

/// What a setting gave: the mean of all rows of it that count, for each group.
pub(super) fn mean(rows: &[Row], setting: &Setting) -> Vec<(String, f64)> {
    let of_setting = rows.iter().filter(|row| row.counted && row.setting == *setting);
    let of_setting: Vec<_> = of_setting.collect();
    let names = of_setting[0].groups.iter().map(|(name, _)| name.clone());
    names
        .enumerate()
        .map(|(index, name)| {
            (name, statistics::mean(of_setting.iter().map(|row| row.groups[index].1)))
        })
        .collect()
}
