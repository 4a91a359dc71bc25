//! The volumes and exports of the file, as they come and go when it is read again: by the steps of
//! requests.
//!
//! ```text
//!   gone from the file   nobody comes ─▶ clients have 30 s to leave ─▶ it is not served any more
//!   new in the file      it is served at once; behind what goes, where that is in its way
//!   an image has grown   new sessions see that
//! ```

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use paternoster::Nanos;
use serde_json::Value;

use super::durable::logged;
use super::exports::{Export, Part};
use super::groups::lineage;
use super::leaving::Leaving;
use super::{Asked, Catalogue, ServedVolume, Stage, State, Turn, Volume};
use crate::config::{BackendConfig, Config, ExportConfig, Tables, VOLUME, Wanted};
use crate::ctl::{CatalogueError, Change, ReloadNote};
use crate::sockets::Patience;

/// How long clients have to leave what is gone from the file.
const DRAIN: Nanos = Nanos::from_millis(30_000);

/// How long whoever has the file read waits for that.
const WAIT: Duration = Duration::from_secs(1);

/// In what the volumes and exports of the file differ from those that are served.
#[derive(Debug, Default)]
pub(crate) struct Turnover {
    going: Vec<Declared>,
    /// Volumes before exports.
    coming: Vec<Declared>,
    staying: Vec<Staying>,
}

/// A volume or an export of the file.
#[derive(Clone, Debug)]
struct Declared {
    of: Wanted,
    size: u64,
    takes: Takes,
}

/// What no other may have beside a volume or an export.
#[derive(Clone, Debug)]
enum Takes {
    Image(PathBuf),
    /// Of a volume or disk, unless both only read.
    Bytes(Range<u64>),
}

/// One that stays, of which new sessions are to see something new.
#[derive(Debug)]
struct Staying {
    of: Wanted,
    /// The bytes of a volume before and from now on.
    grows: Option<(u64, u64)>,
    /// What it is described as from now on.
    description: Option<String>,
}

/// One whose clients are leaving.
struct Going<'c> {
    of: Declared,
    leaving: Option<Leaving>,
    _turn: Turn<'c>,
}

/// What a volume or an export is, and its name.
type Named<'a> = (&'static str, &'a str);

fn named(of: &Wanted) -> Named<'_> {
    (of.kind(), &of.name)
}

/// What has come of the first second.
#[derive(Debug, Default)]
pub(crate) struct FirstSteps {
    /// What could not be done.
    pub(crate) failed: Vec<ReloadNote>,
    /// What goes on.
    pub(crate) under_way: Vec<ReloadNote>,
}

impl Turnover {
    /// What it changes.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let line = |of: &Wanted, from, to| Change {
            place: String::new(),
            what: format!("{}s", of.kind()),
            from,
            to,
        };
        let name = |of: &Wanted| Value::from(of.name.clone());
        let going = self.going.iter().map(|one| line(&one.of, name(&one.of), Value::Null));
        let coming = self.coming.iter().map(|one| line(&one.of, Value::Null, name(&one.of)));
        let staying = self.staying.iter().flat_map(Staying::changes);
        going.chain(coming).chain(staying).collect()
    }

    /// The names of those that go.
    fn going(&self) -> BTreeSet<Named<'_>> {
        self.going.iter().map(|one| named(&one.of)).collect()
    }
}

impl Catalogue {
    /// Compares the volumes and exports of the file, as it is now, with those that are served.
    pub(crate) fn turnover(&self, file: &Config) -> Turnover {
        let state = self.state();
        let in_file = file.exports.iter().map(|export| (export.what(), &*export.name));
        let in_file: BTreeSet<Named<'_>> = in_file.collect();
        let going = state.declared().filter(|one| !in_file.contains(&named(&one.of))).collect();
        let (mut coming, mut staying) = (Vec::new(), Vec::new());
        for export in &file.exports {
            let disk = &file.disks[export.disk].name;
            match state.declared_as(export.what(), &export.name) {
                Some((known, size)) => staying.extend(Staying::of(&known.of, size, export)),
                None if state.disks.iter().any(|served| served.name == *disk) => {
                    coming.push(Declared::of_file(file, export));
                }
                None => {}
            }
        }
        coming.sort_by_key(|one: &Declared| one.of.kind() != VOLUME);
        Turnover { going, coming, staying }
    }

