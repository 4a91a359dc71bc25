//! The page of a report, opened in headless Chromium from a file.
//!
//! It stands in a frame of another page, which is as wide as a test wants it: a window of Chromium
//! is never narrower than 500 pixels. A script of the test in it looks at what is drawn
//! ([`probe.js`](probe.js)) and tells the page around it, whose DOM Chromium prints.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A job file whose names look like HTML.
const JOB: &str = "\
[global]
ioengine=libaio
direct=1
rw=randread
bs=4k
size=1g
runtime=2s
time_based
iodepth=4
[light</script><script>document.title='other'</script>]
; lab: group=/light weight=100
[heavy <img src=x>]
; lab: group=/heavy weight=400
";

const PROBE: &str = include_str!("probe.js");

/// Runs the job, and returns the page of the run.
fn page(folder: &Path, options: &[&str]) -> String {
    let (job, out) = (folder.join("job.fio"), folder.join("out.html"));
    std::fs::write(&job, JOB).expect("a file in a folder of ours");
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.arg("sim").arg(&job).args(options).arg("--html").arg(&out);
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(out).expect("the page is there")
}

/// Opens the page, that many pixels wide. Returns what the probe found.
fn open(folder: &Path, page: &str, width: u32) -> Value {
    let probed = page.replacen("<head>", &format!("<head><script>{PROBE}</script>"), 1);
    let around = format!(
        "<!doctype html><pre id=\"probe\"></pre>
        <iframe src=\"probed.html\" style=\"border: 0; width: {width}px; height: 900px\"></iframe>
        <script>
        onmessage = (event) => {{ document.getElementById(\"probe\").textContent = event.data; }};
        </script>"
    );
    let file = folder.join("around.html");
    std::fs::write(folder.join("probed.html"), probed).expect("a file in a folder of ours");
    std::fs::write(&file, around).expect("a file in a folder of ours");
    let output = Command::new("timeout")
        .args(["60", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg("--window-size=1400,1000")
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("timeout, which Debian always has, runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Debian's package chromium is needed: {said}");
    let console: Vec<_> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    let dom = String::from_utf8(output.stdout).expect("the DOM is UTF-8");
    let (_, rest) = dom.split_once("<pre id=\"probe\">").expect("the page around it");
    let (answer, _) = rest.split_once("</pre>").expect("its element ends");
    let mut found: Value =
        serde_json::from_slice(&base64(answer)).expect("the probe has answered, in JSON");
    found["console"] = Value::from(console.iter().map(|&line| line.into()).collect::<Vec<Value>>());
    found
}

/// Decodes what `btoa` made.
fn base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let values: Vec<u32> = text.bytes().filter_map(value).map(u32::from).collect();
    let bytes = values.chunks(4).flat_map(|four| {
        let bits = four.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

/// What a section has to have, at least.
enum Drawn {
    /// Coloured pixels, on its first canvas.
    Pixels,
    /// Bars, dots and other shapes.
    Shapes(u64),
    /// Rows of tables.
    Rows(u64),
}

const RUN: [(&str, Drawn); 10] = [
    ("throughput", Drawn::Pixels),
    ("latency", Drawn::Pixels),
    ("distribution", Drawn::Pixels),
    ("shares", Drawn::Shapes(1)),
    ("device-time", Drawn::Pixels),
    ("device-time", Drawn::Shapes(2)),
    ("decisions", Drawn::Pixels),
    ("result", Drawn::Rows(2)),
    ("decisions", Drawn::Rows(20)),
    ("parameters", Drawn::Rows(20)),
];

/// Two bars for each total and effect; a dot for each figure.
const STUDY: [(&str, Drawn); 8] = [
    ("hierarchy-errors", Drawn::Shapes(200)),
    ("hierarchy-errors", Drawn::Rows(4)),
    ("hierarchy-total", Drawn::Shapes(48)),
    ("hierarchy-effect", Drawn::Shapes(24)),
    ("hierarchy-shares", Drawn::Shapes(96)),
    ("hierarchy-moves", Drawn::Shapes(4)),
    ("hierarchy-moves", Drawn::Rows(2)),
    ("hierarchy-all", Drawn::Rows(237 + 20)),
];

/// What is not as it should be on a page that was opened.
fn faults(found: &Value, drawn: &[(&str, Drawn)]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |is_right: bool, what: String| {
        if !is_right {
            faults.push(what);
        }
    };
    for (section, drawn) in drawn {
        let its = &found["sections"][section];
        let (there, least, what) = match drawn {
            Drawn::Pixels => (&its["canvases"][0], 100, "coloured pixels"),
            Drawn::Shapes(least) => (&its["shapes"], *least, "shapes"),
            Drawn::Rows(least) => (&its["rows"], *least, "rows"),
        };
        let is_enough = there.as_u64().is_some_and(|there| there >= least);
        check(is_enough, format!("{section}: {there} {what}"));
    }
    for empty in ["loaded", "failures", "console", "cut"] {
        let found = &found[empty];
        check(found.as_array().is_some_and(Vec::is_empty), format!("{empty}: {found}"));
    }
    let (page, window) = (&found["page_width"], &found["window_width"]);
    check(page.as_u64() <= window.as_u64(), format!("{page} wide in a window of {window}"));
    check(found["scaled"] == 0, format!("{} drawings for another width", found["scaled"]));
    check(found["unnamed"] == 0, format!("{} charts without a label", found["unnamed"]));
    faults
}

#[test]
fn page_of_a_run_is_drawn_on_a_laptop_and_names_stay_texts() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--device", "hdd-7200", "--scheduler", "cfq", "--window", "0.5:1.5"];
    let page = page(folder.path(), &options);
    let found = open(folder.path(), &page, 1280);
    assert_eq!(faults(&found, &RUN), [""; 0]);
    assert!(found["sections"]["shares"]["shapes"].as_u64() >= Some(8), "four for each group");
    assert_eq!(found["title"], "job.fio on hdd-7200, cfq");
    assert_eq!(
        (&found["scripts"], &found["images"]),
        (&4.into(), &0.into()),
        "uPlot, ours, the data, the probe"
    );
    let text = found["text"].as_str().expect("a text");
    assert!(text.contains("light</script><script>document.title='other'</script>"), "{text}");
    for told in [
        "the slice of",
        "is charged",
        "mechanics.rpm",
        "slice_idle",
        "Held against",
        "Nothing of this disk",
    ] {
        assert!(text.contains(told), "{told} is not in {text}");
    }
}

#[test]
fn page_of_a_fast_device_fits_a_narrow_phone() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--device", "nvme-980pro", "--scheduler", "kyber", "--window", "0.1:0.3"];
    let page = page(folder.path(), &options);
    let found = open(folder.path(), &page, 360);
    assert_eq!(faults(&found, &RUN), [""; 0]);
    assert_eq!(found["window_width"], 360);
    let text = found["text"].as_str().expect("a text");
    assert!(text.contains("There are too many requests to keep all"), "{text}");
    assert!(text.contains("kyber knows no weights"), "{text}");
}

#[test]
fn page_of_a_study_sets_figures_beside_ours_on_a_laptop_and_on_a_phone() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.args(["study", "hierarchy", "--cells-only", "--html"]).arg(&out);
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out).expect("the page is there");
    // What moves the answer takes thousands of runs: it is made up.
    let other = |value: u32, most: f64| {
        format!(
            r#"{{"value":{value},"median":1.5,"most":{most},"most_cell":"a total",
            "median_error":2.0}}"#
        )
    };
    let moves = format!(
        r#""moves":[{{"key":"study.hz","value":"1000","mark":"guess","moved":[{},{}]}}]"#,
        other(100, -8.5),
        other(250, 4.25)
    );
    assert_eq!(page.matches("\"moves\":[]").count(), 1);
    let page = page.replacen("\"moves\":[]", &moves, 1);
    for width in [1280, 360] {
        let found = open(folder.path(), &page, width);
        assert_eq!(faults(&found, &STUDY), [""; 0], "{width} pixels wide");
        let text = found["text"].as_str().expect("a text");
        for told in [
            "◆ fitted to",
            "not counted",
            "−8.5 %",
            "at 250",
            "Median error of totals",
            "brrbuffered random readers",
            "bsrbuffered sequential readers",
            "drrdirect random readers",
            "drwdirect random writers",
            "NRthe number of readers, or of writers, in each group",
        ] {
            assert!(text.contains(told), "{told} is not in {text}");
        }
        // An axis ends behind the greatest error: at 1, 2, 5, 10, … of it that is at most 2.5 times
        // as much. What no figure is fitted to is told in dots.
        let reach = found["sections"]["hierarchy-errors"]["dots"].as_array().expect("rows of dots");
        assert_eq!(reach.len(), 4, "totals, effects, groups and shares");
        for part in reach {
            let part = part.as_f64().expect("a part");
            assert!((0.35..=1.0).contains(&part), "the outermost dot is at {part} of {reach:?}");
        }
    }
}

const PLUGGING: [(&str, Drawn); 5] = [
    ("measured-0", Drawn::Rows(9)),
    ("measured-1", Drawn::Rows(6)),
    ("plugging-errors", Drawn::Shapes(10)),
    ("plugging-total", Drawn::Shapes(10)),
    ("plugging-moves", Drawn::Shapes(10)),
];

#[test]
fn page_of_a_measurement_says_what_is_measured_and_what_predicted_on_a_phone() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
    command.args(["study", "plugging", "--ios", "400", "--runs", "1"]);
    command.args(["--submitters", "2", "--devices", "1", "--html"]).arg(&out);
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out).expect("the page is there");
    let found = open(folder.path(), &page, 360);
    assert_eq!(faults(&found, &PLUGGING), [""; 0]);
    let text = found["text"].as_str().expect("a text");
    for told in ["measured on this machine", "Predicted, not measured", "plug+rings", "calibrated"]
    {
        assert!(text.contains(told), "{told} is not in {text}");
    }
}

