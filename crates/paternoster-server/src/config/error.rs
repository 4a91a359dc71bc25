//! The mistakes of a configuration: each says what was found, where, and what is allowed.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;

use paternoster::{NoHierarchy, ParseIoPrioError, SchedulerKind, TunableError};
use paternoster_disk::NbdUriError;
use paternoster_model::DeviceError;
use thiserror::Error;

use super::keys::{DEPTH_MAX, caps};
use super::listen::ListenAddress;
use super::scheduler::AUTO;
use crate::borders::InsideBlock;

/// The error of a configuration that cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is too large for a configuration, as a disk image mostly is.
    #[error(
        "{} has more than {max} bytes, which a configuration may have at most; a disk image is \
         named with --disk", path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How many bytes it may have.
        max: u64,
    },
    /// What is wrong in it: at least one mistake, those of a file in the order of its lines. Each
    /// is a line.
    #[error("{}", lines(.0))]
    Mistakes(Vec<Mistake>),
}

fn lines(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// One thing that is not allowed, by itself or beside the others.
#[derive(Debug, Error)]
#[error("{place}: {problem}")]
pub struct Mistake {
    /// Where it was written.
    pub place: Place,
    /// What is wrong with it.
    pub problem: Problem,
}

/// The place where a value was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
    },
    /// Nowhere in particular in a file: something is missing.
    File(PathBuf),
    /// On the command line, after this option.
    Option(&'static str),
    /// In the body of a request.
    Body,
    /// On the command line as a whole.
    #[default]
    CommandLine,
}

impl Place {
    /// The mistake that is `problem` in this place.
    pub(super) fn mistake(&self, problem: Problem) -> Mistake {
        Mistake { place: self.clone(), problem }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { path, line } => write!(f, "{}:{line}", path.display()),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Option(name) => f.write_str(name),
            Self::Body => f.write_str("body"),
            Self::CommandLine => f.write_str("command line"),
        }
    }
}

