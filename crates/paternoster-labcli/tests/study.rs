//! `paternoster-lab study`: at once, and as tasks that are run one by one.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn paternoster(args: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.args(args).current_dir(dir).output().expect("paternoster runs")
}

fn success(args: &[&str], dir: &Path) -> String {
    let output = paternoster(args, dir);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).expect("output is text")
}

fn failure(args: &[&str], dir: &Path) -> String {
    let output = paternoster(args, dir);
    assert!(!output.status.success(), "{args:?} succeeds");
    String::from_utf8(output.stderr).expect("messages are text")
}

/// The tasks of a plan, run one by one, make the same report as `study` does at once.
#[test]
fn collected_tasks_make_the_same_report() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let at_once = success(&["study", "hierarchy", "--cells-only", "--json"], dir);
    success(&["study", "hierarchy", "--cells-only", "--plan", "plan"], dir);
    let neighbour = dir.join("plan/hierarchy-00000.answer.part");
    fs::write(&neighbour, "not ours").expect("a file");
    let missing = failure(&["study", "collect", "plan"], dir);
    let five = (0..5).map(|number| format!("plan/hierarchy-0000{number}.answer.json"));
    let five = five.collect::<Vec<_>>().join(", ");
    assert!(missing.contains(&five) && missing.contains(" more"), "{missing}");
    let plan = fs::read_dir(dir.join("plan")).expect("the plan is there");
    let paths = plan.map(|entry| entry.expect("an entry").path());
    for path in paths.filter(|path| *path != neighbour) {
        let told = success(&["study", "run-task", path.to_str().expect("a name")], dir);
        let answer = path.display().to_string().replace(".task.", ".answer.");
        assert_eq!(told, format!("answer in {answer}\n"));
    }
    let told = success(&["study", "run-task", "plan/hierarchy-00000.task.json"], dir);
    let again = "answer in plan/hierarchy-00000.answer.json, instead of the one that was there\n";
    assert_eq!(told, again);
    let collected = success(&["study", "collect", "plan", "--json"], dir);
    assert!(collected == at_once, "the reports differ");
    assert_eq!(fs::read_to_string(&neighbour).expect("it is there"), "not ours");
    let report: Value = serde_json::from_str(&at_once).expect("a report is JSON");
    assert_eq!(report["version"], 1);
    let study = &report["studies"][0];
    assert_eq!(study["name"], "hierarchy");
    for key in ["id", "seed", "ours", "unit", "calibrated"] {
        assert!(!study["cells"][0][key].is_null(), "a cell has {key}");
    }
    assert!(study["median_error"].is_number() && study["p90_error"].is_number());
}

/// A task that was planned with other parameters than the studies have now.
#[test]
fn changed_task_is_not_collected() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    success(&["study", "hierarchy", "--cells-only", "--plan", "plan"], dir);
    let first = dir.join("plan/hierarchy-00000.task.json");
    let task = fs::read_to_string(&first).expect("a task");
    fs::write(&first, task.replace("\"hz\": 1000", "\"hz\": 250")).expect("a file");
    let message = failure(&["study", "collect", "plan"], dir);
    assert!(message.contains("is no task of this version's studies"), "{message}");
}

#[test]
fn unknown_study_is_told_which_there_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let message = failure(&["study", "alchemy"], dir.path());
    assert!(message.contains("\"alchemy\"") && message.contains("hierarchy"), "{message}");
}

#[test]
fn several_studies_are_run_in_the_order_of_their_posts() {
    let dir = tempfile::tempdir().expect("a directory");
    let text = success(&["study", "hierarchy", "group-idle", "--cells-only", "--json"], dir.path());
    let report: Value = serde_json::from_str(&text).expect("a report is JSON");
    let studies = report["studies"].as_array().expect("a list");
    let names: Vec<_> = studies.iter().map(|study| &study["name"]).collect();
    assert_eq!(names, ["group-idle", "hierarchy"]);
    let twice = failure(&["study", "hierarchy", "hierarchy"], dir.path());
    assert_eq!(twice, "paternoster-lab: the study hierarchy twice: once is allowed\n");
}

