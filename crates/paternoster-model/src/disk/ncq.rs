//! Which of the waiting commands the disk serves next.
//!
//! The one that it can begin soonest, from where the head and the platters are (shortest
//! positioning time first). One that has waited as long as the cap goes before all others,
//! and one that makes writes durable is served in the order of arrival, behind all before it.

use super::super::{Command, Op};
use super::units::Millis;

/// How the disk queues commands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueParameters {
    /// How many commands it takes at once, at least one.
    pub depth: u32,
    /// A command that has waited so long is served before all others.
    pub longest_wait: Millis,
}

/// A command that waits in the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) command: Command,
    pub(super) arrived: Millis,
}

/// Takes the command to serve at `now` from `waiting`, which is in the order of arrival.
/// `positioning` says how long one takes to begin.
pub(super) fn take_next(
    waiting: &mut Vec<Waiting>,
    by: &QueueParameters,
    now: Millis,
    positioning: impl Fn(&Command) -> Millis,
) -> Option<Waiting> {
    let oldest = waiting.first()?;
    // Nothing overtakes a flush, and so it goes as soon as it is the oldest.
    let before_flush = waiting
        .iter()
        .position(|one| one.command.op == Op::Flush)
        .map_or(waiting.len(), |flush| flush.max(1));
    if before_flush == 1 || now - oldest.arrived >= by.longest_wait {
        return Some(waiting.remove(0));
    }
    let next = (0..before_flush)
        .map(|at| (at, positioning(&waiting[at].command)))
        .min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))
        .map(|(at, _)| at)?;
    Some(waiting.remove(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chance;
    use paternoster::{Sector, SectorCount};

    const BY: QueueParameters = QueueParameters { depth: 31, longest_wait: Millis(100.0) };

    fn waiting(commands: &[(u32, Op, u64, f64)]) -> Vec<Waiting> {
        let waiting = |&(tag, op, sector, arrived): &(u32, Op, u64, f64)| Waiting {
            command: Command {
                tag,
                op,
                durable: false,
                sector: Sector(sector),
                sectors: SectorCount(8),
                chance: Chance::default(),
            },
            arrived: Millis(arrived),
        };
        commands.iter().map(waiting).collect()
    }

    /// The order in which they are served, if the distance from sector 0 is the time.
    fn order(commands: &[(u32, Op, u64, f64)], now: f64) -> Vec<u32> {
        let mut waiting = waiting(commands);
        let far = |command: &Command| Millis(super::super::units::real(command.sector.0));
        std::iter::from_fn(|| take_next(&mut waiting, &BY, Millis(now), far))
            .map(|one| one.command.tag)
            .collect()
    }

    #[test]
    fn soonest_is_served_first() {
        let commands = [(1, Op::Read, 30, 0.0), (2, Op::Write, 10, 1.0), (3, Op::Read, 20, 2.0)];
        assert_eq!(order(&commands, 3.0), [2, 3, 1]);
    }

    #[test]
    fn oldest_is_served_first_when_it_has_waited_too_long() {
        let commands = [(1, Op::Read, 30, 0.0), (2, Op::Read, 10, 90.0)];
        assert_eq!(order(&commands, 99.5), [2, 1]);
        assert_eq!(order(&commands, 100.0), [1, 2]);
    }

    #[test]
    fn nothing_overtakes_a_flush() {
        let commands = [
            (1, Op::Write, 30, 0.0),
            (2, Op::Write, 20, 0.0),
            (3, Op::Flush, 0, 0.0),
            (4, Op::Read, 10, 0.0),
        ];
        assert_eq!(order(&commands, 1.0), [2, 1, 3, 4]);
    }
}
