//! The dashboard of packaging/grafana: each of its queries, by a Prometheus that has scraped a
//! server whose tenants ask all the time.
//!
//! ```text
//!   nbdcopy, nbdcopy ──▶ paternoster ◀──scrape── Prometheus ◀──each query── this
//! ```

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::debian::{Debian, Shared};

const DASHBOARD: &str = "packaging/grafana/paternoster.json";
/// What has to be in the Debian.
pub(crate) const PACKAGES: [&str; 2] = ["prometheus", "libnbd-bin"];
/// Where Prometheus and the server's metrics are.
const PROMETHEUS: &str = "127.0.0.1:19871";
const METRICS: &str = "127.0.0.1:19870";
/// For how long it scrapes, each second, before it is asked.
const SCRAPED: Duration = Duration::from_secs(12);

/// What is run in the Debian, in a folder of the package.
fn line() -> String {
    format!(
        r#"
mkdir -p /tmp/dashboard
cd /tmp/dashboard
cat > prometheus.yml <<END
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: paternoster
    static_configs: [{{targets: ["{METRICS}"]}}]
END
cat > server.toml <<END
unix = "nbd.sock"
ctl = "none"
metrics = "{METRICS}"
[disks.d]
backend = "modelled"
size = "512M"
servers = 4
service_us = 10000
scheduler = "wfq"
depth = "learned"
[exports.gold]
disk = "d"
size = "256M"
weight = 300
[exports.free]
disk = "d"
offset = "256M"
END
paternoster serve --log warn server.toml > uris &
server=$!
until test -s uris; do kill -0 "$server"; sleep 0.1; done
for export in gold free; do
    while :; do nbdcopy --requests=64 "nbd+unix:///$export?socket=nbd.sock" null:; done &
done
prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb \
    --web.listen-address={PROMETHEUS} --log.level=error
"#
    )
}

/// Prometheus and what it scrapes, which end with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself, which the queries tell.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks each query of the dashboard; the server's program is in the Debian, with [`PACKAGES`].
pub(crate) fn check(debian: &Debian, shared: &Shared<'_>) -> Result<()> {
    let dashboard = fs::read_to_string(Path::new(DASHBOARD)).context(DASHBOARD)?;
    let dashboard: Value = serde_json::from_str(&dashboard).context(DASHBOARD)?;
    let running = debian.shell(shared, &line()).spawn().context("unshare does not start")?;
    let mut running = Running(running);
    thread::sleep(SCRAPED);
    // Else one that another run has left would answer.
    ensure!(running.0.try_wait()?.is_none(), "the server or Prometheus has ended");
    let mut queries = 0;
    for panel in dashboard["panels"].as_array().into_iter().flatten() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let (title, query) = (&panel["title"], target["expr"].as_str().unwrap_or_default());
            let series = series(&asked(query)).with_context(|| format!("{title}: {query}"))?;
            ensure!(series > 0, "{title}: nothing is found by {query}");
            queries += 1;
        }
    }
    drop(running);
    println!("the dashboard: each of {queries} queries finds something");
    Ok(())
}

/// The query, as Grafana asks it for all disks and tenants.
fn asked(query: &str) -> String {
    let all = query.replace("$instance", ".*").replace("$disk", ".*").replace("$tenant", ".*");
    all.replace("$__rate_interval", "5s")
}

/// How many series a query finds.
fn series(query: &str) -> Result<usize> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--noproxy", "*", "--get", "--data-urlencode"])
        .arg(format!("query={query}"));
    let output = curl.arg(format!("http://{PROMETHEUS}/api/v1/query")).output().context("curl")?;
    let answer: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("Prometheus says {:?}", String::from_utf8_lossy(&output.stdout))
    })?;
    ensure!(answer["status"] == "success", "{answer}");
    Ok(answer["data"]["result"].as_array().map_or(0, Vec::len))
}
