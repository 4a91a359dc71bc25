//! The command line: one disk, and its exports.

use std::path::PathBuf;

use super::draft::Draft;
use super::error::{Mistake, Place, Problem};
use super::keys::written::{Form, Written};
use super::keys::{At, DiskKeys, ExportKeys, Keys, Object, ServerKeys, State};
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
    /// `--depth`, in requests, or `learned`.
    pub depth: Option<String>,
    /// `--cache`: `direct` or `page`.
    pub cache: Option<String>,
    /// `--export`, each a name and behind it, each by a comma, `weight=N`, `offset=BYTES`,
    /// `size=BYTES`, `read-only` and `vhost-user=PATH`, all optional.
    pub exports: Vec<String>,
    /// `--unix`: the path of a socket.
    pub unix: Option<PathBuf>,
    /// `--tcp`: an address and a port.
    pub tcp: Option<String>,
    /// `--ctl`: the path of the control socket; `fd:NAME` is one that is passed, `none` is none.
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
        let mut server = Object::<ServerKeys>::default();
        let mut disk = Object::<DiskKeys>::new(at("--disk", DISK.to_owned()));
        let text = |text: &Option<String>| text.clone().map(Form::Text);
        let number = |number: Option<i64>| number.map(Form::Whole);
        let either = |text: &Option<String>| {
            text.clone().map(|text| text.parse().map_or(Form::Text(text), Form::Whole))
        };
        for (option, key, form) in [
            ("--scheduler", "scheduler", text(&self.scheduler)),
            ("--depth", "depth", either(&self.depth)),
            ("--cache", "cache", text(&self.cache)),
        ] {
            set(&mut disk, option, key, form, mistakes);
        }
        for (option, key, form) in [
            ("--tcp", "tcp", text(&self.tcp)),
            ("--metrics", "metrics", text(&self.metrics)),
            ("--threads", "threads", number(self.threads)),
            ("--engine", "engine", text(&self.engine)),
        ] {
            set(&mut server, option, key, form, mistakes);
        }
        // A path need not be UTF-8.
        (disk.keys.path, disk.states.path) = path("--disk", Some(&self.disk));
        (server.keys.unix, server.states.unix) = path("--unix", self.unix.as_ref());
        (server.keys.ctl, server.states.ctl) = path("--ctl", self.ctl.as_ref());
        let tunables = self.set.iter().filter_map(|text| mistakes.note(read_set(text)));
        disk.keys.tunables = tunables.collect();
        let exports = self.exports.iter().filter_map(|text| read_export(text, mistakes));
        let exports: Vec<_> = exports.collect();
        Draft {
            whole: Place::CommandLine,
            has_gaps: exports.len() < self.exports.len(),
            server,
            disks: vec![disk],
            exports,
            ..Draft::default()
        }
    }
}

fn at<T>(option: &'static str, value: T) -> At<T> {
    At { value, place: Place::Option(option) }
}

fn set<O: Keys>(
    object: &mut Object<O>,
    option: &'static str,
    key: &str,
    form: Option<Form>,
    mistakes: &mut Mistakes,
) {
    if let Some(form) = form {
        object.set(key, &Written::option(option, form), mistakes).expect("the key is a row");
    }
}

fn path(option: &'static str, path: Option<&PathBuf>) -> (Option<PathBuf>, State) {
    let state = path.map_or(State::Missing, |_| State::Written(Place::Option(option)));
    (path.cloned(), state)
}

fn read_set(text: &str) -> Result<(At<String>, At<i64>), Mistake> {
    let Some((name, value)) = text.split_once('=') else {
        return at("--set", ()).refuse(Problem::BadSet { found: text.to_owned() });
    };
    let value = paternoster::parse_tunable(name, value)
        .or_else(|error| at("--set", ()).refuse(Problem::BadTunable(error)))?;
    Ok((at("--set", name.to_owned()), at("--set", value)))
}

/// An export, unless its text is wrong.
fn read_export(text: &str, mistakes: &mut Mistakes) -> Option<Object<ExportKeys>> {
    let mut parts = text.split(',');
    let name = at("--export", parts.next().unwrap_or_default().to_owned());
    let mut export = Object::<ExportKeys>::new(name);
    export.keys.disk = Some(DISK.to_owned());
    export.states.disk = State::Written(Place::Option("--disk"));
    for part in parts {
        let written = match part.split_once('=') {
            Some(("weight", text)) => text.parse().ok().map(|value| ("weight", Form::Whole(value))),
            Some((key @ ("offset" | "size"), text)) => Some((key, Form::Text(text.to_owned()))),
            Some(("vhost-user", path)) => Some(("vhost_user", Form::Text(path.to_owned()))),
            None if part == "read-only" => Some(("read_only", Form::Flag(true))),
            _ => None,
        };
        let Some((key, form)) = written.filter(|(key, _)| export.state(key).is_missing()) else {
            let (option, found) = (text.to_owned(), part.to_owned());
            mistakes.add(&export.name.place, Problem::BadExportOption { option, found });
            return None;
        };
        set(&mut export, "--export", key, Some(form), mistakes);
    }
    Some(export)
}
