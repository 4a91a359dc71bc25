//! `paternoster serve`: from a file or from options to a running server.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use crate::ctl::DEFAULT_PLACE;
use paternoster::{Medium, SchedulerKind, fitted_tunables};
use paternoster_cli::output::print;
use paternoster_server::Start;
use paternoster_server::config::{Config, Options, help, schema};
use paternoster_server::log::{self, LogFormat, LogLevel};
use paternoster_server::sockets::Patience;

const USAGE: &str = "\
paternoster serve [--check[=WHAT]] [--take-over[=SOCKET]] [--log <LEVEL>] <CONFIG>
       paternoster serve [OPTIONS] --disk <PATH> --export <NAME[,weight=N]...>...
       paternoster serve --schema";

/// Serve disks to NBD clients, shared by weight.
///
/// A TOML file says what to serve, or options do for one disk. When clients can connect, the NBD
/// URI of each export is printed, a line each.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, override_usage = USAGE)]
pub(crate) struct Args {
    /// TOML file with disks, groups and exports; relative paths in it are relative to it
    #[arg(value_name = "CONFIG", required_unless_present_any = ["disk", "schema"])]
    config: Option<PathBuf>,

    /// Report every mistake in the configuration, and what else keeps a server from starting now;
    /// then exit
    ///
    /// A mistake ends with status 1. What is taken (a port, a socket, a lock, a device) is reported
    /// with its holder, as is what the machine refuses; that ends with status 1 only under
    /// --check=start, as a running server holds its own sockets, and --check=take-over, which asks
    /// that server for them and stops nothing. Everything is tried as the user
    /// who runs the check, also on other NBD servers; what is free is taken for a moment, as at the
    /// start.
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "file"
    )]
    check: Option<Check>,

    /// Take over from a running server: its NBD clients stay connected, and see a short pause
    ///
    /// It waits at SOCKET, which is beside its control socket: handover.sock beside ctl.sock. Until
    /// this server could serve all that CONFIG says, the other one serves; if anything is wrong, it
    /// goes on, and this one ends with status 1. docs/operations.md says what is handed over.
    #[arg(
        long,
        value_name = "SOCKET",
        num_args = 0..=1,
        require_equals = true,
        requires = "config"
    )]
    #[expect(clippy::option_option, reason = "clap's form of a value that may be left out")]
    take_over: Option<Option<PathBuf>>,

    /// Print the JSON Schema of CONFIG, for editors that complete and check TOML; then exit
    #[arg(long, exclusive = true)]
    schema: bool,

    /// Log to standard error at this level: error, warn, info, debug or trace, each with those
    /// before it [default: what `RUST_LOG` asks for, else info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<LogLevel>,

    /// Format of the log: text, or json, an object a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,

    // Last, as its heading holds for all that follows.
    #[command(flatten)]
    options: DiskArgs,
}

/// What a check has to find right.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Check {
    /// The configuration
    File,
    /// The configuration, and that a server could start with it now
    Start,
    /// The configuration, and that a server could take over with it now from the one that runs
    TakeOver,
}

impl Check {
    /// Checks a configuration that has no mistakes.
    fn run(self, config: &Config) -> ExitCode {
        for notice in config.notices() {
            eprintln!("paternoster: {notice}");
        }
        let patience = match self {
            Self::File | Self::TakeOver => Patience::NONE,
            Self::Start => Patience::a_while(),
        };
        let obstacles = paternoster_server::obstacles(config, patience);
        for line in obstacles.iter().flat_map(|obstacle| obstacle.lines()) {
            eprintln!("paternoster: a server could not start now: {line}");
        }
        match self {
            Self::Start if !obstacles.is_empty() => ExitCode::FAILURE,
            Self::File | Self::Start | Self::TakeOver => {
                eprintln!("paternoster: the configuration is valid");
                ExitCode::SUCCESS
            }
        }
    }
}

/// One disk without a file.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "One disk without a CONFIG")]
struct DiskArgs {
    /// Raw image to serve, or a block device
    #[arg(long, value_name = "PATH", conflicts_with = "config", requires = "exports")]
    disk: Option<PathBuf>,

    #[arg(long, value_name = "S", conflicts_with = "config", help = scheduler_help())]
    scheduler: Option<String>,

    #[arg(
        long,
        value_name = "TUNABLE=V",
        conflicts_with = "config",
        help = SET_HELP,
        long_help = set_long_help()
    )]
    set: Vec<String>,

    #[arg(
        long,
        value_name = "N|learned",
        conflicts_with = "config",
        allow_negative_numbers = true,
        help = help("depth")
    )]
    depth: Option<String>,

    #[arg(long, value_name = "WAY", conflicts_with = "config", help = help("cache"))]
    cache: Option<String>,

    /// Export that clients ask for by NAME; may be repeated
    ///
    /// Each export is a tenant: weight=N against the others, 1 to 1000, default 100. It is the
    /// whole disk, or the range given by offset=BYTES and size=BYTES (or 512M, 10G and the like).
    /// Ranges may overlap if at most one of them is writable. An empty NAME is NBD's default
    /// export, whose tenant is /default. A virtual machine attaches to the socket vhost-user=PATH.
    #[arg(
        long = "export",
        value_name = "NAME[,weight=N][,offset=BYTES][,size=BYTES][,read-only][,vhost-user=PATH]",
        conflicts_with = "config",
        requires = "disk"
    )]
    exports: Vec<String>,

    /// Unix socket for clients, mode 0600 [default: paternoster.sock, if there is no --tcp]
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    unix: Option<PathBuf>,

    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "config", help = help("tcp"))]
    tcp: Option<String>,

    #[arg(long, value_name = "PATH", conflicts_with = "config", help = ctl_help())]
    ctl: Option<PathBuf>,

    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "config", help = help("metrics"))]
    metrics: Option<String>,

    #[arg(long, value_name = "N", conflicts_with = "config", help = help("threads"))]
    threads: Option<i64>,

    #[arg(long, value_name = "ENGINE", conflicts_with = "config", help = help("engine"))]
    engine: Option<String>,
}

