//! `cargo xtask bench sched`: what a request costs in each scheduler, and a command in the engine
//! of a disk.
//!
//! Instructions are counted by callgrind and pinned in `crates/paternoster-lab/instructions.toml`,
//! where the laboratory reads them too: unlike nanoseconds they are the same on a busy machine. The
//! binary that is counted, `bench/instructions/main.rs`, prints the names of its configurations for
//! `--list`; for `NAME REQUESTS` it serves that many requests in a function whose name contains
//! `measured`, and only there callgrind counts. Exactly one function may be named so: callgrind
//! stops counting where one such function calls another.

use crate::cargo;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

/// Where the pins are.
const FILE: &str = "crates/paternoster-lab/instructions.toml";
/// Where the counts of Linux's own schedulers are.
const LINUX_FILE: &str = "bench/linux-instructions.toml";
/// What the file says of itself.
const HEADER: &str = "# Instructions per request, as callgrind counts them. Written by `cargo \
xtask bench sched --pin`;\n# `cargo xtask test` lets none grow by more than 3 %. Another compiler \
counts otherwise.\n";
/// How the counted binary is built.
const BUILD: [&str; 7] =
    ["build", "--release", "--locked", "-p", "paternoster-bench", "--bin", "instructions"];
/// Requests that a count is taken over.
const REQUESTS: u32 = 20_000;
/// Percent by which a count may leave its pin.
const TOLERANCE: f64 = 3.0;
/// What may cost at most so many times what another costs, as they are counted now.
const BOUNDS: [Bound; 1] = [Bound { of: "cfq/4096x1", times: 2.0, than: "cfq/16x16" }];

/// What to do with the counts.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Make the counts the pins
    #[arg(long, conflicts_with = "check")]
    pin: bool,
    /// Fail where a count is more than 3 % above its pin
    #[arg(long)]
    check: bool,
}

/// The pins, as the file has them.
#[derive(Debug, Default, PartialEq, Deserialize)]
struct Pins {
    /// The compiler that they hold for, as `rustc --version` names it.
    compiler: String,
    /// Instructions per request by configuration.
    instructions: BTreeMap<String, f64>,
}

/// What Linux's own schedulers take, as their file has it.
#[derive(Deserialize)]
struct Linux {
    /// Instructions per request by configuration.
    instructions: BTreeMap<String, f64>,
}

/// How a configuration may stand to another, whatever the compiler.
struct Bound {
    of: &'static str,
    times: f64,
    than: &'static str,
}

/// How a count stands to its pin.
#[derive(Debug, PartialEq)]
enum Verdict {
    /// Close enough.
    Holds,
    /// More instructions than are allowed.
    Worse,
    /// So much better that the pin should move.
    Better,
    /// There is no pin.
    New,
    /// There is a pin, but the configuration is gone.
    Gone,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let pins = load()?;
    if args.check && pins.instructions.is_empty() {
        println!("nothing is pinned in {FILE}: cargo xtask bench sched --pin");
        return Ok(());
    }
    let now = Pins { compiler: compiler()?, instructions: count()? };
    let linux = linux()?;
    let failed = compare(&now, &pins, &linux);
    println!("{}", beside_linux(&now.instructions, &linux));
    if args.pin {
        fs::create_dir_all("bench").context("making bench/")?;
        fs::write(FILE, print(&now)).with_context(|| format!("writing {FILE}"))?;
        println!("{FILE} holds the pins");
        return Ok(());
    }
    if !args.check {
        let criterion = ["bench", "--locked", "-p", "paternoster", "--bench", "requests"];
        return cargo::run(cargo::command().args(criterion));
    }
    let beyond = beyond(&now.instructions);
    if !beyond.is_empty() {
        bail!("instructions per request: {}", beyond.join(", "));
    }
    if failed.is_empty() {
        return Ok(());
    }
    let list = failed.join(", ");
    if now.compiler != pins.compiler {
        println!("not compared with {} but reported: {list}", now.compiler);
        println!("the pins are from {}: cargo xtask bench sched --pin", pins.compiler);
        return Ok(());
    }
    bail!("instructions per request, more than {TOLERANCE} % worse or gone: {list}");
}

