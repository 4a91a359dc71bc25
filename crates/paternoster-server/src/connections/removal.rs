//! The removal of a volume, or of one export, while others are served.
//!
//! ```text
//!   drain ──the last client has left──────────────────┬──▶ sync ──▶ the back end is handed over
//!     └────the time is over──▶ end: those left are    │    of a volume alone
//!                              answered and closed ───┘
//! ```
//!
//! While it drains, the clients that it has are served as ever, and no others come. At the end what
//! is in the device is answered, and what waits of a volume fails with ESHUTDOWN. A client that
//! does not take its last replies is cut off after a second.

use std::sync::{Arc, mpsc};

use paternoster::{Instant, IoPrio, IocId, Nanos};
use paternoster_disk::{Backend, Command, CommandOp, FrontTag, Outcome, VolumeId};
use rustix::io::Errno;

use super::{Connections, DiskOwner, Door};
use crate::clients::Export;

/// How long clients have to take their last replies.
const LAST_REPLIES: Nanos = Nanos::from_millis(1_000);

/// The number of a shutdown among those who flush; removals have lower ones.
const SHUTDOWN: u32 = u32::MAX;
/// The same of one that another server's coming asks for; removals have those below.
const HAND_OVER: u32 = SHUTDOWN - 1;

/// Who has a volume flushed, beside clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flusher {
    Shutdown,
    /// Another server is to go on.
    HandOver,
    /// The removal of that number.
    Removal(u32),
}

impl Flusher {
    /// The name of its flushes.
    pub(super) fn tag(self) -> FrontTag {
        let number = match self {
            Self::Shutdown => SHUTDOWN,
            Self::HandOver => HAND_OVER,
            Self::Removal(number) => number,
        };
        Door::Own.tag(number.into())
    }

    /// Whose flush has that name.
    pub(super) fn of_key(key: u64) -> Self {
        match u32::try_from(key).expect("the number of one of them") {
            SHUTDOWN => Self::Shutdown,
            HAND_OVER => Self::HandOver,
            number => Self::Removal(number),
        }
    }
}

/// What becomes of a volume that is removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removal {
    pub(crate) volume: VolumeId,
    /// How long its clients have to leave.
    pub(crate) drain: Nanos,
    /// Whether what was written has to be durable.
    pub(crate) sync: bool,
}

/// What is left of a volume, or of an export, that is served no more.
#[derive(Debug)]
pub(crate) struct Removed {
    /// Of a volume.
    pub(crate) backend: Option<Box<dyn Backend>>,
    /// What has become of its last sync, if there was to be one.
    pub(crate) synced: Result<(), Errno>,
}

/// Clients that end together.
#[derive(Clone, Debug)]
pub(crate) enum ClientsOf {
    Volume(VolumeId),
    Export(Arc<Export>),
}

impl ClientsOf {
    /// Whether a client of that export is one of them.
    pub(crate) fn has(&self, other: &Arc<Export>) -> bool {
        match self {
            Self::Volume(volume) => other.volume == *volume,
            Self::Export(export) => Arc::ptr_eq(other, export),
        }
    }
}

/// How clients end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Each is answered what it waits for.
    Answered,
    /// Each is cut off.
    CutOff,
}

/// A removal that is under way.
#[derive(Debug)]
pub(super) struct Going {
    what: What,
    answer: mpsc::Sender<Removed>,
    number: u32,
    stage: Stage,
    /// Its clients that are connected.
    clients: u32,
    /// Whose its flush is.
    ioc: Option<IocId>,
}

/// What goes.
#[derive(Debug)]
enum What {
    /// A volume with all of its exports, whose writes are to be durable or need not be.
    Volume {
        volume: VolumeId,
        sync: bool,
    },
    Export(Arc<Export>),
}

impl What {
    fn clients(&self) -> ClientsOf {
        match self {
            Self::Volume { volume, .. } => ClientsOf::Volume(*volume),
            Self::Export(export) => ClientsOf::Export(Arc::clone(export)),
        }
    }
}

