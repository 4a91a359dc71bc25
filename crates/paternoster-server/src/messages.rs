//! The messages of other threads to the owner of a disk.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak, mpsc};

use bytes::{Bytes, BytesMut};
#[cfg(test)]
use paternoster::Weight;
use paternoster::{DeviceWeights, GroupLimits, IoPrio, Nanos, TimedEvents, Weights};
use paternoster_disk::{
    Backend, Damage, FarStats, Fd, GrowError, NoVolume, QuiesceError, VolumeId, Waker,
};
use paternoster_nbd::Session;
use paternoster_nbd::server::RefusedWrite;
use paternoster_nbd::tls::Tls;

use crate::admission::Admitted;
use crate::clients::Export;
use crate::config::{AtStop, DiskConfig, Identity};
use crate::connections::{HeldDisk, Removal, Removed};
use crate::ctl::{
    Change, GroupError, GroupInForce, NewGroup, SettingError, Settings, SettingsInForce,
};
use crate::journal::{Begin, Entry, From, Part, Wanted};
use crate::peer::Peer;
use crate::recording::{Paths, Recorded};
use crate::stat::{Detail, DiskStat, GroupStat, VolumeStat};
use crate::vhost::{SessionId, ToDevice};

/// A client that has entered an export.
#[derive(Debug)]
pub(crate) struct NewConnection {
    pub(crate) socket: Fd,
    /// What is between that and the rest, if it is something.
    pub(crate) tls: Option<Box<Tls>>,
    /// By which of its certificate's names it has entered.
    pub(crate) identity: Option<Identity>,
    pub(crate) session: Session,
    /// What it has sent beyond the option phase.
    pub(crate) input: BytesMut,
    pub(crate) export: Arc<Export>,
    pub(crate) peer: Peer,
    pub(crate) admitted: Admitted,
    /// What another server has left of it, if that has served it until now.
    pub(crate) resumed: Option<Resumed>,
}

/// What a server has known of disks that this one serves now.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftDisk {
    /// Of which images a sync has failed, or data may be lost: see [`Backend::identity`].
    pub(crate) not_durable: Vec<String>,
    /// The depth that the disk's scheduler has learned, if it learns one.
    pub(crate) learned_depth: Option<u32>,
}

/// What a server has left of a connection beside its session and its input.
#[derive(Debug, Default)]
pub(crate) struct Resumed {
    /// A write that is refused, and whose payload is not all here.
    pub(crate) refused: Option<RefusedWrite>,
    /// Whether there was credit for all of the payload whose beginning has come.
    pub(crate) has_room: bool,
    /// What has not been sent.
    pub(crate) output: Bytes,
    /// The bytes that its export was: of which image, and from where on.
    pub(crate) bytes: Option<(String, u64)>,
}

/// A message to an owner.
#[derive(Debug)]
pub(crate) enum Message {
    Connect(NewConnection),
    Device(SessionId, ToDevice),
    Stat(StatPart),
    SetGroup(GroupSettings, mpsc::Sender<Result<GroupInForce, GroupError>>),
    Settings(mpsc::Sender<SettingsInForce>),
    ChangeSettings(Settings, mpsc::Sender<Result<SettingsInForce, SettingError>>),
    BeginRecording(Weak<()>, mpsc::Sender<Option<Paths>>),
    TakeRecorded(TimedEvents, mpsc::Sender<Recorded>),
    EndRecording,
    Journal(JournalMessage),
    Compare(FileDisk, mpsc::Sender<Vec<Change>>),
    Reload(FileDisk, mpsc::Sender<Vec<Change>>),
    Volume(VolumeMessage),
    AddExport(NewExport, mpsc::Sender<Arc<Export>>),
    ExportClients(Vec<Arc<Export>>, mpsc::Sender<Vec<u32>>),
    RemoveExport(Arc<Export>, Nanos, mpsc::Sender<Removed>),
    HandOver(HandOverStep),
    Shutdown(AtStop),
}

/// A message about volumes. To one about a volume that has gone nothing is answered.
#[derive(Debug)]
pub(crate) enum VolumeMessage {
    Add(NewVolume, mpsc::Sender<Result<Arc<Export>, NoVolume>>),
    Grow(VolumeId, u64, mpsc::Sender<Result<(), GrowError>>),
    Quiesce(VolumeId, mpsc::Sender<Result<(), QuiesceError>>),
    Resume(VolumeId, mpsc::Sender<()>),
    States(Vec<VolumeId>, mpsc::Sender<BTreeMap<VolumeId, VolumeState>>),
    Remove(Removal, mpsc::Sender<Removed>),
}

