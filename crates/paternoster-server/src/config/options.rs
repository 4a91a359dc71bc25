//! The command line: one disk, and its exports.

use std::path::PathBuf;

use super::draft::{At, Draft, DraftDisk, DraftExport, Key, NO_PATH, Number};
use super::error::{Mistake, Place, Problem};
use super::mistakes::Mistakes;

/// The options of the command line, in place of a file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--disk`: the path of a raw image.
    pub disk: PathBuf,
    /// `--scheduler`.
    pub scheduler: Option<String>,
    /// `--set`, each `TUNABLE=VALUE`.
    pub set: Vec<String>,
    /// `--depth`, in requests.
    pub depth: Option<i64>,
    /// `--cache`: `direct` or `page`.
    pub cache: Option<String>,
    /// `--export`, each `NAME[,weight=N][,offset=BYTES][,size=BYTES][,read-only]`.
    pub exports: Vec<String>,
    /// `--unix`: the path of a socket.
    pub unix: Option<PathBuf>,
    /// `--tcp`: an address and a port.
    pub tcp: Option<String>,
    /// `--ctl`: the path of the control socket; `none` is none.
    pub ctl: Option<PathBuf>,
    /// `--metrics`: an address and a port.
    pub metrics: Option<String>,
    /// `--threads`.
    pub threads: Option<i64>,
    /// `--engine`: `auto`, `io_uring` or `threads`.
    pub engine: Option<String>,
}

/// What the only disk is called.
const DISK: &str = "disk0";

impl Options {
    pub(super) fn draft(&self, mistakes: &mut Mistakes) -> Draft {
        let tunables: Vec<_> = self.set.iter().map(|text| mistakes.note(read_set(text))).collect();
        let exports: Vec<_> =
            self.exports.iter().map(|text| mistakes.note(read_export(text))).collect();
        let disk = DraftDisk {
            name: at("--disk", DISK.to_owned()),
            path: Key::Written(at("--disk", self.disk.clone())),
            scheduler: key("--scheduler", self.scheduler.clone()),
            depth: key("--depth", self.depth),
            cache: key("--cache", self.cache.clone()),
            tunables: tunables.into_iter().flatten().collect(),
            ..DraftDisk::default()
        };
        let ctl =
            self.ctl.clone().map(|path| Some(path).filter(|path| path.as_os_str() != NO_PATH));
        Draft {
            whole: Place::CommandLine,
            has_gaps: exports.iter().any(Option::is_none),
            unix: key("--unix", self.unix.clone()),
            tcp: key("--tcp", self.tcp.clone()),
            ctl: key("--ctl", ctl),
            metrics: key("--metrics", self.metrics.clone()),
            threads: key("--threads", self.threads),
            engine: key("--engine", self.engine.clone()),
            disks: vec![disk],
            exports: exports.into_iter().flatten().collect(),
            ..Draft::default()
        }
    }
}

fn at<T>(option: &'static str, value: T) -> At<T> {
    At { value, place: Place::Option(option) }
}

fn key<T>(option: &'static str, value: Option<T>) -> Key<T> {
    value.map_or(Key::Missing, |value| Key::Written(at(option, value)))
}

fn read_set(text: &str) -> Result<(At<String>, At<i64>), Mistake> {
    let Some((name, value)) = text.split_once('=') else {
        return at("--set", ()).refuse(Problem::BadSet { found: text.to_owned() });
    };
    let value = paternoster::parse_tunable(name, value)
        .or_else(|error| at("--set", ()).refuse(Problem::BadTunable(error)))?;
    Ok((at("--set", name.to_owned()), at("--set", value)))
}

fn read_export(text: &str) -> Result<DraftExport, Mistake> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let mut export = DraftExport {
        name: at("--export", name.to_owned()),
        disk: Key::Written(at("--disk", DISK.to_owned())),
        ..DraftExport::default()
    };
    for part in parts {
        if read_part(part, &mut export).is_none() {
            let (option, found) = (text.to_owned(), part.to_owned());
            return export.name.refuse(Problem::BadExportOption { option, found });
        }
    }
    Ok(export)
}

/// Takes one part behind the name; none if it is unknown or there already.
fn read_part(part: &str, export: &mut DraftExport) -> Option<()> {
    let bytes = |text: &str| Number::Text(text.to_owned());
    match part.split_once('=') {
        Some(("weight", text)) => set(&mut export.weight, text.parse().ok()?),
        Some(("offset", text)) => set(&mut export.offset, bytes(text)),
        Some(("size", text)) => set(&mut export.size, bytes(text)),
        None if part == "read-only" => set(&mut export.read_only, true),
        _ => None,
    }
}

/// None if there is a value already.
fn set<T>(key: &mut Key<T>, value: T) -> Option<()> {
    let was_missing = key.is_missing();
    *key = Key::Written(at("--export", value));
    was_missing.then_some(())
}