/// Help of `--set`.
const SET_HELP: &str = "Set a tunable of the scheduler, by its name in sysfs and in its unit \
                        there, such as quantum=8; may be repeated";

/// Help of `--ctl`.
fn ctl_help() -> String {
    format!(
        "Unix socket for `paternoster ctl`, mode 0600; `fd:NAME` for one that the service manager \
         passes, `none` for none {DEFAULT_PLACE}"
    )
}

/// Help of `--scheduler`, with all that there are.
fn scheduler_help() -> String {
    let list = |kinds: Vec<&str>| match kinds.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    };
    let all = list(SchedulerKind::ALL.map(SchedulerKind::name).to_vec());
    let weighing = SchedulerKind::ALL.into_iter().filter(|kind| kind.has_weights());
    let weighing = list(weighing.map(SchedulerKind::name).collect());
    format!(
        "Scheduler of the disk: {all}, or auto: wfq if nothing rotates, else cfq; weights have an \
         effect under {weighing} [default: auto]"
    )
}

/// Long help of `--set`, with the values that are not Linux's.
fn set_long_help() -> String {
    let mut text =
        format!("{SET_HELP}\n\nTunables that are not set are Linux's, except for these:\n");
    let media = [
        (Medium::Rotational, "a file, if sysfs calls its device rotational and it is not virtio"),
        (Medium::NotRotational, "any other file; a modelled disk"),
        (Medium::Memory, "memory; a file on a tmpfs"),
    ];
    for (medium, what) in media {
        let _ = writeln!(text, "\n{what}:");
        for kind in SchedulerKind::ALL {
            let values = fitted_tunables(kind, medium).iter();
            let values: Vec<_> = values.map(|(name, value)| format!("{name}={value}")).collect();
            if !values.is_empty() {
                let _ = writeln!(text, "  {kind}: {}", values.join(" "));
            }
        }
    }
    text + "\n`paternoster ctl stat --json` shows what is in force. docs/tuning.md says why."
}

/// Runs the subcommand.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let format = args.log_format;
    log::to_stderr(args.log, format);
    match serve(args) {
        // Whoever reads JSON reads nothing else.
        Err(error) if format == LogFormat::Json => {
            log::failure(&error);
            Ok(ExitCode::FAILURE)
        }
        served => served,
    }
}

fn serve(args: Args) -> anyhow::Result<ExitCode> {
    if args.schema {
        print(format!("{:#}\n", schema()).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let config = match &args.config {
        Some(path) => Config::from_file(path)?,
        None => Config::from_options(&args.options.into_options())?,
    };
    match args.check {
        Some(Check::TakeOver) => {
            let start = Start::TakeOver { at: args.take_over.flatten(), is_tried: true };
            paternoster_server::run(&config, args.config.as_deref(), &start)?;
            eprintln!("paternoster: it could take over now");
            return Ok(ExitCode::SUCCESS);
        }
        Some(_) if args.take_over.is_some() => {
            bail!("--take-over beside --check: --check=take-over alone is allowed with it")
        }
        Some(check) => return Ok(check.run(&config)),
        None => {}
    }
    let start = match args.take_over {
        Some(at) => Start::TakeOver { at, is_tried: false },
        None => Start::Anew,
    };
    paternoster_server::run(&config, args.config.as_deref(), &start)?;
    Ok(ExitCode::SUCCESS)
}

impl DiskArgs {
    fn into_options(self) -> Options {
        Options {
            disk: self.disk.unwrap_or_default(),
            scheduler: self.scheduler,
            set: self.set,
            depth: self.depth.clone(),
            cache: self.cache,
            exports: self.exports,
            unix: self.unix,
            tcp: self.tcp,
            ctl: self.ctl,
            metrics: self.metrics,
            threads: self.threads,
            engine: self.engine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_scheduler_and_every_fitted_value() {
        let help = scheduler_help();
        let set = set_long_help();
        for kind in SchedulerKind::ALL {
            assert!(help.contains(kind.name()), "{help}");
            for medium in [Medium::Rotational, Medium::NotRotational, Medium::Memory] {
                for (name, value) in fitted_tunables(kind, medium) {
                    assert!(set.contains(&format!("{name}={value}")), "{name} of {kind}: {set}");
                }
            }
        }
        assert!(help.contains("none, mq-deadline, kyber, cfq, bfq or wfq, or auto: "), "{help}");
        assert!(help.contains("under cfq, bfq or wfq ["), "{help}");
    }
}
