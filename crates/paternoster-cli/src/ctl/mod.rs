//! `paternoster ctl`: asks a running server, and shows its answer to people.

mod table;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use paternoster_server::ctl::{DEFAULT_PATH, fetch_stat};

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
    /// of its own requests against them.
    Stat {
        /// Print the JSON of GET /v1/stat; times in it are sums in ns, sizes bytes
        #[arg(long)]
        json: bool,
    },
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Question::Stat { json } = args.question;
    let answer = fetch_stat(&args.socket)?;
    let text = if json { answer.json } else { table::show(&answer.stat) };
    match io::stdout().write_all(text.as_bytes()) {
        // Whoever reads has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    Ok(ExitCode::SUCCESS)
}
