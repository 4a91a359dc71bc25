//! The owner of a disk towards everybody else: its clients, those who ask for its state or change
//! it, and whoever ends it.
//!
//! ```text
//!   acceptor, control plane ──messages──▶ Connections ──▶ owner's engine
//!                                             │  register: who is connected
//!                                             ▼
//!                                Doors: NBD (Transport), vhost-user (Devices)
//! ```
//!
//! The tenant is the group; a connection is an I/O context of it, made at its first command and
//! gone when it is closed and its last command is done.

#[cfg(test)]
mod arrivals;
mod client_log;
mod doors;
mod faults;
#[cfg(test)]
mod faulty;
mod greatest_rate;
mod group;
mod hold;
mod journal;
mod own_site;
mod quiesce;
mod recording;
mod register;
mod reload;
mod removal;
mod settings;
mod shutdown;
mod stat;
#[cfg(test)]
mod swarm;
mod targets;
mod tenants;
mod transport;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};

#[cfg(test)]
use paternoster::SchedulerKind;
use paternoster::{AnyScheduler, Instant};
use paternoster_disk::{Completion, Front, FrontToken, NoVolume, Outcome, Owner, VolumeId};

pub(crate) use self::doors::Door;
use self::doors::Doors;
use self::faults::Faults;
use self::greatest_rate::GreatestRate;
pub(crate) use self::hold::HeldDisk;
use self::hold::{Holding, bytes_of};
pub(crate) use self::journal::scheduler_of;
pub(crate) use self::own_site::OwnSite;
use self::quiesce::{Quiescing, far};
use self::recording::{end_recording, take_recorded};
use self::register::Register;
pub(crate) use self::removal::{ClientsOf, End, Removal, Removed};
use self::removal::{Flusher, Going};
use self::shutdown::{Patience, ShuttingDown};
use self::stat::elevator_now;
use self::targets::UnmetTargets;
pub(crate) use self::tenants::{Tenant, Tenants};
pub(crate) use self::transport::{Transport, nbd};
pub(crate) use self::volumes::Volumes;
use crate::clients::{ClientId, Export, Gone};
#[cfg(test)]
use crate::config::{BackendConfig, DiskKeys, PollMode};
use crate::config::{DiskConfig, Identity};
use crate::journal::{Journal, Note};
use crate::log::Limits;
use crate::messages::{Message, NewConnection, NewExport, NewVolume, VolumeMessage, VolumeState};
use crate::peer::Peer;
use crate::recording::Sink;
use crate::vhost::{SessionId, ToDevice};

/// Messages that are taken in a round: what machines' front-ends send is not to delay requests.
const MESSAGES: usize = 256;

/// The scheduler of a served disk.
pub(crate) type Scheduler = AnyScheduler<Sink>;

pub(crate) type DiskOwner = Owner<Scheduler>;

/// What is known of a disk that the back end and the elevator do not know.
#[derive(Debug)]
pub(crate) struct DiskLabel {
    /// Its configuration, with all that may change as it is in force.
    pub(crate) config: DiskConfig,
    pub(crate) volumes: Volumes,
    /// The devices that its file is on; none of another back end, and empty if unknown.
    pub(crate) devices: Option<BTreeSet<String>>,
}

#[cfg(test)]
impl DiskLabel {
    /// That of a disk in memory.
    fn in_memory(scheduler: SchedulerKind, volume: VolumeId) -> Self {
        let keys = DiskKeys { polling: PollMode::Interrupt.into(), ..DiskKeys::default() };
        let (name, backend) = ("d".to_owned(), BackendConfig::Memory { size: 1 });
        let config = DiskConfig::whole(name, keys, backend, scheduler.into());
        let volumes = Volumes::new(false, [(volume, &config.volumes[0])]);
        Self { config, volumes, devices: None }
    }
}