    /// The groups, volumes and exports of the file that stay, as they are.
    pub(crate) fn staying(&self, turnover: &Turnover) -> Tables {
        let state = self.state();
        let stay = state.staying_groups(turnover);
        let groups = state.groups.of_file().filter(|(path, _)| stay.contains(*path));
        let groups = groups.map(|(path, keys)| (path.to_owned(), keys.clone())).collect();
        let going = turnover.going();
        let declared = state.all_asked().filter(|asked| asked.is_of_file);
        let exports = declared.map(|asked| &asked.of).filter(|of| !going.contains(&named(of)));
        let exports = exports.map(|of| (of.kind(), of.name.clone(), of.keys.clone())).collect();
        Tables { groups, exports }
    }

    /// Has groups be as the file says.
    pub(crate) fn follow_groups(&self, file: &Config, turnover: &Turnover) {
        let mut state = self.state();
        let stay = state.staying_groups(turnover);
        let numbers = file.disks.iter().map(|disk| {
            let served = state.disks.iter().find(|served| served.name == disk.name);
            served.map(|served| served.number)
        });
        let numbers: Vec<_> = numbers.collect();
        state.groups.follow(file, &numbers, |path| stay.contains(path));
        // What had brought one along has it no more.
        let State { groups, volumes, exports, .. } = &mut *state;
        let volumes = volumes.values_mut().map(|volume| &mut volume.asked);
        for asked in volumes.chain(exports.values_mut().map(|export| &mut export.asked)) {
            asked.has_own_group &= !groups.is_of_file(&asked.of.group());
        }
    }