/// A message of whoever records the disk.
#[derive(Debug)]
pub(crate) enum JournalMessage {
    Begin(Wanted, mpsc::Sender<Option<Begin>>),
    Take(From, Vec<Entry>, mpsc::Sender<Part>),
    End,
}

/// A step of one server taking over from another.
#[derive(Debug)]
pub(crate) enum HandOverStep {
    Files(mpsc::Sender<Result<Vec<Fd>, String>>),
    Hold(mpsc::Sender<Result<HeldDisk, String>>),
    GoOn,
    TakeOver(LeftDisk),
}

/// What of its statistics an owner is asked for.
#[derive(Debug)]
pub(crate) enum StatPart {
    Whole(Detail, mpsc::Sender<DiskStat>),
    WithoutGroups(mpsc::Sender<DiskStat>),
    Groups(Vec<String>, mpsc::Sender<Vec<GroupStat>>),
    Volumes(Vec<VolumeId>, mpsc::Sender<Vec<VolumeStat>>),
}

/// What the file says of a disk that is served, as far as it may change while clients are served.
#[derive(Clone, Debug)]
pub(crate) struct FileDisk {
    pub(crate) disk: DiskConfig,
    /// Those that are served and in the file, in the order of the served.
    pub(crate) groups: Vec<GroupOnDisk>,
}

/// What is set of a group on one disk.
#[derive(Clone, Debug)]
pub(crate) struct GroupOnDisk {
    /// Its path.
    pub(crate) path: String,
    pub(crate) weights: Weights,
    /// The weights on this disk alone.
    pub(crate) on_device: DeviceWeights,
    pub(crate) limits: GroupLimits,
}

/// A tenant that is to be on a disk.
#[derive(Clone, Debug)]
pub(crate) struct NewTenant {
    pub(crate) group: GroupOnDisk,
    /// Bytes that its clients may hold.
    pub(crate) memory: u64,
}

/// What to set of a group of the disk.
#[derive(Debug)]
pub(crate) struct GroupSettings {
    /// Its path.
    pub(crate) group: String,
    pub(crate) settings: NewGroup,
}

#[cfg(test)]
impl NewTenant {
    /// One with nothing set.
    pub(crate) fn plain(path: &str, memory: u64) -> Self {
        let (weights, on_device) = (Weight::default().into(), DeviceWeights::default());
        let (path, limits) = (path.to_owned(), GroupLimits::NONE);
        Self { group: GroupOnDisk { path, weights, on_device, limits }, memory }
    }
}

/// A volume that is to be served, with the export that is all of it.
#[derive(Debug)]
pub(crate) struct NewVolume {
    pub(crate) name: String,
    pub(crate) backend: Box<dyn Backend>,
    pub(crate) io_prio: IoPrio,
    /// Whether that is one.
    pub(crate) is_offered: bool,
    /// Its group, and before it those above, the topmost first.
    pub(crate) lineage: Vec<NewTenant>,
}

/// An export that is to be served.
#[derive(Debug)]
pub(crate) struct NewExport {
    pub(crate) name: String,
    pub(crate) volume: VolumeId,
    /// Where on the volume it starts, in bytes.
    pub(crate) offset: u64,
    pub(crate) io_prio: IoPrio,
    /// Whether clients may see it.
    pub(crate) is_offered: bool,
    /// Its group, and before it those above, the topmost first.
    pub(crate) lineage: Vec<NewTenant>,
}

/// How a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VolumeState {
    /// Clients that are connected.
    pub(crate) clients: u32,
    /// Whether a sync has failed.
    pub(crate) sync_failed: bool,
    /// What is wrong with its image.
    pub(crate) damage: Option<Damage>,
    /// The server that it is, if it is one.
    pub(crate) far: Option<FarStats>,
    /// What is to be said of that.
    pub(crate) warnings: Vec<String>,
}

/// Sends messages to one owner.
#[derive(Clone, Debug)]
pub(crate) struct OwnerHandle {
    sender: mpsc::Sender<Message>,
    waker: Waker,
}

impl OwnerHandle {
    pub(crate) fn new(sender: mpsc::Sender<Message>, waker: Waker) -> Self {
        Self { sender, waker }
    }

    /// Hands a client over. Where the owner has stopped, the socket is closed.
    pub(crate) fn connect(&self, connection: NewConnection) {
        self.send(Message::Connect(connection));
    }

    /// Tells a device of a disk's export something of its front-end. Where the owner has stopped,
    /// one that comes is told so.
    pub(crate) fn tell_device(&self, session: SessionId, message: ToDevice) {
        self.send(Message::Device(session, message));
    }

