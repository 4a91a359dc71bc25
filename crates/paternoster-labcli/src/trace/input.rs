//! The trace that a command reads, and how it is to be read.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use paternoster_cli::parse_size;
use paternoster_intake::{Beyond, Format, Options, Request, Trace};

#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    /// The trace; of blktrace, any of its files, or their name without `.blktrace.CPU`.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The format of the trace, if it cannot be found.
    #[arg(long, value_name = "NAME")]
    format: Option<Format>,
    /// The unit of DiskSim's times: ns, us, ms or s.
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
    /// What the columns of a CSV are, such as `time:us,op,offset:sectors,size:bytes,context`.
    #[arg(long, value_name = "COLUMNS")]
    columns: Option<String>,
    /// In columns: the words of a read, such as `R,0`. Any other word is of a write.
    #[arg(long, value_name = "WORDS")]
    read: Option<String>,
    #[command(flatten)]
    beyond: BeyondArgs,
    /// Take warnings for errors.
    #[arg(long)]
    strict: bool,
}

/// What becomes of requests that reach behind the end of the device; else they are an error.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct BeyondArgs {
    /// Have requests behind the end of the device begin again at its first byte.
    #[arg(long)]
    wrap: bool,
    /// Move all requests closer together, in blocks of 1 MiB, so that they fit the device.
    #[arg(long)]
    scale: bool,
}

/// Which device was traced, and how large the one is that its requests have to fit.
#[derive(Debug, clap::Args)]
pub(super) struct Devices {
    /// Read the requests of this device, instead of the one with most requests.
    #[arg(long, value_name = "MAJOR,MINOR")]
    device: Option<String>,
    /// The size of the device that the requests have to fit, such as 10G.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    size: Option<u64>,
}

fn size(text: &str) -> Result<u64, String> {
    let size = parse_size(text).filter(|size| *size > 0);
    size.ok_or_else(|| "a number of bytes is allowed, also with K, M, G or T behind it".to_owned())
}

impl Input {
    /// Opens the trace.
    pub(super) fn open(&self, devices: &Devices) -> Result<Trace> {
        self.open_of(devices.device.clone(), devices.size)
    }

    /// Opens the trace of that device, for one of that size.
    pub(crate) fn open_of(&self, device: Option<String>, size: Option<u64>) -> Result<Trace> {
        let beyond = match &self.beyond {
            BeyondArgs { wrap: true, .. } => Beyond::Wrap,
            BeyondArgs { scale: true, .. } => Beyond::Scale,
            _ => Beyond::Refuse,
        };
        let is_needed = beyond != Beyond::Refuse;
        ensure!(!is_needed || size.is_some(), "--wrap and --scale need --size");
        let options = Options {
            format: self.format,
            unit: self.unit.clone(),
            device,
            columns: self.columns.clone(),
            reads: self.read.clone(),
            size,
            beyond,
        };
        Trace::open(&self.file, &options).with_context(|| self.name())
    }

    /// The next request of it.
    pub(super) fn next(&self, trace: &mut Trace) -> Result<Option<Request>> {
        trace.next_request().with_context(|| self.name())
    }

    pub(crate) fn name(&self) -> String {
        self.file.display().to_string()
    }

    /// That of a command which has found so many warnings.
    pub(crate) fn exit_status(&self, warnings: usize) -> ExitCode {
        if self.strict && warnings > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}
