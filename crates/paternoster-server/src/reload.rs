//! Reads the configuration's file again and makes a running server as it says.
//!
//! ```text
//!   file ─▶ Config ─┬─▶ what needs a restart: named
//!                   ├─▶ who may enter over TLS: for clients that come from then on
//!                   └─▶ each disk's owner compares ─▶ each disk's owner makes it so
//! ```
//!
//! Nothing is changed before the file has been found right and every owner has compared. What was
//! changed by `ctl` is compared as it is in force, so that it goes back to what the file says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use paternoster::{DeviceWeights, Weight, Weights};

use crate::catalogue::{Catalogue, Disk, Followed, Groups, Turnover, UnderWay};
use crate::config::{Config, ROOT, Served, needs_restart, place_of, sockets_in};
use crate::control::PATIENCE;
use crate::ctl::{Change, ReloadAnswer, ReloadError, ReloadMode, ReloadNote};
use crate::export_table::{Offer, ServedExports, offer_of};
use crate::messages::{FileDisk, GroupOnDisk};
use crate::new_access::NewAccess;

/// A file that was found right, beside what is served.
pub(crate) struct Reload {
    file: Config,
    needs_restart: Vec<Change>,
    turnover: Turnover,
    offers: Vec<NewOffer>,
    access: NewAccess,
    of_access: Vec<Change>,
    /// The served disks that are in the file, and what it says of each.
    disks: Vec<(Arc<Disk>, FileDisk)>,
    /// When owners have had their time.
    deadline: Instant,
}

/// What a socket is to offer that it does not.
struct NewOffer {
    /// Its number.
    socket: usize,
    offer: Offer,
    /// The same, to be shown.
    change: Change,
}

impl Reload {
    /// Reads the file, beside what is served, with which the server was started, and what has come
    /// since.
    pub(crate) fn read(
        path: &Path,
        served: &Config,
        catalogue: &Catalogue,
    ) -> Result<Self, ReloadError> {
        let (disks, places) = (catalogue.disk_configs(), catalogue.places());
        let file = Config::from_file_beside(path, Served { disks: &disks, places })
            .map_err(|error| ReloadError::Unusable(format!("{:#}", anyhow::Error::from(error))))?;
        // As the next start would find out.
        let mistakes = catalogue.records().mistakes(&file);
        if !mistakes.is_empty() {
            return Err(ReloadError::Unusable(mistakes.join("\n")));
        }
        let disks = catalogue.disks().into_iter().filter_map(|disk| {
            let on = |groups: &Groups| groups.on(disk.number).map(str::to_owned).collect();
            let in_file = disk_in(&file, &disk, catalogue.groups(on))?;
            Some((disk, in_file))
        });
        let disks = disks.collect();
        let turnover = catalogue.turnover(&file);
        let staying = catalogue.staying(&file, &turnover);
        let mut needs_restart = needs_restart(served, &staying, &file);
        needs_restart.extend(turnover.blocked());
        // What would show an export otherwise than the file means it waits as that export does.
        let exports = &catalogue.exports;
        let offers = NewOffer::all(&file, served, exports).into_iter();
        let (later, offers): (Vec<_>, Vec<_>) =
            offers.partition(|offer| offer.adds_any(turnover.stale(), exports));
        needs_restart.extend(later.into_iter().map(|offer| offer.change));
        let (access, of_access) = NewAccess::of(&file, served, catalogue, turnover.stale())?;
        needs_restart.extend(access.later.iter().cloned());
        let deadline = Instant::now() + PATIENCE;
        Ok(Self { file, needs_restart, turnover, offers, access, of_access, disks, deadline })
    }

    /// Asks each owner in what its disk is not as the file says.
    pub(crate) fn compare(&self) -> Result<Vec<Change>, ReloadError> {
        let asked =
            self.disks.iter().map(|(disk, file)| (&**disk, disk.owner.compare(file.clone())));
        let mut changes = self.collect(asked.collect(), |disk| ReloadError::Unanswered { disk })?;
        changes.extend(self.of_catalogue());
        Ok(changes)
    }

