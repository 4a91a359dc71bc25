//! Makes what is served as the file says, by the steps of requests. A pass compares the file that
//! was read last with what is served, and does what can be done at once; clients that have time to
//! leave need a later pass.
//!
//! ```text
//!   reload ──▶ passes, for half a second ──▶ answer
//!                 └─▶ a thread makes further passes, one whenever clients have left
//!
//!   goes    nobody enters ─▶ clients have 30 s to leave ─▶ it is served no more
//!   comes   it is opened and served; in a later pass, where something that goes is in its way
//! ```

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use paternoster::Nanos;

use super::exports::{Export, Part};
use super::leaving::Leaving;
use super::turnover::{Declared, Named, Staying, Taken, Takes, come, gone, named};
use super::{Asked, Catalogue, Disk, ServedVolume, Stage};
use crate::config::{Config, VOLUME, Wanted};
use crate::ctl::{CatalogueError, Change, ReloadNote};
use crate::sockets::Patience;

/// How long clients have to leave what is gone from the file.
const DRAIN: Nanos = Nanos::from_millis(30_000);

/// How long a reload makes passes before it answers.
const ANSWERED: Duration = Duration::from_millis(500);

/// How soon to look again whether clients have left.
const LOOK: Duration = Duration::from_millis(20);

/// Why something does not come yet.
pub(super) const IN_WAY: &str = "it comes when what is in its way has gone";

/// What the passes so far have left to do.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// The file that was read last; none since the start.
    pub(crate) file: Option<Arc<Config>>,
    going: Vec<Going>,
    /// Disks whose owners end.
    pub(super) ending: Vec<Arc<Disk>>,
    /// Changes that have failed: only a reload tries them again.
    failed: BTreeSet<String>,
    /// Volumes that nobody enters any more, and that go behind their exports.
    held: BTreeSet<String>,
    /// Whether the last pass has left something that waits for no client.
    pub(super) is_busy: bool,
    has_thread: bool,
    /// How long an image that is locked is tried again: a while from when something of this file
    /// has gone, as the kernel may hold its image a moment longer.
    patience: Patience,
}

/// One whose clients are leaving. Its name is not free meanwhile.
#[derive(Debug)]
struct Going {
    one: Declared,
    leaving: Option<Leaving>,
}

/// What passes have led to.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    pub(crate) changed: Vec<Change>,
    /// What goes on, after the last pass.
    pub(crate) under_way: Vec<ReloadNote>,
    pub(crate) failed: Vec<ReloadNote>,
}

impl Catalogue {
    /// Makes what is served as the file says. What is under way when this returns is logged when it
    /// is done.
    pub(crate) fn follow(self: &Arc<Self>, file: Config, following: &mut UnderWay) -> Followed {
        let until = Instant::now() + ANSWERED;
        (following.file, following.failed) = (Some(Arc::new(file)), BTreeSet::new());
        following.patience = Patience::NONE;
        let mut followed = Followed::default();
        loop {
            self.pass(following, until, &mut followed);
            if !following.goes_on() || Instant::now() >= until {
                break;
            }
            self.wait_for_departure(following, until);
        }
        if following.goes_on() && !following.has_thread {
            let catalogue = Arc::clone(self);
            let thread = thread::Builder::new().name("reload".to_owned());
            match thread.spawn(move || catalogue.go_on()) {
                Ok(_) => following.has_thread = true,
                Err(error) => {
                    let why = format!("no thread waits for the rest; reload again: {error}");
                    followed.failed.push(ReloadNote { place: "server".to_owned(), why });
                }
            }
        }
        followed
    }

    /// Follows the file until nothing goes on.
    fn go_on(&self) {
        loop {
            thread::sleep(LOOK);
            let mut following = self.following();
            if !following.is_busy && !self.has_departed(&mut following) {
                continue;
            }
            let mut followed = Followed::default();
            self.pass(&mut following, Instant::now() + ANSWERED, &mut followed);
            for note in &followed.failed {
                tracing::error!("{note}");
            }
            if !following.goes_on() {
                following.has_thread = false;
                return;
            }
        }
    }