/// Fails where a scheduler needs more instructions than are pinned.
pub(crate) fn check() -> Result<()> {
    run(&Args { check: true, ..Args::default() })
}

/// The pins in the file; none where there is no file yet.
fn load() -> Result<Pins> {
    if !Path::new(FILE).exists() {
        return Ok(Pins::default());
    }
    let text = fs::read_to_string(FILE).with_context(|| format!("reading {FILE}"))?;
    toml::from_str(&text).with_context(|| FILE.to_owned())
}

/// The counts of Linux's own schedulers.
fn linux() -> Result<BTreeMap<String, f64>> {
    let text = fs::read_to_string(LINUX_FILE).with_context(|| format!("reading {LINUX_FILE}"))?;
    let linux: Linux = toml::from_str(&text).with_context(|| LINUX_FILE.to_owned())?;
    Ok(linux.instructions)
}

/// How many configurations take no more than Linux, and which take most beside it.
fn beside_linux(counts: &BTreeMap<String, f64>, linux: &BTreeMap<String, f64>) -> String {
    let mut ratios: Vec<(f64, &str)> = linux
        .iter()
        .filter_map(|(name, linux)| Some((counts.get(name)? / linux, name.as_str())))
        .collect();
    ratios.sort_by(|one, other| other.0.total_cmp(&one.0));
    let up_to = |limit: f64| ratios.iter().filter(|(ratio, _)| *ratio <= limit).count();
    let above = ratios.iter().take_while(|(ratio, _)| *ratio > 1.0);
    let above: Vec<_> = above.map(|(ratio, name)| format!("{name} {ratio:.3}")).collect();
    let (less, all, far_less) = (up_to(1.0), ratios.len(), up_to(0.9));
    let rest = if above.is_empty() { "none".to_owned() } else { above.join(", ") };
    format!("at most Linux's in {less} of {all}, 0.9 times in {far_less}; above it: {rest}")
}

/// The file's text for `pins`.
fn print(pins: &Pins) -> String {
    let mut text = format!("{HEADER}\ncompiler = {:?}\n\n[instructions]\n", pins.compiler);
    for (name, count) in &pins.instructions {
        writeln!(text, "{name:?} = {count:.1}").expect("writing to a String succeeds");
    }
    text
}

/// Which compiler we have.
fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output().context("rustc does not start")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Builds the binary and counts each of its configurations, one on each core at a time.
fn count() -> Result<BTreeMap<String, f64>> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        bail!("valgrind does not start: install the package valgrind");
    }
    let binary = cargo::executable(&BUILD, "instructions")?;
    let list = Command::new(&binary).arg("--list").output().context("listing configurations")?;
    let list = String::from_utf8(list.stdout).context("the names of the configurations")?;
    let names: Vec<&str> = list.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        let counts_every = |first: usize| {
            let (names, binary) = (&names, &binary);
            scope.spawn(move || -> Result<Vec<_>> {
                let every = names.iter().skip(first).step_by(cores);
                every.map(|name| Ok(((*name).to_owned(), count_one(binary, name)?))).collect()
            })
        };
        let threads: Vec<_> = (0..cores).map(counts_every).collect();
        let mut counts = BTreeMap::new();
        for thread in threads {
            counts.extend(thread.join().expect("counting does not panic")?);
        }
        Ok(counts)
    })
}