impl Going {
    /// A client of that export has come or left.
    pub(super) fn count(&mut self, export: &Arc<Export>, has_come: bool) {
        if self.what.clients().has(export) {
            self.clients = if has_come { self.clients + 1 } else { self.clients - 1 };
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Clients may leave until then.
    Draining(Instant),
    /// Clients take their last replies, until then if it says so.
    Ending(Option<Instant>),
    /// The last sync is in flight.
    Syncing,
    Synced(Result<(), Errno>),
}

impl Connections {
    /// Begins to remove a volume, unless it is going or gone; `answer` takes what is left of it.
    pub(super) fn remove_volume(
        &mut self,
        owner: &DiskOwner,
        removal: Removal,
        answer: mpsc::Sender<Removed>,
    ) {
        let Removal { volume, drain, sync } = removal;
        let is_that =
            |one: &Going| matches!(one.what, What::Volume { volume: going, .. } if going == volume);
        // Else whoever asks hears that nothing comes.
        if self.label.volumes.is_here(volume) && !self.going.iter().any(is_that) {
            self.begin_removal(owner, What::Volume { volume, sync }, drain, answer);
        }
    }

    /// Begins to remove an export, unless it is going or gone.
    pub(super) fn remove_export(
        &mut self,
        owner: &DiskOwner,
        export: Arc<Export>,
        drain: Nanos,
        answer: mpsc::Sender<Removed>,
    ) {
        let is_that = |one: &Going| match &one.what {
            What::Volume { volume, .. } => *volume == export.volume,
            What::Export(going) => Arc::ptr_eq(going, &export),
        };
        if self.tenants.has_export(&export) && !self.going.iter().any(is_that) {
            self.begin_removal(owner, What::Export(export), drain, answer);
        }
    }

    fn begin_removal(
        &mut self,
        owner: &DiskOwner,
        what: What,
        drain: Nanos,
        answer: mpsc::Sender<Removed>,
    ) {
        self.removals = self.removals.wrapping_add(1) % HAND_OVER;
        let stage = Stage::Draining(owner.now() + drain);
        let (number, clients) = (self.removals, self.register.clients(&what.clients()));
        self.going.push(Going { what, answer, number, stage, clients, ioc: None });
    }

    /// Has each removal go on, as far as it can.
    pub(super) fn go_on_removing(&mut self, owner: &mut DiskOwner) {
        if self.shutting_down.is_some() {
            // The end of the disk flushes all volumes, and is the end of these too.
            return;
        }
        let mut going = std::mem::take(&mut self.going);
        for one in &mut going {
            self.go_on_with(owner, one);
        }
        going.retain(|one| {
            let Stage::Synced(synced) = one.stage else { return true };
            if let Some(ioc) = one.ioc {
                owner.administer(|elevator, now| elevator.exit_io_context(now, ioc));
            }
            let backend = match &one.what {
                What::Volume { volume, .. } => {
                    self.forget_volume(owner, *volume);
                    let backend = owner.remove_volume(*volume);
                    self.follow_depth(owner);
                    Some(backend)
                }
                What::Export(export) => {
                    owner.administer(|elevator, now| {
                        self.tenants.remove_unused(elevator, now, export.tenant);
                    });
                    None
                }
            };
            // Whoever asked may have gone.
            let _ = one.answer.send(Removed { backend, synced });
            false
        });
        self.going = going;
    }

    fn go_on_with(&mut self, owner: &mut DiskOwner, one: &mut Going) {
        let (now, has_clients) = (owner.now(), one.clients > 0);
        match one.stage {
            Stage::Draining(until) if has_clients && now < until => {}
            Stage::Draining(_) => {
                match &one.what {
                    What::Volume { volume, .. } => {
                        self.label.volumes.close(*volume);
                        owner.close_volume(*volume);
                        // Requests that its back end holds need the server now.
                        if !owner.engine().is_volume_idle(*volume) {
                            owner.resume_volume(*volume);
                        }
                    }
                    What::Export(export) => self.tenants.close_export(export),
                }
                self.end_clients(owner, &one.what.clients(), End::Answered);
                one.stage = Stage::Ending(Some(now + LAST_REPLIES));
                self.go_on_with(owner, one);
            }
            Stage::Ending(_) if !has_clients => match one.what {
                What::Volume { volume, .. } if !owner.engine().is_volume_idle(volume) => {}
                What::Export(_) | What::Volume { sync: false, .. } => {
                    one.stage = Stage::Synced(Ok(()));
                }
                What::Volume { volume, .. } => {
                    let (tag, op) = (Flusher::Removal(one.number).tag(), CommandOp::Flush);
                    let ioc = own_io_context(owner);
                    one.ioc = Some(ioc);
                    one.stage = Stage::Syncing;
                    owner.submit(Command { tag, volume, ioc, op });
                }
            },
            Stage::Ending(Some(until)) if until <= now => {
                self.end_clients(owner, &one.what.clients(), End::CutOff);
                one.stage = Stage::Ending(None);
            }
            Stage::Ending(_) | Stage::Syncing | Stage::Synced(_) => {}
        }
    }

    fn end_clients(&mut self, owner: &mut DiskOwner, of: &ClientsOf, how: End) {
        let (doors, mut site) = self.doors(owner);
        doors.end_clients(&mut site, of, how);
    }

    /// Takes the outcome of a removal's last flush.
    pub(super) fn removal_synced(&mut self, number: u32, outcome: Outcome) {
        if let Some(one) = self.going.iter_mut().find(|one| one.number == number) {
            one.stage = Stage::Synced(outcome.result.map(drop));
        }
    }

    /// Returns when a removal wants to go on at the latest.
    pub(super) fn removals_due(&self) -> Option<Instant> {
        let due = self.going.iter().filter_map(|one| match one.stage {
            Stage::Draining(until) | Stage::Ending(Some(until)) => Some(until),
            Stage::Ending(None) | Stage::Syncing | Stage::Synced(_) => None,
        });
        due.min()
    }

    /// Nothing is known of a volume any more.
    fn forget_volume(&mut self, owner: &mut DiskOwner, volume: VolumeId) {
        self.label.volumes.remove(volume);
        self.faults.forget(volume);
        owner.administer(|elevator, now| self.tenants.remove_exports(elevator, now, volume));
    }
}

/// An I/O context for what no client asks for.
pub(super) fn own_io_context(owner: &mut DiskOwner) -> IocId {
    owner.administer(|elevator, now| {
        let root = elevator.groups().root();
        elevator.add_io_context(now, IoPrio::default(), root)
    })
}

#[cfg(test)]
mod tests {
    use rustix::net::{RecvFlags, recv};

    use super::*;
    use crate::connections::arrivals::connect;
    use crate::connections::faulty::Faulty;
    use crate::connections::shutdown::Patience;
    use crate::messages::{NewExport, NewTenant};
    use crate::stat::Detail;

    /// A second one while the first syncs would have nothing to remove.
    #[test]
    fn volume_is_removed_once_and_one_that_is_gone_is_not_asked_for() {
        let (sender, volume) = mpsc::channel();
        let disk = Faulty::serve(Ok(0), Patience::default(), move |owner| {
            let volume = owner.engine().open_volumes().next().expect("it has one");
            sender.send(volume).expect("somebody waits for it");
        });
        let volume = volume.recv().expect("it has one");
        let removal = || Removal { volume, drain: Nanos::ZERO, sync: true };
        let [first, second] = [(); 2].map(|()| disk.handle.remove_volume(removal()));
        let removed = first.recv().expect("it is gone");
        let size = removed.backend.map(|backend| backend.capabilities().size);
        assert_eq!((removed.synced, size), (Ok(()), Some(1 << 20)));
        assert!(second.recv().is_err() && disk.handle.remove_volume(removal()).recv().is_err());
        assert!(disk.handle.grow_volume(volume, 2 << 20).recv().is_err());
        assert!(disk.handle.volume_states(vec![volume]).recv().expect("it answers").is_empty());
        let stat = disk.handle.stat(Detail::Groups).recv().expect("it answers");
        assert_eq!((stat.syncs, stat.size_bytes), (1, 0), "what is gone has still been counted");
        assert_eq!(stat.depth, 16, "the 4 that kept it busy are of the past");
        disk.end().expect("a good end");
    }

    /// It negotiated while the export was there.
    #[test]
    fn client_that_comes_when_its_export_has_gone_is_closed() {
        let (sender, volume) = mpsc::channel();
        let disk = Faulty::serve(Ok(0), Patience::default(), move |owner| {
            let volume = owner.engine().open_volumes().next().expect("it has one");
            sender.send(volume).expect("somebody waits for it");
        });
        let volume = volume.recv().expect("it has one");
        let (name, lineage) = ("e".to_owned(), vec![NewTenant::plain("/a", 64 << 20)]);
        let new = NewExport {
            name,
            volume,
            offset: 0,
            io_prio: IoPrio::default(),
            is_offered: true,
            lineage,
        };
        let export = disk.handle.add_export(new).recv().expect("the volume is there");
        let exports = || vec![Arc::clone(&export)];
        assert_eq!(disk.handle.export_clients(exports()).recv(), Ok(vec![0]));
        let remove = || disk.handle.remove_export(Arc::clone(&export), Nanos::ZERO).recv();
        assert_eq!([remove().is_ok(), remove().is_ok()], [true, false], "it goes once");
        let client = connect(&disk.handle, &export, &[]);
        assert_eq!(recv(&client, &mut [0; 16][..], RecvFlags::empty()).expect("its end").0, 0);
        assert_eq!(disk.handle.export_clients(exports()).recv(), Ok(vec![0]));
        assert!(disk.handle.stat(Detail::Groups).recv().expect("it answers").groups.is_empty());
        disk.end().expect("a good end");
    }

    #[test]
    fn last_sync_that_fails_is_told() {
        let (sender, volume) = mpsc::channel();
        let disk = Faulty::serve(Err(Errno::IO), Patience::default(), move |owner| {
            let volume = owner.engine().open_volumes().next().expect("it has one");
            sender.send(volume).expect("somebody waits for it");
        });
        let volume = volume.recv().expect("it has one");
        let removal = Removal { volume, drain: Nanos::ZERO, sync: true };
        let removed = disk.handle.remove_volume(removal).recv().expect("it is gone");
        assert_eq!(removed.synced, Err(Errno::IO));
        disk.end().expect("nothing is left to flush");
    }

    #[test]
    fn tag_says_whose_flush_it_is() {
        let removals = [0, HAND_OVER - 1].map(Flusher::Removal);
        for flusher in [Flusher::Shutdown, Flusher::HandOver].into_iter().chain(removals) {
            let tag = flusher.tag();
            assert_eq!((Door::of(tag), Flusher::of_key(tag.key)), (Door::Own, flusher));
        }
        assert_eq!(Door::of(Door::Nbd.tag(u64::MAX)), Door::Nbd);
    }
}
