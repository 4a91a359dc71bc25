//! `ctl trace`: what a disk's scheduler decides, as it comes: lines of text as in Linux's own trace
//! messages, or the JSON itself.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use indexmap::IndexMap;
use paternoster_server::ctl::{TraceQuestion, follow_trace};
use serde_json::Value;

/// A line, in the order of its fields.
type Line = IndexMap<String, Value>;

/// Shows lines, as they are with `json`, until the time that is asked for is over, the server ends,
/// or nobody reads.
pub(super) fn run(socket: &Path, question: &TraceQuestion, json: bool) -> Result<ExitCode> {
    let mut rest = Vec::new();
    let mut result = Ok(());
    follow_trace(socket, question, |bytes| {
        rest.extend_from_slice(bytes);
        let end = rest.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let mut lines: Vec<u8> = rest.drain(..end).collect();
        let words = if json { Ok(()) } else { in_words(&lines).map(|text| lines = text.into()) };
        match words.and_then(|()| Ok(write(&lines)?)) {
            Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
            Ok(end) => end,
            Err(error) => {
                result = Err(error);
                ControlFlow::Break(())
            }
        }
    })?;
    result.map(|()| ExitCode::SUCCESS)
}

/// Writes to standard output at once. A reader that has gone, as `head` does, ends it.
fn write(text: &[u8]) -> io::Result<ControlFlow<()>> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        written => written.map(ControlFlow::Continue),
    }
}

fn in_words(lines: &[u8]) -> Result<String> {
    let mut text = String::new();
    for json in std::str::from_utf8(lines)?.lines() {
        let line: Line = serde_json::from_str(json)
            .with_context(|| format!("the server says {json:?}, which is no line of a trace"))?;
        put(&line, &mut text);
        text.push('\n');
    }
    Ok(text)
}

/// Seconds, the tenant, its queue or request, what happened, and its figures as Linux names them.
fn put(line: &Line, text: &mut String) {
    let value = |name: &str| line.get(name);
    let word = |name: &str| value(name).and_then(Value::as_str).unwrap_or("-");
    let nanos = value("t").and_then(Value::as_u64).unwrap_or_default();
    let who = if line.contains_key("q") { "q" } else { "rq" };
    let what = word("ev");
    let (seconds, below) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let _ = write!(text, "{seconds:>5}.{below:09} {} {}", word("tenant"), word(who));
    if let ("arm_idle", Some(ns), Some(group)) = (what, value("ns"), value("group")) {
        let _ = write!(text, " arm_idle: {ns} group_idle: {group}");
        return;
    }
    let _ = write!(text, " {what}");
    for (name, value) in line {
        let name = match name.as_str() {
            // Said already; the group of what is no request is its tenant.
            "t" | "tenant" | "ev" | "group" => continue,
            name if name == who => continue,
            "used" => "sl_used",
            name => name,
        };
        match value {
            Value::String(value) => _ = write!(text, " {name}={value}"),
            value => _ = write!(text, " {name}={value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"t":12000345678,"tenant":"/gold","ev":"expire","q":"web#3S","why":"slice_used","#,
        r#""used":12,"disp":60,"charge":60,"iops":1,"sect":480,"group":"/gold","vt":7}"#,
        "\n",
        r#"{"t":5,"tenant":"/gold/a","ev":"arm_idle","q":"web#3S","ns":8,"group":1}"#,
        "\n",
        r#"{"t":5,"tenant":"/goldfish","ev":"M","rq":"x#1.2","into":"x#1.1","kind":"back"}"#,
        "\n",
        r#"{"t":6,"ev":"dropped","events":3}"#,
        "\n",
    );

    /// Post 1: `sl_used=12 disp=60 charge=60 iops=1 sect=480`, `arm_idle: 8 group_idle: 1`.
    #[test]
    fn text_is_as_in_linux_own_messages_with_tenant_and_connection() {
        let expected = "   12.000345678 /gold web#3S expire why=slice_used sl_used=12 disp=60 \
                        charge=60 iops=1 sect=480 vt=7
    0.000000005 /gold/a web#3S arm_idle: 8 group_idle: 1
    0.000000005 /goldfish x#1.2 M into=x#1.1 kind=back
    0.000000006 - - dropped events=3
";
        assert_eq!(in_words(LINES.as_bytes()).expect("they are lines"), expected);
    }
}