/// What is wrong with a value.
#[derive(Debug, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum Problem {
    /// A line that is not in UTF-8, such as one in Latin-1.
    #[error("the byte 0x{byte:02x} is not UTF-8; text in UTF-8 is allowed")]
    NotUtf8 { byte: u8 },
    /// Something that is no TOML.
    #[error("{message}")]
    Syntax { message: String },
    /// A key written twice.
    #[error("{found} is written twice; once is allowed")]
    Twice { found: String },
    /// A key that there is not.
    #[error("unknown key `{key}`; there are: {known}")]
    UnknownKey { key: String, known: String },
    /// A key that has to be there.
    #[error("missing key `{key}`")]
    Missing { key: &'static str },
    /// A value that the key does not take.
    #[error("{key} = {found}: {allowed} is allowed")]
    NotAllowed { key: String, found: String, allowed: String },

    /// A tunable outside its range.
    #[error("{key} = {value}: {min} to {max}{unit} is allowed", unit = spaced(unit))]
    OutOfRange { key: &'static str, value: i64, min: i64, max: i64, unit: &'static str },
    /// A limit of a group on a disk whose scheduler has none.
    #[error(
        "{key} of group {group:?}, which is on disk {disk:?}: its scheduler {scheduler} has no \
         caps, reservations and latency targets of groups; wfq has them"
    )]
    NoLimits { key: &'static str, group: String, disk: String, scheduler: &'static str },
    /// A name with characters that it may not have, or too long.
    #[error("{what} {name:?}: at most {max} bytes without control characters are allowed")]
    BadName { what: &'static str, name: String, max: usize },

    /// A disk that would be taken for a group.
    #[error("{what} {disk:?}: a name that begins with \"/\" is a group's; any other is allowed")]
    DiskAsGroup { what: &'static str, disk: String },
    /// A disk and a pool of one name, which are told apart by it.
    #[error("{name:?} is the name of a {other} and of a {what}; a name is allowed once")]
    DiskAndPool { name: String, what: &'static str, other: &'static str },
    /// No disk at all.
    #[error("there is no disk; a [disks.NAME] table is needed")]
    NoDisk,
    /// A disk without a back end.
    #[error(
        "disk {disk:?} has no path; path = FILE is needed, or backend = \"memory\", \"modelled\" \
         or \"nbd\""
    )]
    NoBackend { disk: String },
    /// A tunable of `poll = "hybrid"` without it.
    #[error("{key} has no effect with poll = {poll:?}; it is allowed with poll = \"hybrid\"")]
    NotHybrid { key: &'static str, poll: &'static str },
    /// A key that this back end needs.
    #[error("{what} {disk:?} has no {key}, which a {backend} {what} needs")]
    MissingKey { what: &'static str, disk: String, key: &'static str, backend: &'static str },
    /// A key of another kind of objects.
    #[error("{kind} {name:?} has {key}, which no {} takes", of.replace('-', " "))]
    NotOfKind { kind: &'static str, name: String, key: &'static str, of: &'static str },
    /// A key that means nothing to this back end.
    #[error("disk {disk:?} has {key}, which a {backend} disk does not take")]
    UnusedKey { disk: String, key: &'static str, backend: &'static str },
    /// A model that is no device.
    #[error("model: {error}")]
    BadModel { error: Box<DeviceError> },
    /// A device that does not take what clients may ask for.
    #[error("model = {model:?}: it takes no {op}; with only read-only exports reads are enough")]
    ModelTakesNo { model: String, op: &'static str },
    /// A device that is smaller than the disk on it.
    #[error("size: model {model:?} has {bytes} bytes; at most these are allowed")]
    ModelTooSmall { model: String, bytes: u64 },
    /// A key that says what the model says.
    #[error(
        "{what} {disk:?} has {key} beside model, which says how fast it is; one of both is allowed"
    )]
    BesideModel { what: &'static str, disk: String, key: &'static str },
    /// A text that is no URI of an NBD server.
    #[error("uri = {found:?}: {error}")]
    BadUri { found: String, error: NbdUriError },
    /// A path whose place depends on where the server is started.
    #[error("uri: {what} {path:?} is relative; an absolute path is needed")]
    RelativeUri { what: &'static str, path: PathBuf },
    /// A server that does not show its export.
    #[error(
        "{uri} does not show its export: {reason}; start its server, or write the size of the \
         {what}"
    )]
    FarNotShown { uri: String, what: &'static str, reason: String },
    /// An export of another size than the file says.
    #[error("{uri} has {found} bytes, not the {size} of size")]
    FarSize { uri: String, size: u64, found: u64 },
    /// A read-only export to which clients may write.
    #[error("{uri} is read-only: exports of this {what} need read_only = true")]
    FarReadOnly { uri: String, what: &'static str },
    /// The server would be its own client.
    #[error("{uri} is this server itself, which listens on {address}: another one is needed")]
    OwnSocket { uri: String, address: String },
    /// A volume that is to be a copy of nothing.
    #[error(
        "copy: a template is copied, and there is none; \"source\": {{\"template\": NAME}} is one"
    )]
    NothingToCopy,
    /// One far export for two disks or volumes.
    #[error("{uri} is {of} {other:?} already; weights hold among the exports of one {of}")]
    SameUri { uri: String, of: &'static str, other: String },
    /// A pool on servers of which nothing is known in common.
    #[error(
        "pool {pool:?}: {one} and {other} are on different servers: a pool is one device; \
         device = NAME says that they are, and what it is called"
    )]
    SeveralServers { pool: String, one: String, other: String },
    /// A pool of what takes no time.
    #[error(
        "pool {pool:?}: backend = \"memory\": \"file\", \"modelled\" or \"nbd\" is allowed; a \
         disk may be \"memory\""
    )]
    PoolInMemory { pool: String },
    /// A key of an export, of a volume that is none.
    #[error("volume {volume:?} has {key} and export = false: its exports have {key} of their own")]
    NotExported { volume: String, key: &'static str },
    /// A volume that nobody reaches.
    #[error(
        "volume {volume:?} has export = false, and there is no export on it: an [exports.NAME] \
         table with volume = {volume:?} is needed"
    )]
    NothingOn { volume: String },
    /// A volume in place of an export.
    #[error(
        "volume {volume:?} has export = false, so no socket offers it; its exports are allowed"
    )]
    OffersVolume { volume: String },
    /// A volume without what its pool needs of it.
    #[error("volume {volume:?} has no {key}, which a volume of its pool needs")]
    NoVolumeKey { volume: String, key: &'static str },
    /// A disk file that cannot be looked at.
    #[error("disk file {path:?}: {reason}")]
    NoDiskFile { path: PathBuf, reason: io::Error },
    /// A path that is neither a regular file nor a block device.
    #[error("disk file {path:?} is {kind}; a regular file or a block device is allowed")]
    NotADisk { path: PathBuf, kind: &'static str },
    /// A disk file that this user may not read.
    #[error("disk file {path:?} cannot be read by user {uid}: {reason}")]
    Unreadable { path: PathBuf, uid: u32, reason: io::Error },
    /// A disk file that this user may not write, while clients may.
    #[error(
        "disk file {path:?} cannot be written by user {uid}: {reason}; reading is enough if all \
         its exports are read-only"
    )]
    Unwritable { path: PathBuf, uid: u32, reason: io::Error },
    /// Disks that do not fit into memory.
    #[error(
        "with {what} {disk:?} the disks in memory have {needs} bytes; {has} are allowed, which is \
         what there is of memory and swap"
    )]
    TooMuchMemory { what: &'static str, disk: String, needs: u64, has: u64 },
    /// One file behind two disks.
    #[error("disk file {path:?} is that of {of} {other:?} too; one disk a file is allowed")]
    SameFile { path: PathBuf, of: &'static str, other: String },
    /// A disk of no bytes.
    #[error("{what} {disk:?} has 0 bytes; at least 1 is needed")]
    EmptyDisk { what: &'static str, disk: String },
    /// A pool whose path is no directory.
    #[error("pool directory {path:?}: {reason}")]
    NoPoolDirectory { path: PathBuf, reason: io::Error },
    /// A pool without volumes.
    #[error(
        "pool {pool:?} has no volume and no path; a path is needed, or a [volumes.NAME] table with \
         pool = {pool:?}"
    )]
    NoVolume { pool: String },
    /// A pool of more volumes than it may have.
    #[error("pool {pool:?} has {has} volumes; volumes = {allowed} allows no more than that")]
    TooManyVolumes { pool: String, has: usize, allowed: u32 },
    /// A pool of more bytes than it may have.
    #[error("the volumes of pool {pool:?} have {has} bytes; capacity = {allowed} allows no more")]
    TooManyBytes { pool: String, has: u64, allowed: u64 },
    /// A name that would not do as a part of a file's name.
    #[error(
        "{name:?}: the name of a {what} is 1 to {max} of A-Z a-z 0-9 . _ -, and begins with a \
         letter or digit"
    )]
    BadFileName { what: &'static str, name: String, max: usize },
    /// A volume without a place.
    #[error("volume {volume:?}: pool {pool:?} has no path, so an absolute path is needed")]
    NoVolumePath { volume: String, pool: String },
    /// A volume of a pool that is on another device.
    #[error(
        "volume {volume:?} is on {on}, and {pool}: a pool is one device (same_device = \"warn\" \
         allows it)"
    )]
    OtherDevice { volume: String, on: String, pool: String },
    /// A hierarchy for a scheduler that has none to choose.
    #[error(transparent)]
    NoHierarchy(NoHierarchy),
    /// A name that is no tunable of the disk's scheduler.
    #[error(transparent)]
    UnknownTunable(TunableError),
    /// Something that the scheduler does not have which `auto` takes.
    #[error("{problem}; scheduler = \"{AUTO}\", the default, takes this one ({because})")]
    UnderAuto { problem: Box<Self>, because: String },
    /// The tunable of a scheduler that a disk's depth sets.
    #[error("depth is no tunable here: the disk's own depth = N, or --depth N, is allowed")]
    DepthAsTunable,
    /// A setting given twice.
    #[error("{name} is set twice; once is allowed")]
    SetTwice { name: String },
    /// A depth that the scheduler cannot learn.
    #[error("depth = \"learned\": {scheduler} learns none; 1 to {DEPTH_MAX} requests is allowed")]
    LearnsNoDepth { scheduler: SchedulerKind },
    /// Names, in quotes, that cannot be set under the scheduler, by a request.
    #[error("{names} cannot be set under {scheduler}; what can be set is: {known}")]
    NotSettable { names: String, scheduler: SchedulerKind, known: String },
    /// A key that is read at the start, in a request.
    #[error("{key} is set in the file and changes with a restart")]
    NeedsRestart { key: &'static str },
    /// Linux's name for whether completions are polled for, in a request.
    #[error("io_poll is set by poll: interrupt is 0; auto, classic and hybrid are 1")]
    IoPoll,

    /// No export at all.
    #[error("there is no export; an [exports.NAME] table is needed, or a pool with a path")]
    NoExport,
    /// Two exports of one name.
    #[error("there are two exports {name:?}; a name is allowed once")]
    ExportTwice { name: String },
    /// An export of a disk that there is not, or a volume of a pool.
    #[error("there is no {what} {disk:?}; there are: {known}")]
    UnknownDisk { what: &'static str, disk: String, known: String },
    /// An export of a pool as a whole.
    #[error("{pool:?} is a pool: volume = NAME is needed, the name of one of its volumes")]
    PoolForDisk { pool: String },
    /// An export of two things.
    #[error("export {export:?} has disk and volume; one of them is allowed")]
    DiskAndVolume { export: String },
    /// An export of no bytes.
    #[error("export {export:?} has 0 bytes; at least 1 is needed")]
    EmptyExport { export: String },
    /// A range that leaves the disk.
    #[error(
        "export {export:?} is offset {offset} and size {size}, {past} bytes past the end of {on}, \
         which has {disk_size} bytes",
        past = offset.saturating_add(*size).saturating_sub(*disk_size)
    )]
    PastEnd { export: String, offset: u64, size: u64, on: String, disk_size: u64 },
    /// Ranges that share bytes, of which both may be written.
    #[error(
        "exports {export:?} and {other:?} share the bytes {} to {} of {on}; that is \
         allowed if one of them or both are read-only", bytes.start, bytes.end - 1
    )]
    Overlap { export: String, other: String, on: String, bytes: Range<u64> },
    /// A border inside a block.
    #[error(transparent)]
    InsideBlock(Box<InsideBlock>),
    /// Direct I/O that is asked for, on a file that takes none.
    #[error("cache = \"direct\": {path:?}: {reason}; \"page\" is allowed for it")]
    NoDirect { path: PathBuf, reason: io::Error },
    /// A text that names no I/O priority.
    #[error(transparent)]
    BadIoPrio(ParseIoPrioError),

    /// A text that is no group's path.
    #[error(
        "group {path:?}: one name or more are allowed, a \"/\" before each, such as \"/gold\" or \
         \"/org/db\""
    )]
    BadGroup { path: String },
    /// A key of the root that is no cap.
    #[error("{key} of group \"/\", which has nobody beside it; caps are allowed: {}", caps())]
    NotOfRoot { key: &'static str },
    /// A group below too many others.
    #[error("group {path:?} has {levels} names; 1 to {max} are allowed")]
    GroupTooDeep { path: String, levels: usize, max: usize },
    /// A group that nobody is in.
    #[error("no export is in group {path:?} or below it; the exports' groups are: {used}")]
    UnusedGroup { path: String, used: String },
    /// A weight on a disk that the group is not on.
    #[error(
        "no export of disk {disk:?} is in group {group:?} or below it; disks with such an export: \
         {known}"
    )]
    GroupNotOnDisk { group: String, disk: String, known: String },
    /// An export whose name cannot be its group's.
    #[error(
        "export {export:?} needs a group, such as group = \"/gold\"; it can have one of its own \
         name if that has at most {max} bytes and no \"/\""
    )]
    NoOwnGroup { export: String, max: usize },
    /// The default export beside one that is named as its group.
    #[error(
        "exports \"\" and {name:?} would both have a group {path:?} of their own; that is allowed \
         for one of them: name the other's group, or give it another name"
    )]
    DefaultGroupTwice { name: &'static str, path: String },
    /// A weight beside a group.
    #[error(
        "export {export:?} has a weight and a group; the weight of group {group:?} belongs in \
         [groups.{group:?}]"
    )]
    WeightBesideGroup { export: String, group: String },
    /// What is a group's, of a volume that is in one.
    #[error(
        "{kind} {name:?} has {key} and a group; the {key} of group {group:?} is set of the group"
    )]
    BesideGroup { key: &'static str, kind: &'static str, name: String, group: String },
    /// Two weights of one group.
    #[error("group {group:?} has a weight here and in [groups.{group:?}]; one is allowed")]
    WeightTwice { group: String },

    /// A mode without a socket.
    #[error("unix_mode is of no use without unix")]
    ModeWithoutSocket,
    /// A file of TLS that cannot be used.
    #[error("{key} = {path:?}: {why}")]
    UnusableTls { key: &'static str, path: PathBuf, why: String },
    /// TLS without its files.
    #[error("tls = \"require\" needs certificate and key under [tls]")]
    NoTls,
    /// Files of TLS that no socket uses.
    #[error("[tls] is of no use: no [[listen]] has tls = \"require\"")]
    UnusedTls,
    /// A key that needs certificates of clients.
    #[error("{key} is of no use without client_ca under [tls]")]
    WithoutClientCa { key: &'static str },
    /// The same of a virtual machine's.
    #[error("{key} is of no use without vhost_user")]
    WithoutVhostSocket { key: &'static str },
    /// A socket without an address.
    #[error("[[listen]] has none of unix, tcp and fd; one of them is needed")]
    NoListenAddress,
    /// Two addresses of one socket.
    #[error("[[listen]] has {one} and {two}; one of them is allowed, and any number of [[listen]]")]
    TwoListenAddresses { one: &'static str, two: &'static str },
    /// A text that no service manager calls a socket.
    #[error(
        "{found:?}: the name of a socket that is passed is allowed: 1 to 255 printable characters \
         of ASCII, none of them a colon"
    )]
    BadFdName { found: String },
    /// Two sockets at one address.
    #[error("{address} is listened on already; each socket needs an address of its own")]
    ListenTwice { address: String },
    /// A socket with an empty list of exports.
    #[error("exports = []: at least one is needed; without exports a socket offers all of them")]
    OffersNothing,
    /// An export that is written twice.
    #[error("export {export:?} is offered twice; once is allowed")]
    OfferedTwice { export: String },
    /// An export that there is not.
    #[error("there is no export {export:?}; there are: {known}")]
    UnknownExport { export: String, known: String },
    /// An export that nobody can reach.
    #[error(
        "no socket offers export {export:?}: it has to be among the exports of a [[listen]], or \
         one without exports, which offers all, is needed"
    )]
    NotOffered { export: String },
    /// A text that is no address.
    #[error(
        "{found:?}: an IP address and a port is allowed, such as 127.0.0.1:10809 or [::1]:10809"
    )]
    BadAddress { found: String },
    /// A socket path that the kernel does not take.
    #[error("socket {path:?} has {len} bytes; 1 to {max} are allowed, none of them 0")]
    BadSocketPath { path: PathBuf, len: usize, max: usize },
    /// A directory that cannot be looked at.
    #[error("socket {path:?} needs directory {directory:?}: {reason}")]
    NoDirectory { path: PathBuf, directory: PathBuf, reason: io::Error },
    /// Something else in its place.
    #[error("socket {path:?} needs directory {directory:?}, which is not a directory")]
    NotADirectory { path: PathBuf, directory: PathBuf },
    /// A directory in which this user may not make a socket.
    #[error(
        "socket {path:?} needs directory {directory:?}, which user {uid} may not read, write and \
         search: {reason}"
    )]
    ClosedDirectory { path: PathBuf, directory: PathBuf, uid: u32, reason: io::Error },
    /// A file in the socket's place.
    #[error("{path:?} exists and is not a socket; it stays as it is: name another path")]
    NotASocket { path: PathBuf },
    /// One path for clients and control.
    #[error("socket \"{address}\" is one of clients too; ctl needs one of its own, or \"none\"")]
    SameSocket { address: ListenAddress },

    /// One path for a virtual machine and somebody else.
    #[error("socket {path:?} is {of} too; vhost_user needs one of its own")]
    SameVhostSocket { path: PathBuf, of: String },

    /// One address for clients and metrics.
    #[error("{address} is one of clients too; metrics need an address of their own")]
    SameAddress { address: SocketAddr },

    /// Something else than `TUNABLE=VALUE`.
    #[error("{found:?}: TUNABLE=VALUE is allowed, such as quantum=8")]
    BadSet { found: String },
    /// A value that no tunable of that name has.
    #[error(transparent)]
    BadTunable(TunableError),
    /// Something unknown behind an export's name.
    #[error(
        "{found:?} in {option:?}: weight=N, offset=BYTES, size=BYTES, read-only and \
         vhost-user=PATH are allowed, each once"
    )]
    BadExportOption { option: String, found: String },
}

/// The unit behind a range, where it says more than that it is a number.
fn spaced(unit: &str) -> String {
    match unit {
        "" | "bool" | "count" | "factor" => String::new(),
        unit => format!(" {unit}"),
    }
}
