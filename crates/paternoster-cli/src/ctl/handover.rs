//! `ctl handover`: whether another version could take over, and the service manager's store.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use paternoster_server::ctl::{arm_hand_over, fetch_hand_over};

use paternoster_cli::output::print;

/// What to do about a hand-over.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct Args {
    /// Try whether this program could take over from the server, with the server's file; nothing
    /// stops
    #[arg(long, value_name = "PROGRAM")]
    check: Option<PathBuf>,

    /// On SIGTERM within 60 s, leave sockets, images and clients in systemd's descriptor store; the
    /// server that systemd starts next goes on with them
    #[arg(long)]
    to_store: bool,
}

/// Runs it for the server on this control socket.
pub(super) fn run(socket: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    let Some(program) = &args.check else {
        let answer = arm_hand_over(socket)?;
        let seconds = answer.armed_s.unwrap_or_default();
        print(
            format!("SIGTERM within {seconds} s leaves all to the service manager\n").as_bytes(),
        )?;
        return Ok(ExitCode::SUCCESS);
    };
    let answer = fetch_hand_over(socket)?;
    let file = answer.file.context("the server was started without a file: --check needs one")?;
    let at = answer.socket.context("the server does not wait for another one: see its log")?;
    let mut at_socket = std::ffi::OsString::from("--take-over=");
    at_socket.push(at);
    let tried = Command::new(program)
        .arg("serve")
        .arg(file)
        .args(["--check=take-over".into(), at_socket])
        .status()
        .with_context(|| format!("{} cannot be run", program.display()))?;
    Ok(if tried.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