/// All that is asked of a disk's owner from outside.
#[derive(Debug)]
pub(crate) struct Connections {
    label: DiskLabel,
    tenants: Tenants,
    inbox: mpsc::Receiver<Message>,
    register: Register,
    doors: Doors,
    shutting_down: Option<ShuttingDown>,
    /// None unless another server is to go on.
    holding: Option<Holding>,
    patience: Patience,
    faults: Faults,
    limits: Limits,
    greatest_rate: GreatestRate,
    unmet_targets: UnmetTargets,
    /// Removals of volumes that have begun, and how many have so far.
    going: Vec<Going>,
    removals: u32,
    quiescing: Vec<Quiescing>,
}

impl Connections {
    pub(crate) fn new(
        label: DiskLabel,
        tenants: Tenants,
        inbox: mpsc::Receiver<Message>,
        transport: Box<dyn Transport>,
    ) -> Self {
        Self {
            tenants,
            inbox,
            register: Register::default(),
            doors: Doors::new(transport),
            shutting_down: None,
            holding: None,
            patience: Patience::default(),
            faults: Faults::default(),
            limits: Limits::default(),
            greatest_rate: GreatestRate::new(label.config.backend.modelled_ops()),
            unmet_targets: UnmetTargets::default(),
            going: Vec::new(),
            removals: 0,
            quiescing: Vec::new(),
            label,
        }
    }

    fn connect(&mut self, owner: &mut DiskOwner, new: NewConnection) {
        let were = new.resumed.as_ref().and_then(|resumed| resumed.bytes.as_ref());
        if were.is_some_and(|were| Some(were) != bytes_of(owner, &new.export).as_ref()) {
            let (export, peer) = (&new.export.name, new.peer);
            return tracing::warn!(
                export,
                %peer,
                "a client of the server before is closed: its export is other bytes now"
            );
        }
        // Else its socket is closed.
        let who = (new.peer, new.identity.clone());
        if let Some(client) = self.enter(&new.export, who, Door::Nbd) {
            self.doors.nbd.connect(owner.now(), client, new);
        }
    }

    /// Takes a client of an export in; none where that was removed while it came.
    fn enter(
        &mut self,
        export: &Arc<Export>,
        who: (Peer, Option<Identity>),
        door: Door,
    ) -> Option<ClientId> {
        let is_open = self.label.volumes.takes_clients(export.volume);
        if !is_open || !self.tenants.has_export(export) {
            return None;
        }
        self.label.volumes.connected(export.volume);
        self.tenants.connected(export.tenant, door);
        self.going.iter_mut().for_each(|one| one.count(export, true));
        let client = self.register.enter(Arc::clone(export), who, door);
        self.log_connected(client);
        Some(client)
    }

    /// Does what the front-end of a virtual machine wants of its device.
    fn tell_device(&mut self, owner: &mut DiskOwner, session: SessionId, message: ToDevice) {
        match message {
            ToDevice::Attach(new) => {
                // Else its session is told that there is no device.
                if let Some(client) = self.enter(&new.export, (new.peer, None), Door::VhostUser) {
                    let capabilities = owner.backend(new.export.volume).capabilities();
                    self.doors.devices.attach(session, client, new, &capabilities);
                }
            }
            ToDevice::Order(order) => {
                let (doors, mut site) = self.doors(owner);
                doors.devices.obey(&mut site, session, order);
            }
            ToDevice::Resize(size) => self.doors.devices.resize(session, size),
            ToDevice::Detach(why) => {
                let (doors, mut site) = self.doors(owner);
                doors.devices.detach(&mut site, session, why);
            }
        }
    }

    /// Forgets clients that are served no more.
    fn forget(&mut self, owner: &mut DiskOwner, gone: Vec<Gone>) {
        for Gone { client, why } in gone {
            let client = self.register.leave(client);
            self.label.volumes.disconnected(client.export.volume);
            self.tenants.disconnected(client.export.tenant, client.door);
            self.going.iter_mut().for_each(|one| one.count(&client.export, false));
            self.log_left(&client, why);
            owner.administer(|elevator, now| {
                if let Some(ioc) = client.ioc {
                    elevator.exit_io_context(now, ioc);
                    if let Some(journal) = &mut elevator.trace().journal {
                        journal.note(Note::Gone(ioc));
                    }
                }
                self.tenants.remove_unused(elevator, now, client.export.tenant);
            });
        }
    }