    /// Has what is served be as the file says. Tells what has come of the first second; what comes
    /// of the rest, which may take as long as clients have to leave, is logged.
    pub(crate) fn follow(&self, turnover: Turnover, told: &mpsc::Sender<FirstSteps>) {
        let until = Instant::now() + WAIT;
        let mut steps = FirstSteps::default();
        for one in turnover.staying {
            let done = self.renew(&one);
            steps.note(&one.of, done);
        }
        let (volumes, exports): (Vec<_>, Vec<_>) =
            turnover.going.into_iter().partition(|one| one.of.kind() == VOLUME);
        let mut going = self.begin_all(exports, &mut steps);
        self.end_by(until, &mut going, &mut steps);
        // Those whose exports have still clients go behind them.
        let (held, free): (Vec<_>, Vec<_>) =
            volumes.into_iter().partition(|volume| going.iter().any(|one| one.of.is_on(volume)));
        going.extend(self.begin_all(free, &mut steps));
        self.end_by(until, &mut going, &mut steps);
        let mut waiting = Vec::<Declared>::new();
        for one in turnover.coming {
            let mut in_way = going.iter().map(|one| &one.of).chain(&held).chain(&waiting);
            if in_way.any(|other| one.has_in_way(other)) {
                waiting.push(one);
            } else {
                let done = self.add(&one);
                steps.note(&one.of, done);
            }
        }
        for one in going.iter().map(|one| &one.of).chain(&held) {
            steps.goes_on(one, "its clients have 30s to leave");
        }
        for one in &waiting {
            steps.goes_on(one, "it comes when what is in its way has gone");
        }
        // Whoever asked may have gone.
        let _ = told.send(steps);
        let mut later = FirstSteps::default();
        let all_gone = |going: Vec<Going<'_>>| {
            for one in going {
                logged(&one.of.of.name.clone(), self.end(one));
            }
        };
        all_gone(going);
        all_gone(self.begin_all(held, &mut later));
        for one in waiting {
            let done = self.add(&one);
            later.note(&one.of, done);
        }
        for note in later.failed {
            tracing::error!("{note}");
        }
    }

    /// Has the clients of all of these leave.
    fn begin_all(&self, all: Vec<Declared>, steps: &mut FirstSteps) -> Vec<Going<'_>> {
        let mut going = Vec::new();
        for one in all {
            let of = one.of.clone();
            match self.begin(one) {
                Ok(one) => going.push(one),
                Err(error) => steps.note(&of, Err(error)),
            }
        }
        going
    }

    fn begin(&self, of: Declared) -> Result<Going<'_>, CatalogueError> {
        let turn = self.turn_within(&of.of.name, Duration::ZERO)?;
        let leaving = if of.of.kind() == VOLUME {
            let served = {
                let mut state = self.state();
                state.check_no_exports(&of.of.name)?;
                state.volume(&of.of.name)?.stage.served()
            };
            served.map(|served| self.volume_leaves(&of.of, served, DRAIN, true)).transpose()?
        } else {
            self.export_leaves(&of.of, DRAIN)?
        };
        Ok(Going { of, leaving, _turn: turn })
    }

    /// Ends those whose clients leave by then.
    fn end_by(&self, until: Instant, going: &mut Vec<Going<'_>>, steps: &mut FirstSteps) {
        let has_left = |one: &mut Going<'_>| {
            one.leaving.as_mut().is_none_or(|leaving| leaving.has_left_by(until))
        };
        for one in going.extract_if(.., has_left) {
            let of = one.of.of.clone();
            let done = self.end(one);
            steps.note(&of, done);
        }
    }

    /// Waits until the clients have left: then it is nothing of the server's.
    fn end(&self, going: Going<'_>) -> Result<(), CatalogueError> {
        let Going { of: Declared { of, .. }, leaving, .. } = going;
        let removed = leaving.map(|leaving| self.left(leaving)).transpose()?;
        let (kind, name) = (of.kind(), of.name.clone());
        if kind == VOLUME {
            self.state().volumes.remove(&name);
        } else {
            self.state().exports.remove(&name);
        }
        tracing::info!("{kind} {name:?}, which the file does not have any more, is removed");
        let synced = removed.map_or(Ok(()), |removed| removed.synced);
        synced.map_err(|errno| CatalogueError::NotDurable { name, why: errno.to_string() })
    }

    fn add(&self, new: &Declared) -> Result<(), CatalogueError> {
        let Declared { of, size, takes } = new;
        let _turn = self.turn_within(&of.name, Duration::ZERO)?;
        match takes {
            Takes::Image(path) => {
                let pool = self.pool_of(of)?;
                let reserved = self.reserve(&pool, of, true, (path, *size))?;
                // The kernel may hold an image a moment longer than who had it before.
                let served = self.serve(&pool, of, *size, Patience::AWhile)?;
                reserved.keep(served);
                Ok(())
            }
            Takes::Bytes(bytes) => self.add_export(of, bytes.clone()),
        }
    }

    fn add_export(&self, of: &Wanted, bytes: Range<u64>) -> Result<(), CatalogueError> {
        // So that its volume stays as it is meanwhile.
        let _volume = of.keys.volume.as_deref().map(|volume| self.turn(volume)).transpose()?;
        let part = self.part_of_file(of, bytes.clone())?;
        let (name, stage) = (of.name.clone(), Stage::Ready(part.disk.number));
        let asked = Asked::of_file(of.clone());
        self.state().exports.insert(name, Export { asked, bytes, stage });
        self.serve_export(of, part).inspect_err(|_| _ = self.state().exports.remove(&of.name))
    }

    /// Finds what an export is on, which has to be served.
    fn part_of_file(&self, of: &Wanted, bytes: Range<u64>) -> Result<Part, CatalogueError> {
        let state = self.state();
        let found = if let Some(name) = &of.keys.volume {
            let pool = state.volumes.get(name).and_then(|of| of.asked.of.keys.pool.as_ref());
            let served = self.exports.get(name).map(|whole| ServedVolume::of(&whole));
            pool.and_then(|pool| state.pool(pool).ok()).zip(served)
        } else {
            let disk = state.disks.iter().find(|disk| Some(&disk.name) == of.keys.disk.as_ref());
            disk.and_then(|disk| Some((disk.clone(), disk.whole?)))
        };
        let what = of.keys.volume.as_ref().or(of.keys.disk.as_ref()).cloned().unwrap_or_default();
        let (disk, volume) = found.ok_or(CatalogueError::NotServed(what))?;
        Ok(Part { disk, volume, bytes })
    }

    /// Has new sessions see what is new.
    fn renew(&self, one: &Staying) -> Result<(), CatalogueError> {
        let Staying { of, grows, description } = one;
        let name = &of.name;
        let _turn = self.turn_within(name, Duration::ZERO)?;
        if let Some((_, size)) = *grows {
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
        }
        self.exports.change(name, |entry| entry.info.description.clone_from(description));
        let mut state = self.state();
        let asked = match of.kind() {
            VOLUME => &mut state.volume(name)?.asked,
            _ => &mut state.export(name)?.asked,
        };
        asked.of.keys.description.clone_from(description);
        Ok(())
    }
}