    /// Locks what the passes have left to do: nobody else reads the file or changes groups then.
    pub(crate) fn following(&self) -> MutexGuard<'_, UnderWay> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what can be done at once. After `until` nothing more is opened.
    fn pass(&self, following: &mut UnderWay, until: Instant, followed: &mut Followed) {
        followed.under_way.clear();
        following.is_busy = false;
        let Some(file) = following.file.clone() else { return };
        if self.owners.are_ending() {
            // With the server: nothing is to be opened any more.
            *following = UnderWay::default();
            return;
        }
        let has_left = |one: &mut Going| one.has_left_by(Instant::now());
        for one in following.going.extract_if(.., has_left).collect::<Vec<_>>() {
            let of = one.one.of.clone();
            let done = self.end(one);
            following.patience = Patience::a_while();
            following.note(named(&of), vec![gone(named(&of))], done, followed);
        }
        let turnover = self.turnover(&file);
        self.state().leaving = turnover.disks_going.iter().map(|disk| disk.number).collect();
        for one in &turnover.staying {
            self.renew(following, one, followed);
        }
        let mut stays = Vec::new();
        let held = std::mem::take(&mut following.held);
        for one in turnover.going {
            self.begin(following, one, &mut stays, followed);
        }
        for name in held.difference(&following.held).filter(|name| !following.has_going(name)) {
            self.exports.change(name, |entry| entry.is_leaving = false);
        }
        for one in &following.going {
            followed.goes_on(named(&one.one.of), "its clients have 30s to leave");
        }
        self.end_disks(following, turnover.disks_going, followed);
        let in_way = stays.iter().chain(following.going.iter().map(|one| &one.one));
        let in_way: Vec<_> = in_way.cloned().collect();
        let in_way = Taken::by(&in_way);
        for disk in turnover.disks_coming {
            self.come_disk(following, &disk, &in_way, until, followed);
        }
        let mut waiting = BTreeSet::new();
        for one in turnover.coming {
            let waits = in_way.has_in_way(&one)
                || in_way.has_volume_of(&one)
                || one.of.keys.volume.as_ref().is_some_and(|volume| waiting.contains(volume));
            if waits {
                waiting.insert(one.of.name.clone());
                followed.goes_on(named(&one.of), IN_WAY);
            } else if Instant::now() >= until {
                following.is_busy = true;
                followed.goes_on(named(&one.of), "it is not opened yet");
            } else if !following.has_failed(&come(named(&one.of))) {
                let done = self.add(&one, following.patience);
                following.note(named(&one.of), vec![come(named(&one.of))], done, followed);
            }
        }
    }

    /// Drains a volume or an export, unless the volume has exports that drain.
    fn begin(
        &self,
        following: &mut UnderWay,
        one: Declared,
        stays: &mut Vec<Declared>,
        followed: &mut Followed,
    ) {
        if following.has_failed(&gone(named(&one.of))) {
            return stays.push(one);
        }
        let on_it = |going: &Going| going.one.of.keys.volume.as_ref() == Some(&one.of.name);
        if one.of.kind() == VOLUME && following.going.iter().any(on_it) {
            self.exports.change(&one.of.name, |entry| entry.is_leaving = true);
            following.held.insert(one.of.name.clone());
            followed.goes_on(named(&one.of), "it goes when its exports have gone");
            return stays.push(one);
        }
        match self.begin_to_leave(&one) {
            Ok(leaving) => following.going.push(Going { one, leaving }),
            Err(error) => {
                let lines = vec![gone(named(&one.of))];
                following.note(named(&one.of), lines, Err(error), followed);
                stays.push(one);
            }
        }
    }

    fn begin_to_leave(&self, one: &Declared) -> Result<Option<Leaving>, CatalogueError> {
        let of = &one.of;
        let turn = self.turn_within(&of.name, Duration::ZERO)?;
        let leaving = if of.kind() == VOLUME {
            let served = {
                let mut state = self.state();
                state.check_no_exports(&of.name)?;
                state.volume(&of.name)?.stage.served()
            };
            served.map(|served| self.volume_leaves(of, served, DRAIN, true)).transpose()?
        } else {
            self.export_leaves(of, DRAIN)?
        };
        turn.keep();
        Ok(leaving)
    }

    /// Takes a volume or an export out of the catalogue when its clients have left.
    fn end(&self, going: Going) -> Result<(), CatalogueError> {
        let Going { one: Declared { of, .. }, leaving } = going;
        // From here on others may have it.
        let _turn = self.kept_turn(&of.name);
        let removed = leaving.map(|leaving| self.left(leaving)).transpose()?;
        if of.kind() == VOLUME {
            self.state().volumes.remove(&of.name);
        } else {
            self.state().exports.remove(&of.name);
        }
        let synced = removed.map_or(Ok(()), |removed| removed.synced);
        let name = of.name;
        synced.map_err(|errno| CatalogueError::NotDurable { name, why: errno.to_string() })
    }

    fn add(&self, new: &Declared, patience: Patience) -> Result<(), CatalogueError> {
        let Declared { of, size, takes, writes } = new;
        let _turn = self.turn_within(&of.name, Duration::ZERO)?;
        match takes {
            Takes::All(backend) => {
                let pool = self.pool_of(of)?;
                let reserved = self.reserve(&pool, of, Some(*writes), (backend, *size))?;
                let served = self.serve(&pool, of, *size, patience)?;
                reserved.keep(served);
                self.serve_exports_of(&of.name);
                Ok(())
            }
            Takes::Bytes(bytes) => {
                // So that its volume stays as it is meanwhile.
                let turn = |volume| self.turn_within(volume, Duration::ZERO);
                let _volume = of.keys.volume.as_deref().map(turn).transpose()?;
                let part = self.part_of_file(of)?;
                if bytes.end > part.volume.size || *writes && !part.volume.writes {
                    let why = "what it is on is smaller, or open for reading alone";
                    return Err(CatalogueError::Value(why.to_owned()));
                }
                let part = Part { bytes: bytes.clone(), ..part };
                let (name, served) = (of.name.clone(), Stage::Ready(part.disk.number));
                let (asked, bytes) = (Asked::of_file(of.clone()), bytes.clone());
                {
                    let mut state = self.state();
                    state.check_name_is_free(&name)?;
                    state.exports.insert(name, Export { asked, bytes, stage: served });
                }
                self.serve_export(of, part)
                    .inspect_err(|_| _ = self.state().exports.remove(&of.name))
            }
        }
    }

