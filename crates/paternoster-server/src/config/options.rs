//! The command line: one disk, and its exports.

use std::path::PathBuf;

use super::draft::{At, Draft, DraftDisk, DraftExport, Number};
use super::error::{ConfigError, Place, Problem};

/// What the command line says in place of a file.
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
    /// `--export`, each `NAME[,weight=N][,offset=BYTES][,size=BYTES][,read-only]`.
    pub exports: Vec<String>,
    /// `--unix`: the path of a socket.
    pub unix: Option<PathBuf>,
    /// `--tcp`: an address and a port.
    pub tcp: Option<String>,
    /// `--ctl`: the path of the control socket.
    pub ctl: Option<PathBuf>,
}

/// What the only disk is called.
const DISK: &str = "disk0";

impl Options {
    pub(super) fn draft(&self) -> Result<Draft, ConfigError> {
        let tunables = self.set.iter().map(|text| read_set(text)).collect::<Result<_, _>>()?;
        let disk = DraftDisk {
            name: at("--disk", DISK.to_owned()),
            path: Some(at("--disk", self.disk.clone())),
            backend: None,
            size: None,
            servers: None,
            service_us: None,
            ns_per_kib: None,
            scheduler: self.scheduler.clone().map(|name| at("--scheduler", name)),
            depth: self.depth.map(|depth| at("--depth", depth)),
            tunables,
        };
        Ok(Draft {
            whole: Place::CommandLine,
            unix: self.unix.clone().map(|path| at("--unix", path)),
            unix_mode: None,
            tcp: self.tcp.clone().map(|address| at("--tcp", address)),
            ctl: self.ctl.clone().map(|path| at("--ctl", path)),
            disks: vec![disk],
            groups: Vec::new(),
            exports: self.exports.iter().map(|text| read_export(text)).collect::<Result<_, _>>()?,
        })
    }
}

fn at<T>(option: &'static str, value: T) -> At<T> {
    At { value, place: Place::Option(option) }
}

fn read_set(text: &str) -> Result<(At<String>, At<i64>), ConfigError> {
    let read = text.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
    let Some((name, value)) = read else {
        return at("--set", ()).refuse(Problem::BadSet { found: text.to_owned() });
    };
    Ok((at("--set", name.to_owned()), at("--set", value)))
}

fn read_export(text: &str) -> Result<DraftExport, ConfigError> {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let mut export = DraftExport {
        name: at("--export", name.to_owned()),
        disk: at("--disk", DISK.to_owned()),
        offset: None,
        size: None,
        group: None,
        weight: None,
        io_prio: None,
        read_only: false,
        description: None,
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
    let bytes = |text: &str| at("--export", Number::Text(text.to_owned()));
    let was_there = match part.split_once('=') {
        Some(("weight", text)) => {
            export.weight.replace(at("--export", text.parse().ok()?)).is_some()
        }
        Some(("offset", text)) => export.offset.replace(bytes(text)).is_some(),
        Some(("size", text)) => export.size.replace(bytes(text)).is_some(),
        None if part == "read-only" => std::mem::replace(&mut export.read_only, true),
        _ => return None,
    };
    (!was_there).then_some(())
}
