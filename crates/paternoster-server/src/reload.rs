//! Reads the configuration's file again and makes a running server as it says.
//!
//! ```text
//!   file ─▶ Config ─┬─▶ what needs a restart: named
//!                   └─▶ each disk's owner compares ─▶ each disk's owner makes it so
//! ```
//!
//! Nothing is changed before the file has been found right and every owner has compared. What was
//! changed by `ctl` is compared as it is in force, so that it goes back to what the file says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;

use paternoster::{DeviceWeights, Weight, Weights};

use crate::catalogue::{Catalogue, Disk, Groups, declared_too};
use crate::config::{Config, ROOT, needs_restart};
use crate::control::PATIENCE;
use crate::ctl::{Change, ReloadError};
use crate::messages::{FileDisk, GroupOnDisk};

/// A file that was found right, beside what is served.
pub(crate) struct Reload<'a> {
    file: Config,
    needs_restart: Vec<Change>,
    /// The served disks that are in the file, and what it says of each.
    disks: Vec<(&'a Disk, FileDisk)>,
    /// When owners have had their time.
    deadline: Instant,
}

impl<'a> Reload<'a> {
    /// Reads the file, beside what is served, with which the server was started, and what has come
    /// since.
    pub(crate) fn read(
        path: &Path,
        served: &Config,
        catalogue: &'a Catalogue,
    ) -> Result<Self, ReloadError> {
        let file = Config::from_file_beside(path, served)
            .map_err(|error| ReloadError::Unusable(format!("{:#}", anyhow::Error::from(error))))?;
        let made = catalogue.made_by_request();
        let twice = file.exports.iter().find_map(|export| Some((export, made.get(&export.name)?)));
        if let Some((export, made)) = twice {
            let twice = declared_too(export.what(), made, &export.name);
            return Err(ReloadError::Unusable(twice));
        }
        let made = |path: &str| catalogue.groups(|groups| groups.is_made(path));
        if let Some(group) = file.groups.iter().find(|group| made(&group.path)) {
            let twice = declared_too("group", "group", &group.path);
            return Err(ReloadError::Unusable(twice));
        }
        let disks = catalogue.disks.iter().enumerate().filter_map(|(index, disk)| {
            let groups = catalogue.groups(|groups| groups.on(index).map(str::to_owned).collect());
            Some((disk, disk_in(&file, disk, groups)?))
        });
        let disks = disks.collect();
        let needs_restart = needs_restart(served, &file);
        Ok(Self { file, needs_restart, disks, deadline: Instant::now() + PATIENCE })
    }

    /// Asks each owner in what its disk is not as the file says.
    pub(crate) fn compare(&self) -> Result<Vec<Change>, ReloadError> {
        let asked = self.disks.iter().map(|(disk, file)| (*disk, disk.owner.compare(file.clone())));
        self.collect(asked.collect(), |disk| ReloadError::Unanswered { disk })
    }

    /// Has each owner make its disk as the file says; in what they were not.
    pub(crate) fn apply(&self) -> Result<Vec<Change>, ReloadError> {
        let asked = self.disks.iter().map(|(disk, file)| (*disk, disk.owner.reload(file.clone())));
        self.collect(asked.collect(), |disk| ReloadError::Unfinished { disk })
    }

    /// Has groups be known as the file has them.
    pub(crate) fn write(&self, groups: &mut Groups) {
        for group in &self.file.groups {
            groups.set_keys(&group.path, |keys| {
                (keys.weight, keys.leaf_weight) = (group.keys.weight, group.keys.leaf_weight);
                keys.limits = group.keys.limits;
            });
        }
    }

    /// What the file says that stays as it is.
    pub(crate) fn needs_restart(&self) -> &[Change] {
        &self.needs_restart
    }

