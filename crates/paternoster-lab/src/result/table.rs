//! A report for a terminal: a row for each job or task and direction, then a row for each group.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "rates and times are shown with a few digits"
)]

use std::borrow::Cow;
use std::fmt::Write as _;

use indexmap::IndexMap;
use paternoster::Nanos;
use paternoster_scene::{plain_table, table_text};

use super::{DirectionResult, JobResult, Latencies, entries, job_names, per_s, sums_by_group};
use crate::fio::{DataDirection, Jobs};

/// The columns behind the name.
const COLUMNS: [&str; 11] =
    ["GROUP", "OP", "I/OS", "IOPS", "MiB/S", "SHARE", "OF ALL", "MEAN", "P50", "P99", "MAX"];

/// Stands where there is no value.
const NONE: &str = "-";

/// A job or a task, as a table tells of it.
#[derive(Clone, Debug)]
pub(crate) struct Subject<'a> {
    /// Its name.
    pub(crate) name: String,
    /// The path of its group, or what else is to stand there.
    pub(crate) group: Cow<'a, str>,
    /// What was measured of it.
    pub(crate) result: &'a JobResult,
}

/// Returns the table of a run: `results` has one for each job, in their order. A share is the part
/// of the bytes of the time in which all jobs had something to do; beside it is the part of all
/// bytes a second. Latencies are of completion. Syncs have a row of their own. Below it is a line
/// for each job that ended with an error; those that share a name are numbered.
///
/// # Panics
///
/// If there are not as many results as jobs.
pub fn table(jobs: &Jobs, results: &[JobResult]) -> String {
    with_subjects(jobs, results, |subjects| {
        let mut text = table_of("JOB", subjects, &sums_by_group(&jobs.jobs, results));
        text += &shares_note("jobs", subjects).unwrap_or_default();
        text + &what_jobs_lack(jobs, results)
    })
}

/// Returns one table of several runs of the same jobs, each with its name: the rows of a job stand
/// one below the other. What is to be said of one run alone stands below, with its name.
///
/// # Panics
///
/// If a run has not as many results as there are jobs.
pub fn tables_side_by_side(jobs: &Jobs, runs: &[(String, &[JobResult])]) -> String {
    let mut rows: IndexMap<Vec<String>, Vec<Vec<String>>> = IndexMap::new();
    let mut notes = String::new();
    for (name, results) in runs {
        let groups = sums_by_group(&jobs.jobs, results);
        for mut row in with_subjects(jobs, results, |subjects| rows_of(subjects, &groups)) {
            let figures = row.split_off(3);
            rows.entry(row).or_default().push([vec![name.clone()], figures].concat());
        }
        let lines = what_jobs_lack(jobs, results);
        notes.extend(lines.lines().map(|line| format!("{name}: {line}\n")));
    }
    let [group, op, figures @ ..] = COLUMNS;
    let mut table = plain_table([&["JOB", group, op, "SCHEDULER"], &figures[..]].concat(), 4);
    for (subject, runs) in rows {
        for run in runs {
            table.add_row([subject.clone(), run].concat());
        }
    }
    table_text(&table) + &notes
}

