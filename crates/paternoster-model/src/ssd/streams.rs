//! Where commands ended lately, by which a drive knows that another one goes on there.

use std::collections::VecDeque;

use paternoster::Sector;

use crate::{Command, Op};

/// The sectors behind the last commands, reads and writes apart.
#[derive(Debug)]
pub(super) struct Streams {
    /// How many are remembered.
    most: usize,
    /// The one that ended last at the back.
    ends: VecDeque<(Op, Sector)>,
}

impl Streams {
    pub(super) fn new(most: u32) -> Self {
        Self { most: most as usize, ends: VecDeque::new() }
    }

    /// Whether the command begins where one of the last ones ended.
    pub(super) fn is_next(&self, command: &Command) -> bool {
        self.ends.contains(&(command.op, command.sector))
    }

    /// The drive works on the command. Returns whether it goes on where another ended.
    pub(super) fn note(&mut self, command: &Command) -> bool {
        if self.most == 0 || !matches!(command.op, Op::Read | Op::Write) {
            return false;
        }
        let begin = (command.op, command.sector);
        let known = self.ends.iter().position(|end| *end == begin);
        if let Some(index) = known {
            self.ends.remove(index);
        } else if self.ends.len() == self.most {
            self.ends.pop_front();
        }
        let end = Sector(command.sector.0 + u64::from(command.sectors.0));
        self.ends.push_back((command.op, end));
        known.is_some()
    }
}

#[cfg(test)]
mod tests {
    use paternoster::SectorCount;

    use super::*;
    use crate::Chance;

    fn read(sector: u64) -> Command {
        let (sector, sectors) = (Sector(sector), SectorCount(8));
        let chance = Chance::default();
        Command { tag: 0, op: Op::Read, durable: false, sector, sectors, chance }
    }

    #[test]
    fn stream_is_forgotten_when_as_many_others_have_come() {
        let mut streams = Streams::new(2);
        assert!(!streams.note(&read(0)));
        assert!(streams.note(&read(8)), "it goes on");
        assert!(!streams.note(&Command { op: Op::Write, ..read(16) }), "no read ended there");
        assert!(!streams.note(&read(1000)));
        assert!(!streams.note(&read(16)), "two have come since");
    }
}
