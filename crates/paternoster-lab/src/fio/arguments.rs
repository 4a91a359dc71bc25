//! Job options of a command line, as fio takes them: each `--name` begins a job.
//!
//! ```text
//!   --ioengine=libaio --direct=1   [global]   what stands before the first --name
//!   --name=a --rw=read             [a]
//!   --name b -rw write             [b]        one dash, and a value behind a space, do as well
//! ```
//!
//! An argument is read as a line of a job file is, but that it has no comments and no variables: a
//! shell replaces those. Which options take no value there is what fio 3.33 was seen to do.

use super::error::{Mistake, Mistakes};
use super::job::Note;
use super::options;
use super::sections::{self, Lines, Section};
use super::text::Text;

/// The options to which the next argument does not belong.
const WITHOUT_VALUE: [&str; 18] = [
    "blocksize_unaligned",
    "bs_unaligned",
    "exitall",
    "exitall_on_error",
    "fixedbufs",
    "group_reporting",
    "hipri",
    "new_group",
    "norandommap",
    "refill_buffers",
    "registerfiles",
    "sqthread_poll",
    "stonewall",
    "thread",
    "time_based",
    "userspace_reap",
    "wait_for_previous",
    "zero_buffers",
];

/// An option of the program fio that changes nothing here, and of no job.
struct ProgramOption {
    name: &'static str,
    has_value: bool,
    why: &'static str,
}

const fn alone(name: &'static str, why: &'static str) -> ProgramOption {
    ProgramOption { name, has_value: false, why }
}

const fn with_value(name: &'static str, why: &'static str) -> ProgramOption {
    ProgramOption { name, has_value: true, why }
}

const REPORT: &str = "a table is printed, and fio's JSON with --json before the \"--\"";
const PROGRESS: &str = "how far a long run has come is said on standard error";
const MEMORY: &str = "it is about fio's own memory";

const WITHOUT_EFFECT: [ProgramOption; 16] = [
    with_value("output", "the report is printed on standard output"),
    with_value("output-format", REPORT),
    alone("minimal", REPORT),
    alone("append-terse", REPORT),
    with_value("terse-version", REPORT),
    with_value("eta", PROGRESS),
    with_value("eta-interval", PROGRESS),
    with_value("eta-newline", PROGRESS),
    with_value("status-interval", PROGRESS),
    alone("readonly", "no file and no device of this machine is read or written"),
    alone("warnings-fatal", "what would be wrong is refused in any case"),
    with_value("alloc-size", MEMORY),
    with_value("max-jobs", MEMORY),
    with_value("aux-path", "no file of fio's own is written"),
    with_value("debug", "it is about fio's own messages"),
    with_value("idle-prof", "the processors are those of --host"),
];

/// Those that would change what is run.
const REFUSED: [&str; 19] = [
    "bandwidth-log",
    "client",
    "cmdhelp",
    "cpuclock-test",
    "crctest",
    "daemonize",
    "enghelp",
    "help",
    "inflate-log",
    "merge-blktrace-only",
    "parse-only",
    "remote-config",
    "section",
    "server",
    "showcmd",
    "trigger",
    "trigger-file",
    "trigger-remote",
    "version",
];

/// Reads the arguments.
pub(super) fn read(arguments: &[String], mistakes: &mut Mistakes) -> Lines {
    let mut lines = Lines::default();
    let mut rest = arguments.iter().zip(1..).peekable();
    while let Some((argument, number)) = rest.next() {
        let name = name(argument);
        let mut said = argument.clone();
        if !argument.contains('=')
            && has_value(name)
            && let Some((value, _)) = rest.next_if(|(next, _)| !is_option(next))
        {
            said = format!("{argument}={value}");
        }
        if let Err(mistake) = take(&mut lines, &Text::argument(number, &said), name) {
            mistakes.add(mistake);
            if let Some(section) = lines.sections.last_mut() {
                section.is_whole = false;
            }
        }
    }
    lines
}

/// The mistake that no argument begins a job.
pub(super) fn no_job(arguments: &[String]) -> Mistake {
    let last = arguments.last().map_or("", String::as_str);
    let number = u32::try_from(arguments.len()).unwrap_or(u32::MAX);
    let what = "job options need a --name that begins a job, such as --name=job";
    Text::argument(number, last).mistake(what)
}

/// Whether an argument is an option, and no value: a value may be a negative number.
fn is_option(argument: &str) -> bool {
    let behind = argument.strip_prefix('-');
    behind.is_some_and(|behind| behind.starts_with(|c: char| c == '-' || c.is_alphabetic()))
}

/// The name of the option that an argument is.
fn name(argument: &str) -> &str {
    let dashes = if argument.starts_with("--") { 2 } else { argument.starts_with('-').into() };
    argument[dashes..].split('=').next().unwrap_or_default()
}

/// Whether the option of that name has a value.
fn has_value(name: &str) -> bool {
    match without_effect(name) {
        Some(option) => option.has_value,
        None => !WITHOUT_VALUE.contains(&name) && !REFUSED.contains(&name),
    }
}

fn without_effect(name: &str) -> Option<&'static ProgramOption> {
    WITHOUT_EFFECT.iter().find(|option| option.name == name)
}

/// Takes an argument, with its value if that is the next one.
fn take(lines: &mut Lines, argument: &Text, name: &str) -> Result<(), Mistake> {
    if !is_option(argument.as_str()) {
        let what = "job options begin with \"--\", such as --rw=read; a job file stands before \
                    the \"--\" behind which they come";
        return Err(argument.mistake(what));
    }
    let dashes = argument.as_str().len() - argument.as_str().trim_start_matches('-').len();
    let option = sections::option(&argument.from(dashes))?;
    if let Some(known) = without_effect(name) {
        let (place, option) = (argument.place().clone(), format!("--{name}"));
        lines.notes.push(Note { place, option, why: known.why });
        return Ok(());
    }
    if REFUSED.contains(&name) {
        let what = format!("--{name} is an option of the program fio; those of jobs are taken");
        return Err(argument.mistake(what));
    }
    let is_known = options::first_name(name).is_some();
    let value = option.value.as_ref().filter(|value| !value.is_empty());
    if is_known && has_value(name) && value.is_none() {
        let what = format!("--{name} has a value on a command line, such as --{name}=1");
        return Err(argument.mistake(what));
    }
    if let Some(job) = value.filter(|_| name == "name") {
        begin(lines, job.clone());
        if job.as_str() == "global" {
            return Ok(());
        }
    } else if lines.sections.is_empty() {
        begin(lines, Text::argument(argument.place().line, "global"));
    }
    let section = lines.sections.last_mut().expect("one was begun");
    section.options.push(option);
    Ok(())
}

fn begin(lines: &mut Lines, name: Text) {
    lines.sections.push(Section { name, options: vec![], keys: vec![], is_whole: true });
}
