//! The command line of `paternoster-lab sim`.

use std::path::PathBuf;
use std::time::Duration;

use paternoster::{Hierarchy, Hz, Kernel, Nanos};
use paternoster_lab::host::{CORES, host_names};
use paternoster_lab::report::Window;
use paternoster_scene::Scheduler;

use crate::{device, tunable};

/// Run a job file of fio over a modelled device, in virtual time.
///
/// The scheduler is the code that the server runs. The same job, device and seed give the same
/// table. Options of fio that are not simulated are refused by name and line: docs/fio-jobs.md
/// lists them.
///
/// Ctrl-C ends the run and prints what was counted; a second one prints nothing.
///
/// The exit status is 1 if a job ends with an error, such as an I/O that took too long, or if
/// nothing can be run, as with a mistake in the job file; then nothing is printed. It is 2 for a
/// mistake in the command line, and 128 after Ctrl-C, as fio's.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The job file. Options of jobs after `--` may replace it.
    #[arg(value_name = "JOB", required_unless_present = "job_options")]
    pub(super) job: Option<PathBuf>,
    // Its help names all devices.
    #[arg(long, value_name = "NAME|FILE", help = device::help())]
    pub(super) device: String,
    /// The scheduler, with its tunables, such as `cfq:slice_idle=0`. May be repeated: the jobs run
    /// under each, and what they got stands side by side.
    #[arg(long = "scheduler", value_name = "NAME[:TUNABLE=VALUE,…]", default_value = "none")]
    pub(super) schedulers: Vec<Scheduler>,
    /// Set a tunable of each scheduler, by its name and unit in sysfs. May be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = tunable::parse)]
    pub(super) tunables: Vec<(String, i64)>,
    /// How groups share the device, for cfq.
    #[arg(long, value_name = "NAME")]
    pub(super) hierarchy: Option<Hierarchy>,
    /// The kernel whose decisions cfq makes: 2.6.35-seed, 2.6.36, 2.6.37, or 4.20, the default.
    #[arg(long, value_name = "NAME")]
    pub(super) kernel: Option<Kernel>,
    // Its help names all hosts.
    #[arg(long, value_name = "NAME|FILE", default_value = "free", help = host_help())]
    pub(super) host: String,
    /// Number of cores, instead of the host's. If I/O costs nothing, as on `free`, it has no
    /// effect.
    #[arg(long, value_name = "COUNT", value_parser = cores)]
    pub(super) cores: Option<u32>,
    /// Ticks a second of the kernel's clock, instead of the host's.
    #[arg(long, value_name = "TICKS", value_parser = hz)]
    pub(super) hz: Option<Hz>,
    /// How many requests may wait or be in flight: `nr_requests` of sysfs.
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) nr_requests: u32,
    /// Whether I/Os that a job hands over with one call (`iodepth_batch`) are held back in a plug,
    /// so that neighbours merge: on or off.
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = on_or_off)]
    pub(super) plug: Plugging,
    /// The seed of all random numbers.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,
    /// Print the report in fio's JSON instead of a table; of several schedulers, an array of them.
    #[arg(long)]
    pub(super) json: bool,
    /// Also write a self-contained HTML page with charts of the run, and with every decision of a
    /// window.
    #[arg(long, value_name = "OUT")]
    pub(super) html: Option<PathBuf>,
    /// That window, in seconds from the start of the run, such as 1.5:2. The default is a second in
    /// the middle of the shortest runtime.
    #[arg(long, value_name = "FROM:TO", requires = "html", value_parser = window)]
    pub(super) window: Option<Window>,
    /// Write every decision of the scheduler to a file, one JSON object a line (oracle/FORMAT.md).
    /// A request is named by its job and its number, such as db.17. The file takes 110 to 230 bytes
    /// an I/O with short names.
    #[arg(long, value_name = "OUT")]
    pub(super) log: Option<PathBuf>,
    /// Options of jobs, as on fio's command line: each --name begins a job, and options before the
    /// first one hold for all jobs, as in `-- --rw=randread --bs=4k --name=a --name=b`.
    #[arg(last = true, value_name = "FIO-OPTION")]
    pub(super) job_options: Vec<String>,
}

impl Args {
    /// What the jobs are called that are run: their file, or else where their options stand.
    pub(super) fn job_name(&self) -> String {
        let named = self.job.as_ref().map(|job| job.display().to_string());
        named.unwrap_or_else(|| "the command line".to_owned())
    }
}

fn host_help() -> String {
    format!(
        "The machine: one that comes with the laboratory ({}), or a file of parameters. Its cores \
         take time for I/O and for the scheduler's work",
        host_names().join(", ")
    )
}

fn cores(text: &str) -> Result<u32, String> {
    let cores = text.parse().ok().filter(|cores| CORES.contains(cores));
    cores.ok_or_else(|| format!("{} to {} is allowed", CORES.start(), CORES.end()))
}

/// What a call may hold back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plugging {
    On,
    Off,
}

impl Plugging {
    /// As on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

fn on_or_off(text: &str) -> Result<Plugging, String> {
    let plugging = [Plugging::On, Plugging::Off].into_iter().find(|known| known.name() == text);
    plugging.ok_or_else(|| "on or off is allowed".to_owned())
}

fn window(text: &str) -> Result<Window, String> {
    let allowed = || "FROM:TO is allowed, in seconds, FROM before TO, as 1.5:2".to_owned();
    let nanos = |text: &str| {
        let span = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
        u64::try_from(span.as_nanos()).ok().map(Nanos::new)
    };
    let (from, to) = text.split_once(':').ok_or_else(allowed)?;
    let window = nanos(from).zip(nanos(to)).map(|(from, to)| Window { from, to });
    window.filter(|window| window.from < window.to).ok_or_else(allowed)
}

fn hz(text: &str) -> Result<Hz, String> {
    let hz = text.parse().ok().and_then(Hz::new);
    hz.ok_or_else(|| "1 to 1000 is allowed, where a tick is a whole number of ns".to_owned())
}