    /// Finds what an export is on, which has to be served; the part of it is all.
    fn part_of_file(&self, of: &Wanted) -> Result<Part, CatalogueError> {
        let state = self.state();
        let found = if let Some(name) = &of.keys.volume {
            let volume = state.volumes.get(name);
            let pool = volume.and_then(|of| state.pool_of(&of.asked.of).ok());
            let served = volume.zip(self.exports.get(name));
            pool.zip(served.map(|(of, whole)| ServedVolume::of(&whole, of.size, of.writes)))
        } else {
            let disk = state.disks.iter().find(|disk| Some(&disk.name) == of.keys.disk.as_ref());
            disk.and_then(|disk| Some((Arc::clone(disk), disk.whole?)))
        };
        let what = of.keys.volume.as_ref().or(of.keys.disk.as_ref()).cloned().unwrap_or_default();
        let (disk, volume) = found.ok_or(CatalogueError::NotServed(what))?;
        Ok(Part { disk, volume, bytes: 0..volume.size })
    }

    /// Has new sessions see what is new.
    fn renew(&self, following: &mut UnderWay, one: &Staying, followed: &mut Followed) {
        let changes = one.changes();
        if !changes.iter().any(|change| following.has_failed(change)) {
            let done = self.show_new(one);
            following.note(named(&one.of), changes, done, followed);
        }
    }

    fn show_new(&self, one: &Staying) -> Result<(), CatalogueError> {
        let Staying { of, grows, description } = one;
        let name = &of.name;
        let _turn = self.turn_within(name, Duration::ZERO)?;
        self.exports.change(name, |entry| entry.info.description.clone_from(description));
        {
            let mut state = self.state();
            let asked = match of.kind() {
                VOLUME => &mut state.volume(name)?.asked,
                _ => &mut state.export(name)?.asked,
            };
            asked.of.keys.description.clone_from(description);
        }
        let Some((_, size)) = *grows else { return Ok(()) };
        let pool = self.pool_of(of)?;
        {
            let state = self.state();
            state.check_room(&pool, name, size)?;
            state.check_quotas(&of.group(), name, size)?;
        }
        self.show_grown(&pool, name, size)?;
        let mut state = self.state();
        let volume = state.volume(name)?;
        volume.size = size;
        (volume.asked.of.keys.size, volume.asked.of.more.size) = (Some(size), Some(size));
        Ok(())
    }
}

impl UnderWay {
    /// Returns whether there is something to wait for.
    pub(super) fn goes_on(&self) -> bool {
        self.is_busy || !self.going.is_empty() || !self.ending.is_empty()
    }

    fn has_going(&self, name: &str) -> bool {
        self.going.iter().any(|going| going.one.of.name == name)
    }

    pub(super) fn has_failed(&self, change: &Change) -> bool {
        self.failed.contains(&change.to_string())
    }

    /// Notes what has come of changes, which are one step.
    pub(super) fn note(
        &mut self,
        what: Named<'_>,
        changes: Vec<Change>,
        done: Result<(), CatalogueError>,
        followed: &mut Followed,
    ) {
        match done {
            Ok(()) => followed.changed(changes),
            Err(CatalogueError::Busy(_)) => {
                self.is_busy = true;
                followed.goes_on(what, "another request changes it");
            }
            Err(error) if error.is_about_room() && !self.going.is_empty() => {
                followed.goes_on(what, "it comes when others have made room");
            }
            Err(error) => {
                self.failed.extend(changes.iter().map(ToString::to_string));
                followed.failed.push(ReloadNote::new(what.0, what.1, error.to_string()));
            }
        }
    }
}

impl Catalogue {
    /// Waits until clients of one have left, no longer than that.
    fn wait_for_departure(&self, following: &mut UnderWay, until: Instant) {
        while Instant::now() < until && !following.is_busy && !self.has_departed(following) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn has_departed(&self, following: &mut UnderWay) -> bool {
        let now = Instant::now();
        following.going.iter_mut().any(|one| one.has_left_by(now))
            || following.ending.iter().any(|disk| self.owners.has_ended(disk.number))
            || self.owners.are_ending()
    }
}

impl Going {
    fn has_left_by(&mut self, until: Instant) -> bool {
        self.leaving.as_mut().is_none_or(|leaving| leaving.has_left_by(until))
    }
}

impl Followed {
    pub(super) fn changed(&mut self, changes: Vec<Change>) {
        for change in &changes {
            tracing::info!("the file changes {change}");
        }
        self.changed.extend(changes);
    }

    pub(super) fn goes_on(&mut self, (kind, name): Named<'_>, why: &str) {
        self.under_way.push(ReloadNote::new(kind, name, why.to_owned()));
    }
}