    /// Asks for the disk's statistics. Nothing comes where the owner has stopped.
    pub(crate) fn stat(&self, detail: Detail) -> mpsc::Receiver<DiskStat> {
        self.ask(|sender| Message::Stat(StatPart::Whole(detail, sender)))
    }

    /// The same without groups.
    pub(crate) fn stat_without_groups(&self) -> mpsc::Receiver<DiskStat> {
        self.ask(|sender| Message::Stat(StatPart::WithoutGroups(sender)))
    }

    /// Asks for the statistics of those groups. Nothing comes where the owner has stopped.
    pub(crate) fn group_stats(&self, paths: Vec<String>) -> mpsc::Receiver<Vec<GroupStat>> {
        self.ask(|sender| Message::Stat(StatPart::Groups(paths, sender)))
    }

    /// The same of those volumes that there still are.
    pub(crate) fn volume_stats(&self, volumes: Vec<VolumeId>) -> mpsc::Receiver<Vec<VolumeStat>> {
        self.ask(|sender| Message::Stat(StatPart::Volumes(volumes, sender)))
    }

    /// Has the owner change what is set of a group; what is in force then. Nothing comes where the
    /// owner has stopped, or has no such group.
    pub(crate) fn set_group(
        &self,
        settings: GroupSettings,
    ) -> mpsc::Receiver<Result<GroupInForce, GroupError>> {
        self.ask(|sender| Message::SetGroup(settings, sender))
    }

    /// Asks for what is set of the disk. Nothing comes where the owner has stopped.
    pub(crate) fn settings(&self) -> mpsc::Receiver<SettingsInForce> {
        self.ask(Message::Settings)
    }

    /// Has the owner change what is set of the disk; what is in force then. Nothing comes where the
    /// owner has stopped.
    pub(crate) fn change_settings(
        &self,
        new: Settings,
    ) -> mpsc::Receiver<Result<SettingsInForce, SettingError>> {
        self.ask(|sender| Message::ChangeSettings(new, sender))
    }

    /// Has the owner record what its scheduler decides, for as long as `reader` is there; the paths
    /// of its groups, or none where somebody else reads already. Nothing comes where the owner has
    /// stopped.
    pub(crate) fn begin_recording(&self, reader: Weak<()>) -> mpsc::Receiver<Option<Paths>> {
        self.ask(|sender| Message::BeginRecording(reader, sender))
    }

    /// Asks for what was recorded since the last time; `room` holds what comes next. Nothing comes
    /// where the owner has stopped.
    pub(crate) fn take_recorded(&self, room: TimedEvents) -> mpsc::Receiver<Recorded> {
        self.ask(|sender| Message::TakeRecorded(room, sender))
    }

    /// Has the owner look whether the reader of its recording has gone, which ends it.
    pub(crate) fn end_recording(&self) {
        self.send(Message::EndRecording);
    }

    /// Asks for what a recording of the disk begins with; none where the past is wanted and is not
    /// kept. Nothing comes where the owner has stopped.
    pub(crate) fn begin_journal(&self, wanted: Wanted) -> mpsc::Receiver<Option<Begin>> {
        self.ask(|sender| Message::Journal(JournalMessage::Begin(wanted, sender)))
    }

    /// Asks for entries from there on, as many as `room` holds. Nothing comes where the owner has
    /// stopped.
    pub(crate) fn take_journal(&self, from: From, room: Vec<Entry>) -> mpsc::Receiver<Part> {
        self.ask(|sender| Message::Journal(JournalMessage::Take(from, room, sender)))
    }

    /// Tells the owner that its recording has ended.
    pub(crate) fn end_journal(&self) {
        self.send(Message::Journal(JournalMessage::End));
    }

    /// Asks in what the disk is not as the file says. Nothing comes where the owner has stopped.
    pub(crate) fn compare(&self, file: FileDisk) -> mpsc::Receiver<Vec<Change>> {
        self.ask(|sender| Message::Compare(file, sender))
    }

    /// Has the owner make the disk as the file says; in what it was not. Nothing comes where the
    /// owner has stopped.
    pub(crate) fn reload(&self, file: FileDisk) -> mpsc::Receiver<Vec<Change>> {
        self.ask(|sender| Message::Reload(file, sender))
    }

    /// Has the owner serve another volume. Nothing comes where the owner has stopped.
    pub(crate) fn add_volume(
        &self,
        new: NewVolume,
    ) -> mpsc::Receiver<Result<Arc<Export>, NoVolume>> {
        self.ask(|sender| Message::Volume(VolumeMessage::Add(new, sender)))
    }