#[test]
fn help_names_the_studies() {
    let dir = tempfile::tempdir().expect("a directory");
    let named = "(plugging, group-idle, hierarchy, hybrid-polling, queue-merging)";
    for help in [success(&["study", "--help"], dir.path()), failure(&["study"], dir.path())] {
        assert!(help.contains(named), "{help}");
    }
}

/// Two threads and one, over each way, with the model's cells behind them.
#[test]
fn plugging_is_measured_where_it_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let short = ["--ios", "800", "--runs", "1", "--submitters", "1,2", "--devices", "1"];
    let args = [&["study", "plugging", "--json", "--html", "page.html"][..], &short].concat();
    let report: Value = serde_json::from_str(&success(&args, dir)).expect("a report is JSON");
    assert_eq!(report["studies"][0]["name"], "plugging");
    let ways = report["measured"]["ways"].as_array().expect("a list");
    assert_eq!(ways.len(), 9 * 2, "each way, with one and two submitters");
    for way in ways {
        assert!(way["iops"]["median"].as_f64() > Some(0.0), "{way}");
        assert!(way["cpu_us_per_io"]["median"].as_f64() > Some(0.0), "{way}");
        let has_lock =
            !["direct", "plug+rings", "off+rings"].contains(&way["way"].as_str().expect("a name"));
        assert_eq!(way["locks_per_io"].as_f64() > Some(0.0), has_lock, "{way}");
    }
    let outlook = &report["measured"]["outlook"];
    let forecasts = outlook["forecasts"].as_array().expect("a list");
    assert_eq!(forecasts.len(), 6 * 8, "six ways, for 1 to 128 processors");
    let checks = outlook["checks"].as_array().expect("a list");
    let calibrated = checks.iter().filter(|check| check["calibrated"] == true);
    assert_eq!((checks.len(), calibrated.count()), (6, 1));
    let page = fs::read_to_string(dir.join("page.html")).expect("the page is written");
    assert!(page.contains("plugging, measured on this machine"));
    assert!(page.contains("plugging, predicted for machines like this one"));
    let cells = success(&["study", "plugging", "--cells-only", "--json"], dir);
    let cells: Value = serde_json::from_str(&cells).expect("a report is JSON");
    assert!(cells["measured"].is_null(), "no more is asked for than the cells");
}

/// Every policy over a modelled device and a file, with the bounds beside; counts, not times.
#[test]
fn ways_to_wait_are_measured_live() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    fs::write(dir.join("disk"), vec![0; 1 << 16]).expect("a file");
    let short = ["--times", "300", "--file", "disk", "--rounds", "1", "--round-ms", "10"];
    let live = ["study", "hybrid-polling", "--live", "--json", "--html", "page.html"];
    let report: Value = serde_json::from_str(&success(&[&live[..], &short].concat(), dir))
        .expect("a report is JSON");
    assert_eq!(report["studies"].as_array().map(Vec::len), Some(0), "nothing is simulated");
    let lengths = report["live"]["sleeps"].as_array().expect("a list");
    let counted = lengths.iter().map(|it| it["sleeps"].as_u64()).collect::<Vec<_>>();
    assert_eq!(counted, [Some(64); 3], "what a sleep costs comes first");
    let devices = report["live"]["devices"].as_array().expect("a list");
    assert_eq!(devices.len(), 2);
    for device in devices {
        let ways = device["ways"].as_array().expect("a list");
        assert_eq!(ways.len(), 9);
        for way in ways {
            assert!(way["ios"].as_u64() > Some(0), "{way}");
            assert!(way["cpu_us_per_io"]["median"].as_f64() > Some(0.0), "{way}");
            let rings = way["interrupts_per_io"].as_f64().expect("a number");
            let may_block = ["interrupt", "auto"].contains(&way["way"].as_str().expect("a name"));
            assert!(rings <= 1.0 && (rings == 0.0 || may_block), "{way}");
        }
    }
    let page = fs::read_to_string(dir.join("page.html")).expect("the page is written");
    assert!(page.contains("what a sleep costs") && page.contains("hybrid-polling, measured: 300"));
}

