//! What was measured, as tables for a terminal and for the page.

use paternoster_lab::report::PageTable;
use paternoster_scene::plain_table;

use super::forecast::{Check, Cost, Forecast, Outlook, PROCESSORS};
use super::measure::{Factor, Measured, Measurement};
use super::moving;

/// The columns, and what each is of.
const COLUMNS: [&str; 13] = [
    "way",
    "devices",
    "submitters",
    "kIOPS",
    "least to most",
    "CPU µs",
    "path µs",
    "waits %",
    "locks",
    "contended",
    "wake-ups",
    "futex",
    "batch",
];

const NOTE: &str = "Measured here, on real threads and a null device that is done at once; \
    CPU µs, locks, contended locks, wake-ups and futex calls (without those of locks) are for an \
    I/O; path is the CPU time beyond that of a direct call; waits is the submitters' time waiting \
    for locks; batch is what reached a device at once, its mean and its longest.";

const PREDICTED_NOTE: &str = "Predicted, not measured: a model in which processors spin for \
    locks, from what an I/O takes here with one submitter. The time of a hand-over is fitted to \
    perdev with two submitters on one device. Nothing is predicted of what wake-ups over rings \
    cost, of caches, or of a bus.";

fn cells(way: &Measured) -> [String; 13] {
    let kilo = |iops: f64| format!("{:.0}", iops / 1e3);
    [
        way.way.to_owned(),
        way.devices.to_string(),
        way.submitters.to_string(),
        kilo(way.iops.median),
        format!("{} to {}", kilo(way.iops.least), kilo(way.iops.most)),
        format!("{:.3}", way.cpu_us_per_io.median),
        format!("{:.3}", way.path_us_per_io),
        format!("{:.1}", way.lock_wait_percent),
        format!("{:.3}", way.locks_per_io),
        format!("{:.3}", way.contended_per_io),
        format!("{:.4}", way.wakeups_per_io),
        format!("{:.4}", way.futex_per_io),
        format!("{:.1}, {}", way.batch_mean, way.batch_longest),
    ]
}

/// A table for a terminal, and what is said of it.
pub(super) fn table_text(page: &PageTable) -> String {
    let mut table = plain_table(&page.columns, 1);
    table.add_rows(&page.rows);
    let rows = paternoster_scene::table_text(&table);
    let notes: String = page.notes.iter().flat_map(|note| ["\n", note]).collect();
    format!("{}\n\n{rows}{notes}\n\n", page.title)
}

/// What was measured, and what is predicted of it.
pub(super) fn page_tables(measured: &Measurement) -> [PageTable; 3] {
    let moving = moving::page_table(&measured.moving);
    [measured_table(measured), moving, predicted_table(&measured.outlook)]
}

fn measured_table(measured: &Measurement) -> PageTable {
    let mut notes = vec![format!("{}.", setting(measured)), NOTE.to_owned()];
    notes.extend(factor_lines(measured));
    PageTable {
        title: "plugging, measured on this machine".to_owned(),
        notes,
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows: measured.ways.iter().map(|way| cells(way).to_vec()).collect(),
    }
}

fn predicted_table(outlook: &Outlook) -> PageTable {
    let names = PROCESSORS.map(|processors| format!("{processors} CPU"));
    let columns = ["way", "devices"].map(str::to_owned).into_iter().chain(names);
    let same = |a: &Forecast, b: &Forecast| (a.way, a.devices) == (b.way, b.devices);
    let row = |of: &[Forecast]| {
        let head = [of[0].way.to_owned(), of[0].devices.to_string()];
        let kilo = |it: &Forecast| format!("{:.0}", it.iops / 1e3);
        let spins = |it: &Forecast| format!("{:.0} %", it.spinning_percent);
        let last = of.last().map(spins);
        head.into_iter().chain(of.iter().map(kilo)).chain(last).collect()
    };
    let mut notes = vec![PREDICTED_NOTE.to_owned()];
    notes.extend(outlook.costs.iter().map(|cost| {
        let Cost { way, outside_us, list_us, device_us, .. } = cost;
        format!(
            "{way}: {outside_us:.3} µs outside of locks, {list_us:.3} µs under a list's each time, \
             {device_us:.3} µs under the device's or by its owner"
        )
    }));
    notes.push(format!("a lock is handed over in {:.3} µs", outlook.hand_over_us));
    notes.extend(outlook.checks.iter().map(|check| {
        let Check { way, devices, measured_iops, predicted_iops, calibrated } = check;
        format!(
            "submitters 2, devices {devices}, {way}: measured {:.0} kIOPS, predicted {:.0} ({:+.0} \
             %{})",
            measured_iops / 1e3,
            predicted_iops / 1e3,
            100.0 * (predicted_iops / measured_iops - 1.0),
            if *calibrated { ", calibrated" } else { "" }
        )
    }));
    PageTable {
        title: "plugging, predicted for machines like this one: kIOPS".to_owned(),
        notes,
        columns: columns.chain(["spinning at 128".to_owned()]).collect(),
        rows: outlook.forecasts.chunk_by(same).map(row).collect(),
    }
}

fn setting(measured: &Measurement) -> String {
    let setting = &measured.setting;
    let load = setting.load_average.map_or_else(String::new, |it| format!(", load average {it}"));
    format!(
        "{} processors{load}; {}, batches of {} of {} outstanding, {} owner, polling {} µs, who \
         waits for a lock {}s; medians of {} runs",
        setting.processors,
        setting.scheduler,
        setting.batch,
        setting.iodepth,
        setting.owners,
        setting.poll_us,
        setting.locks,
        setting.runs
    )
}

/// A line for each number of submitters and devices.
fn factor_lines(measured: &Measurement) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for beside in
        measured.factors.chunk_by(|a, b| a.devices == b.devices && a.submitters == b.submitters)
    {
        let told = |factor: &Factor| {
            // What rounds to 0 times that path, or is less than a direct call, is noise.
            match factor.times.filter(|times| *times >= 0.05) {
                Some(times) => format!("{} × {times:.1}", factor.way),
                None => format!("{}: the run is too short to say", factor.way),
            }
        };
        let told: Vec<_> = beside.iter().map(told).collect();
        let Factor { devices, submitters, .. } = beside[0];
        lines.push(format!(
            "CPU time of the path by that of plug+rings, devices {devices}, submitters \
             {submitters}: {}",
            told.join(", ")
        ));
    }
    lines
}
