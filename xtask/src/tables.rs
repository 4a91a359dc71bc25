//! `cargo xtask tables`: tables of the documents that are made from the code.
//!
//! A page has two lines where such a table stands, and the table is between them:
//!
//! ```text
//!   <!-- table: tunables bfq -->     every tunable, with its unit, default and range
//!   <!-- table: fitted bfq -->       those that differ from their defaults on some medium
//!   <!-- table: lines bfq -->        every line of a log that tells of an event of it, and its
//!                                    fields; "lines every" has those of every scheduler
//!   <!-- table: figures -->          every figure in the JSON of stat
//!   <!-- table: metrics -->          every metric
//!   <!-- end of table -->
//! ```

use anyhow::{Context, Result, bail};
use paternoster::{
    AnyScheduler, Device, Elevator, ElevatorEvent, EventInfo, FieldInfo, Instant, Medium, NoTrace,
    SchedulerKind, TunableInfo,
};
use paternoster_server::stat::{Figure, Kind, Stat};
use std::fmt::Write as _;

/// The command that makes the tables anew.
pub(crate) const REPAIR: &str = "cargo xtask tables --write";
/// The pages with tables.
const PAGES: [&str; 5] =
    ["docs/schedulers.md", "docs/tuning.md", "docs/operations.md", "docs/figures.md", FORMAT];
/// The page that says what logs have.
pub(crate) const FORMAT: &str = "oracle/FORMAT.md";
const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end of table -->";

/// What to do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the tables instead of only comparing them
    #[arg(long)]
    write: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    for page in PAGES {
        let text = std::fs::read_to_string(page).with_context(|| format!("reading {page}"))?;
        let made = filled(&text).with_context(|| page.to_owned())?;
        if made == text {
            println!("{page}: as the code has it");
        } else if args.write {
            std::fs::write(page, made).with_context(|| format!("writing {page}"))?;
            println!("{page}: written");
        } else {
            bail!("{page} differs from the code; to write it: {REPAIR}");
        }
    }
    Ok(())
}

/// The first line, from 0, at which a page differs from the code.
pub(crate) fn first_difference(page: &str) -> Result<Option<usize>> {
    let made = filled(page)?;
    let differs = made.lines().zip(page.lines()).position(|(made, own)| made != own);
    Ok((made != page).then(|| differs.unwrap_or_default()))
}

/// Schedulers with tunables that no page has a table of.
pub(crate) fn without_table<'a>(pages: impl Iterator<Item = &'a str>) -> Vec<SchedulerKind> {
    let pages: Vec<_> = pages.collect();
    let is_missing = |kind: &SchedulerKind| {
        let line = format!("{BEGIN}tunables {kind} -->");
        !kind.tunables().is_empty() && !pages.iter().any(|page| page.contains(&line))
    };
    SchedulerKind::ALL.into_iter().filter(is_missing).collect()
}

/// The page with every table made anew.
fn filled(page: &str) -> Result<String> {
    let mut made = String::with_capacity(page.len());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        writeln!(made, "{line}")?;
        let Some(name) = line.strip_prefix(BEGIN) else { continue };
        let name = name.trim_end_matches(" -->");
        made.push_str(&table(name).with_context(|| format!("the table \"{name}\""))?);
        if !lines.any(|line| line == END) {
            bail!("the table \"{name}\" has no end: {END}");
        }
        writeln!(made, "{END}")?;
    }
    Ok(made)
}

/// The table of that name.
fn table(name: &str) -> Result<String> {
    match name {
        "lines every" => return Ok(lines(&[ElevatorEvent::TABLE])),
        "figures" => return Ok(figures()),
        "metrics" => return Ok(metrics()),
        _ => {}
    }
    let (what, scheduler) = name.split_once(' ').context("it is WHAT SCHEDULER")?;
    let kind: SchedulerKind = scheduler.parse()?;
    match what {
        "tunables" => Ok(tunables(kind)),
        "fitted" => fitted(kind),
        "lines" => Ok(lines(kind.events())),
        _ => bail!("{what} is neither tunables, fitted nor lines"),
    }
}

