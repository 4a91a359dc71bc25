//! The messages of other threads to the owner of a disk.

use std::sync::{Arc, Weak, mpsc};

use bytes::BytesMut;
use paternoster::{DeviceWeights, GroupLimits, TimedEvents, Weights};
use paternoster_disk::{Fd, Waker};
use paternoster_nbd::Session;

use crate::admission::Admitted;
use crate::clients::Export;
use crate::config::{AtStop, DiskConfig};
use crate::ctl::{
    Change, GroupError, GroupInForce, NewGroup, SettingError, Settings, SettingsInForce,
};
use crate::peer::Peer;
use crate::recording::{Paths, Recorded};
use crate::stat::{Detail, DiskStat};

/// A client that has entered an export.
#[derive(Debug)]
pub(crate) struct NewConnection {
    pub(crate) socket: Fd,
    pub(crate) session: Session,
    /// What it has sent beyond the option phase.
    pub(crate) input: BytesMut,
    pub(crate) export: Arc<Export>,
    pub(crate) peer: Peer,
    pub(crate) admitted: Admitted,
}

/// A message to an owner.
#[derive(Debug)]
pub(crate) enum Message {
    Connect(NewConnection),
    Stat(Detail, mpsc::Sender<DiskStat>),
    SetGroup(GroupSettings, mpsc::Sender<Result<GroupInForce, GroupError>>),
    Settings(mpsc::Sender<SettingsInForce>),
    ChangeSettings(Settings, mpsc::Sender<Result<SettingsInForce, SettingError>>),
    BeginRecording(Weak<()>, mpsc::Sender<Option<Paths>>),
    TakeRecorded(TimedEvents, mpsc::Sender<Recorded>),
    EndRecording,
    Compare(FileDisk, mpsc::Sender<Vec<Change>>),
    Reload(FileDisk, mpsc::Sender<Vec<Change>>),
    Shutdown(AtStop),
}

/// What the file says of a disk that is served, as far as it may change while clients are served.
#[derive(Clone, Debug)]
pub(crate) struct FileDisk {
    pub(crate) disk: DiskConfig,
    /// Those that are served and in the file, in the order of the served.
    pub(crate) groups: Vec<FileGroup>,
}

/// What the file says of a group of the disk.
#[derive(Clone, Debug)]
pub(crate) struct FileGroup {
    /// Its path.
    pub(crate) path: String,
    pub(crate) weights: Weights,
    /// The weights on this disk alone.
    pub(crate) on_device: DeviceWeights,
    pub(crate) limits: GroupLimits,
}

/// What to set of a group of the disk.
#[derive(Debug)]
pub(crate) struct GroupSettings {
    /// Its path.
    pub(crate) group: String,
    pub(crate) settings: NewGroup,
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

    /// Asks for the disk's statistics. Nothing comes where the owner has stopped.
    pub(crate) fn stat(&self, detail: Detail) -> mpsc::Receiver<DiskStat> {
        let (sender, receiver) = mpsc::channel();
        self.send(Message::Stat(detail, sender));
        receiver
    }

    /// Has the owner change what is set of a group; what is in force then. Nothing comes where the
    /// owner has stopped, or has no such group.
    pub(crate) fn set_group(
        &self,
        settings: GroupSettings,
    ) -> mpsc::Receiver<Result<GroupInForce, GroupError>> {
        let (sender, receiver) = mpsc::channel();
        self.send(Message::SetGroup(settings, sender));
        receiver
    }

    /// Asks for what is set of the disk. Nothing comes where the owner has stopped.
    pub(crate) fn settings(&self) -> mpsc::Receiver<SettingsInForce> {
        let (sender, receiver) = mpsc::channel();
        self.send(Message::Settings(sender));
        receiver
    }

    /// Has the owner change what is set of the disk; what is in force then. Nothing comes where the
    /// owner has stopped.
    pub(crate) fn change_settings(
        &self,
        new: Settings,
    ) -> mpsc::Receiver<Result<SettingsInForce, SettingError>> {
        let (sender, receiver) = mpsc::channel();
        self.send(Message::ChangeSettings(new, sender));
        receiver
    }

    /// Has the owner record what its scheduler decides, for as long as `reader` is there; the paths
    /// of its groups, or none where somebody else reads already. Nothing comes where the owner has
    /// stopped.
    pub(crate) fn begin_recording(&self, reader: Weak<()>) -> mpsc::Receiver<Option<Paths>> {
        let (sender, receiver) = mpsc::channel();
        self.send(Message::BeginRecording(reader, sender));
        receiver
    }

    /// Asks for what was recorded since the last time; `room` holds what comes next. Nothing comes
    /// where the owner has stopped.
    pub(crate) fn take_recorded(&self, room: TimedEvents) -> mpsc::Receiver<Recorded> {
        let (sender, receiver) = mpsc::channel();
        self.send(Message::TakeRecorded(room, sender));
        receiver
    }

    /// Has the owner look whether the reader of its recording has gone, which ends it.
    pub(crate) fn end_recording(&self) {
        self.send(Message::EndRecording);
    }

    /// Asks in what the disk is not as the file says. Nothing comes where the owner has stopped.
    pub(crate) fn compare(&self, file: FileDisk) -> mpsc::Receiver<Vec<Change>> {
        let (sender, receiver) = mpsc::channel();
        self.send(Message::Compare(file, sender));
        receiver
    }

    /// Has the owner make the disk as the file says; in what it was not. Nothing comes where the
    /// owner has stopped.
    pub(crate) fn reload(&self, file: FileDisk) -> mpsc::Receiver<Vec<Change>> {
        let (sender, receiver) = mpsc::channel();
        self.send(Message::Reload(file, sender));
        receiver
    }

    /// Has the owner finish what is in the device, and stop; `at_stop` says what becomes of what
    /// waits.
    pub(crate) fn shut_down(&self, at_stop: AtStop) {
        self.send(Message::Shutdown(at_stop));
    }

    fn send(&self, message: Message) {
        // An owner that has stopped has dropped its end: the message is dropped as well.
        let _ = self.sender.send(message);
        self.waker.wake();
    }
}
