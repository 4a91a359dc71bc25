//! A trace, from its file to its requests.

use std::io;
use std::path::{Path, PathBuf};

use crate::assembly::Assembly;
use crate::blkparse::{Printed, Text};
use crate::checks::Checks;
use crate::columns::{Layout, MS, S, Table, US, unit_of_disksim};
use crate::companion::Companion;
use crate::error::{Error, Place};
use crate::event::{Event, Events};
use crate::findings::{Findings, Warning};
use crate::fit::{Beyond, Fit};
use crate::format::Format;
use crate::lines::Lines;
use crate::request::Request;
use crate::source::Source;
use crate::survey::Surveyed;
use crate::{blktrace, iolog, vscsi};

/// The end of the name of what stands beside a recording of the server.
pub const SIDECAR: &str = "pater";

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
    /// In columns: the words of a read, `R,0`; any other is of a write.
    pub reads: Option<String>,
    /// The size in bytes of the device that the requests have to fit.
    pub size: Option<u64>,
    /// What becomes of those that do not.
    pub beyond: Beyond,
}

/// The requests of a trace, in the order of their arrival.
pub struct Trace {
    format: Format,
    files: Vec<PathBuf>,
    requests: Box<dyn Requests>,
    checks: Checks,
    fit: Option<Fit>,
    findings: Findings,
    is_over: bool,
}

/// Where requests come from: a reader of one format.
pub(crate) trait Requests: Send {
    /// The next one, in the order of the trace.
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Request>, Error>;
}

/// A trace without any.
struct Nothing;

impl Requests for Nothing {
    fn next(&mut self, _: &mut Findings) -> Result<Option<Request>, Error> {
        Ok(None)
    }
}

impl Trace {
    /// Opens the trace in a file; of blktrace, in the files of all processors.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let files = Files::of(path)?;
        let mut findings = Findings::default();
        for cpu in files.missing() {
            findings.warn(Warning::LostCpu { cpu });
        }
        if options.beyond == Beyond::Scale && !path.is_file() && files.cpus.is_empty() {
            let what = "what is scaled is read twice: a regular file is expected";
            return Err(Error::at(Place::File, what));
        }
        // Each is opened once: it may be a pipe. A processor that did nothing has an empty file.
        let sources = files.paths.iter().map(|path| Source::open(path));
        let mut sources = sources.collect::<io::Result<Vec<_>>>()?;
        let with_bytes = sources.iter().position(|source| !source.head.is_empty()).unwrap_or(0);
        let head = &sources[with_bytes].head;
        let format = match options.format {
            Some(format) => format,
            None if options.columns.is_some() => Format::Csv,
            None => Format::find(head).map_err(|names| no_format(&names))?,
        };
        no_such_options(format, options)?;
        let mut base = None;
        let requests = match format {
            Format::Blktrace | Format::Blkparse | Format::Tracefs => {
                base = Some(0);
                let companion = files.companion.as_deref().map(Source::open).transpose()?;
                let companion = companion.map(|source| Companion::new(source.bytes)).transpose()?;
                assembled(events(sources, format), companion, options, &mut findings)?
            }
            _ => listed(sources.swap_remove(with_bytes), format, options, &mut findings)?,
        };
        let fit = options.size.map(|size| {
            let farthest = match options.beyond {
                Beyond::Scale => farthest(path, options)?,
                _ => 0,
            };
            Ok::<_, Error>(Fit::new(size, options.beyond, farthest))
        });
        let (checks, fit) = (Checks::new(base), fit.transpose()?);
        let files = files.paths.into_iter().chain(files.companion).collect();
        Ok(Self { format, files, requests, checks, fit, findings, is_over: false })
    }

    /// The files that it is read from.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
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
            if let Some(mut request) = self.checks.take(self.is_over) {
                if let Some(fit) = &mut self.fit {
                    fit.apply(&mut request)?;
                }
                return Ok(Some(request));
            }
            if self.is_over {
                return Ok(None);
            }
            let next = self.requests.next(&mut self.findings)?;
            match next {
                Some(request) => self.checks.add(request)?,
                None => self.is_over = true,
            }
        }
    }

    /// Says what is known at the end: after the last request.
    pub fn finish(mut self) -> Findings {
        self.checks.tell(&mut self.findings);
        if let Some(fit) = &self.fit {
            fit.tell(&mut self.findings);
        }
        self.findings
    }
}

/// Where the request of a trace ends that reaches farthest.
fn farthest(path: &Path, options: &Options) -> Result<u64, Error> {
    let mut trace = Trace::open(path, &Options { size: None, ..options.clone() })?;
    let mut farthest = 0;
    while let Some(request) = trace.next_request()? {
        farthest = request.offset.saturating_add(request.len).max(farthest);
    }
    Ok(farthest)
}

