//! What was measured, as tables.

use paternoster_lab::report::PageTable;
use paternoster_scene::statistics::Spread;

use super::costs::SleepCost;
use super::figures::MeasuredWay;
use super::{MeasuredDevice, Measurement};

const COLUMNS: [&str; 12] = [
    "way",
    "CPU µs",
    "least to most",
    "by classic",
    "by interrupt",
    "latency by classic",
    "by interrupt",
    "added µs",
    "added p50, p99, p99.9",
    "load %",
    "slept, missed %",
    "interrupts",
];

const NOTE: &str = "Below: CPU time of the thread that waits, for an I/O; added is from \
    the device's own stamp of the I/O until it is reaped; slept is sleeps for an I/O, missed are \
    I/Os that were done when the sleep for them ended, interrupts are wake-ups by the device for \
    an I/O. Ratios are medians of those of each round. Bounds are computed, from what sleeping \
    costs here and the times of these I/Os.";

/// What sleeping costs, and a table for each device.
pub(in crate::study) fn page_tables(measured: &Measurement) -> Vec<PageTable> {
    let sleeps = sleeps_table(measured);
    let devices = measured.devices.iter().map(device_table);
    [sleeps, limits_table(measured)].into_iter().chain(devices).collect()
}

/// How much later sleeps end while processors have to wake up sooner.
fn limits_table(measured: &Measurement) -> PageTable {
    let late = |cost: &SleepCost| {
        let SleepCost { late_p50_us, late_p99_us, cpu_us, .. } = cost;
        format!("{late_p50_us:.1}, {late_p99_us:.1}, {cpu_us:.1}")
    };
    let row = |name: String, sleeps: &[SleepCost]| -> Vec<String> {
        std::iter::once(name).chain(sleeps.iter().map(late)).collect()
    };
    let mut rows = vec![row("as the machine is".to_owned(), &measured.sleeps)];
    for limit in &measured.limited {
        let name = format!("at most {} µs", limit.cpu_dma_latency_us);
        rows.push(match &limit.not_run {
            None => row(name, &limit.sleeps),
            Some(why) => vec![name, format!("not run: {why}")],
        });
    }
    let columns = std::iter::once("to wake up".to_owned());
    let asked = measured.sleeps.iter().map(|cost| format!("{:.0} µs", cost.asked_us));
    let columns: Vec<_> = columns.chain(asked).collect();
    for row in &mut rows {
        row.resize(columns.len(), String::new());
    }
    PageTable {
        title: "hybrid-polling, measured: sleeps with /dev/cpu_dma_latency held".to_owned(),
        notes: vec![
            "In each cell: by how much sleeps of that length end late, p50 and p99, and the CPU \
             time of one, in µs."
                .to_owned(),
        ],
        columns,
        rows,
    }
}

fn sleeps_table(measured: &Measurement) -> PageTable {
    let setting = &measured.setting;
    let load = setting.load_average.map_or_else(String::new, |it| format!(", load average {it}"));
    let row = |cost: &SleepCost| {
        let SleepCost { late_p50_us, late_p99_us, late_most_us, cpu_us, cpu_least_us, .. } = cost;
        vec![
            format!("{:.0} µs", cost.asked_us),
            cost.sleeps.to_string(),
            format!("{late_p50_us:.1}"),
            format!("{late_p99_us:.1}"),
            format!("{late_most_us:.1}"),
            format!("{cpu_us:.1}"),
            format!("{cpu_least_us:.1}"),
        ]
    };
    let columns = ["asked", "sleeps", "late p50 µs", "p99", "most", "CPU µs", "least"];
    PageTable {
        title: "hybrid-polling, measured on this machine: what a sleep costs".to_owned(),
        notes: vec![
            format!(
                "{} processors{load}; {} rounds of {} ms a policy; timer slack 1 ns; use_min \
                 adjust subtracts {:.1} µs.",
                setting.processors, setting.rounds, setting.round_ms, setting.adjust_us
            ),
            NOTE.to_owned(),
        ],
        columns: columns.map(str::to_owned).to_vec(),
        rows: measured.sleeps.iter().map(row).collect(),
    }
}

fn device_table(device: &MeasuredDevice) -> PageTable {
    let bounds = &device.bounds;
    let mut rows: Vec<_> = device.ways.iter().map(|way| cells(way).to_vec()).collect();
    let mut bound = |name: &str, cpu_us: f64, added: String| {
        let mut row = vec![String::new(); COLUMNS.len()];
        (row[0], row[1], row[7]) = (name.to_owned(), format!("{cpu_us:.1}"), added);
        rows.push(row);
    };
    bound("clairvoyant bound", bounds.clairvoyant_us, "0".to_owned());
    if let Some(of) = bounds.bound {
        bound("bound, 5 % missed", of.cpu_us, format!("{:.2}", of.added_us));
    }
    PageTable {
        title: format!("hybrid-polling, measured: {}", device.device),
        notes: vec![verdict(device)],
        columns: COLUMNS.map(str::to_owned).to_vec(),
        rows,
    }
}

/// Whether to sleep, and what `auto` does.
pub(super) fn verdict(device: &MeasuredDevice) -> String {
    let MeasuredDevice { time_us, time_p99_us, bounds, auto, .. } = device;
    let whether = match bounds.bound {
        Some(of) if device.sleeping_pays => format!(
            "a sleep of {:.1} µs saves {:.1} µs of CPU time for an I/O",
            of.sleep_us, of.saved_us
        ),
        Some(of) => format!(
            "don't sleep: {:.1} µs are all that is safe, and cost {:.1} µs more than they save",
            of.sleep_us, -of.saved_us
        ),
        None => "don't sleep: sleeps end later than these I/Os".to_owned(),
    };
    format!("I/Os take {time_us:.1} µs, p99 {time_p99_us:.1}: {whether}; auto {auto}.")
}

fn cells(way: &MeasuredWay) -> [String; 12] {
    let times = |spread: &Spread| format!("{:.3}", spread.median);
    [
        way.way.to_owned(),
        format!("{:.1}", way.cpu_us_per_io.median),
        format!("{:.1} to {:.1}", way.cpu_us_per_io.least, way.cpu_us_per_io.most),
        times(&way.cpu_by_classic),
        times(&way.cpu_by_interrupt),
        times(&way.latency_by_classic),
        times(&way.latency_by_interrupt),
        format!("{:.2}", way.added_us.median),
        format!(
            "{:.2}, {:.1}, {:.0}",
            way.added_p50_us.median, way.added_p99_us.median, way.added_p999_us
        ),
        format!("{:.0}", way.load_percent.median),
        format!("{:.2}, {:.1}", way.sleeps_per_io, way.missed_percent),
        format!("{:.2}", way.interrupts_per_io),
    ]
}