    /// The answers of all owners; a change of a group that is on several disks once.
    fn collect(
        &self,
        asked: Vec<(&Disk, mpsc::Receiver<Vec<Change>>)>,
        late: impl Fn(String) -> ReloadError,
    ) -> Result<Vec<Change>, ReloadError> {
        let mut changes = Vec::new();
        for (disk, answer) in asked {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let answer = answer.recv_timeout(left).map_err(|_| late(disk.name.clone()))?;
            for change in answer {
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
        Ok(changes)
    }
}

/// What the file says of a served disk and of its groups, as far as they are in it.
fn disk_in(file: &Config, disk: &Disk, served: Vec<String>) -> Option<FileDisk> {
    let index = file.disks.iter().position(|known| known.name == disk.name)?;
    let in_file: BTreeMap<_, _> =
        file.groups.iter().map(|group| (group.path.as_str(), group)).collect();
    let (weights, on_device) = (Weights::from(Weight::ROOT), DeviceWeights::default());
    let root = GroupOnDisk { path: ROOT.to_owned(), weights, on_device, limits: file.root };
    let groups = served.into_iter().filter_map(|path| {
        let group = in_file.get(path.as_str())?;
        let on_device = group.device_weights.get(&index).copied().unwrap_or_default();
        let (weights, limits) = (group.weights(), group.keys.limits);
        Some(GroupOnDisk { path, weights, on_device, limits })
    });
    let groups = std::iter::once(root).chain(groups).collect();
    Some(FileDisk { disk: file.disks[index].clone(), groups })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread::{self, JoinHandle};

    use paternoster_disk::Waker;
    use serde_json::Value;
    use tempfile::TempDir;

    use crate::admission::Rooms;
    use crate::control::ControlHandle;
    use crate::ctl::{Control as _, ReloadMode};
    use crate::messages::{Message, OwnerHandle};

    use super::*;

    const TOML: &str = "unix = \"nbd.sock\"\n\
        [disks.d]\nbackend = \"memory\"\nsize = \"1M\"\n\
        [disks.e]\nbackend = \"memory\"\nsize = \"1M\"\n\
        [exports.a]\ndisk = \"d\"\ngroup = \"/g\"\n\
        [exports.b]\ndisk = \"e\"\ngroup = \"/g\"\n";

    /// A change of the group that is on both disks.
    fn change() -> Change {
        let (place, what) = ("group \"/g\"".to_owned(), "weight".to_owned());
        Change { place, what, from: Value::from(100), to: Value::from(7) }
    }

    /// An owner that answers so many messages and then ends. Returns how many files were to be
    /// made so.
    fn owner(answers: usize) -> (OwnerHandle, JoinHandle<usize>) {
        let (sender, inbox) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut reloads = 0;
            for message in inbox.iter().take(answers) {
                let sender = match message {
                    Message::Compare(_, sender) => sender,
                    Message::Reload(_, sender) => {
                        reloads += 1;
                        sender
                    }
                    other => panic!("nobody sends {other:?}"),
                };
                sender.send(vec![change()]).expect("an answer is waited for");
            }
            reloads
        });
        (OwnerHandle::new(sender, Waker::new().expect("an event")), thread)
    }

    /// What is answered where owners answer so many messages, and how many were to reload.
    fn reload(mode: ReloadMode, answers: [usize; 2]) -> (Result<Vec<Change>, ReloadError>, usize) {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("c.toml");
        fs::write(&path, TOML).expect("a file");
        let (owners, threads): (Vec<_>, Vec<_>) = answers.map(owner).into_iter().unzip();
        let config = Config::from_file(&path).expect("it is valid");
        let rooms = Rooms::of(16);
        let groups = (Groups::new(&config, rooms.clone()), rooms);
        let catalogue = Catalogue::new(&config, &owners, &[], groups, Default::default(), None);
        let control = ControlHandle::new(&config, catalogue).with_file(path);
        let answer = control.reload(mode);
        drop((control, owners));
        let reloads = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
        (answer.map(|answer| answer.changed), reloads)
    }

    #[test]
    fn change_of_a_group_on_several_disks_is_named_once() {
        assert_eq!(reload(ReloadMode::Apply, [2, 2]), (Ok(vec![change()]), 2));
        assert_eq!(reload(ReloadMode::DryRun, [2, 2]), (Ok(vec![change()]), 0));
    }

    #[test]
    fn owner_that_does_not_answer_is_named_before_anything_changes() {
        let silent = || Err(ReloadError::Unanswered { disk: "e".to_owned() });
        assert_eq!(reload(ReloadMode::Apply, [2, 0]), (silent(), 0));
        assert_eq!(reload(ReloadMode::DryRun, [2, 0]), (silent(), 0));
    }

    #[test]
    fn owner_that_ends_in_between_is_named() {
        let unfinished = Err(ReloadError::Unfinished { disk: "e".to_owned() });
        assert_eq!(reload(ReloadMode::Apply, [2, 1]), (unfinished, 1));
    }
}