    /// Tells the owner that what is behind a volume has so many bytes now. Nothing comes where the
    /// owner has stopped.
    pub(crate) fn grow_volume(
        &self,
        volume: VolumeId,
        size: u64,
    ) -> mpsc::Receiver<Result<(), GrowError>> {
        self.ask(|sender| Message::Volume(VolumeMessage::Grow(volume, size, sender)))
    }

    /// Has requests of a volume wait, and its server disconnected when everything is durable; that
    /// may take long. Nothing comes where the owner has stopped, or the volume has gone.
    pub(crate) fn quiesce_volume(
        &self,
        volume: VolumeId,
    ) -> mpsc::Receiver<Result<(), QuiesceError>> {
        self.ask(|sender| Message::Volume(VolumeMessage::Quiesce(volume, sender)))
    }

    /// Has the owner go on with a volume that was quiesced. Nothing comes where it has stopped, or
    /// the volume has gone.
    pub(crate) fn resume_volume(&self, volume: VolumeId) -> mpsc::Receiver<()> {
        self.ask(|sender| Message::Volume(VolumeMessage::Resume(volume, sender)))
    }

    /// Asks how volumes are; those that are gone are not in the answer. Nothing comes where the
    /// owner has stopped.
    pub(crate) fn volume_states(
        &self,
        volumes: Vec<VolumeId>,
    ) -> mpsc::Receiver<BTreeMap<VolumeId, VolumeState>> {
        self.ask(|sender| Message::Volume(VolumeMessage::States(volumes, sender)))
    }

    /// Has the owner remove a volume, with all of its exports: what is left of it, which may take
    /// long. Nothing comes where the owner has stopped.
    pub(crate) fn remove_volume(&self, removal: Removal) -> mpsc::Receiver<Removed> {
        self.ask(|sender| Message::Volume(VolumeMessage::Remove(removal, sender)))
    }

    /// Has the owner serve another export of a volume. Nothing comes where the owner has stopped,
    /// or the volume has gone.
    pub(crate) fn add_export(&self, new: NewExport) -> mpsc::Receiver<Arc<Export>> {
        self.ask(|sender| Message::AddExport(new, sender))
    }

    /// Asks how many clients of each export are connected. Nothing comes where the owner has
    /// stopped.
    pub(crate) fn export_clients(&self, exports: Vec<Arc<Export>>) -> mpsc::Receiver<Vec<u32>> {
        self.ask(|sender| Message::ExportClients(exports, sender))
    }

    /// Has the owner remove an export, whose clients have so long to leave. Nothing comes where the
    /// owner has stopped.
    pub(crate) fn remove_export(
        &self,
        export: Arc<Export>,
        drain: Nanos,
    ) -> mpsc::Receiver<Removed> {
        self.ask(|sender| Message::RemoveExport(export, drain, sender))
    }

    /// Asks for the files of the disk's volumes, or why another server cannot go on with one.
    /// Nothing comes where the owner has stopped.
    pub(crate) fn files(&self) -> mpsc::Receiver<Result<Vec<Fd>, String>> {
        self.ask(|sender| Message::HandOver(HandOverStep::Files(sender)))
    }

    /// Tells the owner what the server before knew of the disk.
    pub(crate) fn take_over(&self, left: LeftDisk) {
        self.send(Message::HandOver(HandOverStep::TakeOver(left)));
    }

    /// Has the owner finish what is in the device and give up all else, for another server to go
    /// on: what that needs, or why it cannot. Nothing comes where the owner has stopped.
    pub(crate) fn hold(&self) -> mpsc::Receiver<Result<HeldDisk, String>> {
        self.ask(|sender| Message::HandOver(HandOverStep::Hold(sender)))
    }

    /// Has the owner go on itself.
    pub(crate) fn go_on(&self) {
        self.send(Message::HandOver(HandOverStep::GoOn));
    }

    /// Has the owner finish what is in the device, and stop; `at_stop` says what becomes of what
    /// waits.
    pub(crate) fn shut_down(&self, at_stop: AtStop) {
        self.send(Message::Shutdown(at_stop));
    }

    /// Sends a message with the place for its answer. Nothing comes where the owner has stopped.
    fn ask<T>(&self, message: impl FnOnce(mpsc::Sender<T>) -> Message) -> mpsc::Receiver<T> {
        let (sender, receiver) = mpsc::channel();
        self.send(message(sender));
        receiver
    }

    fn send(&self, message: Message) {
        // An owner that has stopped has dropped its end: the message is dropped as well.
        let _ = self.sender.send(message);
        self.waker.wake();
    }
}
