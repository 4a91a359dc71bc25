//! `paternoster ctl`: asks a running server, or changes it, and shows its answer to people.

mod blkio;
mod columns;
mod depth;
mod export;
mod far;
mod group;
mod handover;
mod keys;
mod lines;
mod poll;
mod queues;
mod record;
mod reload;
mod settings;
mod table;
mod threads;
pub(crate) mod top;
mod trace;
mod units;
mod volume;
mod watch;
mod why;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use paternoster_server::ctl::{
    GroupQuestion, TraceQuestion, change_settings, default_path, fetch_group, fetch_settings,
    fetch_stat, set_group,
};
use paternoster_server::stat::{Detail, GroupStat};

use paternoster_cli::output::{fit, print};

/// Ask a running server, or change it while it runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,

    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, clap::Subcommand)]
enum Question {
    /// Show each disk and what its tenants did since start-up
    ///
    /// Two lines a disk, its tenants, and what should be known of them. Lines are cut at the width
    /// of the terminal.
    ///
    /// READS and WRITES count completed requests, after merging. WAIT and SERVICE are means over
    /// all requests: from a request's arrival to its dispatch, and from there to its completion.
    /// TIME is a group's part of the time in which groups were served. DEMAND is the part of the
    /// time in which a request of the group waited: near 100 % the group asked for more than it
    /// got, and has its share by weight; a group below that got all that it asked for. On a
    /// terminal a group that is short of its share is red, as in `top`, unless `NO_COLOR` is set.
    ///
    /// Where groups are nested, each line is a group without those below it, and LEAF is the weight
    /// of its own requests against them; a line that ends in / is all of a group with those below
    /// it.
    ///
    /// With --verbose a second table has the scheduler's queues. QUEUE is an export and the number
    /// of its connection; `async` marks a queue of asynchronous requests. Under cfq SLICE is the
    /// length of its slice and DISPATCHED its requests in that slice. Under bfq BUDGET is how much
    /// of its budget was served; INJECT is how many requests of other queues may be in the disk
    /// while it idles for this one; THINK is the mean think time; WAKER is the connection whose
    /// completions its requests follow; RAISED is the factor of its raised weight, with the time
    /// since then and the time for which it lasts.
    Stat {
        /// Print the JSON of GET /v1/stat; times in it are sums in ns, sizes bytes
        #[arg(long, conflicts_with = "blkio")]
        json: bool,

        /// Print what Linux's blkio controller has in files for each disk and group, the root group
        /// first, times in ns; of the root, and of nested groups, also with all groups below
        /// (_recursive)
        #[arg(long)]
        blkio: bool,

        /// Also show how the depth was learned, how the disk's thread waits, and a table of the
        /// scheduler's queues; in the JSON the queues
        #[arg(long, conflicts_with = "blkio")]
        verbose: bool,

        /// Show every SECONDS what happened in them, counts as rates per second, until Ctrl-C
        /// [default: 1]
        #[arg(
            long,
            value_name = "SECONDS",
            num_args = 0..=1,
            default_missing_value = "1",
            value_parser = watch::interval,
            conflicts_with_all = ["json", "blkio"]
        )]
        watch: Option<Duration>,
    },

    /// Say why a tenant waits: where its time goes in the next seconds, and behind whom
    ///
    /// Parts add up to the time that is looked at. While a request of the tenant waits: the disk
    /// serves others; or is busy with the tenant's own requests; or idles for the next request of a
    /// queue (cfq and bfq); or a cap holds the request, or another tenant's latency target does
    /// (wfq); or the server is at work. While none waits: everything that the tenant asked for is
    /// in the disk; or its commands are held back, as its memory is used up or a client does not
    /// read its replies; or it asks for nothing.
    ///
    /// The part behind each other tenant is that tenant's part of what the disk served while a
    /// request of this one waited: of the disk's time on a modelled disk, else of the bytes, each
    /// request counting 16 KiB more than it has.
    Why {
        /// Path of the tenant's group, such as /gold
        tenant: String,

        /// This disk alone
        #[arg(long, value_name = "NAME")]
        disk: Option<String>,

        /// For how long to look
        #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = watch::interval)]
        seconds: Duration,

        /// Print JSON; times in it are ns, shares from 0 to 1
        #[arg(long)]
        json: bool,
    },

    /// Show what a disk's scheduler decides, as it decides it
    ///
    /// Until Ctrl-C, for --seconds, or until the server ends. A line has the time in seconds since
    /// the server began, the tenant, the queue or the request, and what happened: a request arrives
    /// (Q), merges into another (M), is dispatched (D) or completes (C); all else is what the
    /// scheduler says of itself. `web#3S` is the queue of synchronous requests of connection 3, of
    /// export web, and `web#3.17` the eighteenth recorded request of that connection; `earlier` is
    /// a request from before tracing began, or from before a `dropped` line. oracle/FORMAT.md
    /// explains the lines and their fields; those of cfq read as Linux's, with times in ns:
    /// `sl_used=… disp=… charge=… iops=… sect=…`, `arm_idle: … group_idle: …`.
    ///
    /// A disk has one trace at a time. If lines come faster than they are read, some are left out,
    /// and a line says how many events were dropped.
    Trace {
        /// Name of the disk
        disk: String,

        /// Only lines of this group and those below it, beside lines of no group
        #[arg(long, value_name = "PATH")]
        group: Option<String>,

        /// For how long [default: until Ctrl-C]
        #[arg(long, value_name = "SECONDS", value_parser = watch::interval)]
        seconds: Option<Duration>,

        /// Print JSON, an object a line, as the server sends them
        #[arg(long)]
        json: bool,
    },

    /// Record a disk's requests, for blktrace's tools and for `paternoster-lab replay`
    ///
    /// The server writes two files: NAME.blktrace.0 has when each request came, was merged, went to
    /// the device and came back, as blkparse, btt and iowatcher read it, and NAME.pater has whose
    /// it was and when its reply left. No data of clients is ever in them. docs/recording.md says
    /// more. A disk has one recording at a time. Exit status 1 says that requests are missing, or
    /// that a recording has failed.
    #[command(subcommand)]
    Record(record::Ask),

    /// Change a group's weights while it is served, until the server ends or reads its file again
    ///
    /// The group's weight holds on every disk that has none of its own for it. Prints what is then
    /// in force on each disk where the group is. Shares follow when the slice or the service of the
    /// group's queue ends; under cfq, of a group with others below it, when no two of them have
    /// requests waiting.
    Weight {
        /// Path of the group, such as /gold
        group: String,

        /// Weight against its siblings, 1 to 1000, or "default": that of the server's file or
        /// options, and with --disk that of the group
        weight: String,

        /// Weight of its own exports against the groups below it, 1 to 1000 or "default"; under cfq
        /// and wfq [default: as it is]
        #[arg(long, value_name = "WEIGHT")]
        leaf: Option<String>,

        /// Set the weights on this disk alone
        #[arg(long, value_name = "NAME")]
        disk: Option<String>,
    },

    /// Change a group's caps, reservations and latency target while it is served, until the server
    /// ends or reads its file again
    ///
    /// Caps: riops and wiops, reads and writes a second; rbps and wbps, bytes a second; iops and
    /// bps, the same of reads and writes together; `max` removes one. Reservations: `min_iops`, ops
    /// a second as the scheduler charges them, and `min_bps`, bytes a second; 0 removes one.
    /// `latency_target` is the time, such as 2ms, within which nine of ten requests shall be
    /// served; 0us removes it. All hold for the group with those below it, need the scheduler wfq,
    /// and apply at once, also to waiting requests. The root, /, takes caps alone, which hold for
    /// all that use a disk. Prints what is then in force on each disk where the group is.
    Limit {
        /// Path of the group, such as /gold
        group: String,

        /// What to set, such as riops=1000, wbps=10M or rbps=max; what is not named stays as it is
        #[arg(value_name = "NAME=VALUE", required = true)]
        limits: Vec<String>,

        /// Set the limits on this disk alone
        #[arg(long, value_name = "NAME")]
        disk: Option<String>,
    },

    /// Show what is set of a disk (scheduler, hierarchy, depth, polling, the scheduler's tunables)
    /// or of a group (weights and limits)
    ///
    /// A line each, NAME=VALUE, as `ctl set` takes it; with NAME the value alone. Lines of a group
    /// on several disks begin with the disk. NAME of a disk may also be `use_hierarchy`, `io_poll`
    /// or a key that needs a restart, such as `plug`; the list leaves these out. `scheduler` is the
    /// one in force; `scheduler_auto=1`, which is only shown, says that auto chose it.
    /// docs/schedulers.md has the unit, the range and the default of each tunable.
    Get {
        /// Name of the disk, or path of the group, which begins with a /
        #[arg(value_name = "DISK|/GROUP")]
        object: String,

        /// What to show of it, such as scheduler or a tunable [default: all]
        name: Option<String>,
    },

    /// Change what is set of a disk or of a group while it is served, until the server ends or
    /// reads its file again
    ///
    /// NAME of a group is one of its keys that change on a reload: weight, `leaf_weight`,
    /// `weight_device.DISK`, riops and so on, with values as in the file.
    ///
    /// NAME of a disk is scheduler, depth, poll, a tunable of the scheduler that is then in force,
    /// or under cfq hierarchy, with the value leaf-weight, flat or entities (`use_hierarchy=0` is
    /// flat, `use_hierarchy=1` entities). `scheduler=auto` takes wfq if nothing rotates, else cfq;
    /// `depth=learned` makes wfq learn the depth. `poll` is auto, interrupt, classic or hybrid;
    /// hybrid has `io_poll_delay`, `io_poll_part`, `io_poll_hyb_use_min` and `io_poll_hyb_adjust`
    /// (docs/polling.md). A command is applied as a whole, or not at all. Prints what is then in
    /// force, as `ctl get` does.
    ///
    /// A new scheduler takes over the waiting requests, in order of arrival. It starts with the
    /// values that fit the disk, overridden by those of the server's file and of earlier changes,
    /// if it has a tunable of that name.
    Set {
        /// Name of the disk, or path of the group, which begins with a /
        #[arg(value_name = "DISK|/GROUP")]
        object: String,

        /// What to set, such as scheduler=bfq or depth=16; of a disk in this order
        #[arg(value_name = "NAME=VALUE", required = true)]
        settings: Vec<String>,

        /// Set it of the group on this disk alone
        #[arg(long, value_name = "NAME")]
        disk: Option<String>,
    },

    /// Make, change and remove volumes of pools while others are served
    #[command(subcommand)]
    Volume(volume::Ask),

    /// Make, change and remove exports beside those that volumes have of their own
    #[command(subcommand)]
    Export(export::Ask),

    /// Make and remove groups of volumes
    #[command(subcommand)]
    Group(volume::AskGroups),

    /// Show the pools
    #[command(subcommand)]
    Pool(volume::AskPools),

    /// Show how far a change is that took longer than somebody waited
    Operation {
        /// Its number
        id: u64,

        /// Print the JSON of GET /v1/operations/ID
        #[arg(long)]
        json: bool,
    },

    /// Print the volumes, exports and groups that requests have made, as a file declares them
    ///
    /// To have the file declare them, save these lines, remove exports, volumes (with images kept)
    /// and groups here, add the lines to the file, and reload it: a name is the file's or
    /// requests', and never both.
    ExportConfig,

    /// Read the server's file again, and apply what may change while it serves
    ///
    /// That is each group's weights and limits, and each disk's scheduler, hierarchy, depth,
    /// polling and tunables, also those that `ctl weight`, `ctl limit` or `ctl set` changed; and
    /// disks, pools, volumes, exports and groups come and go. Prints a line for each changed value:
    /// whose it is, what was in force, and what the file says; then what is under way, as clients
    /// of what goes have 30 s to leave, and what has failed. What needs a restart is named and
    /// stays as it is. A file with mistakes changes nothing, and all mistakes are listed. SIGHUP
    /// does the same.
    Reload {
        /// Print what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
    },

    /// Prepare for another server to go on where this one stops, without closing a client
    ///
    /// `paternoster serve FILE --take-over` does it at once; docs/operations.md says what is handed
    /// over.
    Handover(handover::Args),
}

