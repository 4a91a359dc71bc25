//! In what the file, when it is read again, differs from what is served of it.
//!
//! ```text
//!   served, not in the file   goes
//!   in the file, not served   comes; or waits for a restart, where what it is on does
//!   both                      stays, and what is new of it is shown to new sessions
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::disk_turnover::NewDisk;
use super::exports::Export;
use super::groups::lineage;
use super::{Asked, Catalogue, Disk, State, Volume};
use crate::config::{
    BackendConfig, Config, ExportConfig, Tables, VOLUME, Wanted, waits_for_restart,
};
use crate::ctl::Change;

/// The difference.
#[derive(Debug, Default)]
pub(crate) struct Turnover {
    /// Exports before volumes.
    pub(super) going: Vec<Declared>,
    /// Volumes before exports.
    pub(super) coming: Vec<Declared>,
    pub(super) staying: Vec<Staying>,
    pub(super) disks_going: Vec<Arc<Disk>>,
    pub(super) disks_coming: Vec<NewDisk>,
    /// New volumes and exports that wait for a restart, because what they are on, or what has their
    /// bytes, does.
    blocked: Vec<Declared>,
    disks_blocked: Vec<NewDisk>,
    /// The names of volumes and exports that have keys which wait for a restart.
    stale: BTreeSet<String>,
}

/// A volume or an export of the file.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub(super) of: Wanted,
    pub(super) size: u64,
    pub(super) takes: Takes,
    /// Whether somebody may write to it.
    pub(super) writes: bool,
}

/// What no other may have beside a volume or an export.
#[derive(Clone, Debug)]
pub(super) enum Takes {
    All(BackendConfig),
    /// Of a volume or disk, unless both only read.
    Bytes(Range<u64>),
}

/// One that stays, of which new sessions are to see something new.
#[derive(Debug)]
pub(super) struct Staying {
    pub(super) of: Wanted,
    /// The bytes of a volume before and from now on.
    pub(super) grows: Option<(u64, u64)>,
    /// What it is described as from now on.
    pub(super) description: Option<String>,
}

/// What a volume or an export is, and its name.
pub(super) type Named<'a> = (&'static str, &'a str);

pub(super) fn named(of: &Wanted) -> Named<'_> {
    (of.kind(), &of.name)
}

/// What is taken, by names, images and bytes.
#[derive(Debug, Default)]
pub(super) struct Taken<'a> {
    names: BTreeSet<&'a str>,
    /// Paths and URIs.
    locations: BTreeSet<String>,
    bytes: BTreeMap<Place<'a>, Vec<(&'a Range<u64>, bool)>>,
}

/// The disk, or the volume, that an export is on.
type Place<'a> = (Option<&'a String>, Option<&'a String>);

impl Turnover {
    /// What it changes.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let old_disks = self.disks_going.iter().map(|disk| (disk.config.what(), &*disk.name));
        let gone = self.going.iter().map(|one| named(&one.of)).chain(old_disks).map(gone);
        let new_disks = self.disks_coming.iter().flat_map(NewDisk::all);
        let new = new_disks.chain(self.coming.iter().map(|one| named(&one.of))).map(come);
        gone.chain(new).chain(self.staying.iter().flat_map(Staying::changes)).collect()
    }

    /// What is new and waits for a restart.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = Change> {
        let disks = self.disks_blocked.iter().flat_map(NewDisk::all);
        disks.chain(self.blocked.iter().map(|one| named(&one.of))).map(come)
    }

    /// The names of volumes and exports that have keys which wait for a restart.
    pub(crate) fn stale(&self) -> impl Iterator<Item = &str> {
        self.stale.iter().map(String::as_str)
    }

    /// The names of what is served, enterable, and not what the file means by them: that is
    /// otherwise until a restart, or could not go.
    pub(crate) fn not_of_file(&self) -> impl Iterator<Item = &str> {
        self.going.iter().map(|one| &*one.of.name).chain(self.stale())
    }

    /// The names of those that go.
    fn names_going(&self) -> BTreeSet<Named<'_>> {
        self.going.iter().map(|one| named(&one.of)).collect()
    }
}

/// That something has come.
pub(super) fn come((kind, name): Named<'_>) -> Change {
    Change { place: String::new(), what: format!("{kind}s"), from: Value::Null, to: name.into() }
}

/// That something is gone.
pub(super) fn gone((kind, name): Named<'_>) -> Change {
    Change { place: String::new(), what: format!("{kind}s"), from: name.into(), to: Value::Null }
}