/// Instructions per request of one configuration.
fn count_one(binary: &Path, name: &str) -> Result<f64> {
    let dir = tempfile::tempdir().context("a temporary directory")?;
    let out = dir.path().join("callgrind.out");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*measured*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(binary)
        .args([name, &REQUESTS.to_string()])
        .output()
        .context("valgrind does not start")?;
    if !output.status.success() {
        bail!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    let text = fs::read_to_string(&out).context("reading what callgrind wrote")?;
    let total = total(&text).with_context(|| format!("{name}: callgrind gives no total"))?;
    if total == 0 {
        bail!("{name}: nothing was counted; is there a function named *measured*?");
    }
    // A total is far below 2^53: exact as a float.
    let total: f64 = total.to_string().parse().expect("a printed number parses");
    Ok(total / f64::from(REQUESTS))
}

/// The instructions in a file of callgrind: its line `totals:`, or `summary:` where it has none.
fn total(text: &str) -> Option<u64> {
    let number = |key| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    number("totals:").or_else(|| number("summary:"))
}

/// Prints a table of `now` beside `pins` and Linux's counts; returns what is worse or gone.
fn compare(now: &Pins, pins: &Pins, linux: &BTreeMap<String, f64>) -> Vec<String> {
    let head = ["configuration", "instructions", "Linux", "times", "pin", "change"];
    let [name, count, of_linux, times, pin, change] = head;
    println!("{name:<32} {count:>12} {of_linux:>8} {times:>6} {pin:>10} {change:>8}");
    let names: BTreeSet<_> = now.instructions.keys().chain(pins.instructions.keys()).collect();
    let mut failed = vec![];
    for name in names {
        let (count, pin) = (now.instructions.get(name), pins.instructions.get(name));
        let verdict = judge(count.copied(), pin.copied());
        let cell =
            |value: Option<&f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
        let change = count.zip(pin).map(|(count, pin)| format!("{:+.1} %", percent(*count, *pin)));
        let note = match verdict {
            Verdict::Holds => "",
            Verdict::Worse => "  too many",
            Verdict::Better => "  move the pin: cargo xtask bench sched --pin",
            Verdict::New => "  not pinned",
            Verdict::Gone => "  gone",
        };
        let change = change.unwrap_or_default();
        let (count, pin) = (cell(count), cell(pin));
        let of_linux = linux.get(name);
        let times = now.instructions.get(name).zip(of_linux);
        let times = times.map(|(count, linux)| format!("{:.3}", count / linux)).unwrap_or_default();
        let of_linux = of_linux.map(f64::to_string).unwrap_or_default();
        println!("{name:<32} {count:>12} {of_linux:>8} {times:>6} {pin:>10} {change:>8}{note}");
        if matches!(verdict, Verdict::Worse | Verdict::Gone) {
            failed.push(format!("{name} {change}"));
        }
    }
    failed
}

/// What costs too much beside something else.
fn beyond(counts: &BTreeMap<String, f64>) -> Vec<String> {
    let mut found = vec![];
    for Bound { of, times, than } in BOUNDS {
        let (Some(cost), Some(other)) = (counts.get(of), counts.get(than)) else {
            found.push(format!("{of} or {than} was not counted"));
            continue;
        };
        if *cost > times * other {
            found.push(format!("{of} takes {cost:.1}, more than {times} times {than}"));
        }
    }
    found
}

/// How a count stands to its pin.
fn judge(count: Option<f64>, pin: Option<f64>) -> Verdict {
    match (count, pin) {
        (_, None) => Verdict::New,
        (None, Some(_)) => Verdict::Gone,
        (Some(count), Some(pin)) if percent(count, pin) > TOLERANCE => Verdict::Worse,
        (Some(count), Some(pin)) if percent(count, pin) < -TOLERANCE => Verdict::Better,
        (Some(_), Some(_)) => Verdict::Holds,
    }
}

/// By how many percent `count` is above `pin`.
fn percent(count: f64, pin: f64) -> f64 {
    (count / pin - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_read_from_what_callgrind_writes() {
        let text = "version: 1\nevents: Ir\nsummary: 41\n\nfn=(1) measured\n5 12\ntotals: 42\n";
        assert_eq!(total(text), Some(42));
        assert_eq!(total("events: Ir\nsummary: 41 7\n"), Some(41));
        assert_eq!(total("events: Ir\n"), None);
    }

    #[test]
    fn three_percent_are_tolerated_either_way() {
        assert_eq!(judge(Some(102.9), Some(100.0)), Verdict::Holds);
        assert_eq!(judge(Some(97.1), Some(100.0)), Verdict::Holds);
        assert_eq!(judge(Some(103.1), Some(100.0)), Verdict::Worse);
        assert_eq!(judge(Some(96.9), Some(100.0)), Verdict::Better);
        assert_eq!(judge(Some(1.0), None), Verdict::New);
        assert_eq!(judge(None, Some(1.0)), Verdict::Gone);
    }

    #[test]
    fn pins_are_read_as_they_were_written() {
        let instructions = BTreeMap::from([("cfq, 8 contexts".to_owned(), 812.5)]);
        let pins = Pins { compiler: "rustc 1.88.0".to_owned(), instructions };
        assert_eq!(toml::from_str::<Pins>(&print(&pins)).expect("it is TOML"), pins);
    }

    #[test]
    fn very_many_queues_may_cost_cfq_twice_what_some_cost() {
        let beyond = |list: &[(&str, f64)]| {
            beyond(&list.iter().map(|&(name, count)| (name.to_owned(), count)).collect())
        };
        assert!(beyond(&[("cfq/16x16", 100.0), ("cfq/4096x1", 200.0)]).is_empty());
        let found = beyond(&[("cfq/16x16", 100.0), ("cfq/4096x1", 200.5)]);
        assert_eq!(found, ["cfq/4096x1 takes 200.5, more than 2 times cfq/16x16"]);
        let found = beyond(&[("cfq/16x16", 100.0)]);
        assert_eq!(found, ["cfq/4096x1 or cfq/16x16 was not counted"]);
    }

    #[test]
    fn what_is_above_linux_is_named_the_worst_first() {
        let counts = |list: &[(&str, f64)]| -> BTreeMap<_, _> {
            list.iter().map(|&(name, count)| (name.to_owned(), count)).collect()
        };
        let ours = counts(&[("a", 90.0), ("b", 100.0), ("c", 105.0), ("d", 120.0), ("e", 1.0)]);
        let linux = counts(&[("a", 100.0), ("b", 100.0), ("c", 100.0), ("d", 100.0)]);
        let text = "at most Linux's in 2 of 4, 0.9 times in 1; above it: d 1.200, c 1.050";
        assert_eq!(beside_linux(&ours, &linux), text);
        let none = "at most Linux's in 1 of 1, 0.9 times in 1; above it: none";
        assert_eq!(beside_linux(&ours, &counts(&[("a", 100.0)])), none);
    }

    /// A name that no configuration has would be beside nothing.
    #[test]
    fn each_count_of_linux_is_of_a_configuration_that_is_pinned() {
        let pins: Pins =
            toml::from_str(include_str!("../../crates/paternoster-lab/instructions.toml"))
                .expect("TOML");
        let linux: Linux =
            toml::from_str(include_str!("../../bench/linux-instructions.toml")).expect("TOML");
        for name in linux.instructions.keys() {
            assert!(pins.instructions.contains_key(name), "{name}");
        }
    }

    #[test]
    fn what_is_worse_or_gone_fails() {
        let pins = |list: &[(&str, f64)]| Pins {
            compiler: String::new(),
            instructions: list.iter().map(|&(name, count)| (name.to_owned(), count)).collect(),
        };
        let (now, before) = (pins(&[("a", 110.0), ("b", 1.0)]), pins(&[("a", 100.0), ("c", 1.0)]));
        let failed = compare(&now, &before, &BTreeMap::new());
        assert_eq!(failed, ["a +10.0 %", "c "]);
    }
}
