//! `paternoster demo`: the first thing that a newcomer runs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{paternoster, temp_dir};

/// How often the demo is run on a machine that is too slow to say anything.
const TRIES: u32 = 5;

/// Every tenant gets its share, in a run that the machine was fast enough for.
#[test]
fn demo_shares_the_disk_by_weight_and_says_so_in_json() {
    for _ in 0..TRIES {
        match demo_status() {
            0 => return,
            2 => {}
            status => panic!("the demo ends with status {status}: some share is off"),
        }
    }
    panic!("{TRIES} times this machine was too slow for the demo to say anything");
}

/// Runs the demo; its exit status, which its report has to bear out.
fn demo_status() -> i32 {
    let dir = temp_dir();
    let begin = Instant::now();
    let mut command = paternoster(dir.path());
    let output = command.args(["demo", "--seconds", "6", "--json"]).stdin(Stdio::null()).output();
    let output = output.expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["version"], 1);
    let tenants = report["tenants"].as_array().expect("tenants");
    let number = |tenant: &Value, key: &str| {
        tenant[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {tenant}"))
    };
    let sum = |key| tenants.iter().map(|tenant| number(tenant, key)).sum::<f64>();
    for key in ["entitled", "share_none", "share_cfq"] {
        assert!((sum(key) - 1.0).abs() < 1e-6, "{key}: {report}");
    }
    let weights: Vec<_> = tenants.iter().map(|tenant| tenant["weight"].clone()).collect();
    assert_eq!(weights, [100, 200, 400]);
    let (mut unfair, mut too_slow) = (false, false);
    for tenant in tenants {
        assert!(tenant["name"].is_string() && tenant["connections"].is_u64(), "{tenant}");
        assert!(number(tenant, "p50_us") <= number(tenant, "p99_us"), "{tenant}");
        assert!(number(tenant, "iops") > 0.0, "{tenant}");
        assert!((number(tenant, "entitled") - number(tenant, "weight") / 700.0).abs() < 1e-9);
        unfair |= (number(tenant, "share_cfq") / number(tenant, "entitled") - 1.0).abs() > 0.05;
        too_slow |= number(tenant, "demand") < 0.98;
    }
    // The lightest asks most: without weights it wins.
    assert!(number(&tenants[0], "share_none") > number(&tenants[2], "share_none"), "{report}");
    let expected = if too_slow { 2 } else { i32::from(unfair) };
    assert_eq!(output.status.code(), Some(expected), "{report}\n{said}");
    assert_eq!(said.contains("too slow"), expected == 2, "{said}");
    if expected == 1 {
        println!("{report}\n{said}");
    }
    expected
}
