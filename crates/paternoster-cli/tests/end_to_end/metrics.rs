//! `GET /metrics` as Prometheus' own client reads it, beside what `stat` says.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::stat::stat;
use crate::support::{Place, Served, check_found, eventually, run, temp_dir, tool_command};
use crate::wire::{Wire, request};

/// Reads the text on its standard input: every sample as [family, type, name, labels, value].
const PARSER: &str = "
import json, sys
from prometheus_client.parser import text_string_to_metric_families
text = sys.stdin.read()
print(json.dumps([[family.name, family.type, sample.name, sample.labels, sample.value]
                  for family in text_string_to_metric_families(text)
                  for sample in family.samples]))
";

/// The samples of one answer.
struct Samples(Vec<Value>);

impl Samples {
    /// Those of what `curl` gets with these arguments.
    fn fetched(served: &Served, args: &[&str]) -> Self {
        let dir = served.dir.path();
        let text = run("curl", "curl", &[&["--silent", "--fail"], args].concat(), dir);
        Self::parsed(&text, dir)
    }

    /// Those that Prometheus' client finds in `text`.
    fn parsed(text: &str, dir: &Path) -> Self {
        fs::write(dir.join("metrics.txt"), text).expect("a file");
        // Debian's, for which the package is: another may come first in PATH.
        let mut parser = tool_command("/usr/bin/python3", dir);
        let input = fs::File::open(dir.join("metrics.txt")).expect("it was written");
        let output = parser.args(["-c", PARSER]).stdin(input).output().expect("it runs");
        check_found("python3", "python3", output.status);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "python3-prometheus-client installed? {said}\n{text}");
        Self(serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// The value of the only sample of that name with these labels among its own.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |sample: &&Value| {
            sample[2] == name && labels.iter().all(|(label, value)| sample[3][label] == *value)
        };
        let found: Vec<_> = self.0.iter().filter(has).collect();
        let [sample] = found[..] else { panic!("{name} {labels:?}: {found:?}") };
        sample[4].as_f64().expect("a number")
    }
}

/// Two tenants of a disk, one with a name that has to be escaped, and metrics over TCP.
const TOML: &str = r#"
unix = "nbd.sock"
ctl = "ctl.sock"
metrics = "127.0.0.1:0"
[disks.m]
backend = "modelled"
size = "1M"
servers = 2
service_us = 300
scheduler = "cfq"
tunables.quantum = 5
[exports.disk]
disk = "m"
size = "512K"
weight = 300
[exports."o\"d\\d"]
disk = "m"
offset = "512K"
"#;

fn serve() -> Served {
    let dir = temp_dir();
    fs::write(dir.path().join("c.toml"), TOML).expect("a file");
    Served::start(dir, &["c.toml"], 2)
}

/// Three reads and two writes of 4 KiB each.
fn work(served: &Served) {
    let mut wire = Wire::enter(served, Place::Unix);
    for (cookie, code) in (0..).zip([0, 0, 0, 1, 1]) {
        let payload = vec![1; if code == 1 { 4096 } else { 0 }];
        wire.send(&[request(0, code, cookie, cookie * 65536, 4096), payload].concat());
        assert_eq!(wire.simple_reply(cookie), 0);
        if code == 0 {
            wire.skip(4096);
        }
    }
}

