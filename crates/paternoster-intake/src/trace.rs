//! A trace, from its file to its requests.

use std::io;
use std::path::{Path, PathBuf};

use crate::assembly::Assembly;
use crate::blkparse::{Printed, Text};
use crate::checks::Checks;
use crate::columns::{Layout, MS, S, Table, US, unit_of_disksim};
use crate::error::{Error, Place};
use crate::event::{Event, Events};
use crate::findings::{Findings, Warning};
use crate::format::Format;
use crate::lines::Lines;
use crate::request::Request;
use crate::source::Source;
use crate::survey::Survey;
use crate::{blktrace, vscsi};

/// How a trace is to be read, where its file does not say it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its format; else it is found.
    pub format: Option<Format>,
    /// The unit of DiskSim's times: `ns`, `us`, `ms` or `s`.
    pub unit: Option<String>,
    /// The device whose requests are read, `8,0`; else the one with most requests.
    pub device: Option<String>,
    /// What the columns of a CSV are: `time:us,op,offset:sectors,size:bytes,context`.
    pub columns: Option<String>,
}

/// The requests of a trace, in the order of their arrival.
pub struct Trace {
    format: Format,
    requests: Requests,
    checks: Checks,
    findings: Findings,
    is_over: bool,
}

/// Where requests come from.
enum Requests {
    Assembled(Box<Assembly>),
    Listed(Box<Table>),
    Recorded(vscsi::Records),
    /// There is none.
    Nothing,
}

impl Trace {
    /// Opens the trace in a file; of blktrace, in the files of all processors.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let files = Files::of(path)?;
        let mut findings = Findings::default();
        for cpu in files.missing() {
            findings.warn(Warning::LostCpu { cpu });
        }
        let Source { head, .. } = Source::open(&files.paths[0])?;
        let format = match options.format {
            Some(format) => format,
            None if options.columns.is_some() => Format::Csv,
            None => Format::find(&head).map_err(|names| no_format(&names))?,
        };
        let mut base = None;
        let requests = match format {
            Format::Blktrace | Format::Blkparse | Format::Tracefs => {
                base = Some(0);
                assembled(&files, format, options, &mut findings)?
            }
            _ => listed(&files.paths[0], format, options, &mut findings)?,
        };
        let checks = Checks::new(base);
        Ok(Self { format, requests, checks, findings, is_over: false })
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What was found besides requests; all of it once there is no further request.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The next request.
    pub fn next_request(&mut self) -> Result<Option<Request>, Error> {
        loop {
            if let Some(request) = self.checks.take(self.is_over) {
                return Ok(Some(request));
            }
            if self.is_over {
                return Ok(None);
            }
            let findings = &mut self.findings;
            let next = match &mut self.requests {
                Requests::Assembled(assembly) => assembly.next(findings)?,
                Requests::Listed(table) => table.next(findings)?,
                Requests::Recorded(records) => records.next(findings)?,
                Requests::Nothing => None,
            };
            match next {
                Some(request) => self.checks.add(request)?,
                None => self.is_over = true,
            }
        }
    }

    /// Says what is known at the end: after the last request.
    pub fn finish(mut self) -> Findings {
        self.checks.tell(&mut self.findings);
        self.findings
    }
}

fn no_format(names: &[&str]) -> Error {
    let what = if names.is_empty() {
        let all: Vec<_> = Format::ALL.into_iter().map(Format::name).collect();
        format!("the format of the trace is not known: --format says it, one of {}", all.join(", "))
    } else {
        format!("the trace may be of {}: --format says which", names.join(" or "))
    };
    Error::at(Place::File, what)
}

/// The requests of a format with events, which are read twice.
fn assembled(
    files: &Files,
    format: Format,
    options: &Options,
    findings: &mut Findings,
) -> Result<Requests, Error> {
    let device = options.device.as_deref().map(|name| {
        let what = || format!("device {name:?}: MAJOR,MINOR is allowed, for example 8,0");
        Event::device_of(name.as_bytes()).ok_or_else(|| Error::at(Place::File, what()))
    });
    let device = device.transpose()?;
    let survey = Survey::of(&mut *files.events(format)?, device, findings)?;
    let Some(survey) = survey else {
        let what =
            options.device.as_ref().map(|name| format!("there is no event of device {name}"));
        return what.map_or(Ok(Requests::Nothing), |what| Err(Error::at(Place::File, what)));
    };
    let assembly = Assembly::new(files.events(format)?, survey);
    Ok(Requests::Assembled(Box::new(assembly)))
}

