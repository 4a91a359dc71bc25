//! The page for people: what it says beside `stat`, and how it is drawn.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Served, check_found, eventually, run, temp_dir, tool_command};

/// Two tenants of a disk; a name that would begin a script, if it could.
const FILE: &str = r#"
unix = "nbd.sock"
ctl = "ctl.sock"
metrics = "127.0.0.1:0"
[disks.slow]
backend = "modelled"
size = "64M"
servers = 4
service_us = 1000
scheduler = "wfq"
[exports.gold]
disk = "slow"
size = "32M"
weight = 300
[exports.free]
disk = "slow"
offset = "32M"
group = "/free<script>"
"#;

/// Its tenants ask all the time, until it is dropped.
struct Busy {
    served: Served,
    clients: Vec<Child>,
}

impl Busy {
    fn start(keys: &str) -> Self {
        let dir = temp_dir();
        fs::write(dir.path().join("c.toml"), format!("{keys}{FILE}")).expect("a file");
        let served = Served::start(dir, &["c.toml"], 2);
        let clients = served.uris.iter().map(|uri| {
            let mut fio = tool_command("fio", served.dir.path());
            fio.args(["--name=r", "--ioengine=nbd", "--rw=randread", "--bs=4k", "--iodepth=32"]);
            fio.args(["--size=32M", "--time_based", "--runtime=40", &format!("--uri={uri}")]);
            fio.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("timeout runs")
        });
        let busy = Self { clients: clients.collect(), served };
        eventually("both ask", || {
            let stat = busy.stat();
            let groups = stat["disks"][0]["groups"].as_array().expect("groups").clone();
            groups.iter().all(|group| group["ops"]["read"]["completed"].as_u64() > Some(0))
        });
        busy
    }

    fn stat(&self) -> Value {
        self.get(&["--unix-socket", "ctl.sock", "http://localhost/v1/stat"])
    }

    fn url(&self, path: &str) -> String {
        let log = self.served.log();
        let (_, rest) = log.split_once("metrics are at ").expect("it says where");
        let (base, _) = rest.split_once("/metrics").expect("an address");
        format!("{base}{path}")
    }

    fn get(&self, args: &[&str]) -> Value {
        let args = [&["--silent", "--fail"], args].concat();
        let text = run("curl", "curl", &args, self.served.dir.path());
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for client in &mut self.clients {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

/// Opens a page. Returns its DOM, and what the console says.
fn open(url: &str, folder: &Path, more: &[&str]) -> (String, Vec<String>) {
    let mut chromium = tool_command("chromium", folder);
    chromium.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
    chromium.args(["--disable-background-networking", "--disable-component-update"]);
    chromium.args(["--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom"]);
    chromium.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    let output = chromium.args(more).arg(url).output().expect("timeout runs");
    check_found("chromium", "chromium", output.status);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let console = said.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    (String::from_utf8_lossy(&output.stdout).into_owned(), console.collect())
}

fn tenants(picture: &Value) -> Vec<(&str, f64, f64)> {
    let of = |tenant: &'_ Value| {
        let number = |key: &str| tenant[key].as_f64().unwrap_or_else(|| panic!("{key}: {tenant}"));
        (number("iops"), number("had"))
    };
    let all = picture["disks"][0]["tenants"].as_array().expect("tenants");
    all.iter().map(|one| (one["path"].as_str().expect("a path"), of(one).0, of(one).1)).collect()
}

#[test]
fn page_shows_what_stat_says_of_the_same_second_and_loads_nothing_else() {
    let busy = Busy::start("");
    let first = busy.get(&[&busy.url("/picture.json")]);
    let before = busy.stat();
    thread::sleep(Duration::from_millis(1200));
    let (picture, after) = (busy.get(&[&busy.url("/picture.json")]), busy.stat());
    assert_eq!(tenants(&picture).len(), 2);
    assert_ne!(picture["at_ms"], first["at_ms"], "it is another one after a second");
    let elapsed = |stat: &Value| stat["disks"][0]["elapsed_ns"].as_f64().expect("a time");
    let span = (elapsed(&after) - elapsed(&before)) / 1e9;
    for (at, (path, iops, had)) in tenants(&picture).into_iter().enumerate() {
        let done = |stat: &Value| {
            let completed = &stat["disks"][0]["groups"][at]["ops"]["read"]["completed"];
            completed.as_f64().expect("a count")
        };
        let expected = (done(&after) - done(&before)) / span;
        assert!((iops / expected - 1.0).abs() < 0.15, "{path}: {iops}, and stat says {expected}");
        let due = if path == "/gold" { 0.75 } else { 0.25 };
        assert!((had - due).abs() < 0.1, "{path} had {had}");
    }

    let (dom, console) = open(&busy.url("/"), busy.served.dir.path(), &[]);
    assert_eq!(console, [""; 0]);
    assert!(dom.contains("/gold<small"), "{dom}");
    assert!(dom.contains("/free&lt;script&gt;<small"), "{dom}");
    // Chromium asks for nothing that this forbids.
    let head = run("curl", "curl", &["--silent", "-I", &busy.url("/")], busy.served.dir.path());
    assert!(head.contains("content-security-policy: default-src 'none'; script-src"), "{head}");
    for from in ["src=", "href=\"http", "href=\"/", "url(", "@import", "import("] {
        assert!(!dom.contains(from), "it loads {from}");
    }
}

#[test]
fn page_of_a_moment_fits_a_phone_and_a_desk() {
    let busy = Busy::start("page = false\n");
    let folder = busy.served.dir.path();
    let program = env!("CARGO_BIN_EXE_paternoster");
    run("paternoster", program, &["top", "--ctl", "ctl.sock", "--html", "top.html"], folder);
    let page = fs::read_to_string(folder.join("top.html")).expect("it is written");
    let probe = "<script>onload = () => { const root = document.documentElement; \
                 const found = [innerWidth, root.scrollWidth, \
                 document.querySelectorAll('tbody tr').length, \
                 getComputedStyle(document.querySelector('td.wide')).display]; \
                 parent.postMessage(found.join(' '), '*'); };</script></body>";
    fs::write(folder.join("probed.html"), page.replacen("</body>", probe, 1)).expect("a file");
    for (width, shown) in [(360, "none"), (1300, "table-cell")] {
        let around = format!(
            "<!doctype html><pre id=\"probe\"></pre><iframe src=\"probed.html\" style=\"border: 0; \
             width: {width}px; height: 900px\"></iframe><script>onmessage = (event) => \
             {{ document.getElementById(\"probe\").textContent = event.data; }};</script>"
        );
        fs::write(folder.join("around.html"), around).expect("a file");
        let url = format!("file://{}", folder.join("around.html").display());
        let (dom, console) = open(&url, folder, &["--window-size=1400,1000"]);
        assert_eq!(console, [""; 0]);
        let found = format!("<pre id=\"probe\">{width} {width} 2 {shown}</pre>");
        assert!(dom.contains(&found), "{found} is not in {dom}");
    }
    // Whoever wants none has none.
    let mut curl = tool_command("curl", folder);
    curl.args(["--silent", "--fail", &busy.url("/")]);
    assert_eq!(curl.output().expect("timeout runs").status.code(), Some(22), "it is not there");
}
