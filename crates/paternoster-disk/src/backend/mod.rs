//! Back ends carry out transfers: on a file, in memory, in memory behind a model of a device, or by
//! another NBD server.

mod damage;
mod device;
mod file;
mod granules;
mod in_memory;
mod memory;
mod modelled;
mod nbd;

pub use damage::Damage;
pub use device::{Rotational, device_size, devices_of, is_rotational};
pub use file::{Cache, CacheChoice, FileBackend, FileOptions, block_of, program};
pub use granules::Granules;
pub use in_memory::is_in_memory;
pub use memory::MemoryBackend;
pub use modelled::{ModelledBackend, ModelledDevice, ModelledStats, ServersTime};
pub use nbd::{
    AfterReconnect, DialError, Far, FarStats, NbdBackend, NbdDialer, NbdOptions, NbdPlace, NbdTls,
    NbdUri, NbdUriError, QuiesceError, Quiesced, ServiceTimes, Unusable, ask_far,
};

use std::fmt::Debug;
use std::io;

use paternoster::Instant;
use rustix::fs::fstat;

use crate::engine::{Transfer, TransferId, Transferred, VolumeId};
use crate::guest::GuestReads;
use crate::ring::{Completion, Fd, Ring};
use crate::token::{BackendToken, Token};

/// The properties of a back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Bytes that it holds.
    pub size: u64,
    /// Whether it is rotational, as `queue/rotational` in sysfs says.
    pub rotational: bool,
    /// Whether zeroing a range is faster than writing it.
    pub fast_zero: bool,
    /// Requests in flight that keep it busy and no more.
    pub depth: BusyDepth,
    /// Bytes of a block, a power of two: every transfer is of whole ones, of which the last may be
    /// short. 1 where any byte can be read and written.
    pub block: u32,
    /// The most bytes that a read or a write may have; none where it takes any.
    pub max_transfer: Option<u32>,
    /// In what it forgets: trims of less do nothing. None where it does not say, or forgets
    /// nothing.
    pub granules: Option<Granules>,
    /// What a read straight into a machine's memory has to be; none where there is no such read.
    pub reads_into: Option<GuestReads>,
    /// Whether a sync makes anything durable: else clients are promised nothing.
    pub flushes: bool,
}

impl Capabilities {
    /// Makes those of a disk of so many bytes, which `depth` requests keep busy: any byte of it can
    /// be read and written, it does not rotate, zeroes without writing, and flushes.
    pub const fn new(size: u64, depth: u32) -> Self {
        Self {
            size,
            rotational: false,
            fast_zero: true,
            depth: BusyDepth::any(depth),
            block: 1,
            max_transfer: None,
            granules: None,
            reads_into: None,
            flushes: true,
        }
    }
}

/// Requests in flight that keep a back end busy and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyDepth {
    /// Under a scheduler that shares it between tenants: what is in flight can no longer be
    /// ordered.
    pub shared: u32,
    /// Under one that does not.
    pub unshared: u32,
}

impl BusyDepth {
    /// As many under any scheduler.
    pub const fn any(depth: u32) -> Self {
        Self { shared: depth, unshared: depth }
    }

    /// That of a device which rotates: it serves one at a time, and orders few.
    #[must_use]
    pub const fn of_rotational(self) -> Self {
        Self::any(self.shared)
    }

    /// That of a device with these back ends: the most that one says. While there is none it does
    /// not matter.
    pub fn of_all(depths: impl IntoIterator<Item = Self>) -> Self {
        let most = |one: Self, other: Self| Self {
            shared: one.shared.max(other.shared),
            unshared: one.unshared.max(other.unshared),
        };
        depths.into_iter().reduce(most).unwrap_or(Self::any(16))
    }
}

/// A range of a disk and whether anything is stored there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes.
    pub len: u64,
    /// Whether the range is not allocated and reads as zeroes.
    pub hole: bool,
}

/// Something that the operator of a disk should know, a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// All is well.
    Info(String),
    /// Something waits, or may be lost.
    Warning(String),
}

/// A transfer that is done.
#[derive(Debug)]
pub struct TransferDone {
    /// The engine's name for it.
    pub id: TransferId,
    /// What became of it.
    pub transferred: Transferred,
}

