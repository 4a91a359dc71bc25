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
use super::job::{Group, Note};
use super::sections::{GivenOption, Key, Section};
use super::spec::Spec;
use super::text::Text;
use super::value;
use crate::group_path::DEEPEST_GROUP;

/// The keys, for a mistake in one.
const KEYS: &str = "group, weight, leaf_weight and at are";

/// Puts what `key` says into `spec`.
fn apply(spec: &mut Spec, key: &Key) -> Result<(), Mistake> {
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

/// Puts the keys of a section into `spec`. Each is said once, and not in two ways.
pub(super) fn apply_all(spec: &mut Spec, section: &Section, mistakes: &mut Mistakes) {
    check_once(&section.keys, mistakes);
    for key in &section.keys {
        mistakes.keep(said_once(spec, key, &section.options).and_then(|()| apply(spec, key)));
    }
}

/// Each key is said once.
fn check_once(keys: &[Key], mistakes: &mut Mistakes) {
    for (index, key) in keys.iter().enumerate() {
        let name = key.name.as_str();
        if let Some(first) = keys[..index].iter().find(|other| other.name.as_str() == name) {
            let what = format!("{name} is said before, at {}: once is allowed", first.name.place());
            mistakes.add(key.name.mistake(what));
        }
    }
}

/// What `key` says is not said otherwise by an option of the same section: neither would be the one
/// that holds.
fn said_once(spec: &Spec, key: &Key, options: &[GivenOption]) -> Result<(), Mistake> {
    let option = match key.name.as_str() {
        "group" => "cgroup",
        "weight" => "cgroup_weight",
        _ => return Ok(()),
    };
    let Some(given) = options.iter().rfind(|given| given.name.as_str() == option) else {
        return Ok(());
    };
    let is_same = match option {
        "cgroup" => spec.identity.group.as_deref() == Some(key.value.as_str()),
        _ => spec.identity.weight.is_some_and(|weight| weight.to_string() == key.value.as_str()),
    };
    if is_same {
        return Ok(());
    }
    let name = key.name.as_str();
    let what = format!("{name} beside {option}, at {}: one of them is allowed", given.name.place());
    Err(key.name.mistake(what))
}

/// Why a comment that is not the laboratory's looks as if it were meant to be: nothing of it is
/// read.
pub(super) fn looks_meant(comment: &Text) -> Option<Note> {
    let text = comment.as_str();
    let is_marked = text.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("lab"));
    let behind = text.get(3..).filter(|_| is_marked)?;
    if behind.starts_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    let has_key = comment.words().iter().any(|word| {
        let name = word.split_once(|c| c == '=').map(|(name, _)| name);
        name.is_some_and(|name| ["group", "weight", "leaf_weight", "at"].contains(&name.as_str()))
    });
    has_key.then(|| Note {
        place: comment.place().clone(),
        option: format!("the comment {text:?}"),
        why: "one that speaks to the laboratory begins with \"lab:\"",
    })
}

fn path(text: &Text) -> Result<String, Mistake> {
    let path = text.as_str();
    let parts = path.strip_prefix('/').map(|parts| parts.split('/').collect::<Vec<_>>());
    let parts = parts.filter(|parts| path == "/" || parts.iter().all(|part| !part.is_empty()));
    let Some(parts) = parts else {
        let what = format!("{path:?} is no path of a group from the root, such as /a/b");
        return Err(text.mistake(what));
    };
    if path.ends_with(',') {
        let end = text.from(path.len() - 1);
        return Err(end.mistake("\",\" behind a value: keys stand between spaces"));
    }
    check_parts(text, &parts)?;
    Ok(path.to_owned())
}

/// A group is not called `.` or `..`: no cgroup can be. Nor is it too deep for the schedulers.
pub(super) fn check_parts(text: &Text, parts: &[&str]) -> Result<(), Mistake> {
    if parts.len() > DEEPEST_GROUP {
        let what = format!("the group is {} deep: 1 to {DEEPEST_GROUP} is allowed", parts.len());
        return Err(text.mistake(what));
    }
    match parts.iter().find(|part| [".", ".."].contains(part)) {
        Some(part) => Err(text.mistake(format!("{part:?} is no name of a group"))),
        None => Ok(()),
    }
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
        check_once(keys, mistakes);
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
