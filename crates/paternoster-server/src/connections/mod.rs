//! The owner of a disk towards everybody else: its clients, those who ask for its state or change
//! it, and whoever ends it.
//!
//! ```text
//!   acceptor, control plane ──messages──▶ Connections ──▶ owner's engine
//!                                             │  register: who is connected
//!                                             ▼
//!                         Transport: Clients, on this thread; or the Hub of connection threads
//! ```
//!
//! The tenant is the group; a connection is an I/O context of it, made at its first command and
//! gone when it is closed and its last command is done.

#[cfg(test)]
mod arrivals;
mod client_log;
mod faults;
#[cfg(test)]
mod faulty;
mod greatest_rate;
mod group;
mod own_site;
mod recording;
mod register;
mod reload;
mod settings;
mod shutdown;
mod stat;
#[cfg(test)]
mod swarm;
mod targets;
mod transport;
mod volumes;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};

#[cfg(test)]
use paternoster::SchedulerKind;
use paternoster::{AnyScheduler, GroupId, Instant};
#[cfg(test)]
use paternoster_disk::VolumeId;
use paternoster_disk::{Completion, Front, FrontToken, Outcome, Owner};
use slotmap::SlotMap;

use self::faults::Faults;
use self::greatest_rate::GreatestRate;
pub(crate) use self::own_site::OwnSite;
use self::recording::{end_recording, take_recorded};
use self::register::Register;
use self::shutdown::{Patience, ShuttingDown};
use self::targets::UnmetTargets;
pub(crate) use self::transport::{Transport, nbd};
pub(crate) use self::volumes::Volumes;
use crate::clients::{Export, Gone, TenantId};
use crate::config::DiskConfig;
#[cfg(test)]
use crate::config::{BackendConfig, DiskKeys, PollMode};
use crate::log::Limits;
use crate::messages::{Message, NewConnection};
use crate::recording::Sink;

/// The scheduler of a served disk.
pub(crate) type Scheduler = AnyScheduler<Sink>;

pub(crate) type DiskOwner = Owner<Scheduler>;

/// A tenant of the disk.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) path: String,
    pub(crate) group: GroupId,
    /// Its clients that are connected.
    connections: u32,
}

impl Tenant {
    /// A tenant without clients.
    pub(crate) fn new(path: String, group: GroupId) -> Self {
        Self { path, group, connections: 0 }
    }
}

/// What is known of a disk that the back end and the elevator do not know.
#[derive(Debug)]
pub(crate) struct DiskLabel {
    /// Its configuration, with all that may change as it is in force.
    pub(crate) config: DiskConfig,
    pub(crate) volumes: Volumes,
    /// The devices that its file is on; none of another back end, and empty if unknown.
    pub(crate) devices: Option<BTreeSet<String>>,
    /// That other disks are on the same device, as a sentence.
    pub(crate) shares: Option<String>,
}

#[cfg(test)]
impl DiskLabel {
    /// That of a disk in memory.
    fn in_memory(scheduler: SchedulerKind, volume: VolumeId) -> Self {
        let keys = DiskKeys { polling: PollMode::Interrupt.into(), ..DiskKeys::default() };
        let (name, backend) = ("d".to_owned(), BackendConfig::Memory { size: 1 });
        let config = DiskConfig::whole(name, keys, backend, scheduler.into());
        let volumes = Volumes::new(false, [(volume, &config.volumes[0])]);
        Self { config, volumes, devices: None, shares: None }
    }
}

/// All that is asked of a disk's owner from outside.
#[derive(Debug)]
pub(crate) struct Connections {
    label: DiskLabel,
    exports: Vec<Arc<Export>>,
    tenants: SlotMap<TenantId, Tenant>,
    inbox: mpsc::Receiver<Message>,
    register: Register,
    transport: Box<dyn Transport>,
    shutting_down: Option<ShuttingDown>,
    patience: Patience,
    faults: Faults,
    limits: Limits,
    greatest_rate: GreatestRate,
    unmet_targets: UnmetTargets,
}

