//! Reports: fio's keys, and a table.

use paternoster::Nanos;
use paternoster_lab::fio::{DataDirection, Jobs};
use paternoster_lab::result::{DiskUse, FioReport, Header, JobResult, Samples, Took, table};
use serde_json::Value;

use crate::fio::jobs;

fn took(submission_us: u64, completion_us: u64) -> Took {
    Took {
        submission: Nanos::from_micros(submission_us),
        completion: Nanos::from_micros(completion_us),
    }
}

/// A result of `ios` I/Os of 4 KiB in a second, which complete after 100, 200, 300 ... us.
fn result(directions: &[DataDirection], ios: u64) -> JobResult {
    let mut result = JobResult::default();
    result.runtime = Nanos::from_secs(1);
    for &direction in directions {
        result.directions[direction as usize].runtime = Nanos::from_secs(1);
        for io in 1..=ios {
            result.submitted(1);
            result.submitted_batch(1);
            result.completed_batch(1);
            result.completed(direction, 4096, took(10, 100 * io));
        }
    }
    result
}

fn report(jobs: &Jobs, results: &[JobResult]) -> Value {
    let disks = vec![DiskUse { name: "model".to_owned(), ..DiskUse::default() }];
    let report = FioReport::new(Header { unix_ms: 1_795_373_530_617 }, jobs, results, disks);
    serde_json::from_str(&report.to_json()).expect("it is JSON")
}

/// Every key of a value with those above it; the parts of a list are `[]`.
fn keys(value: &Value, above: &str, keys: &mut Vec<String>) {
    let mut add = |name: &str, value: &Value, is_key: bool| {
        let path = if above.is_empty() { name.to_owned() } else { format!("{above} / {name}") };
        if is_key {
            keys.push(path.clone());
        }
        self::keys(value, &path, keys);
    };
    match value {
        Value::Object(object) => object.iter().for_each(|(name, value)| add(name, value, true)),
        Value::Array(values) => values.iter().for_each(|value| add("[]", value, false)),
        _ => {}
    }
}

/// The jobs of keys.fio, with results that have I/Os where its jobs had.
#[test]
fn report_has_the_keys_of_fios() {
    use DataDirection::{Read, Write};
    let jobs = jobs(include_str!("../../data/fio-3.33/keys.fio"));
    let mut mixed = result(&[Read, Write], 3);
    mixed.syncs.add(Nanos::from_micros(5));
    let results = [mixed, result(&[Read], 3), result(&[Write], 3), result(&[Write], 3)];
    let mut found = vec![];
    keys(&report(&jobs, &results), "", &mut found);
    let fios = include_str!("../../data/fio-3.33/json-keys.txt");
    let mut fios: Vec<_> = fios.lines().filter(|line| !line.starts_with('#')).collect();
    found.sort_unstable();
    fios.sort_unstable();
    let strange: Vec<_> = found.iter().filter(|key| !fios.contains(&key.as_str())).collect();
    let missing: Vec<_> = fios.iter().filter(|key| !found.iter().any(|f| f == *key)).collect();
    assert_eq!((strange, missing), (vec![], vec![]));
    assert_eq!(found, fios, "each as often");
}

/// Ten I/Os of 4 KiB in a second: 40 KiB; latencies of 100 to 1000 us after 10 us of submission.
#[test]
fn numbers_of_a_job_are_in_fios_units() {
    let jobs = jobs("[j]\nsize=1m\nlat_percentiles=1\npercentile_list=50:90\n");
    let mut measured = result(&[DataDirection::Read], 10);
    measured.user_cpu = Nanos::from_millis(250);
    measured.directions[0].bandwidth =
        Samples { count: 2, min: 30, max: 50, mean: 40.0, deviation: 14.1 };
    let report = report(&jobs, &[measured]);
    let job = &report["jobs"][0];
    let read = &job["read"];
    assert_eq!((read["io_bytes"].as_u64(), read["io_kbytes"].as_u64()), (Some(40_960), Some(40)));
    assert_eq!((read["bw_bytes"].as_u64(), read["bw"].as_u64()), (Some(40_960), Some(40)));
    assert_eq!((read["iops"].as_f64(), read["runtime"].as_u64()), (Some(10.0), Some(1000)));
    assert_eq!(read["clat_ns"]["mean"].as_f64(), Some(550_000.0));
    assert_eq!(read["lat_ns"]["min"].as_u64(), Some(110_000));
    let p90 = read["lat_ns"]["percentile"]["90.000000"].as_u64().expect("it is told");
    assert!(p90.abs_diff(910_000) < 1000, "{p90}");
    // The sum of the squares of -450 to 450 in steps of 100 is 825000, a ninth of which is 302.77².
    let deviation = read["clat_ns"]["stddev"].as_f64().expect("a number");
    assert!((deviation - 302_765.0).abs() < 1.0, "{deviation}");
    assert_eq!(read["bw_agg"].as_f64(), Some(100.0), "alone in its group");
    // 100 and 200 us are below 250; 300 and 400 below 500; 500, 600 and 700 below 750; 800 and 900
    // below 1000; and 1000 us are 1 ms.
    let us = &job["latency_us"];
    let told = ["100", "250", "500", "750", "1000"].map(|bound| us[bound].as_f64());
    assert_eq!(told, [0.0, 20.0, 20.0, 30.0, 20.0].map(Some));
    assert_eq!(job["latency_ms"]["2"].as_f64(), Some(10.0));
    assert_eq!(job["usr_cpu"].as_f64(), Some(25.0));
    assert_eq!(report["time"], "Sun Nov 22 18:52:10 2026");
}