/// Every tunable of a scheduler, a row each.
fn tunables(kind: SchedulerKind) -> String {
    let whose = whose_default(kind);
    let mut text =
        format!("\n| tunable | unit | {whose} | range | effect |\n|---|---|---|---|---|\n");
    for info in kind.tunables() {
        let TunableInfo { name, unit, default, doc, .. } = *info;
        let (default, range) = (info.shown(default), info.range());
        writeln!(text, "| `{name}` | {unit} | {default} | {range} | {doc} |")
            .expect("writing to a String succeeds");
    }
    text + "\n"
}

/// Every figure in the JSON of `stat`, a row each.
fn figures() -> String {
    let mut rows = vec!["\n| of | figure | kind | what it says |\n|---|---|---|---|".to_owned()];
    figures_of(&mut rows, "", Stat::FIGURES.parts);
    rows.join("\n") + "\n\n"
}

fn figures_of(rows: &mut Vec<String>, path: &str, figures: &[Figure]) {
    for Figure { name, kind, doc, parts, .. } in figures {
        let of = if path.is_empty() { String::new() } else { format!("`{path}` ") };
        rows.push(format!("| {of}| `{name}` | {} | {doc} |", kind.name()));
        // The root's are those of every group.
        if *kind != Kind::Untold {
            let inner = if path.is_empty() { (*name).to_owned() } else { format!("{path}.{name}") };
            figures_of(rows, &inner, parts);
        }
    }
}

/// Every metric, a row each.
fn metrics() -> String {
    let mut text = "\n| metric | type | what it says |\n|---|---|---|\n".to_owned();
    for (family, label) in paternoster_server::metric_families() {
        let by = if label.is_empty() { String::new() } else { format!(", by `{label}`") };
        let Figure { metric, kind, doc, .. } = *family;
        let kind = if kind == Kind::Flag { Kind::Gauge } else { kind }.name();
        writeln!(text, "| `{metric}` | {kind}{by} | {doc} |")
            .expect("writing to a String succeeds");
    }
    text + "\n"
}

/// Every line of a log that tells of one of these events, and every field of it. Of several events
/// with one line the first is shown.
fn lines(events: &[&[EventInfo]]) -> String {
    let mut rows = vec!["\n| `ev` | field | what it says |\n|---|---|---|".to_owned()];
    let mut shown = vec![""];
    for event in events.iter().copied().flatten() {
        if shown.contains(&event.line) {
            continue;
        }
        shown.push(event.line);
        rows.push(format!("| `{}` | | {} |", event.line, event.doc));
        let fields = event.fields.iter().filter(|field| !field.key.is_empty());
        rows.extend(fields.map(|field| format!("| | `{}` | {} |", field.key, what_it_says(field))));
    }
    rows.join("\n") + "\n\n"
}

/// What a field is, and which words it may be.
fn what_it_says(field: &FieldInfo) -> String {
    let words = field.words.iter().filter(|word| !word.name.is_empty());
    let words: Vec<_> = words.map(|word| format!("`{}`: {}", word.name, word.text)).collect();
    if words.is_empty() {
        return field.doc.to_owned();
    }
    format!("{} {}.", field.doc, words.join("; "))
}

/// The tunables that differ from their defaults on some medium, with what holds on each.
fn fitted(kind: SchedulerKind) -> Result<String> {
    let media = [Medium::Rotational, Medium::NotRotational, Medium::Memory].map(|medium| {
        let device = match medium {
            Medium::Rotational => Device::disk(1),
            _ => Device::solid_state(1),
        };
        let scheduler = AnyScheduler::new(kind, NoTrace);
        Elevator::fitted(scheduler, device, medium, Instant::START)
    });
    let whose = whose_default(kind);
    let mut text = format!("\n| tunable | {whose} | rotational | not rotational | memory |\n");
    text.push_str("|---|---|---|---|---|\n");
    for info in kind.tunables() {
        // A time in microseconds is that of its twin in milliseconds.
        let is_twin = info.name.strip_suffix("_us").is_some_and(|twin| kind.tunable(twin).is_ok());
        let values = media.iter().map(|elevator| elevator.tunable(info.name));
        let values: Vec<i64> = values.collect::<Result<_, _>>()?;
        if is_twin || values.iter().all(|value| *value == info.default) {
            continue;
        }
        let cells = values.iter().map(|value| with_unit(*value, info.unit));
        let cells: Vec<_> = [with_unit(info.default, info.unit)].into_iter().chain(cells).collect();
        writeln!(text, "| `{}` | {} |", info.name, cells.join(" | "))
            .expect("writing to a String succeeds");
    }
    Ok(text + "\n")
}