impl Catalogue {
    /// Compares the file, as it is now, with what is served.
    pub(crate) fn turnover(&self, file: &Config) -> Turnover {
        let mut state = self.state();
        let in_file: BTreeMap<Named<'_>, &ExportConfig> =
            file.exports.iter().map(|export| ((export.what(), &*export.name), export)).collect();
        let (stale_disks, mut found) = (state.stale_disks(file), Turnover::default());
        let (mut stay, mut sizes) = (Vec::new(), BTreeMap::new());
        for one in state.declared() {
            let Some(export) = in_file.get(&named(&one.of)) else {
                found.going.push(one);
                continue;
            };
            let is_stale = waits_for_restart(one.of.kind(), &one.of.keys, &export.keys)
                || stale_disks.contains(&*file.disks[export.disk].name);
            if is_stale {
                found.stale.insert(one.of.name.clone());
            }
            let staying = Staying::of(&one, export, is_stale);
            if let Some((_, size)) = staying.as_ref().and_then(|staying| staying.grows) {
                sizes.insert(one.of.name.clone(), size);
            }
            found.staying.extend(staying);
            stay.push(one);
        }
        let beside = Taken::by(&stay);
        for export in &file.exports {
            let disk = &file.disks[export.disk];
            let is_known = state.declared_as(export.what(), &export.name).is_some();
            if is_known || !state.disks.iter().any(|served| served.is_that(disk)) {
                continue;
            }
            let one = Declared::of_file(file, export);
            let is_stale = |volume: &String| found.stale.contains(volume);
            let is_blocked = stale_disks.contains(&*disk.name)
                || export.keys.volume.as_ref().is_some_and(is_stale)
                || !state.has_room_on(&one, &sizes)
                || beside.has_in_way(&one);
            let list = if is_blocked { &mut found.blocked } else { &mut found.coming };
            list.push(one);
        }
        found.coming.sort_by_key(|one| one.of.kind() != VOLUME);
        found.disks_going = state.old_disks(file, &found.names_going());
        let new = state.new_disks(file);
        let is_blocked = |new: &NewDisk| state.blocks(new, &found.disks_going, &beside, file);
        (found.disks_blocked, found.disks_coming) = new.into_iter().partition(is_blocked);
        found
    }

    /// What of the file is served and stays, as it is.
    pub(crate) fn staying(&self, file: &Config, turnover: &Turnover) -> Tables {
        let state = self.state();
        let stay = state.staying_groups(turnover);
        let in_file: BTreeSet<_> = file.groups.iter().map(|group| &*group.path).collect();
        let groups = state.groups.all().filter(|(path, _)| {
            in_file.contains(path) || stay.contains(*path) && state.groups.is_of_file(path)
        });
        let groups = groups.map(|(path, keys)| (path.to_owned(), keys.clone())).collect();
        let going = turnover.names_going();
        let declared = state.all_asked().filter(|asked| asked.is_of_file);
        let exports = declared.map(|asked| &asked.of).filter(|of| !going.contains(&named(of)));
        let exports = exports.map(|of| (of.kind(), of.name.clone(), of.keys.clone())).collect();
        let is_going =
            |disk: &Disk| turnover.disks_going.iter().any(|going| going.number == disk.number);
        let disks = state.disks.iter().filter(|disk| !is_going(disk));
        let disks = disks.map(|disk| disk.config.clone()).collect();
        Tables { disks, groups, exports }
    }

    /// Has groups be as the file says.
    pub(crate) fn follow_groups(&self, file: &Config, turnover: &Turnover) {
        let mut state = self.state();
        let stay = state.staying_groups(turnover);
        let numbers = turnover.numbers(&state, file);
        state.groups.follow(file, &numbers, |path| stay.contains(path));
        // What has brought a group along does not say what is set of it any more.
        let State { groups, volumes, exports, .. } = &mut *state;
        let volumes = volumes.values_mut().map(|volume| &mut volume.asked);
        for asked in volumes.chain(exports.values_mut().map(|export| &mut export.asked)) {
            asked.has_own_group &= !groups.is_of_file(&asked.of.group());
        }
    }
}

impl State {
    /// The groups in which something stays, or below which.
    fn staying_groups(&self, turnover: &Turnover) -> BTreeSet<String> {
        let going = turnover.names_going();
        let staying = self.all_asked().map(|asked| &asked.of);
        let groups = staying.filter(|of| !going.contains(&named(of))).map(Wanted::group);
        let groups: BTreeSet<_> = groups.collect();
        groups.iter().flat_map(|path| lineage(path)).map(str::to_owned).collect()
    }

    /// A volume or an export that the file declares and that is served, unless it is draining.
    pub(super) fn declared_as(&self, kind: &str, name: &str) -> Option<&Asked> {
        if kind == VOLUME {
            return self.volumes.get(name).filter(|of| of.is_declared()).map(|of| &of.asked);
        }
        self.exports.get(name).filter(|of| of.is_declared()).map(|of| &of.asked)
    }

    /// All of these, exports before volumes.
    fn declared(&self) -> impl Iterator<Item = Declared> {
        let exports = self.exports.values().filter(|export| export.is_declared());
        let exports = exports.map(|export| Declared {
            of: export.asked.of.clone(),
            size: export.bytes.end - export.bytes.start,
            takes: Takes::Bytes(export.bytes.clone()),
            writes: !export.asked.of.keys.read_only,
        });
        let volumes = self.volumes.values().filter(|volume| volume.is_declared());
        exports.chain(volumes.map(|volume| Declared {
            of: volume.asked.of.clone(),
            size: volume.size,
            takes: Takes::All(volume.backend.clone()),
            writes: volume.writes,
        }))
    }

