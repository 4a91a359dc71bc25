//! The greatest rate that the disk has had while requests waited, for judging reservations. Of a
//! modelled disk one is known before that.
//!
//! ```text
//!   something waits ──── a second or more ──── something waits:   a rate that the disk can give
//! ```
//!
//! Ops are counted as `wfq` charges before it has learned prices: a request and each 16 KiB that
//! are read or written are one. Here, unlike there, what is smaller than a page counts as small as
//! it is. Like there, a trim or zeroing moves nothing, however long it is.

use std::num::NonZeroU64;

use paternoster::{Elevator, Group, GroupLimits, Groups, Instant, Nanos, Op, OpStats};

use super::Scheduler;

/// How long is measured, at least.
const SPAN: Nanos = Nanos::from_millis(1000);

/// The bytes that cost as much as a request.
const OP_BYTES: u64 = 16 << 10;

/// What part of the greatest rate may be reserved before there is a warning, in percent.
const RESERVABLE: u64 = 80;

/// What was done in all, or in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Done {
    ops: u64,
    bytes: u64,
}

/// The greatest rate that was seen.
#[derive(Debug, Default)]
pub(super) struct GreatestRate {
    /// When the last measurement ended, what was done until then, and whether something waited.
    last: Option<(Instant, Done, bool)>,
    greatest: Done,
    /// Ops a second that a modelled disk does at most, in reads of 4 KiB.
    modelled: Option<u64>,
    /// The reservations that the log has been told of as too much.
    told: Vec<(&'static str, u64)>,
}

/// More is reserved than may be kept.
struct TooMuch {
    key: &'static str,
    reserved: u64,
    sentence: String,
}

impl GreatestRate {
    pub(super) fn new(modelled: Option<u64>) -> Self {
        Self { modelled, ..Self::default() }
    }

    /// Measures, if it is time to. Returns what the log is to be told of reservations since then,
    /// a sentence each.
    pub(super) fn measure(&mut self, now: Instant, elevator: &Elevator<Scheduler>) -> Vec<String> {
        let is_due = self.last.is_none_or(|(at, ..)| at + SPAN <= now);
        if !is_due {
            return Vec::new();
        }
        let (done, waits) = (done(elevator), elevator.queued() > 0);
        if let Some((at, before, true)) = self.last
            && waits
        {
            let span = u128::from(now.saturating_since(at).as_nanos());
            let rate = |now: u64, before: u64| {
                let rate = u128::from(now.saturating_sub(before)) * 1_000_000_000 / span;
                u64::try_from(rate).unwrap_or(u64::MAX)
            };
            self.greatest.ops = self.greatest.ops.max(rate(done.ops, before.ops));
            self.greatest.bytes = self.greatest.bytes.max(rate(done.bytes, before.bytes));
        }
        self.last = Some((now, done, waits));
        let too_much = self.too_much(elevator);
        let is_new = |one: &TooMuch| !self.told.contains(&(one.key, one.reserved));
        let (new, known): (Vec<_>, Vec<_>) = too_much.into_iter().partition(is_new);
        self.told = known.iter().chain(&new).map(|one| (one.key, one.reserved)).collect();
        new.into_iter().map(|one| one.sentence).collect()
    }

    /// What is to be said of reservations, a sentence each.
    pub(super) fn warnings(&self, elevator: &Elevator<Scheduler>) -> Vec<String> {
        self.too_much(elevator).into_iter().map(|one| one.sentence).collect()
    }

