//! What the programs of the project have in common on the command line: how they end, their
//! output, completions and manual pages.

pub mod completions;
pub mod man;
pub mod output;

use std::process::ExitCode;

pub use paternoster_server::config::parse_size;

/// The exit code of a program. An error is told behind the program's name, in a line for each of
/// its own: a file has one for each of its mistakes.
pub fn end(program: &str, ended: anyhow::Result<ExitCode>) -> ExitCode {
    ended.unwrap_or_else(|error| {
        for line in format!("{error:#}").lines() {
            eprintln!("{program}: {line}");
        }
        ExitCode::FAILURE
    })
}
