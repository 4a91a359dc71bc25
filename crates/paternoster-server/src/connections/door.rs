//! By which door a command comes to the owner of a disk. Each names its commands as it likes.

use paternoster_disk::FrontTag;

/// The number of NBD's door.
const NBD: u8 = 0;
/// That of the owner.
const OWN: u8 = u8::MAX;

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// A client of NBD.
    Nbd,
    /// The owner itself: a flush that no client has asked for.
    Own,
}

impl Door {
    /// The engine's name for a command that has this one there.
    pub(crate) fn tag(self, key: u64) -> FrontTag {
        let door = match self {
            Self::Nbd => NBD,
            Self::Own => OWN,
        };
        FrontTag { door, key }
    }

    /// By which one the command of that name came.
    pub(crate) fn of(tag: FrontTag) -> Self {
        match tag.door {
            NBD => Self::Nbd,
            OWN => Self::Own,
            other => unreachable!("there is no door {other}"),
        }
    }
}