/// Where the server is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    #[arg(long = "ctl", value_name = "PATH", global = true, help = place_help())]
    socket: Option<PathBuf>,
}

/// Where a control socket is that nobody has named: the server's, and that which is asked.
pub(crate) const DEFAULT_PLACE: &str = "[default: $PATERNOSTER_CTL, else ctl.sock in \
     $RUNTIME_DIRECTORY, for root in /run/paternoster, and for others in \
     $XDG_RUNTIME_DIR/paternoster; else paternoster-ctl.sock]";

fn place_help() -> String {
    format!("The server's control socket, as in its --ctl or its file {DEFAULT_PLACE}")
}

impl Place {
    /// The socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(default_path)
    }
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let socket = &args.place.socket();
    let text = match &args.question {
        Question::Stat { json, blkio, verbose, watch } => {
            let detail = if *verbose { Detail::Queues } else { Detail::Groups };
            if let Some(interval) = watch {
                let watching = watch::Watching { detail, interval: *interval, screens: None };
                watch::run(socket, &watching, |stat| table::show_rates(stat, detail))?;
                return Ok(ExitCode::SUCCESS);
            }
            let answer = fetch_stat(socket, detail)?;
            match () {
                () if *json => answer.json,
                () if *blkio => blkio::show(&answer.stat),
                () => fit(&table::show(&answer.stat, detail)),
            }
        }
        Question::Why { tenant, disk, seconds, json } => {
            let question = why::Question { tenant, disk: disk.as_deref(), span: *seconds };
            let answer = why::ask(socket, &question)?;
            if *json { serde_json::to_string_pretty(&answer)? + "\n" } else { why::show(&answer) }
        }
        Question::Trace { disk, group, seconds, json } => {
            let (disk, group) = (disk.clone(), group.clone());
            let seconds = seconds.map(|span| span.as_secs_f64());
            return trace::run(socket, &TraceQuestion { disk, group, seconds }, *json);
        }
        Question::Weight { group, weight, leaf, disk } => {
            let change = group::weights(group, weight, leaf.as_deref(), disk.as_deref());
            group::show_weights(group, &set_group(socket, &change)?)
        }
        Question::Limit { group, limits, disk } => {
            let change = group::limits(group, limits, disk.as_deref())?;
            group::show_limits(group, &set_group(socket, &change)?)
        }
        Question::Get { object: path, name } if group::is_group(path) => {
            let question = GroupQuestion { group: path.clone(), disk: None };
            group::show(&fetch_group(socket, &question)?, name.as_deref())?
        }
        Question::Set { object: path, settings, disk } if group::is_group(path) => {
            let change = group::change(path, settings, disk.as_deref())?;
            group::show(&set_group(socket, &change)?, None)?
        }
        Question::Get { object: disk, name } => {
            let answer = fetch_settings(socket)?;
            let settings = settings::of(disk, &answer)?;
            match name {
                Some(name) => settings::show_one(settings, name)?,
                None => settings::show(settings),
            }
        }
        Question::Set { disk: Some(_), .. } => {
            anyhow::bail!("--disk is allowed beside a group, whose path begins with a \"/\"");
        }
        Question::Set { object: disk, settings, disk: None } => {
            let change = settings::change(disk, settings)?;
            let answer = change_settings(socket, &change)?;
            settings::show(settings::of(disk, &answer)?)
        }
        Question::Volume(ask) => volume::ask(socket, ask)?,
        Question::Export(ask) => export::ask(socket, ask)?,
        Question::Group(ask) => volume::groups(socket, ask)?,
        Question::Pool(ask) => volume::pools(socket, ask)?,
        Question::Operation { id, json } => volume::operation(socket, *id, *json)?,
        Question::ExportConfig => paternoster_server::ctl::fetch_export_config(socket)?,
        Question::Record(ask) => return record::run(socket, ask),
        Question::Reload { dry_run } => return reload::run(socket, *dry_run),
        Question::Handover(args) => return handover::run(socket, args),
    };
    print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns whether one of the groups is below another.
fn are_nested(groups: &[GroupStat]) -> bool {
    groups.iter().any(|group| group.path.matches('/').count() > 1)
}