impl Connections {
    pub(crate) fn new(
        label: DiskLabel,
        exports: Vec<Arc<Export>>,
        tenants: SlotMap<TenantId, Tenant>,
        inbox: mpsc::Receiver<Message>,
        transport: Box<dyn Transport>,
    ) -> Self {
        Self {
            exports,
            tenants,
            inbox,
            register: Register::default(),
            transport,
            shutting_down: None,
            patience: Patience::default(),
            faults: Faults::default(),
            limits: Limits::default(),
            greatest_rate: GreatestRate::new(label.config.backend().modelled_ops()),
            unmet_targets: UnmetTargets::default(),
            label,
        }
    }

    fn connect(&mut self, owner: &mut DiskOwner, new: NewConnection) {
        self.tenants[new.export.tenant].connections += 1;
        let client = self.register.enter(Arc::clone(&new.export), new.peer);
        self.log_connected(client);
        self.transport.connect(owner.now(), client, new);
    }

    /// Forgets clients that are served no more.
    fn forget(&mut self, owner: &mut DiskOwner, gone: Vec<Gone>) {
        for Gone { client, why } in gone {
            let client = self.register.leave(client);
            self.tenants[client.export.tenant].connections -= 1;
            self.log_left(&client, why);
            if let Some(ioc) = client.ioc {
                owner.administer(|elevator, now| elevator.exit_io_context(now, ioc));
            }
        }
    }

    /// The transport, and this thread as it knows it.
    fn transport<'a>(
        &'a mut self,
        owner: &'a mut DiskOwner,
    ) -> (&'a mut dyn Transport, OwnSite<'a>) {
        let Self { tenants, register, transport, .. } = self;
        (&mut **transport, OwnSite { owner, tenants, register })
    }
}

impl Front<Scheduler> for Connections {
    fn started(&mut self, _owner: &mut DiskOwner) {}

    fn ring_completed(&mut self, owner: &mut DiskOwner, completion: Completion<FrontToken>) {
        let (transport, mut site) = self.transport(owner);
        transport.ring_completed(&mut site, completion);
    }

    fn take_in(&mut self, owner: &mut DiskOwner) {
        let (transport, mut site) = self.transport(owner);
        let gone = transport.take_in(&mut site);
        self.forget(owner, gone);
    }

    fn command_done(&mut self, owner: &mut DiskOwner, outcome: Outcome) {
        if outcome.result.is_err() {
            self.report_faults(owner);
        }
        if let Some(outcome) = self.take_flush_outcome(outcome) {
            self.transport.command_done(outcome);
        }
    }

    fn woken(&mut self, owner: &mut DiskOwner) {
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Connect(new) => self.connect(owner, new),
                Message::Stat(detail, sender) => {
                    // Whoever asked may have gone.
                    let _ = sender.send(self.stat(owner, detail));
                }
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
                Message::SetGroup(settings, sender) => {
                    if let Some(answer) = self.set_group(owner, &settings) {
                        // Whoever asked may have gone.
                        let _ = sender.send(answer);
                    }
                }
                Message::Shutdown(at_stop) => self.begin_shutdown(owner, at_stop),
            }
        }
    }

    fn round_over(&mut self, owner: &mut DiskOwner) -> ControlFlow<()> {
        let (transport, mut site) = self.transport(owner);
        transport.round_over(&mut site);
        for sentence in self.greatest_rate.measure(owner.now(), owner.engine().elevator()) {
            tracing::warn!(disk = self.label.config.name, "{sentence}");
        }
        self.report_targets(owner);
        self.report_faults(owner);
        self.go_on_shutting_down(owner)
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let ending = self.shutting_down.as_ref().map(ShuttingDown::deadline);
        ending.into_iter().chain(self.transport.poll_timeout(now)).min()
    }

    fn has_arrived(&self) -> bool {
        self.transport.has_arrived()
    }

    fn falls_asleep(&mut self) -> bool {
        self.transport.falls_asleep()
    }

    fn awake(&mut self) {
        self.transport.awake();
    }
}
