//! In which directions something waits, and so in which tournaments a node competes.
//!
//! A cap may hold back the reads below a group and not its writes. So siblings have a tournament
//! for each direction, and a node competes in those in which the head of some I/O context below it
//! may be served. While no group has a cap all heads count as reads, and there is one tournament.

use bitflags::bitflags;

use crate::request::Direction;

bitflags! {
    /// A set of directions.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) struct Directions: u8 {
        const READ = 1 << Direction::Read as u8;
        const WRITE = 1 << Direction::Write as u8;
    }
}

/// Both, in order.
pub(super) const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

impl From<Direction> for Directions {
    #[inline]
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Read => Self::READ,
            Direction::Write => Self::WRITE,
        }
    }
}
