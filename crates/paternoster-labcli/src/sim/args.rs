//! The command line of `paternoster-lab sim`.

use std::path::PathBuf;
use std::time::Duration;

use paternoster::Nanos;
use paternoster_lab::report::Window;
use paternoster_scene::Scheduler;

use crate::conditions::Conditions;

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
    #[command(flatten)]
    pub(super) conditions: Conditions,
    /// The scheduler, with its tunables, such as `cfq:slice_idle=0`. May be repeated: the jobs run
    /// under each, and what they got stands side by side.
    #[arg(long = "scheduler", value_name = "NAME[:TUNABLE=VALUE,…]", default_value = "none")]
    pub(super) schedulers: Vec<Scheduler>,
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