/// The requests of a format with a request a record.
fn listed(
    path: &Path,
    format: Format,
    options: &Options,
    findings: &mut Findings,
) -> Result<Requests, Error> {
    let Source { head, bytes } = Source::open(path)?;
    let table = match format {
        Format::Msr => Table::by_commas(bytes, Layout::msr(), false),
        Format::Alibaba => Table::by_commas(bytes, Layout::alibaba(), false),
        Format::Spc => Table::by_commas(bytes, Layout::spc(), false),
        Format::Tencent => {
            findings.warn(Warning::SpreadInSeconds);
            Table::by_commas(bytes, Layout::tencent(), false).spread()
        }
        Format::Disksim => {
            let first = head.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
            let unit = match options.unit.as_deref() {
                Some("ns") => 1,
                Some("us") => US,
                Some("ms") => MS,
                Some("s") => S,
                Some(other) => {
                    let what = format!("unit {other:?}: ns, us, ms or s is allowed");
                    return Err(Error::at(Place::File, what));
                }
                None => unit_of_disksim(first.unwrap_or_default(), findings),
            };
            Table::by_spaces(bytes, Layout::disksim(unit))
        }
        Format::Vscsi => {
            let version = vscsi::version(&head);
            let version = version.ok_or_else(|| Error::at(Place::Byte(0), "it is not of vscsi"))?;
            return Ok(Requests::Recorded(vscsi::Records::new(bytes, version)));
        }
        _ => {
            let first = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
            let (names, has_names) = match &options.columns {
                Some(columns) => (columns.clone(), false),
                None => (String::from_utf8_lossy(first).into_owned(), true),
            };
            let layout = Layout::named(&names).map_err(|what| Error::at(Place::Line(1), what))?;
            Table::by_commas(bytes, layout, has_names)
        }
    };
    Ok(Requests::Listed(Box::new(table)))
}

/// The files of a trace.
struct Files {
    paths: Vec<PathBuf>,
    /// Of blktrace: the processors that they are of.
    cpus: Vec<u32>,
}

impl Files {
    /// The file; or, where it is a processor's or their common name, those of all processors.
    fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let common = match split(&name) {
            Some((common, ..)) => common.to_owned(),
            None if !path.exists() => format!("{name}.blktrace."),
            None => return Ok(Self { paths: vec![path.to_owned()], cpus: vec![] }),
        };
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder.unwrap_or(Path::new(".")))? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some((its, cpu)) = name.to_str().and_then(split)
                && its == common
            {
                found.push((cpu, entry.path()));
            }
        }
        found.sort();
        if found.is_empty() {
            // The error that opening it has.
            std::fs::metadata(path)?;
        }
        let (cpus, paths) = found.into_iter().unzip();
        Ok(Self { paths, cpus })
    }

    /// Processors below the last that have no file.
    fn missing(&self) -> Vec<u32> {
        let last = self.cpus.last().copied().unwrap_or(0);
        (0..last.min(4096)).filter(|cpu| !self.cpus.contains(cpu)).collect()
    }

    fn events(&self, format: Format) -> Result<Box<dyn Events>, Error> {
        let printed = match format {
            Format::Blkparse => Printed::ByBlkparse,
            Format::Tracefs => Printed::ByTracefs,
            _ => {
                let open =
                    |path: &PathBuf| Ok::<_, Error>(blktrace::File::new(Source::open(path)?.bytes));
                let files = self.paths.iter().map(open).collect::<Result<_, _>>()?;
                return Ok(Box::new(blktrace::Merged::new(files)));
            }
        };
        let lines = Lines::new(Source::open(&self.paths[0])?.bytes);
        Ok(Box::new(Text::new(lines, printed)))
    }
}

/// The part of a name before the processor's number, and that: `x.blktrace.1.zst`.
fn split(name: &str) -> Option<(&str, u32)> {
    let bare = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let (rest, cpu) = bare.rsplit_once('.')?;
    if !rest.ends_with(".blktrace") {
        return None;
    }
    Some((&name[..=rest.len()], cpu.parse().ok()?))
}