    /// Returns whether what an export would be on is large enough, as it is served or grows, and
    /// takes its writes. What is not served yet is.
    fn has_room_on(&self, one: &Declared, grown: &BTreeMap<String, u64>) -> bool {
        let Takes::Bytes(bytes) = &one.takes else { return true };
        let found = if let Some(name) = &one.of.keys.volume {
            let volume = self.volumes.get(name).filter(|volume| !volume.stage.is_draining());
            volume.map(|of| (grown.get(name).copied().unwrap_or(of.size), of.writes))
        } else {
            let name = one.of.keys.disk.as_ref();
            let disk = self.disks.iter().find(|disk| Some(&disk.name) == name);
            disk.and_then(|disk| Some((disk.whole?.size, disk.whole?.writes)))
        };
        found.is_none_or(|(size, writes)| bytes.end <= size && (writes || !one.writes))
    }
}

impl Volume {
    /// Whether it is the file's, and nobody has it leave.
    fn is_declared(&self) -> bool {
        self.asked.is_of_file && !self.stage.is_draining()
    }
}

impl Export {
    /// The same of an export.
    fn is_declared(&self) -> bool {
        self.asked.is_of_file && !self.stage.is_draining()
    }
}

impl Declared {
    fn of_file(file: &Config, export: &ExportConfig) -> Self {
        let backend = &file.disks[export.disk].volumes[export.volume].backend;
        let of = Wanted::of_file(export);
        let (takes, writes) = if export.what() == VOLUME {
            let mut on_it = file
                .exports
                .iter()
                .filter(|other| (other.disk, other.volume) == (export.disk, export.volume));
            (Takes::All(backend.clone()), on_it.any(|other| !other.keys.read_only))
        } else {
            (Takes::Bytes(export.bytes()), !export.keys.read_only)
        };
        Self { of, size: export.size, takes, writes }
    }
}

impl<'a> Taken<'a> {
    /// What these take.
    pub(super) fn by(all: impl IntoIterator<Item = &'a Declared>) -> Self {
        let mut taken = Self::default();
        for one in all {
            taken.names.insert(&one.of.name);
            match &one.takes {
                Takes::All(backend) => taken.locations.extend(backend.location()),
                Takes::Bytes(bytes) => {
                    let there = taken.bytes.entry(place_of(one)).or_default();
                    there.push((bytes, one.writes));
                }
            }
        }
        taken
    }

    /// Returns whether something cannot be served beside these.
    pub(super) fn has_in_way(&self, one: &Declared) -> bool {
        let overlaps = |bytes: &Range<u64>| {
            let there = self.bytes.get(&place_of(one)).into_iter().flatten();
            let mut overlapping =
                there.filter(|(other, _)| bytes.start.max(other.start) < bytes.end.min(other.end));
            overlapping.any(|(_, writes)| *writes && one.writes)
        };
        self.has_name(&one.of.name)
            || match &one.takes {
                Takes::All(backend) => {
                    backend.location().is_some_and(|location| self.has_location(&location))
                }
                Takes::Bytes(bytes) => overlaps(bytes),
            }
    }

    /// Returns whether the volume of an export is one of these.
    pub(super) fn has_volume_of(&self, export: &Declared) -> bool {
        export.of.keys.volume.as_ref().is_some_and(|volume| self.has_name(volume))
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(super) fn has_location(&self, location: &str) -> bool {
        self.locations.contains(location)
    }
}

fn place_of(one: &Declared) -> Place<'_> {
    (one.of.keys.disk.as_ref(), one.of.keys.volume.as_ref())
}

impl Staying {
    /// What the file has new of it, if anything.
    fn of(known: &Declared, export: &ExportConfig, is_stale: bool) -> Option<Self> {
        let grows = export.what() == VOLUME && export.size > known.size && !is_stale;
        let grows = grows.then_some((known.size, export.size));
        let description = export.keys.description.clone();
        let is_new = grows.is_some() || description != known.of.keys.description;
        is_new.then(|| Self { of: known.of.clone(), grows, description })
    }

    pub(super) fn changes(&self) -> Vec<Change> {
        let Self { of, grows, description } = self;
        let place = || format!("{} {:?}", of.kind(), of.name);
        let size = grows.map(|(from, to)| Change {
            place: place(),
            what: "size".to_owned(),
            from: from.into(),
            to: to.into(),
        });
        let before = &of.keys.description;
        let described = (before != description).then(|| Change {
            place: place(),
            what: "description".to_owned(),
            from: before.clone().into(),
            to: description.clone().into(),
        });
        size.into_iter().chain(described).collect()
    }
}
