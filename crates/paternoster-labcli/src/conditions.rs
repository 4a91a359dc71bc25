//! What runs under which conditions: the part of the command line that `sim` and `compare` share.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use paternoster::{Hierarchy, Hz, Kernel, PlugLimits};
use paternoster_lab::fio::{FileKey, Jobs, ReadAt, Surroundings};
use paternoster_lab::host::{CORES, Host, host_names};
use paternoster_lab::sim::Setup;
use paternoster_model::{Model, read_input};
use paternoster_scene::Scheduler;

use crate::inputs::Inputs;
use crate::{device, tunable};

/// Jobs, and the device and the machine that they run on.
#[derive(Debug, clap::Args)]
pub(crate) struct Conditions {
    /// The job file. Options of jobs after `--` may replace it.
    #[arg(value_name = "JOB", required_unless_present = "job_options")]
    pub(crate) job: Option<PathBuf>,
    // Its help names all devices.
    #[arg(long, value_name = "NAME|FILE", help = device::help())]
    pub(crate) device: String,
    /// Set a tunable of each scheduler, by its name and unit in sysfs. May be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = tunable::parse)]
    pub(crate) tunables: Vec<(String, i64)>,
    /// How groups share the device, for cfq.
    #[arg(long, value_name = "NAME")]
    pub(crate) hierarchy: Option<Hierarchy>,
    /// The kernel whose decisions cfq makes: 2.6.35-seed, 2.6.36, 2.6.37, or 4.20, the default.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<Kernel>,
    // Its help names all hosts.
    #[arg(long, value_name = "NAME|FILE", default_value = "free", help = host_help())]
    pub(crate) host: String,
    /// Number of cores, instead of the host's. If I/O costs nothing, as on `free`, it has no
    /// effect.
    #[arg(long, value_name = "COUNT", value_parser = cores)]
    pub(crate) cores: Option<u32>,
    /// Ticks a second of the kernel's clock, instead of the host's.
    #[arg(long, value_name = "TICKS", value_parser = hz)]
    pub(crate) hz: Option<Hz>,
    /// How many requests may wait or be in flight: `nr_requests` of sysfs.
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nr_requests: u32,
    /// Whether I/Os that a job hands over with one call (`iodepth_batch`) are held back in a plug,
    /// so that neighbours merge: on or off.
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = on_or_off)]
    pub(crate) plug: Plugging,
    /// The seed of all random numbers.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Options of jobs, as on fio's command line: each --name begins a job, and options before the
    /// first one hold for all jobs, as in `-- --rw=randread --bs=4k --name=a --name=b`.
    #[arg(last = true, value_name = "FIO-OPTION")]
    pub(crate) job_options: Vec<String>,
}

impl Conditions {
    /// What the jobs are called that are run: their file, or else where their options stand.
    pub(crate) fn job_name(&self) -> String {
        let named = self.job.as_ref().map(|job| job.display().to_string());
        named.unwrap_or_else(|| "the command line".to_owned())
    }

    /// Each is set once, of a scheduler that has it.
    pub(crate) fn check_tunables(&self, schedulers: &[Scheduler]) -> Result<()> {
        let kernel = self.kernel.unwrap_or_default();
        for Scheduler { kind, tunables } in schedulers {
            tunable::check_once(&[&tunables[..], &self.tunables].concat())?;
            for (name, value) in &self.tunables {
                kind.tunable_of(kernel, name)?.accepts(*value)?;
            }
        }
        Ok(())
    }

    /// The jobs of that text, or of the command line, with all that they read.
    pub(crate) fn parse(
        &self,
        job: Option<&[u8]>,
        device: &dyn Model,
        inputs: &Inputs,
        seed: u64,
    ) -> Result<Jobs> {
        let surroundings = Surroundings {
            variable: &|name| std::env::var(name).ok(),
            file: &|path| {
                inputs.add(path);
                read_input(path)
            },
            log: &|path| {
                inputs.add(path);
                open_log(path)
            },
            file_key: &FileKey::of,
            device_bytes: device.end().0.saturating_mul(512).min(1 << 63),
            seed,
        };
        let name = self.job_name();
        let file = job.map(|job| (name.as_str(), job));
        Ok(Jobs::parse_with_arguments(&self.job_options, file, &surroundings)?)
    }

    /// What the command line says of the run, beside the jobs.
    pub(crate) fn set_up(&self, scheduler: &Scheduler, host: &Host, device: &dyn Model) -> Setup {
        let mut setup = Setup::new(scheduler.kind);
        setup.tunables = [&scheduler.tunables[..], &self.tunables].concat();
        setup.hierarchy = self.hierarchy;
        setup.kernel = self.kernel;
        host.set_up(&mut setup, device);
        setup.hz = self.hz.unwrap_or(setup.hz);
        setup.cores = self.cores.unwrap_or(setup.cores);
        setup.nr_requests = Some(self.nr_requests);
        setup.plug = match self.plug {
            Plugging::On => PlugLimits::default(),
            Plugging::Off => PlugLimits::OFF,
        };
        setup
    }

    /// Says so where the number of cores has no effect.
    pub(crate) fn note_cores(&self, setup: &Setup) {
        if self.cores.is_some() && setup.costs.are_none() {
            eprintln!(
                "paternoster-lab: --cores changes nothing: I/O costs nothing on {}",
                self.host
            );
        }
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
pub(crate) enum Plugging {
    On,
    Off,
}

impl Plugging {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
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

fn hz(text: &str) -> Result<Hz, String> {
    let hz = text.parse().ok().and_then(Hz::new);
    hz.ok_or_else(|| "1 to 1000 is allowed, where a tick is a whole number of ns".to_owned())
}

/// Opens a log that a job replays: relative to the working directory, as fio does.
fn open_log(path: &Path) -> io::Result<Arc<dyn ReadAt>> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("a regular file is expected: a log is read twice"));
    }
    Ok(Arc::new(fs::File::open(path)?))
}

/// Says what of the jobs changes nothing, or means something else than it may seem to.
pub(crate) fn say_notes(jobs: &Jobs) {
    for note in &jobs.notes {
        eprintln!("paternoster-lab: {}: {} changes nothing: {}", note.place, note.option, note.why);
    }
    let waits = jobs.jobs.iter().filter_map(|job| job.replay.as_ref()?.first_wait());
    for place in waits.collect::<BTreeSet<_>>() {
        eprintln!(
            "paternoster-lab: {place}: a wait is in ms since the start of the job, as in fio \
             3.33; its HOWTO says us since the wait before"
        );
    }
}