    /// Does what is wanted of volumes.
    fn tell_volume(&mut self, owner: &mut DiskOwner, message: VolumeMessage) {
        let is_here = |volume| self.label.volumes.is_here(volume);
        // Whoever asked may have gone.
        match message {
            VolumeMessage::Add(new, sender) => _ = sender.send(self.add_volume(owner, new)),
            VolumeMessage::Grow(volume, size, sender) if is_here(volume) => {
                let _ = sender.send(owner.grow_volume(volume, size));
            }
            VolumeMessage::Quiesce(volume, sender) if is_here(volume) => {
                self.quiesce(owner, volume, sender);
            }
            VolumeMessage::Resume(volume, sender) if is_here(volume) => {
                owner.resume_volume(volume);
                let _ = sender.send(());
            }
            VolumeMessage::States(volumes, sender) => {
                let _ = sender.send(self.volume_states(owner, &volumes));
            }
            VolumeMessage::Remove(removal, sender) => self.remove_volume(owner, removal, sender),
            VolumeMessage::Grow(..) | VolumeMessage::Quiesce(..) | VolumeMessage::Resume(..) => {}
        }
    }

    /// Serves another volume and its export, in a group that comes with it unless it is here.
    fn add_volume(
        &mut self,
        owner: &mut DiskOwner,
        new: NewVolume,
    ) -> Result<Arc<Export>, NoVolume> {
        let NewVolume { name, backend, io_prio, is_offered, lineage } = new;
        let volume = owner.add_volume(backend)?;
        self.follow_depth(owner);
        self.label.volumes.add(volume, name.clone());
        let new = NewExport { name, volume, offset: 0, io_prio, is_offered, lineage };
        Ok(self.add_export(owner, new))
    }

    /// Serves another export of a volume, in a group that comes with it unless it is here.
    fn add_export(&mut self, owner: &mut DiskOwner, new: NewExport) -> Arc<Export> {
        let place = owner.engine().place(new.volume);
        let tenants = &mut self.tenants;
        owner.administer(|elevator, now| tenants.add_export(elevator, now, new, place))
    }

    /// How those of the volumes are that there still are.
    fn volume_states(
        &self,
        owner: &DiskOwner,
        volumes: &[VolumeId],
    ) -> BTreeMap<VolumeId, VolumeState> {
        let here = volumes.iter().filter(|id| self.label.volumes.is_here(**id));
        let states = here.map(|&id| {
            let state = VolumeState {
                clients: self.label.volumes.clients(id),
                sync_failed: owner.engine().sync_stats(id).failed,
                damage: owner.backend(id).damage(),
                far: far(owner, id),
                warnings: owner.backend(id).warnings(owner.now()),
            };
            (id, state)
        });
        states.collect()
    }

    /// The doors, and this thread as they know it.
    fn doors<'a>(&'a mut self, owner: &'a mut DiskOwner) -> (&'a mut Doors, OwnSite<'a>) {
        let Self { label, tenants, register, doors, .. } = self;
        (doors, OwnSite { owner, tenants, register, volumes: &label.volumes })
    }
}

impl Front<Scheduler> for Connections {
    fn started(&mut self, _owner: &mut DiskOwner) {}

    fn ring_completed(&mut self, owner: &mut DiskOwner, completion: Completion<FrontToken>) {
        let (doors, mut site) = self.doors(owner);
        doors.ring_completed(&mut site, completion);
    }

    fn take_in(&mut self, owner: &mut DiskOwner) {
        let (doors, mut site) = self.doors(owner);
        let gone = doors.take_in(&mut site);
        self.forget(owner, gone);
    }