/// Has `use_them` use what a table of jobs is of.
fn with_subjects<T>(
    jobs: &Jobs,
    results: &[JobResult],
    use_them: impl FnOnce(&[Subject<'_>]) -> T,
) -> T {
    let entries = entries(&jobs.jobs, results);
    let subjects = entries.iter().map(|entry| Subject {
        name: entry.name(),
        group: entry.group(&jobs.jobs),
        result: &entry.result,
    });
    use_them(&subjects.collect::<Vec<_>>())
}

/// A line for each job that ended with an error, or of which nothing counts.
fn what_jobs_lack(jobs: &Jobs, results: &[JobResult]) -> String {
    let mut text = String::new();
    for (name, result) in job_names(&jobs.jobs).into_iter().zip(results) {
        if let Some(error) = &result.error {
            let _ = writeln!(text, "{name} ended with error {}: {error}", error.number());
        }
    }
    for (job, result) in jobs.jobs.iter().zip(results) {
        if job.run.ramp_time > Nanos::ZERO && result.runtime == Nanos::ZERO && result.ios() == 0 {
            let _ =
                writeln!(text, "{} ended before its ramp_time did: none of it counts", job.name);
        }
    }
    text
}

/// Returns the table of these subjects, each of which is such a `kind`, and of their groups if
/// there are several.
pub(crate) fn table_of(
    kind: &str,
    subjects: &[Subject<'_>],
    groups: &IndexMap<&str, DirectionResult>,
) -> String {
    let mut table = plain_table([&[kind], &COLUMNS[..]].concat(), 3);
    table.add_rows(rows_of(subjects, groups));
    table_text(&table)
}

/// The rows of a table; the first three columns say whose each is.
fn rows_of(subjects: &[Subject<'_>], groups: &IndexMap<&str, DirectionResult>) -> Vec<Vec<String>> {
    let directions = || subjects.iter().flat_map(|subject| &subject.result.directions);
    let all = All {
        rate: directions().map(rate).sum(),
        together_bytes: directions().map(|direction| direction.together_bytes).sum(),
    };
    let mut rows = Vec::new();
    for Subject { name, group, result } in subjects {
        for direction in DataDirection::ALL {
            let result = &result.directions[direction as usize];
            if result.ios > 0 {
                let op = ["read", "write", "trim"][direction as usize];
                rows.push(row([name, group, op], result, &all));
            }
        }
        if result.syncs.moments().count() > 0 {
            rows.push(sync_row([name, group, "sync"], result));
        }
    }
    if groups.len() > 1 {
        for (group, result) in groups {
            rows.push(row(["", group, "all"], result, &all));
        }
    }
    rows
}

/// Says of which times the two shares of a table are; nothing where there is one subject alone.
/// `kind` is what the subjects are.
pub(crate) fn shares_note(kind: &str, subjects: &[Subject<'_>]) -> Option<String> {
    let together = subjects.get(1)?.result.together;
    let has_bytes = |subject: &Subject<'_>| {
        subject.result.directions.iter().any(|direction| direction.together_bytes > 0)
    };
    let share = if subjects.iter().any(has_bytes) {
        format!("of the {} in which all {kind} had something to do", short_time(together))
    } else {
        format!("of no time, as never all {kind} had something to do at once")
    };
    Some(format!("SHARE is {share}; OF ALL is of the whole time\n"))
}

/// What all subjects of a table did.
struct All {
    /// Bytes a second.
    rate: f64,
    /// Bytes of the time in which all had something to do.
    together_bytes: u64,
}

fn row(names: [&str; 3], result: &DirectionResult, all: &All) -> Vec<String> {
    let mut row: Vec<_> = names.map(str::to_owned).into();
    row.push(result.ios.to_string());
    // What took no time has no rate.
    let has_rate = result.runtime > Nanos::ZERO;
    row.extend(if has_rate {
        let of_all = if all.rate > 0.0 { 100.0 * rate(result) / all.rate } else { 0.0 };
        let share = match all.together_bytes {
            0 => NONE.to_owned(),
            all => format!("{:.1} %", 100.0 * result.together_bytes as f64 / all as f64),
        };
        let mib_per_s = rate(result) / f64::from(1 << 20);
        [short(result.ios_per_s(), 0), short(mib_per_s, 1), share, format!("{of_all:.1} %")]
    } else {
        [NONE; 4].map(str::to_owned)
    });
    row.extend(times(&result.completion));
    row
}

/// The syncs of a job, which have no bytes.
fn sync_row(names: [&str; 3], result: &JobResult) -> Vec<String> {
    let syncs = result.syncs.moments().count();
    // Those of jobs that are told as one ran side by side.
    let longest = result.directions.iter().map(|direction| direction.runtime).max();
    let runtime = longest.filter(|longest| *longest > Nanos::ZERO).unwrap_or(result.runtime);
    let rate =
        if runtime > Nanos::ZERO { short(per_s(syncs, runtime), 0) } else { NONE.to_owned() };
    let mut row: Vec<_> = names.map(str::to_owned).into();
    row.extend([&syncs.to_string(), &rate, NONE, NONE, NONE].map(str::to_owned));
    row.extend(times(&result.syncs));
    row
}

/// The columns of latencies.
fn times(latencies: &Latencies) -> [String; 4] {
    let percentile = |percent| latencies.percentile(percent).map_or(String::new(), short_time);
    [
        short_time(mean(latencies)),
        percentile(50.0),
        percentile(99.0),
        short_time(Nanos::new(latencies.moments().max())),
    ]
}

/// So many digits behind the point, and more where less than three would be seen otherwise.
fn short(value: f64, digits: usize) -> String {
    let whole = if value > 0.0 { value.log10().floor() } else { 0.0 };
    let needed = if whole < 1.0 { (2.0 - whole).min(9.0) as usize } else { 0 };
    format!("{value:.0$}", digits.max(needed))
}

fn rate(result: &DirectionResult) -> f64 {
    result.bytes_per_s()
}

fn mean(latencies: &Latencies) -> Nanos {
    Nanos::new(latencies.moments().mean() as u64)
}

/// Three digits and a unit.
pub(crate) fn short_time(time: Nanos) -> String {
    let nanos = time.as_nanos();
    let (unit, name) = match nanos {
        0..1_000 => return format!("{nanos} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let value = nanos as f64 / f64::from(unit);
    let digits = match value {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}