#[test]
fn depths_and_batches_are_counted_in_fios_classes() {
    let jobs = jobs("[j]\nsize=1m\n");
    let mut result = JobResult::default();
    for depth in [1, 2, 3, 7, 8, 63, 64, 1000] {
        result.submitted(depth);
    }
    for ios in [0, 4, 5, 8] {
        result.submitted_batch(ios);
    }
    let report = report(&jobs, &[result]);
    let level = |name: &str| report["jobs"][0]["iodepth_level"][name].as_f64();
    let told = ["1", "2", "4", "8", "16", "32", ">=64"].map(level);
    assert_eq!(told, [12.5, 25.0, 12.5, 12.5, 0.0, 12.5, 25.0].map(Some));
    let submit = |name: &str| report["jobs"][0]["iodepth_submit"][name].as_f64();
    assert_eq!(["0", "4", "8", "16"].map(submit), [25.0, 25.0, 50.0, 0.0].map(Some));
}

/// fio tells of a group as one: I/Os and bytes add up, and the longest time is the group's.
#[test]
fn group_is_told_as_one() {
    let jobs = jobs("[global]\nsize=1m\n[a]\nnumjobs=2\ngroup_reporting\n[b]\n");
    let mut slow = result(&[DataDirection::Read], 10);
    slow.directions[0].runtime = Nanos::from_secs(2);
    let alone = result(&[DataDirection::Read], 4);
    let report = report(&jobs, &[result(&[DataDirection::Read], 10), slow, alone]);
    let jobs = report["jobs"].as_array().expect("a list");
    let told: Vec<_> = jobs
        .iter()
        .map(|job| {
            (
                job["jobname"].as_str(),
                job["read"]["total_ios"].as_u64(),
                job["read"]["iops"].as_f64(),
            )
        })
        .collect();
    assert_eq!(told, [(Some("a"), Some(20), Some(10.0)), (Some("b"), Some(4), Some(4.0))]);
}

/// 10 and 30 I/Os of 4 KiB in a second: 25 % and 75 %, 40/1024 and 120/1024 MiB. In the half of it
/// in which both had something to do, 8 and 2.
#[test]
fn table_has_jobs_and_groups() {
    let jobs = jobs("[global]\nsize=1m\n[slow]\ncgroup=a\n[fast]\ncgroup=b\nrw=write\n");
    let mut results = [result(&[DataDirection::Read], 10), result(&[DataDirection::Write], 30)];
    for (result, (direction, ios)) in results.iter_mut().zip([(0, 8), (1, 2)]) {
        result.together = Nanos::from_millis(500);
        result.directions[direction].together_bytes = ios * 4096;
    }
    let told = format!("\n{}", table(&jobs, &results));
    let wanted = "
 JOB   GROUP  OP     I/OS  IOPS   MiB/S   SHARE  OF ALL     MEAN      P50      P99      MAX
 slow  /a     read     10    10  0.0391  80.0 %  25.0 %   550 us   500 us  1.00 ms  1.00 ms
 fast  /b     write    30    30   0.117  20.0 %  75.0 %  1.55 ms  1.50 ms  3.00 ms  3.00 ms
       /a     all      10    10  0.0391  80.0 %  25.0 %   550 us   500 us  1.00 ms  1.00 ms
       /b     all      30    30   0.117  20.0 %  75.0 %  1.55 ms  1.50 ms  3.00 ms  3.00 ms
SHARE is of the 500 ms in which all jobs had something to do; OF ALL is of the whole time
";
    assert_eq!(told, wanted);
}

/// The cells of the rows below the header.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

/// 6 I/Os in 500 s are 0.012 a second.
#[test]
fn rates_below_one_are_seen() {
    let mut slow = result(&[DataDirection::Read], 6);
    slow.directions[0].runtime = Nanos::from_secs(500);
    let told = table(&jobs("[slow]\nsize=1m\n"), &[slow]);
    let mib_per_s = "0.0000469";
    assert_eq!(rows(&told)[0][..6], ["slow", "/", "read", "6", "0.0120", mib_per_s]);
}

#[test]
fn what_took_no_time_has_a_number_and_no_rate() {
    let mut quick = result(&[DataDirection::Read], 10);
    quick.directions[0].runtime = Nanos::ZERO;
    let told = table(&jobs("[quick]\nsize=1m\n"), &[quick]);
    assert_eq!(rows(&told)[0][..7], ["quick", "/", "read", "10", "-", "-", "-"]);
}

/// Two syncs of 10 and 20 ms in the second of the job.
#[test]
fn syncs_have_a_row() {
    let mut writer = result(&[DataDirection::Write], 10);
    for millis in [10, 20] {
        writer.syncs.add(Nanos::from_millis(millis));
    }
    let told = table(&jobs("[writer]\nsize=1m\nrw=write\n"), &[writer]);
    let sync = "writer / sync 2 2.00 - - - 15.0 ms 10.0 ms 20.0 ms 20.0 ms";
    assert_eq!(rows(&told)[1].join(" "), sync);
}
