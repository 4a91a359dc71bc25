//! The keys of `[exports.NAME]` and `[volumes.NAME]`.

use std::path::PathBuf;

use paternoster::{IoPrio, Weight};
use paternoster_disk::NbdUri;

use super::disk::URI;
use super::group::OneWeight;
use super::kinds::{Flag, Size, Text, Words, words};
use super::listen::Mode;
use super::{NAME, Object, PATH, State, keys};
use crate::config::Listen;
use crate::config::draft::check_text;
use crate::config::error::Problem;
use crate::config::mistakes::Mistakes;

/// A part of a disk or volume, and a volume with the export that is all of it.
pub(crate) const EXPORT: &str = "export";
pub(crate) const VOLUME: &str = "volume";

/// The kinds of volumes, as keys have them in `of`; each is also just one.
pub(in crate::config) const VOLUMES: [&str; 4] =
    [VOLUME, "local-volume", "far-volume", "modelled-volume"];

/// A path that is relative to the pool's.
const IN_POOL: Text<PathBuf> = Text { kind: "path", read: |text, _| Ok(text.into()), ..PATH };

const IO_PRIO: Text<IoPrio> = Text {
    kind: "text",
    range: "`\"rt/0\"` to `\"rt/7\"`, `\"be/0\"` to `\"be/7\"`, `\"idle\"`, `\"none\"`",
    pattern: "^((rt|be)/[0-7]|idle|none)$",
    read: |text, _| text.parse().map_err(Problem::BadIoPrio),
    show: ToString::to_string,
};

const DESCRIPTION: Text<String> = Text {
    range: "4096 bytes",
    read: |text, _| check_text("description", text).map(|()| text.to_owned()),
    ..NAME
};

keys! {
    /// What is set of an export.
    pub struct ExportKeys, states ExportStates {
        pool: Option<String> = None, NAME, restart, of "volume", default "–",
            range "the name of a pool";
            "The pool of a volume; required.";
        path: Option<PathBuf> = None, IN_POOL, restart, of "local-volume",
            default "`NAME.img`; none in a pool with a `backend`",
            range "a regular file or block device that no other volume or disk has";
            "The image or device of a volume, relative to the pool's `path`.";
        uri: Option<NbdUri> = None, URI, restart, of "far-volume", default "–";
            "In a pool of `backend = \"nbd\"`, required: where the other server is; none of \
             this server's own sockets.";
        export: bool = true, Flag, restart, of "volume";
            "Whether the volume is an export of its name. With `false` it has the `[exports.NAME]` \
             alone that name it as `volume`, such as its partitions, each with a group, a weight \
             and a priority of its own; at least one. It is itself in the group `/.volumes`.";
        disk: Option<String> = None, NAME, restart, of "export", default "–",
            range "the name of a disk";
            "The disk that it is on; required, or `volume`.";
        volume: Option<String> = None, NAME, restart, of "export", default "–",
            range "the name of a volume";
            "The volume that it is on, beside that one's own export.";
        offset: u64 = 0, Size::ANY, restart, of "export", range "within the disk";
            "Where on the disk or volume it starts.";
        size: Option<u64> = None, Size::ANY, restart, of "export far-volume modelled-volume",
            default "up to the disk's end; of a volume on another server as that says",
            range "1 byte or more, within the disk";
            "Its length. In a pool of `backend = \"modelled\"` a volume needs it, in one of \
             `\"nbd\"` it is the size that the export has to have. Ranges of two exports may \
             overlap if one or both are read-only, as for a \
             [backup](operations.md#back-up-and-copy-a-volume) of a volume in use.";
        group: Option<String> = None, NAME, restart, default "a group of the export's own name",
            range "a group's path";
            "The tenant. All exports and connections of a group share its weight.";
        weight: Option<Weight> = None, OneWeight, live, default "100";
            "Weight of the export's own group; refused beside `group`.";
        ioprio: IoPrio = IoPrio::default(), IO_PRIO, restart;
            "I/O priority of its connections against others of their group, as in `ionice`. \
             `\"none\"` is served as `\"be/4\"`.";
        read_only: bool = false, Flag, restart;
            "Whether clients may only read.";
        description: Option<String> = None, DESCRIPTION, live;
            "What clients are told about it.";
        vhost_user: Option<PathBuf> = None, PATH, restart, range "1 to 107 bytes";
            "Unix socket to which one virtual machine attaches (vhost-user-blk), beside clients \
             of NBD: [By shared memory](operations.md#by-shared-memory).";
        vhost_user_mode: u32 = Listen::DEFAULT_MODE, Mode, restart;
            "Permission bits of `vhost_user`: whoever may write to it has the export.";
        vhost_user_memory: VhostMemory = VhostMemory::Any, Words::<VhostMemory>::ALL, restart;
            "Of which files a virtual machine's memory may be: `\"sealed\"` refuses those that can \
             be made shorter (without F_SEAL_SHRINK). A machine whose memory is taken away is \
             detached, whichever it is.";
    }
}

/// Of which files the memory of a virtual machine may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VhostMemory {
    /// `any`.
    #[default]
    Any,
    /// `sealed`: such as can never be made shorter.
    Sealed,
}

impl VhostMemory {
    const ALL: [Self; 2] = [Self::Any, Self::Sealed];

    const fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Sealed => "sealed",
        }
    }
}

words!(VhostMemory);

/// The keys that say how the socket of virtual machines is.
pub(in crate::config) const OF_SOCKET: [&str; 2] = ["vhost_user_mode", "vhost_user_memory"];

impl Object<ExportKeys> {
    /// Refuses what says how a socket of virtual machines is, where there is none.
    pub(in crate::config) fn refuse_keys_of_socket(&self, mistakes: &mut Mistakes) {
        for key in OF_SOCKET {
            mistakes.note(self.state(key).refuse(Problem::WithoutVhostSocket { key }));
        }
    }

    /// Returns whether a group of its own name is its.
    pub(in crate::config) fn has_own_group(&self) -> bool {
        self.keys.export && self.states.group.is_missing()
    }

    /// Returns whether clients may write, as far as that is known.
    pub(in crate::config) fn may_write(&self) -> bool {
        match &self.states.read_only {
            _ if !self.keys.export => false,
            State::Missing => !self.has_gaps,
            State::Wrong(_) => false,
            State::Written(_) => !self.keys.read_only,
        }
    }
}
