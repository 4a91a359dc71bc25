//! Shares of the time in which all jobs had something to do, beside those of the whole time; and
//! runs in which no scheduler could give any.

use crate::{report_of, sim};

/// With `none`, 16 servers of 80 µs do 200,000 reads a second, of which each of two jobs with 16
/// outstanding has half. One is alone for the first of its two seconds: 150,000 a second on
/// average, beside the other's 100,000.
const LATER: &str = "\
[global]
ioengine=libaio
direct=1
rw=randread
bs=4k
size=1g
time_based
iodepth=16
[first]
runtime=2s
[later]
startdelay=1s
runtime=1s
";

fn table(job: &str, options: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let options = [&["--device", "servers-16x80us"], options].concat();
    let output = sim(folder.path(), job, &options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The two shares of a job, in percent.
fn shares(table: &str, job: &str) -> [f64; 2] {
    let row = table.lines().find(|line| line.trim_start().starts_with(job)).expect("its row");
    let words: Vec<_> = row.split_whitespace().collect();
    let percents = words.windows(2).filter(|pair| pair[1] == "%");
    let percents: Vec<f64> = percents.map(|pair| pair[0].parse().expect("a number")).collect();
    percents.try_into().expect("two shares")
}

#[test]
fn share_is_of_the_time_in_which_all_jobs_had_something_to_do() {
    let table = table(LATER, &[]);
    for (job, wanted) in [("first", [50.0, 60.0]), ("later", [50.0, 40.0])] {
        for (share, wanted) in shares(&table, job).iter().zip(wanted) {
            assert!((share - wanted).abs() < 0.5, "{job}: {share} %, not {wanted} %\n{table}");
        }
    }
    let note = "SHARE is of the 1.00 s in which all jobs had something to do; OF ALL is of the \
                whole time";
    assert!(table.contains(note), "{table}");
}

#[test]
fn no_share_is_told_of_jobs_that_run_one_after_the_other() {
    let table = table(&LATER.replace("startdelay=1s", "stonewall"), &[]);
    assert!(table.contains("SHARE is of no time, as never all jobs had something"), "{table}");
}

/// The device takes 32 at once, and serves 16 of them; of 2 x 24 outstanding a third waits.
#[test]
fn run_in_which_nothing_waited_says_that_the_scheduler_had_nothing_to_order() {
    let said = "the scheduler had nothing to order";
    let deep = LATER.replace("iodepth=16", "iodepth=24");
    for scheduler in ["none", "mq-deadline", "kyber"] {
        let options = ["--scheduler", scheduler];
        assert!(table(LATER, &options).contains(said), "{scheduler}");
        assert!(!table(&deep, &options).contains(said), "{scheduler}");
    }
}

/// fio's keys stay where they are; what fio has no place for is in one of its own.
#[test]
fn json_says_how_it_was_run_and_with_which_weights() {
    let folder = tempfile::tempdir().expect("a folder");
    let job = LATER.replace("[first]", "[first]\n; lab: group=/a weight=300 leaf_weight=200");
    let job = job.replace("[later]", "[later]\n; lab: group=/a/b weight=50");
    let run = |scheduler: &str, more: &[&str]| {
        let ours = ["--device", "servers-16x80us", "--json", "--seed", "7", "--scheduler"];
        report_of(&sim(folder.path(), &job, &[&ours, &[scheduler][..], more].concat()))
    };
    let report = run("cfq", &["--set", "slice_idle=0"]);
    assert_eq!(report["jobs"][0]["jobname"], "first");
    let own = &report["paternoster"];
    assert_eq!((&own["scheduler"], &own["seed"]), (&"cfq".into(), &7.into()));
    assert_eq!(own["device"], "servers-16x80us");
    let tunables = own["tunables"].as_object().expect("tunables");
    assert_eq!(tunables["slice_idle"], 0);
    assert_eq!(tunables["quantum"], 8, "Linux's default");
    let groups = own["groups"].as_array().expect("groups");
    let told = |index: usize| {
        let group = &groups[index];
        serde_json::json!([group["path"], group["weight"], group["leaf_weight"], group["jobs"]])
    };
    assert_eq!(told(1), serde_json::json!(["/a", 300, 200, [0]]));
    assert_eq!(told(2), serde_json::json!(["/a/b", 50, 500, [1]]), "CFQ's default is 500");
    assert_eq!((groups.len(), &own["interrupted"]), (3, &false.into()));
    let together = own["together_ns"].as_f64().expect("a time");
    assert!((together / 1e9 - 1.0).abs() < 0.01, "{together} ns");
    let none = &run("none", &[])["paternoster"];
    assert_eq!(
        (&none["groups"][1]["weight"], &none["tunables"]),
        (&().into(), &serde_json::json!({}))
    );
}