#[test]
fn measurement_that_cannot_be_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    for (args, told) in [
        (
            &["hierarchy", "--runs", "2"][..],
            "paternoster-lab: --runs 2 is an option of what `study plugging` measures: name that \
             study, or leave --runs 2 out\n",
        ),
        (&["all", "--ios", "9"], "--ios 9 is an option of what `study plugging` measures"),
        (
            &["plugging", "--cells-only", "--runs", "1"],
            "paternoster-lab: --cells-only leaves out what `study plugging` measures, and --runs \
             1 is an option of that: leave out one of the two\n",
        ),
        (
            &["plugging", "--plan", "plan", "--devices", "1,8"],
            "--plan leaves out what `study plugging` measures, and --devices 1,8 is an option",
        ),
        (&["plugging", "--iodepth", "8"], "an iodepth of 8 with batches of 16"),
        (&["plugging", "--submitters", "0"], "0 is not in 1..=1024"),
        (&["plugging", "--scheduler", "bfq"], "[possible values: none, mq-deadline]"),
        (&["hierarchy", "--live"], "`study hybrid-polling --live` is allowed"),
        (&["hybrid-polling", "--live", "--times", "0"], "0 is not in 1..=100000"),
        (&["hybrid-polling", "--live", "--cells-only"], "cannot be used with"),
        (&["hybrid-polling", "--rounds", "3"], "--live"),
        (&["hybrid-polling", "--live", "--file", "nowhere"], "cannot read from nowhere"),
    ] {
        let message = failure(&[&["study"], args].concat(), dir.path());
        assert!(message.contains(told), "{args:?}: {message}");
    }
}

#[test]
fn plan_goes_to_a_directory_without_tasks() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("old.task.json"), "{}").expect("a file");
    let message = failure(&["study", "hierarchy", "--plan", "."], dir.path());
    assert!(message.contains("has tasks already"), "{message}");
}

/// A task that is none says where it goes wrong.
#[test]
fn broken_task_is_refused_with_its_place() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("a.task.json"), "{\n  \"version\": 1,\n}").expect("a file");
    let message = failure(&["study", "run-task", "a.task.json"], dir.path());
    assert!(message.starts_with("paternoster-lab: a.task.json:3:1: trailing comma"), "{message}");
    let message = failure(&["study", "run-task", "a.json"], dir.path());
    assert!(message.contains(".task.json"), "{message}");
}

/// All studies together take longer than the second of a core's time that is allowed here.
#[test]
fn page_that_cannot_be_written_is_told_before_anything_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = Command::new("bash")
        .args(["-c", "ulimit -t 1 && exec \"$0\" study all --html none/out.html"])
        .arg(env!("CARGO_BIN_EXE_paternoster-lab"))
        .current_dir(dir.path())
        .output()
        .expect("bash, which Debian always has, runs");
    let message = String::from_utf8(output.stderr).expect("messages are text");
    assert!(message.contains("cannot write none/out.html"), "{message}");
}

/// There are no tasks either, which is found out when they are read.
#[test]
fn page_of_collected_tasks_that_cannot_be_written_is_told_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let message = failure(&["study", "collect", ".", "--html", "none/out.html"], dir.path());
    assert!(message.contains("cannot write none/out.html"), "{message}");
}

/// The task cannot run, which is found out when it is to begin.
#[test]
fn answer_that_cannot_be_written_is_told_before_the_task_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    success(&["study", "hierarchy", "--cells-only", "--plan", "."], dir);
    let task = dir.join("hierarchy-00000.task.json");
    let text =
        fs::read_to_string(&task).expect("a task").replace("\"version\": 1", "\"version\": 0");
    fs::write(&task, text).expect("a file");
    let run = ["study", "run-task", "hierarchy-00000.task.json"];
    assert!(failure(&run, dir).contains("version 0 of a task"));
    fs::create_dir(dir.join("hierarchy-00000.answer.json")).expect("a directory");
    let message = failure(&run, dir);
    assert!(message.contains("cannot write hierarchy-00000.answer.json"), "{message}");
}
