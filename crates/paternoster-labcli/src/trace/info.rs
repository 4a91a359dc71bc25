//! `paternoster-lab trace info`: what is in a trace of block I/O.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Result;
use paternoster::Op;
use paternoster_cli::output;
use paternoster_intake::{Findings, Format, Request, Warning};
use paternoster_trace::sidecar::Meta;
use serde::Serialize;

use super::input::{Devices, Input};

/// How many requests `info` shows.
const SHOWN: usize = 5;

/// Say what is in a trace, how it is understood, and what makes it doubtful.
///
/// The format is found from the first 64 KiB; gzip and zstd are found by content. The exit status
/// is 1 if the trace cannot be read, and with --strict also if there is a warning.
#[derive(Debug, clap::Args)]
pub(super) struct Info {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    devices: Devices,
    /// Write a JSON object.
    #[arg(long)]
    json: bool,
}

/// What is in a trace.
#[derive(Serialize)]
struct Summary {
    format: &'static str,
    requests: u64,
    contexts: usize,
    reads: u64,
    writes: u64,
    discards: u64,
    flushes: u64,
    bytes: u64,
    /// From the first arrival to the last.
    span_ns: u64,
    /// Requests with a completion.
    completed: u64,
    /// The most requests that were outstanding at once, where there are completions.
    outstanding: Option<u64>,
    /// Requests by their length in bytes.
    sizes: BTreeMap<u64, u64>,
    first: Vec<First>,
    /// What a recording of the server says of itself.
    recorded: Option<Meta>,
    warnings: Vec<Said>,
}

/// One of the first requests, as it is understood.
#[derive(Serialize)]
struct First {
    arrived_ns: u64,
    context: String,
    op: &'static str,
    offset: u64,
    len: u64,
    dispatched_ns: Option<u64>,
    completed_ns: Option<u64>,
}

#[derive(Serialize)]
struct Said {
    kind: &'static str,
    text: String,
}

pub(super) fn run(info: &Info) -> Result<ExitCode> {
    let mut trace = info.input.open(&info.devices)?;
    let mut counts = Counts::new(trace.format());
    while let Some(request) = info.input.next(&mut trace)? {
        counts.add(&request, trace.findings());
    }
    let summary = counts.summary(&trace.finish());
    let text = if info.json {
        serde_json::to_string_pretty(&summary)? + "\n"
    } else {
        output::fit(&summary.text())
    };
    output::print(text.as_bytes())?;
    Ok(info.input.exit_status(summary.warnings.len()))
}

/// Counts requests as they come.
struct Counts {
    summary: Summary,
    begin: Option<u64>,
    /// When those complete that have arrived.
    completions: std::collections::BinaryHeap<std::cmp::Reverse<u64>>,
}

impl Counts {
    fn new(format: Format) -> Self {
        let summary = Summary {
            format: format.name(),
            requests: 0,
            contexts: 0,
            reads: 0,
            writes: 0,
            discards: 0,
            flushes: 0,
            bytes: 0,
            span_ns: 0,
            completed: 0,
            outstanding: None,
            sizes: BTreeMap::new(),
            first: Vec::new(),
            recorded: None,
            warnings: Vec::new(),
        };
        Self { summary, begin: None, completions: std::collections::BinaryHeap::new() }
    }

    fn add(&mut self, request: &Request, findings: &Findings) {
        let summary = &mut self.summary;
        summary.requests += 1;
        *match request.op {
            Op::Read => &mut summary.reads,
            Op::Write => &mut summary.writes,
            Op::Flush => &mut summary.flushes,
            _ => &mut summary.discards,
        } += 1;
        summary.bytes = summary.bytes.saturating_add(request.len);
        *summary.sizes.entry(request.len).or_default() += 1;
        summary.span_ns = request.arrived - *self.begin.get_or_insert(request.arrived);
        if summary.first.len() < SHOWN {
            summary.first.push(First::of(request, findings));
        }
        let Some(completed) = request.completed else { return };
        summary.completed += 1;
        while self.completions.peek().is_some_and(|at| at.0 <= request.arrived) {
            self.completions.pop();
        }
        self.completions.push(std::cmp::Reverse(completed));
        summary.outstanding = summary.outstanding.max(Some(self.completions.len() as u64));
    }

    fn summary(mut self, findings: &Findings) -> Summary {
        self.summary.recorded = findings.recorded().map(|recorded| recorded.meta.clone());
        self.summary.contexts = findings.contexts().len();
        let said = |warning: &Warning| Said { kind: warning.kind(), text: warning.to_string() };
        self.summary.warnings = findings.warnings().iter().map(said).collect();
        self.summary
    }
}

impl First {
    fn of(request: &Request, findings: &Findings) -> Self {
        Self {
            arrived_ns: request.arrived,
            context: findings.contexts()[request.context.0 as usize].clone(),
            op: match request.op {
                Op::Read => "read",
                Op::Write => "write",
                Op::Flush => "flush",
                _ => "discard",
            },
            offset: request.offset,
            len: request.len,
            dispatched_ns: request.dispatched,
            completed_ns: request.completed,
        }
    }
}

impl Summary {
    fn text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        let Self { format, requests, contexts, reads, writes, discards, flushes, .. } = self;
        let mut line = |name: &str, value: String| {
            writeln!(text, "{name:<12} {value}").expect("a string takes all");
        };
        line("format", (*format).to_owned());
        let ops = format!("{reads} reads, {writes} writes, {discards} discards, {flushes} flushes");
        line("requests", format!("{requests}: {ops}"));
        if let Some(Meta { disk, scheduler, .. }) = &self.recorded {
            line("recorded", format!("disk {disk:?} under {scheduler:?}"));
        }
        line("contexts", contexts.to_string());
        line("bytes", self.bytes.to_string());
        line(
            "span",
            format!("{}.{:09} s", self.span_ns / 1_000_000_000, self.span_ns % 1_000_000_000),
        );
        let outstanding = self.outstanding.map(|most| format!(", {most} outstanding at most"));
        line("completed", format!("{}{}", self.completed, outstanding.unwrap_or_default()));
        let mut sizes: Vec<_> = self.sizes.iter().collect();
        sizes.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let most = sizes.iter().take(SHOWN).map(|(len, count)| format!("{count} x {len}"));
        line("sizes", most.collect::<Vec<_>>().join(", "));
        for (at, it) in self.first.iter().enumerate() {
            let time = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{ns} ns"));
            let (dispatched, completed) = (time(it.dispatched_ns), time(it.completed_ns));
            let First { arrived_ns, context, op, offset, len, .. } = it;
            line(
                if at == 0 { "first" } else { "" },
                format!(
                    "{arrived_ns} ns {context}: {op} {len} at {offset}; {dispatched}, {completed}"
                ),
            );
        }
        for Said { text: said, .. } in &self.warnings {
            line("warning", said.clone());
        }
        text
    }
}