    /// Makes what is served as the file says, which was read after the one `before`. What goes on
    /// when this returns is logged.
    pub(crate) fn apply(
        self,
        before: &Config,
        catalogue: &Arc<Catalogue>,
        following: &mut UnderWay,
    ) -> Result<ReloadAnswer, ReloadError> {
        self.compare()?;
        let told = before.notices();
        for notice in self.file.notices().iter().filter(|notice| !told.contains(notice)) {
            tracing::warn!("{notice}");
        }
        catalogue.follow_groups(&self.file, &self.turnover);
        let asked =
            self.disks.iter().map(|(disk, file)| (&**disk, disk.owner.reload(file.clone())));
        let late = |disk| ReloadError::Unfinished { disk };
        let mut changed = self.collect(asked.collect(), late)?;
        self.access.narrow(catalogue);
        self.offers.iter().for_each(|offer| offer.narrow(&catalogue.exports));
        let order = self.turnover.changes().into_iter().map(|change| change.to_string());
        let order: BTreeMap<_, _> = order.zip(0..).collect();
        let Followed { changed: mut followed, under_way, mut failed } =
            catalogue.follow(self.file.clone(), following);
        followed.sort_by_key(|change| order.get(&change.to_string()).copied().unwrap_or(i32::MAX));
        let left = catalogue.turnover(&self.file);
        failed.extend(self.access.widen(catalogue, left.not_of_file()));
        for change in self.of_access {
            if !failed.iter().any(|note| note.place == change.place) {
                tracing::info!("the file changes {change}");
                changed.push(change);
            }
        }
        for one in self.offers {
            if one.adds_any(left.not_of_file(), &catalogue.exports) {
                let why = "it would offer what could not be removed".to_owned();
                failed.push(ReloadNote { place: one.change.place, why });
                continue;
            }
            let NewOffer { socket, offer, change } = one;
            catalogue.exports.set_offer(socket, offer);
            tracing::info!("the file changes {change}");
            changed.push(change);
        }
        changed.extend(followed);
        // Whoever changes something logs it.
        if changed.is_empty() {
            tracing::info!("the file was read again and changes nothing");
        }
        for change in &self.needs_restart {
            tracing::warn!("the file needs a restart for {change}");
        }
        for note in &failed {
            tracing::error!("{note}");
        }
        let answer = ReloadAnswer::new(ReloadMode::Apply, changed, self.needs_restart);
        Ok(ReloadAnswer { under_way, failed, ..answer })
    }

    /// What changes of sockets, volumes and exports.
    fn of_catalogue(&self) -> Vec<Change> {
        let offers = self.offers.iter().map(|offer| offer.change.clone());
        self.of_access.iter().cloned().chain(offers).chain(self.turnover.changes()).collect()
    }

    /// What it would do; and what the file says that stays as it is.
    pub(crate) fn would_do(self) -> Result<ReloadAnswer, ReloadError> {
        Ok(ReloadAnswer::new(ReloadMode::DryRun, self.compare()?, self.needs_restart))
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

impl NewOffer {
    /// What sockets are to offer that they do not.
    fn all(file: &Config, served: &Config, exports: &ServedExports) -> Vec<Self> {
        let names = |offer: &Offer| {
            offer.as_ref().map_or("all".into(), |names| names.iter().cloned().collect())
        };
        let sockets = sockets_in(served, file).into_iter();
        let offers = sockets.filter_map(|(socket, new)| {
            let (from, offer) = (exports.offer(socket), offer_of(file, new));
            let (place, what) = (place_of(new), "exports".to_owned());
            let change = Change { place, what, from: names(&from), to: names(&offer) };
            (from != offer).then_some(Self { socket, offer, change })
        });
        offers.collect()
    }

    /// Withdraws what the socket is not to offer any more. What it is to offer beyond that waits
    /// until what goes has drained: an export may take the name of another.
    fn narrow(&self, exports: &ServedExports) {
        let Some(new) = &self.offer else { return };
        let narrowed = exports.offer(self.socket).map_or_else(|| new.clone(), |now| &now & new);
        exports.set_offer(self.socket, Some(narrowed));
    }

    /// Returns whether it has one of these names, and the socket does not offer that yet.
    fn adds_any<'n>(
        &self,
        mut names: impl Iterator<Item = &'n str>,
        exports: &ServedExports,
    ) -> bool {
        let has = |name: &str| self.offer.as_ref().is_none_or(|offer| offer.contains(name));
        names.any(|name| has(name) && !exports.offers(self.socket, name))
    }
}

/// What the file says of a served disk and of its groups, as far as they are in it.
fn disk_in(file: &Config, disk: &Disk, served: Vec<String>) -> Option<FileDisk> {
    let index = file.disks.iter().position(|known| disk.is_that(known))?;
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
    use crate::common::Common;
    use crate::control::ControlHandle;
    use crate::ctl::{Control as _, ReloadMode};
    use crate::messages::{Message, OwnerHandle};
    use crate::owners::ServedDisk;

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
        let served = owners.iter().map(|handle| ServedDisk {
            handle: handle.clone(),
            volumes: Vec::new(),
            common: Common::Nothing,
        });
        let disks = (Arc::default(), served.collect());
        let exports = Arc::<ServedExports>::default();
        let machines = crate::vhost::Sockets::new(
            paternoster_disk::IoEngine::Threads,
            None,
            groups.1.clone(),
            Arc::clone(&exports),
            mpsc::channel().0,
        );
        let exports = (exports, Vec::new(), Arc::new(machines));
        let catalogue = Catalogue::new(&config, disks, groups, exports, (None, Arc::default()));
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
