//! A configuration as it was written, in a file or as options: what each key says by itself is
//! right, or a mistake already, and each value knows its place.

use std::path::Path;

use super::error::{Mistake, Place, Problem};
use super::keys::kinds::Entry;
use super::keys::written::{Form, Source, Table, Written};
use super::keys::{
    At, DISK, DiskKeys, EXPORT, ExportKeys, GroupKeys, Keys, ListenKeys, Object, POOL, ServerKeys,
    TlsKeys, VOLUME, known, unknown_key,
};
use super::mistakes::Mistakes;

/// A configuration of which nothing is known beyond its keys.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Where what is missing as a whole is missed.
    pub(super) whole: Place,
    /// Whether there is an unknown table, which may be what else is missed, and misspelt.
    pub(super) has_gaps: bool,
    pub(super) server: Object<ServerKeys>,
    pub(super) tls: Option<Object<TlsKeys>>,
    pub(super) listen: Vec<Object<ListenKeys>>,
    /// The disks and the pools.
    pub(super) disks: Vec<Object<DiskKeys>>,
    pub(super) groups: Vec<Object<GroupKeys>>,
    /// The exports and the volumes, each of which is an export too.
    pub(super) exports: Vec<Object<ExportKeys>>,
}

/// The tables of a file.
pub(super) const TABLES: [&str; 7] =
    ["tls", "listen", "disks", "pools", "groups", "volumes", "exports"];

impl Draft {
    /// Reads a file. Notes keys that there are not, and values that are not allowed. None if the
    /// text is no TOML.
    pub(super) fn of_file(text: &str, path: &Path, mistakes: &mut Mistakes) -> Option<Self> {
        let mut draft = Self { whole: Place::File(path.to_owned()), ..Self::default() };
        for (key, value) in &Source::new(text, path).parse(mistakes)? {
            match key.value.as_str() {
                "tls" => {
                    let table = draft.table("tls", value, mistakes);
                    let tls = table.map(|table| Object::read(key.clone(), "", table, mistakes));
                    draft.tls = tls;
                }
                "listen" => draft.listen = draft.array(value, mistakes),
                "groups" => draft.groups = draft.tables("groups", "", value, mistakes),
                table @ ("disks" | "pools") => {
                    let kind = if table == "pools" { POOL } else { DISK };
                    let disks = draft.tables(table, kind, value, mistakes);
                    draft.disks.extend(disks);
                }
                table @ ("exports" | "volumes") => {
                    let kind = if table == "volumes" { VOLUME } else { EXPORT };
                    let exports = draft.tables(table, kind, value, mistakes);
                    draft.exports.extend(exports);
                }
                name => {
                    if draft.server.set(name, value, mistakes).is_none() {
                        draft.has_gaps |= matches!(value.form, Form::Table(_));
                        let known = known::<ServerKeys>().chain(TABLES);
                        mistakes.add(&key.place, unknown_key(name, known));
                    }
                }
            }
        }
        Some(draft)
    }

    /// The name of the disk or pool that an export is on; none if that is not known.
    pub(super) fn disk_of<'d>(&'d self, export: &'d Object<ExportKeys>) -> Option<&'d str> {
        let ExportKeys { disk, pool, volume, .. } = &export.keys;
        let of_volume = |name: &String| {
            let volumes = self.exports.iter().filter(|one| one.kind == VOLUME);
            volumes.filter(|one| one.name.value == *name).find_map(|one| one.keys.pool.as_ref())
        };
        let name = disk.as_ref().or(pool.as_ref()).or_else(|| of_volume(volume.as_ref()?));
        name.map(String::as_str)
    }

    /// A table of tables.
    fn tables<O: Keys>(
        &mut self,
        key: &str,
        kind: &'static str,
        found: &Written,
        mistakes: &mut Mistakes,
    ) -> Vec<Object<O>> {
        let mut objects = Vec::new();
        let of_all = self.table(key, found, mistakes);
        for (name, value) in of_all.into_iter().flatten() {
            let inner = self.table(&format!("{key}.{}", name.value), value, mistakes);
            objects.extend(inner.map(|inner| Object::read(name.clone(), kind, inner, mistakes)));
        }
        objects
    }

    /// An array of tables; each knows where it begins.
    fn array(&mut self, found: &Written, mistakes: &mut Mistakes) -> Vec<Object<ListenKeys>> {
        let Form::List(elements) = &found.form else {
            self.has_gaps = true;
            Entry::new("listen", found, mistakes).refuse::<()>("an array of tables");
            return Vec::new();
        };
        let mut objects = Vec::new();
        for element in elements {
            let begin = At { value: String::new(), place: element.place.clone() };
            let inner = self.table("[[listen]]", element, mistakes);
            objects.extend(inner.map(|inner| Object::read(begin, "", inner, mistakes)));
        }
        objects
    }

    fn table<'w>(
        &mut self,
        key: &str,
        found: &'w Written,
        mistakes: &mut Mistakes,
    ) -> Option<&'w Table> {
        let table = Entry::new(key, found, mistakes).table();
        self.has_gaps |= table.is_none();
        table
    }
}

/// The longest name that the NBD protocol has room for, in bytes.
pub(super) const NAME_MAX: usize = 4096;

/// Refuses texts that would spoil the protocol or lines of output.
pub(super) fn check_name(what: &'static str, name: &At<String>) -> Result<(), Mistake> {
    check_text(what, &name.value).or_else(|problem| name.refuse(problem))
}

/// The same of a text without a place.
pub(super) fn check_text(what: &'static str, text: &str) -> Result<(), Problem> {
    if text.len() <= NAME_MAX && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Problem::BadName { what, name: text.chars().take(40).collect(), max: NAME_MAX })
}
