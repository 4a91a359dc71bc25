//! Extension keys: what a job file says to the laboratory in a comment, so that fio runs it too.
//!
//! ```text
//!   ; lab: group=/a weight=200 leaf_weight=100    before the first section: a group
//!   [job]
//!   ; lab: group=/a/b weight=50                   the job's group, and its weight
//!   ; lab: at=25%                                 where its files begin on the device
//! ```

use indexmap::IndexMap;
use paternoster::Weight;

use super::error::{Mistake, Mistakes, Place};
use super::job::Group;
use super::sections::Key;
use super::spec::Spec;
use super::text::Text;
use super::value;

/// The keys, for a mistake in one.
const KEYS: &str = "group, weight, leaf_weight and at are";

/// Puts what `key` says into `spec`.
pub(super) fn apply(spec: &mut Spec, key: &Key) -> Result<(), Mistake> {
    let name = match key.name.as_str() {
        "group" => {
            spec.identity.group = Some(path(&key.value)?);
            "lab: group"
        }
        "weight" => {
            spec.identity.weight = Some(weight(&key.value)?.value());
            "lab: weight"
        }
        "leaf_weight" => {
            spec.identity.leaf_weight = Some(weight(&key.value)?.value());
            "lab: leaf_weight"
        }
        "at" => {
            spec.target.at = Some(value::extent(&key.value, spec.kb_base)?);
            "lab: at"
        }
        name => return Err(key.name.mistake(format!("{name:?} is no key of lab: {KEYS}"))),
    };
    spec.places.insert(name, key.name.place().clone());
    Ok(())
}

fn path(text: &Text) -> Result<String, Mistake> {
    let path = text.as_str();
    let parts = path.strip_prefix('/').map(|parts| parts.split('/'));
    let is_path = parts.is_some_and(|mut parts| path == "/" || parts.all(|part| !part.is_empty()));
    if !is_path {
        let what = format!("{path:?} is no path of a group from the root, such as /a/b");
        return Err(text.mistake(what));
    }
    Ok(path.to_owned())
}

fn weight(text: &Text) -> Result<Weight, Mistake> {
    let weight = value::small(text, Weight::MIN, Weight::MAX)?;
    Ok(Weight::new(weight).expect("it is in range"))
}

/// The groups of a job file.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// By path, parents before children.
    groups: IndexMap<String, Group>,
}

impl Groups {
    /// Takes a line of keys before the first section.
    pub(super) fn declare(&mut self, keys: &[Key], mistakes: &mut Mistakes) {
        let mut spec = Spec::new();
        for key in keys {
            if key.name.as_str() == "at" {
                mistakes.add(key.name.mistake("at is a key of a section"));
            } else {
                mistakes.keep(apply(&mut spec, key));
            }
        }
        let Some(first) = keys.first() else { return };
        if spec.identity.group.is_none() {
            return mistakes.add(first.name.mistake("a line before the sections names a group"));
        }
        self.add(&spec, first.name.place(), mistakes);
    }

    /// Adds the group of `spec` with its parents, and returns its path.
    pub(super) fn add(&mut self, spec: &Spec, place: &Place, mistakes: &mut Mistakes) -> String {
        let identity = &spec.identity;
        let path = identity.group.clone().unwrap_or_else(|| "/".to_owned());
        let inner = path.char_indices().filter(|&(at, c)| c == '/' && at > 0);
        for end in inner.map(|(at, _)| at).chain([path.len()]) {
            if path == "/" {
                break;
            }
            let above = path[..end].to_owned();
            self.groups.entry(above.clone()).or_insert(Group {
                path: above,
                weight: None,
                leaf_weight: None,
            });
        }
        let place = ["cgroup_weight", "lab: weight", "lab: leaf_weight"]
            .iter()
            .find_map(|name| spec.places.get(name))
            .unwrap_or(place);
        let given = [("weight", identity.weight), ("leaf_weight", identity.leaf_weight)];
        for (name, given) in given {
            let Some(given) = given else { continue };
            if let Err(what) = self.set(&path, name, given) {
                mistakes.add(Mistake { place: place.clone(), what });
            }
        }
        path
    }

    /// The groups, parents before children.
    pub(super) fn into_vec(self) -> Vec<Group> {
        self.groups.into_values().collect()
    }

    /// Sets the `name` of the group of that path, which can be done once.
    fn set(&mut self, path: &str, name: &str, given: u32) -> Result<(), String> {
        let Some(group) = self.groups.get_mut(path) else {
            return Err(format!("a {name} needs a group: the root's is not set by a job"));
        };
        let weight = Weight::new(given).map_err(|error| error.to_string())?;
        let slot = if name == "weight" { &mut group.weight } else { &mut group.leaf_weight };
        match *slot {
            Some(old) if old != weight => {
                Err(format!("group {path} has {name} {} already, not {given}", old.value()))
            }
            _ => {
                *slot = Some(weight);
                Ok(())
            }
        }
    }
}
