//! `paternoster ctl`: asks a running server, and shows its answer to people.

mod blkio;
mod table;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use paternoster_server::ctl::{DEFAULT_PATH, fetch_stat};
use paternoster_server::stat::GroupStat;

/// Ask a running server.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The server's control socket, as in its --ctl or its file
    #[arg(long = "ctl", value_name = "PATH", default_value = DEFAULT_PATH, global = true)]
    socket: PathBuf,

    #[command(subcommand)]
    question: Question,
}

#[derive(Debug, clap::Subcommand)]
enum Question {
    /// Show each disk and what its tenants did since start-up
    ///
    /// READS and WRITES are requests done, after merging; WAIT and SERVICE are means over all
    /// requests, in µs: from a request's arrival to the disk, and from there to its completion.
    /// Where groups are nested, each line is a group without those below it, and LEAF is the weight
    /// of its own requests against them. TIME is a group's part of the time that all groups were
    /// served.
    Stat {
        /// Print the JSON of GET /v1/stat; times in it are sums in ns, sizes bytes
        #[arg(long, conflicts_with = "blkio")]
        json: bool,

        /// Print what Linux's blkio controller has in files for each disk and group, times in ns;
        /// where groups are nested, also with all groups below (_recursive)
        #[arg(long)]
        blkio: bool,
    },
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Question::Stat { json, blkio } = args.question;
    let answer = fetch_stat(&args.socket)?;
    let text = match () {
        () if json => answer.json,
        () if blkio => blkio::show(&answer.stat),
        () => table::show(&answer.stat),
    };
    match io::stdout().write_all(text.as_bytes()) {
        // Whoever reads has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether one of the groups is below another.
fn are_nested(groups: &[GroupStat]) -> bool {
    groups.iter().any(|group| group.path.matches('/').count() > 1)
}