    fn command_done(&mut self, owner: &mut DiskOwner, outcome: Outcome) {
        if outcome.result.is_err() {
            self.report_faults(owner);
        }
        if let Some(journal) = &mut owner.trace().journal {
            journal.done(&outcome);
        }
        match Door::of(outcome.tag) {
            Door::Nbd | Door::VhostUser => {
                let (doors, mut site) = self.doors(owner);
                doors.command_done(&mut site, outcome);
            }
            Door::Own => match Flusher::of_key(outcome.tag.key) {
                Flusher::Shutdown => self.shutdown_flushed(outcome),
                Flusher::HandOver => self.far_flushed(&outcome),
                Flusher::Removal(number) => self.removal_synced(number, outcome),
            },
        }
    }

    fn woken(&mut self, owner: &mut DiskOwner) {
        for left in (0..MESSAGES).rev() {
            let Ok(message) = self.inbox.try_recv() else { return };
            if left == 0 {
                owner.wake_again();
            }
            match message {
                Message::Connect(new) => self.connect(owner, new),
                Message::Device(session, message) => self.tell_device(owner, session, message),
                Message::Stat(part) => self.tell_stat(owner, part),
                Message::Settings(sender) => {
                    let _ = sender.send(self.settings(owner));
                }
                Message::ChangeSettings(new, sender) => {
                    let _ = sender.send(self.change_settings(owner, &new));
                }
                Message::Compare(file, sender) => {
                    let _ = sender.send(self.compare(owner, &file));
                }
                Message::Reload(file, sender) => {
                    let _ = sender.send(self.reload(owner, &file));
                }
                Message::BeginRecording(reader, sender) => {
                    let _ = sender.send(self.begin_recording(owner, reader));
                }
                Message::TakeRecorded(room, sender) => {
                    if let Some(recorded) = take_recorded(owner, room) {
                        let _ = sender.send(recorded);
                    }
                }
                Message::EndRecording => end_recording(owner),
                Message::Journal(message) => self.tell_journal(owner, message),
                Message::SetGroup(settings, sender) => {
                    if let Some(answer) = self.set_group(owner, &settings) {
                        // Whoever asked may have gone.
                        let _ = sender.send(answer);
                    }
                }
                Message::Volume(message) => self.tell_volume(owner, message),
                Message::AddExport(new, sender) => {
                    if self.label.volumes.takes_clients(new.volume) {
                        let _ = sender.send(self.add_export(owner, new));
                    }
                }
                Message::ExportClients(exports, sender) => {
                    let clients = exports.into_iter().map(ClientsOf::Export);
                    let clients = clients.map(|of| self.register.clients(&of));
                    let _ = sender.send(clients.collect());
                }
                Message::RemoveExport(export, drain, sender) => {
                    self.remove_export(owner, export, drain, sender);
                }
                Message::HandOver(step) => self.hand_over(owner, step),
                Message::Shutdown(at_stop) => self.begin_shutdown(owner, at_stop),
            }
        }
    }

    fn round_over(&mut self, owner: &mut DiskOwner) -> ControlFlow<()> {
        let (doors, mut site) = self.doors(owner);
        doors.round_over(&mut site);
        let has_replied = |journal: &Journal| journal.has_ended_some();
        if owner.trace().journal.as_deref().is_some_and(has_replied) {
            let now = elevator_now(owner);
            if let Some(journal) = &mut owner.trace().journal {
                journal.round_over(now);
            }
        }
        for sentence in self.greatest_rate.measure(owner.now(), owner.engine().elevator()) {
            tracing::warn!(disk = self.label.config.name, "{sentence}");
        }
        self.report_targets(owner);
        self.report_faults(owner);
        self.go_on_removing(owner);
        self.go_on_quiescing(owner);
        self.go_on_holding(owner);
        self.go_on_shutting_down(owner)
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let ending = self.shutting_down.as_ref().map(ShuttingDown::deadline);
        let due = ending.into_iter().chain(self.removals_due());
        due.chain(self.doors.poll_timeout(now)).min()
    }

    fn has_arrived(&self) -> bool {
        self.doors.has_arrived()
    }

    fn is_costly_to_wake(&self) -> bool {
        self.doors.devices.are_looked_at()
    }

    fn falls_asleep(&mut self) -> bool {
        self.doors.falls_asleep()
    }

    fn awake(&mut self) {
        self.doors.awake();
    }
}