/// What a column of defaults is called: Linux has no wfq.
fn whose_default(kind: SchedulerKind) -> &'static str {
    if kind == SchedulerKind::Wfq { "default" } else { "Linux's default" }
}

/// A value as people read it.
fn with_unit(value: i64, unit: &str) -> String {
    if value == 0 || unit == "bool" { value.to_string() } else { format!("{value} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_made_between_their_comments_alone() {
        let page = "a\n<!-- table: fitted none -->\nold\n<!-- end of table -->\nb\n";
        let made = filled(page).expect("it has such a table");
        assert!(made.starts_with("a\n<!-- table: fitted none -->\n\n| tunable |"), "{made}");
        assert!(made.ends_with("|\n\n<!-- end of table -->\nb\n") && !made.contains("old"));
        assert_eq!(filled(&made).expect("it is the same"), made);
        assert_eq!(first_difference(page).expect("it has such a table"), Some(2));
        assert_eq!(first_difference(&made).expect("it has such a table"), None);
    }

    #[test]
    fn unknown_table_is_refused() {
        for name in ["fitted", "fitted anticipatory", "fit cfq", "lines anticipatory"] {
            let page = format!("<!-- table: {name} -->\n<!-- end of table -->\n");
            assert!(filled(&page).is_err(), "{name}");
        }
        assert!(filled("<!-- table: fitted cfq -->\n").is_err(), "it has no end");
    }

    #[test]
    fn scheduler_without_a_table_is_found() {
        let page = "<!-- table: tunables cfq -->\n<!-- table: tunables bfq -->\n";
        assert_eq!(
            without_table([page].into_iter()),
            [SchedulerKind::MqDeadline, SchedulerKind::Kyber, SchedulerKind::Wfq]
        );
    }

    #[test]
    fn line_of_two_events_is_shown_once_and_none_of_those_without_a_line() {
        let every = table("lines every").expect("there is one");
        assert_eq!(every.matches("| `M` |").count(), 1, "{every}");
        assert!(!every.contains("`` |"), "{every}");
        let kyber = table("lines kyber").expect("there is one");
        assert!(kyber.contains("| | `type` | Of which latencies. `total`: under way; "), "{kyber}");
    }

    #[test]
    fn figure_is_shown_by_its_path_and_its_metric() {
        let figures = figures();
        assert!(figures.contains("| `disks.groups.ops` | `merged` | counter | "), "{figures}");
        assert!(!figures.contains("`disks.root`"), "they are those of every group");
        let metrics = metrics();
        assert!(metrics.contains("| `tenant_merges_total` | counter, by `op` | "), "{metrics}");
        assert!(metrics.contains("| `disk_sync_failed` | gauge | "), "a flag is 0 or 1");
        assert!(metrics.contains("| `build_info` | gauge, by `version` | "), "{metrics}");
    }

    /// What Linux does by itself is in force too: CFQ's `slice_idle` is 0 where nothing rotates.
    #[test]
    fn fitted_values_are_those_in_force() {
        let table = fitted(SchedulerKind::Cfq).expect("it has the tunables");
        assert!(table.contains("| `slice_idle` | 8 ms | 8 ms | 0 | 0 |\n"), "{table}");
        assert!(table.contains("| `charge_whole_turn` | 0 | 1 | 1 | 0 |\n"), "{table}");
        assert!(!table.contains("quantum") && !table.contains("_us"), "{table}");
    }
}