/// Says of an option that has no effect on a format that it is not one of its.
fn no_such_options(format: Format, options: &Options) -> Result<(), Error> {
    let has_events = matches!(format, Format::Blktrace | Format::Blkparse | Format::Tracefs);
    let has_columns = !has_events && !matches!(format, Format::Vscsi | Format::Iolog);
    for (is_there, is_allowed, name) in [
        (options.unit.is_some(), format == Format::Disksim, "--unit"),
        (options.device.is_some(), has_events, "--device"),
        (options.columns.is_some(), format == Format::Csv, "--columns"),
        (options.reads.is_some(), has_columns, "--read"),
    ] {
        if is_there && !is_allowed {
            let what = format!("{name} is for other formats than {}", format.name());
            return Err(Error::at(Place::File, what));
        }
    }
    Ok(())
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

/// The requests of a format with events.
fn assembled(
    mut events: Box<dyn Events>,
    companion: Option<Companion>,
    options: &Options,
    findings: &mut Findings,
) -> Result<Box<dyn Requests>, Error> {
    let device = options.device.as_deref().map(|name| {
        let what = || format!("device {name:?}: MAJOR,MINOR is allowed, for example 8,0");
        Event::device_of(name.as_bytes()).ok_or_else(|| Error::at(Place::File, what()))
    });
    let device = device.transpose()?;
    let Some(surveyed) = Surveyed::of(&mut *events, device, findings)? else {
        let what =
            options.device.as_ref().map(|name| format!("there is no request of device {name}"));
        return what.map_or(Ok(Box::new(Nothing)), |what| Err(Error::at(Place::File, what)));
    };
    let assembly = Assembly::new(events, surveyed, companion);
    Ok(Box::new(assembly))
}

/// The requests of a format with a request a record.
fn listed(
    source: Source,
    format: Format,
    options: &Options,
    findings: &mut Findings,
) -> Result<Box<dyn Requests>, Error> {
    let Source { head, bytes } = source;
    let mut layout = match format {
        Format::Vscsi => {
            let version = vscsi::version(&head);
            let version = version.ok_or_else(|| Error::at(Place::Byte(0), "it is not of vscsi"))?;
            return Ok(Box::new(vscsi::Records::new(bytes, version)));
        }
        Format::Iolog => return Ok(Box::new(iolog::Entries::new(Lines::new(bytes))?)),
        Format::Msr => Layout::msr(),
        Format::Alibaba => Layout::alibaba(),
        Format::Spc => Layout::spc(),
        Format::Tencent => {
            findings.warn(Warning::SpreadInSeconds);
            Layout::tencent()
        }
        Format::Disksim => Layout::disksim(unit_of(&head, options, findings)?),
        _ => {
            let first = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
            let first = String::from_utf8_lossy(first);
            let names = options.columns.as_deref().unwrap_or(&first);
            Layout::named(names).map_err(|what| Error::at(Place::Line(1), what))?
        }
    };
    layout = layout.with_reads(options.reads.as_deref());
    if format == Format::Disksim {
        return Ok(Box::new(Table::by_spaces(bytes, layout)));
    }
    let has_names = format == Format::Csv && options.columns.is_none();
    layout.assume_unit(&head, has_names, findings);
    let table = Table::by_commas(bytes, layout, has_names);
    Ok(Box::new(if format == Format::Tencent { table.spread() } else { table }))
}

/// The unit of DiskSim's times, in ns.
fn unit_of(head: &[u8], options: &Options, findings: &mut Findings) -> Result<u64, Error> {
    Ok(match options.unit.as_deref() {
        Some("ns") => 1,
        Some("us") => US,
        Some("ms") => MS,
        Some("s") => S,
        Some(other) => {
            let what = format!("unit {other:?}: ns, us, ms or s is allowed");
            return Err(Error::at(Place::File, what));
        }
        None => unit_of_disksim(head, findings),
    })
}

/// The files of a trace.
struct Files {
    paths: Vec<PathBuf>,
    /// Of blktrace: the processors that they are of.
    cpus: Vec<u32>,
    /// What the server has recorded beside them.
    companion: Option<PathBuf>,
}

impl Files {
    /// The file; or, where it is a processor's or their common name, those of all processors.
    fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let common = match split(&name) {
            Some((common, ..)) => common.to_owned(),
            None if !path.exists() => format!("{name}.blktrace."),
            None => {
                return Ok(Self { paths: vec![path.to_owned()], cpus: vec![], companion: None });
            }
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
        if let Some(pair) = found.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let [one, other] = [&pair[0].1, &pair[1].1].map(|path| path.display());
            return Err(io::Error::other(format!("{one} and {other} are of one CPU: keep one")));
        }
        if found.is_empty() {
            // The error that opening it has.
            std::fs::metadata(path)?;
        }
        let (cpus, paths) = found.into_iter().unzip();
        let name = common.trim_end_matches(".blktrace.");
        let beside = path.with_file_name(format!("{name}.{SIDECAR}"));
        let companion = Some(beside).filter(|beside| beside.exists());
        Ok(Self { paths, cpus, companion })
    }

    /// Processors below the last that have no file.
    fn missing(&self) -> Vec<u32> {
        let last = self.cpus.last().copied().unwrap_or(0);
        (0..last.min(4096)).filter(|cpu| !self.cpus.contains(cpu)).collect()
    }
}

/// The events of these files.
fn events(sources: Vec<Source>, format: Format) -> Box<dyn Events> {
    let mut bytes = sources.into_iter().map(|source| source.bytes);
    let printed = match format {
        Format::Blkparse => Printed::ByBlkparse,
        Format::Tracefs => Printed::ByTracefs,
        _ if bytes.len() > 1 => {
            return Box::new(blktrace::Merged::new(bytes.map(blktrace::File::new).collect()));
        }
        _ => return Box::new(blktrace::File::new(bytes.next().expect("there is a file"))),
    };
    Box::new(Text::new(Lines::new(bytes.next().expect("there is a file")), printed))
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