#[test]
fn metrics_are_valid_and_say_what_stat_says() {
    let served = serve();
    work(&served);
    eventually("nobody is connected", || stat(&served)["disks"][0]["connections"] == 0);
    let by_socket =
        Samples::fetched(&served, &["--unix-socket", "ctl.sock", "http://localhost/metrics"]);
    let log = served.log();
    let (_, url) = log.split_once("metrics are at ").expect("the log says where");
    let url = url.split_whitespace().next().expect("an address");
    let samples = Samples::fetched(&served, &[url]);
    let names = |samples: &Samples| -> Vec<_> {
        samples.0.iter().map(|sample| (sample[2].clone(), sample[3].clone())).collect()
    };
    assert_eq!(names(&samples), names(&by_socket));

    let told = stat(&served);
    let disk = &told["disks"][0];
    for group in disk["groups"].as_array().expect("groups") {
        let tenant = group["path"].as_str().expect("a path");
        for (op, counts) in group["ops"].as_object().expect("operations") {
            let labels = [("disk", "m"), ("tenant", tenant), ("op", op.as_str())];
            for (name, key) in
                [("operations", "bios"), ("bytes", "bytes"), ("requests", "completed")]
            {
                let name = format!("paternoster_tenant_{name}_total");
                let expected = counts[key].as_f64().expect("a number");
                assert_eq!(samples.value(&name, &labels).to_bits(), expected.to_bits(), "{name}");
            }
        }
        let labels = [("disk", "m"), ("tenant", tenant)];
        let weight = samples.value("paternoster_tenant_weight", &labels);
        assert_eq!(Some(weight), group["weight"].as_f64());
    }
    check_work(&samples);
    check_histograms(&samples, &disk["groups"][0]["ops"]["read"]);
    let labels = [("disk", "m"), ("backend", "modelled"), ("scheduler", "cfq"), ("quantum", "5")];
    assert_eq!(samples.value("paternoster_scheduler_info", &labels).to_bits(), 1f64.to_bits());
    served.end();
}

/// What is known of the work, whatever `stat` says.
fn check_work(samples: &Samples) {
    let labels = |op| [("disk", "m"), ("tenant", "/disk"), ("op", op)];
    let expected = [("read", 3.0, 12288.0), ("write", 2.0, 8192.0), ("discard", 0.0, 0.0)];
    for (op, operations, bytes) in expected {
        let found = ["operations", "bytes"]
            .map(|name| samples.value(&format!("paternoster_tenant_{name}_total"), &labels(op)));
        assert_eq!(found.map(f64::to_bits), [operations, bytes].map(f64::to_bits), "{op}");
    }
    // One asked for something, so all of it was its due, and it had it.
    for name in ["entitled", "achieved"] {
        let name = format!("paternoster_tenant_{name}_ratio");
        let share = samples.value(&name, &[("disk", "m"), ("tenant", "/disk")]);
        assert_eq!(share.to_bits(), 1f64.to_bits(), "{name}");
    }
    // By its name as it was written.
    let other = [("disk", "m"), ("tenant", "/o\"d\\d")];
    assert_eq!(samples.value("paternoster_tenant_weight", &other).to_bits(), 100f64.to_bits());
}

/// The reads' histograms: each is in the disk for 300 µs at least, as modelled, and their sums are
/// those of `stat`.
fn check_histograms(samples: &Samples, read: &Value) {
    let labels = [("disk", "m"), ("tenant", "/disk"), ("op", "read")];
    for (name, sum_ns) in [("wait", "wait_ns"), ("service", "service_ns")] {
        let of = |part: &str| samples.value(&format!("paternoster_tenant_{name}_{part}"), &labels);
        assert_eq!(of("seconds_count").to_bits(), 3f64.to_bits());
        let sum = read[sum_ns].as_f64().expect("a number") / 1e9;
        assert!((of("seconds_sum") - sum).abs() < 1e-9, "{name}");
    }
    let bucket = |end| {
        let labels = [labels[0], labels[1], labels[2], ("le", end)];
        samples.value("paternoster_tenant_service_seconds_bucket", &labels)
    };
    assert_eq!(bucket("0.000262143").to_bits(), 0f64.to_bits(), "none is done within 262 µs");
    assert_eq!(bucket("+Inf").to_bits(), 3f64.to_bits());
}

#[test]
fn address_of_metrics_has_nothing_else() {
    let served = serve();
    let log = served.log();
    let (_, url) = log.split_once("metrics are at ").expect("the log says where");
    let url = url.split_whitespace().next().expect("an address");
    let stat = url.replace("/metrics", "/v1/stat");
    let said = run("curl", "curl", &["--silent", &stat], served.dir.path());
    assert!(said.contains("there is no \\\"/v1/stat\\\"; there is /metrics"), "{said}");
    let put = ["--silent", "-X", "PUT", url];
    let said = run("curl", "curl", &put, served.dir.path());
    assert!(said.contains("GET is allowed"), "{said}");
    served.end();
}