impl State {
    /// The groups in which something stays, or below which.
    fn staying_groups(&self, turnover: &Turnover) -> BTreeSet<String> {
        let going = turnover.going();
        let staying = self.all_asked().map(|asked| &asked.of);
        let groups = staying.filter(|of| !going.contains(&named(of))).map(Wanted::group);
        let groups: BTreeSet<_> = groups.collect();
        groups.iter().flat_map(|path| lineage(path)).map(str::to_owned).collect()
    }

    /// A volume or an export that the file declares and that is served, with its size.
    fn declared_as(&self, kind: &str, name: &str) -> Option<(&Asked, u64)> {
        let (asked, size, is_going) = if kind == VOLUME {
            let Volume { asked, size, stage, .. } = self.volumes.get(name)?;
            (asked, *size, stage.is_going())
        } else {
            let Export { asked, bytes, stage } = self.exports.get(name)?;
            (asked, bytes.end - bytes.start, stage.is_going())
        };
        (asked.is_of_file && !is_going).then_some((asked, size))
    }

    /// All that the file declares and is served, exports before volumes, but for what is going.
    fn declared(&self) -> impl Iterator<Item = Declared> {
        let exports =
            self.exports.values().filter(|of| of.asked.is_of_file && !of.stage.is_going());
        let exports = exports.map(|export| Declared {
            of: export.asked.of.clone(),
            size: export.bytes.end - export.bytes.start,
            takes: Takes::Bytes(export.bytes.clone()),
        });
        let volumes =
            self.volumes.values().filter(|of| of.asked.is_of_file && !of.stage.is_going());
        exports.chain(volumes.map(|volume| Declared {
            of: volume.asked.of.clone(),
            size: volume.size,
            takes: Takes::Image(volume.path.clone()),
        }))
    }
}

impl Declared {
    fn of_file(file: &Config, export: &ExportConfig) -> Self {
        let backend = &file.disks[export.disk].volumes[export.volume].backend;
        let takes = match backend {
            BackendConfig::File { path, .. } if export.what() == VOLUME => {
                Takes::Image(path.clone())
            }
            _ => Takes::Bytes(export.bytes()),
        };
        Self { of: Wanted::of_file(export), size: export.size, takes }
    }

    /// Whether it is an export of that volume.
    fn is_on(&self, volume: &Self) -> bool {
        self.of.keys.volume.as_ref() == Some(&volume.of.name)
    }

    /// Whether it cannot be served as long as the other is.
    fn has_in_way(&self, other: &Self) -> bool {
        let place = |one: &Self| (one.of.keys.disk.clone(), one.of.keys.volume.clone());
        let only_read = self.of.keys.read_only && other.of.keys.read_only;
        let takes_same = match (&self.takes, &other.takes) {
            (Takes::Image(one), Takes::Image(two)) => one == two,
            (Takes::Bytes(one), Takes::Bytes(two)) => {
                let overlap = one.start.max(two.start) < one.end.min(two.end);
                place(self) == place(other) && overlap && !only_read
            }
            _ => self.is_on(other),
        };
        self.of.name == other.of.name || takes_same
    }
}

impl Staying {
    /// What the file has new of it, if anything.
    fn of(known: &Wanted, size: u64, export: &ExportConfig) -> Option<Self> {
        let grows = export.what() == VOLUME && export.size > size;
        let grows = grows.then_some((size, export.size));
        let description = export.keys.description.clone();
        let is_new = grows.is_some() || description != known.keys.description;
        is_new.then(|| Self { of: known.clone(), grows, description })
    }

    fn changes(&self) -> Vec<Change> {
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

impl FirstSteps {
    fn note(&mut self, of: &Wanted, done: Result<(), CatalogueError>) {
        if let Err(error) = done {
            self.failed.push(ReloadNote::new(of.kind(), &of.name, error.to_string()));
        }
    }

    fn goes_on(&mut self, one: &Declared, why: &str) {
        self.under_way.push(ReloadNote::new(one.of.kind(), &one.of.name, why.to_owned()));
    }
}