/// A back end: it carries out the transfers of one volume, on the owner's thread.
pub trait Backend: Send + Debug {
    /// What it is and can do.
    fn capabilities(&self) -> Capabilities;

    /// Begins a transfer, on the ring or at once; it is done when `take_done` or `ring_completed`
    /// says so. What it has read may be held for long after that, and must not change meanwhile.
    fn start(&mut self, ring: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer);

    /// One of its operations on the ring has completed: the transfer that is done by that.
    fn ring_completed(
        &mut self,
        _ring: &mut Ring<Token>,
        _completion: Completion<TransferId>,
    ) -> Option<TransferDone> {
        unreachable!("a back end that starts nothing on the ring hears of nothing")
    }

    /// The owner begins: operations on the ring that wait for something from outside may begin.
    /// `volume` is what this is the back end of, and names it in its tokens.
    fn begin(&mut self, _ring: &mut Ring<Token>, _volume: VolumeId) {}

    /// All that begins now has been started: it is told so after a transfer began, an operation on
    /// the ring completed, or a moment came that it had named.
    fn all_started(&mut self, _ring: &mut Ring<Token>) {}

    /// An operation on the ring that is no single transfer's has completed; transfers that are done
    /// by that are for `take_done`.
    fn ring_event(
        &mut self,
        _ring: &mut Ring<Token>,
        _now: Instant,
        _completion: Completion<BackendToken>,
    ) {
        unreachable!("a back end that starts nothing of its own on the ring hears of nothing")
    }

    /// What is behind it has so many bytes, which are more than before.
    fn grow(&mut self, _size: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The file or block device that it is, for another server to go on with: the lock, and the
    /// kernel's report of a failed write-back, are those of this descriptor.
    fn file(&self) -> Option<Fd> {
        None
    }

    /// Says whose bytes these are, so that a server which takes over finds out whether it has the
    /// same; none where they go with this program.
    fn identity(&self) -> Option<String> {
        if let Some(far) = self.far(Instant::START) {
            return Some(far.uri.to_string());
        }
        let seen = fstat(self.file()?).ok()?;
        let file = if seen.st_rdev == 0 { (seen.st_dev, seen.st_ino) } else { (seen.st_rdev, 0) };
        Some(format!("{:x}:{}", file.0, file.1))
    }

    /// Holds new requests, drains those in flight, flushes and disconnects: [`FarStats::quiesced`]
    /// says how far that is.
    fn quiesce(&mut self, _now: Instant) -> Result<(), QuiesceError> {
        Err(QuiesceError::NoServer)
    }

    /// Connects again, and goes on with what waits.
    fn resume(&mut self, _now: Instant) {}

    /// Whether the server behind it is away, so that requests wait for it.
    fn is_paused(&self) -> bool {
        false
    }

    /// The end has begun: what is not there is waited for no longer.
    fn begin_end(&mut self, _now: Instant) {}

    /// A transfer that is done by `now` without the ring.
    fn take_done(&mut self, _now: Instant) -> Option<TransferDone> {
        None
    }

    /// When `take_done` will have something.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Whether transfers take time, so that somebody waits for them; else they are done as soon as
    /// they have begun.
    fn takes_time(&self) -> bool {
        true
    }

    /// What is stored from `offset` on, at least one extent, up to `len` bytes.
    fn extents(&self, offset: u64, len: u64) -> io::Result<Vec<Extent>>;

    /// How it is known whether it is rotational, as a sentence.
    fn rotational_because(&self) -> String {
        "a disk in memory is not rotational".to_owned()
    }

    /// How it goes past the page cache; none where there is no file.
    fn cache(&self) -> Option<&Cache> {
        None
    }

    /// What others have done to what it stands on. To ask is cheap, and waits for nothing.
    fn damage(&self) -> Option<Damage> {
        None
    }

    /// What has happened to it since the last call that its operator should know.
    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// What its operator should know of it as it is now, a sentence each.
    fn warnings(&self, _now: Instant) -> Vec<String> {
        Vec::new()
    }

    /// The server that it is, where it is one.
    fn far(&self, _now: Instant) -> Option<FarStats> {
        None
    }

    /// The servers that a modelled device is made of, where it is.
    fn servers_time(&self) -> Option<ServersTime> {
        None
    }

    /// What `stat` reports of a modelled device.
    fn modelled(&self, _now: Instant) -> Option<ModelledStats> {
        None
    }
}