    /// The reservations that may not all be kept; none under a scheduler that has none.
    fn too_much(&self, elevator: &Elevator<Scheduler>) -> Vec<TooMuch> {
        if !elevator.scheduler().kind().has_group_limits() {
            return Vec::new();
        }
        let ops = reserved(elevator.groups(), |limits| limits.min_iops);
        let bytes = reserved(elevator.groups(), |limits| limits.min_bps);
        let most_ops = match (self.greatest.ops, self.modelled) {
            (0, Some(modelled)) => Most::Modelled(modelled),
            (seen, _) => Most::Seen(seen),
        };
        let ops = too_much("min_iops", ops, most_ops);
        let bytes = too_much("min_bps", bytes, Most::Seen(self.greatest.bytes));
        ops.into_iter().chain(bytes).collect()
    }
}

/// The most that the disk gives in a second.
#[derive(Clone, Copy, Debug)]
enum Most {
    /// It gave that; 0 where nothing is known.
    Seen(u64),
    /// It is modelled so.
    Modelled(u64),
}

/// The sum of a reservation of all groups. What one has below another that has it too counts there.
fn reserved(groups: &Groups, of: impl Fn(&GroupLimits) -> Option<NonZeroU64>) -> u64 {
    let above = |group: &Group| {
        std::iter::successors(group.parent, |&parent| groups[parent].parent)
            .any(|parent| of(groups[parent].limits()).is_some())
    };
    // Most have none, and of them nothing else is asked.
    let having = groups.iter().filter_map(|(_, group)| Some((group, of(group.limits())?)));
    let reserved = having.filter(|(group, _)| !above(group)).map(|(_, reserved)| reserved.get());
    reserved.fold(0, u64::saturating_add)
}

fn too_much(key: &'static str, reserved: u64, most: Most) -> Option<TooMuch> {
    let (greatest, what) = match most {
        Most::Seen(seen) => (seen, "that the disk gave in a second"),
        Most::Modelled(modelled) => (modelled, "that its servers do in a second of 4 KiB reads"),
    };
    let is_known = greatest > 0;
    let is_much = u128::from(reserved) * 100 > u128::from(greatest) * u128::from(RESERVABLE);
    let sentence = || {
        format!(
            "{key} of all groups is {reserved}, more than {RESERVABLE} % of {greatest}, the most \
             {what}: they may not all be kept, and all others share a twentieth of the disk at \
             least"
        )
    };
    (is_known && is_much).then(|| TooMuch { key, reserved, sentence: sentence() })
}

/// What was done until now. Bytes are counted as they arrive.
fn done(elevator: &Elevator<Scheduler>) -> Done {
    let groups = elevator.groups().iter().map(|(id, _)| elevator.stats().group(id));
    let all = groups.flat_map(|group| Op::ALL.map(|op| counted(op, &group.op(op))));
    let add = |sum: Done, of: Done| Done { ops: sum.ops + of.ops, bytes: sum.bytes + of.bytes };
    all.fold(Done::default(), add)
}

/// What a group has had of one operation.
fn counted(op: Op, stats: &OpStats) -> Done {
    let bytes = match op {
        Op::Read | Op::Write => stats.bytes,
        _ => 0,
    };
    Done { ops: stats.completed + bytes / OP_BYTES, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(key: &'static str, reserved: u64, greatest: u64) -> Option<String> {
        too_much(key, reserved, Most::Seen(greatest)).map(|one| one.sentence)
    }

    #[test]
    fn more_than_four_fifths_of_what_was_seen_is_warned_of() {
        assert_eq!(warning("min_iops", 800, 1000), None);
        let said = warning("min_iops", 801, 1000).expect("too much");
        assert!(
            said.starts_with("min_iops of all groups is 801, more than 80 % of 1000"),
            "{said}"
        );
        assert_eq!(warning("min_iops", 801, 0), None, "nothing is known yet");
        assert!(warning("min_bps", u64::MAX, u64::MAX - 1).is_some());
    }

    #[test]
    fn trim_of_a_whole_disk_is_one_op_and_no_bytes() {
        let mut stats = OpStats::default();
        (stats.completed, stats.bytes) = (1, 1 << 40);
        assert_eq!(counted(Op::Discard, &stats), Done { ops: 1, bytes: 0 });
        stats.bytes = 32 << 10;
        assert_eq!(counted(Op::Read, &stats), Done { ops: 3, bytes: 32 << 10 });
    }
}
