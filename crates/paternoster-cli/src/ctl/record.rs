//! `ctl record`: a disk's requests, written to files by its server.

use std::fmt::Write as _;
use std::path::{Path, absolute};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use paternoster_cli::output::print;
use paternoster_server::config::{parse_size, parse_span};
use paternoster_server::ctl::{
    RecordQuestion, RecordingStatus, RecordingsAnswer, fetch_recordings, start_recording,
    stop_recording,
};

use super::units::{Bytes, Time};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Ask {
    /// Begin to record a disk, which goes on until `stop`, --for, --max, or the server's end
    Start {
        #[command(flatten)]
        what: What,

        /// For how long, such as 30s or 10m
        #[arg(long = "for", value_name = "SPAN", value_parser = span)]
        span: Option<Duration>,

        /// How many bytes both files may have [default: 4G]
        #[arg(long, value_name = "SIZE", value_parser = size)]
        max: Option<u64>,
    },

    /// End a recording, when all is written
    Stop {
        /// Name of the disk
        disk: String,
    },

    /// Show how far the newest recording of each disk is
    Status {
        /// This disk alone
        disk: Option<String>,

        /// Print the JSON of GET /v1/recordings; times in it are ns
        #[arg(long)]
        json: bool,
    },

    /// Write what the disk still has of its newest requests, and end
    ///
    /// How many that are `record_ring` of the disk says, in the server's file.
    Last {
        #[command(flatten)]
        what: What,
    },
}

/// What to record.
#[derive(Debug, clap::Args)]
pub(super) struct What {
    /// Name of the disk
    disk: String,

    /// The files, without what they end in: NAME.blktrace.0 and NAME.pater are made by the server,
    /// on its machine and by its rights; neither may be there
    #[arg(long, value_name = "NAME")]
    out: String,

    /// Number exports and groups instead of naming them, and permute offsets in blocks of 1 MiB
    #[arg(long)]
    anonymous: bool,
}

fn span(text: &str) -> Result<Duration, String> {
    let span = parse_span(text).map(|span| Duration::from_nanos(span.as_nanos()));
    span.ok_or_else(|| "a whole number with m, s or ms behind it is allowed, such as 10m".into())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "a number of bytes, or one with K, M, G or T".into())
}

/// How often is looked whether the past is written.
const LOOK: Duration = Duration::from_millis(50);

/// Asks. That requests are missing, or that a recording has failed, is exit status 1.
pub(super) fn run(socket: &Path, ask: &Ask) -> Result<ExitCode> {
    let answer = match ask {
        Ask::Start { what, span, max } => {
            let seconds = span.map(|span| span.as_secs_f64());
            let whole = what.question()?;
            start_recording(socket, &RecordQuestion { seconds, max_bytes: *max, ..whole })?
        }
        Ask::Stop { disk } => stop_recording(socket, disk)?,
        Ask::Status { disk, json } => {
            let answer = fetch_recordings(socket, disk.as_deref())?;
            if *json {
                print((serde_json::to_string_pretty(&answer)? + "\n").as_bytes())?;
                return Ok(code(&answer));
            }
            answer
        }
        Ask::Last { what } => {
            start_recording(socket, &RecordQuestion { last: true, ..what.question()? })?;
            written(socket, what)?
        }
    };
    print(show(&answer).as_bytes())?;
    Ok(code(&answer))
}

impl What {
    fn question(&self) -> Result<RecordQuestion> {
        // The server is in another directory.
        let out = absolute(&self.out).with_context(|| format!("--out {:?}", self.out))?;
        let out = out.into_os_string().into_string();
        let Ok(out) = out else { anyhow::bail!("--out: this directory's name is no UTF-8") };
        ensure!(!self.out.ends_with('/'), "--out {:?} is a directory: name files", self.out);
        Ok(RecordQuestion {
            disk: self.disk.clone(),
            out,
            anonymous: self.anonymous,
            ..RecordQuestion::default()
        })
    }
}

/// Waits until the past is written.
fn written(socket: &Path, what: &What) -> Result<RecordingsAnswer> {
    loop {
        let answer = fetch_recordings(socket, Some(&what.disk))?;
        if !answer.disks.iter().any(|one| one.runs) {
            return Ok(answer);
        }
        std::thread::sleep(LOOK);
    }
}

fn code(answer: &RecordingsAnswer) -> ExitCode {
    let is_whole = |one: &RecordingStatus| one.lost == 0 && !one.failed;
    if answer.disks.iter().all(is_whole) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A line a recording.
fn show(answer: &RecordingsAnswer) -> String {
    let mut text = String::new();
    for one in &answer.disks {
        let RecordingStatus { disk, out, requests, bytes, span_ns, .. } = one;
        let (bytes, span) = (Bytes(*bytes), Time(*span_ns));
        let _ = write!(text, "{disk}: {out}: {requests} requests, {bytes}, {span}");
        if one.lost > 0 {
            let _ = write!(text, ", {} requests lost", one.lost);
        }
        let ended = if one.runs { "it goes on" } else { &one.ended };
        let _ = writeln!(text, "; {ended}");
    }
    if answer.disks.is_empty() {
        text.push_str("no disk has been recorded\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_says_what_is_recorded_and_lost_and_why_it_has_ended() {
        let one = RecordingStatus {
            disk: "vm".to_owned(),
            out: "/rec/monday".to_owned(),
            runs: true,
            requests: 5,
            bytes: 2048,
            span_ns: 1_500_000_000,
            ..RecordingStatus::default()
        };
        let shown = |one: RecordingStatus| show(&RecordingsAnswer::new(vec![one]));
        let line = "vm: /rec/monday: 5 requests, 2 KiB, 1.5 s";
        assert_eq!(shown(one.clone()), format!("{line}; it goes on\n"));
        let ended = "its time is over".to_owned();
        let ended = RecordingStatus { runs: false, lost: 3, ended, ..one };
        assert_eq!(shown(ended), format!("{line}, 3 requests lost; its time is over\n"));
    }
}