#[test]
fn page_whose_charts_fail_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = page(folder.path(), &["--device", "hdd-7200", "--scheduler", "bfq"]);
    let breaks = [
        ("function plotData(chart) {", "function plotData(chart) { return [[]];"),
        ("function drawTimeline(state) {", "function drawTimeline(state) { return;"),
    ];
    let broken = breaks.iter().fold(page, |page, (whole, broken)| {
        assert!(page.contains(whole), "{whole}");
        page.replacen(whole, broken, 1)
    });
    let loading = broken.replacen("</main>", "<img src=\"missing.png\"></main>", 1);
    let faults = faults(&open(folder.path(), &loading, 1280), &RUN).join("\n");
    for noticed in ["throughput: 0 ", "latency: 0 ", "decisions: 0 ", "missing.png"] {
        assert!(faults.contains(noticed), "{noticed} is not in {faults}");
    }
}

/// The window is asked for in seconds, and means nothing without a page.
#[test]
fn window_that_is_none_is_refused() {
    let refused = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster-lab"));
        let output =
            command.args(["sim", "job.fio", "--device", "hdd-7200"]).args(options).output();
        let output = output.expect("the binary runs");
        assert!(!output.status.success());
        String::from_utf8(output.stderr).expect("text")
    };
    for window in ["2:1", "1", "a:b", "-1:2"] {
        let said = refused(&["--html", "out.html", &format!("--window={window}")]);
        assert!(said.contains("FROM:TO is allowed"), "{window}: {said}");
    }
    assert!(refused(&["--window", "1:2"]).contains("--html"), "it needs the page");
}
