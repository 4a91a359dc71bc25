//! Whom the device serves while a group waits for its turn.
//!
//! A device does not say when it serves a request that it has: with one server, all but one of
//! those in it wait. Where it is known how long a request is served, that is the last part of its
//! stay. Elsewhere its service is spread evenly over the stay. A group has waited behind the part
//! that overlaps its own waiting:
//!
//! ```text
//!   b's request   ├───── 400 µs in the device, 100 µs of its time ─────┤
//!   /x waits           ├── 100 µs ──┤        ├── 100 µs ──┤               behind 50 µs of b's
//! ```
//!
//! Each group has a clock that runs while the group waits, and a [`Moment`] has what all of them
//! show. One is taken as a request enters the device or leaves it, and the latest are kept where
//! times of service are known: between two, clocks are interpolated. Where there are many groups
//! only a random sample of the requests of a real device is counted, and each stands for several.

use std::collections::VecDeque;

use super::request_time::{part_of, part_of_time};
use crate::arena::{GroupId, RequestId, SideTable};
use crate::time::{Instant, Nanos};

/// How many groups have rows. All others share a column.
const ROWS: u8 = 64;

/// One for each of them, and the one that is shared.
const COLUMNS: usize = ROWS as usize + 1;

/// How many rows are looked at for each request, in the long run, where it is not known how long
/// requests are served.
const ROWS_A_REQUEST: usize = 4;

/// Where a group stands in the rows of the others, and its own row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column(u8);

impl Column {
    /// The column of all groups that have no row.
    const SHARED: Self = Self(ROWS);

    fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn is_shared(self) -> bool {
        self == Self::SHARED
    }
}

/// What one group waited behind.
#[derive(Clone, Debug)]
struct Row {
    group: GroupId,
    /// For how long it has waited while all places were taken, without the wait at hand.
    waited: Nanos,
    /// How long all places had been taken when it began to wait; none if it does not.
    waits_from: Option<Nanos>,
    /// By column.
    served: [u64; COLUMNS],
    /// Of all, also of groups that are gone.
    all: u64,
}

impl Row {
    /// For how long it has waited while all places were taken, which they were for `taken` in all.
    fn clock(&self, taken: Nanos) -> Nanos {
        self.waited + self.waits_from.map_or(Nanos::ZERO, |from| taken.saturating_sub(from))
    }
}

/// What all clocks show.
#[derive(Clone, Debug)]
struct Moment {
    now: Instant,
    /// For how long all places have been taken.
    taken: Nanos,
    /// For how long each group has waited meanwhile, by column; those of later groups are not there
    /// yet.
    waited: Vec<Nanos>,
}

impl Moment {
    fn waited(&self, column: usize) -> Nanos {
        self.waited.get(column).copied().unwrap_or_default()
    }
}

/// What the device has done for a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) of: Column,
    /// Its time, by [`RequestTime`](super::RequestTime); 0 if it did not complete it.
    pub(super) time: u64,
    /// How long it was served before it completed; none where that is not known.
    pub(super) lasted: Option<Nanos>,
}

/// A request in the device that is looked at.
#[derive(Clone, Debug)]
struct Look {
    dispatched: Moment,
    /// The number of requests that it stands for.
    stands_for: u64,
}

/// What was served of each group while another one waited for its turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    rows: Vec<Row>,
    looks: SideTable<RequestId, Look>,
    /// The latest moments, in their order; none where nobody asks for them.
    past: VecDeque<Moment>,
    /// Moments that are over, for their memory.
    spare: Vec<Moment>,
    random: u64,
}

/// How many moments are kept.
const PAST: usize = 512;

impl Behind {
    /// Gives a group a row, if there is one: a new one, or that of a group that is gone.
    pub(super) fn enter(&mut self, group: GroupId, exists: impl Fn(GroupId) -> bool) -> Column {
        let zero = Nanos::ZERO;
        let row = Row { group, waited: zero, waits_from: None, served: [0; COLUMNS], all: 0 };
        if self.rows.len() < usize::from(ROWS) {
            self.rows.push(row);
            return column(self.rows.len() - 1);
        }
        let Some(gone) = self.rows.iter().position(|row| !exists(row.group)) else {
            return Column::SHARED;
        };
        self.rows[gone] = row;
        self.rows.iter_mut().for_each(|row| row.served[gone] = 0);
        // They have noted the clock of the one that is gone.
        self.looks.clear();
        self.past.clear();
        column(gone)
    }

    /// The group waits for its turn from now on, or does no more. All places were taken for `taken`
    /// so far.
    #[inline]
    pub(super) fn set_waits(&mut self, column: Column, taken: Nanos, waits: bool) {
        let Some(row) = self.rows.get_mut(column.index()) else { return };
        if waits {
            row.waits_from.get_or_insert(taken);
        } else {
            row.waited = row.clock(taken);
            row.waits_from = None;
        }
    }

    /// A request enters the device. `is_known`: it will be known how long it was served.
    #[inline]
    pub(super) fn dispatched(&mut self, rq: RequestId, now: Instant, taken: Nanos, is_known: bool) {
        let stands_for = if is_known {
            let moment = self.moment(now, taken);
            self.keep(moment);
            1
        } else {
            self.rows.len().div_ceil(ROWS_A_REQUEST).next_power_of_two() as u64
        };
        // The upper bits of such a series are the better ones.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if (self.random >> 32) & (stands_for - 1) == 0 {
            let dispatched = self.moment(now, taken);
            self.looks.insert(rq, Look { dispatched, stands_for });
        }
    }

    /// Keeps a moment for those that ask between which two one of theirs lies.
    fn keep(&mut self, moment: Moment) {
        self.past.push_back(moment);
        let over = if self.past.len() > PAST { self.past.pop_front() } else { None };
        self.spare.extend(over);
    }

    /// Memory for clocks.
    fn spare(&mut self) -> Vec<Nanos> {
        let mut waited = self.spare.pop().map(|moment| moment.waited).unwrap_or_default();
        waited.clear();
        waited
    }

    fn moment(&mut self, now: Instant, taken: Nanos) -> Moment {
        let mut waited = self.spare();
        waited.extend(self.rows.iter().map(|row| row.clock(taken)));
        Moment { now, taken, waited }
    }

    /// A request has left the device. Returns what was served of it while all places were taken.
    #[inline]
    pub(super) fn left(&mut self, rq: RequestId, now: Instant, taken: Nanos, work: Work) -> u64 {
        let Some(Look { dispatched, stands_for }) = self.looks.remove(rq) else { return 0 };
        let end = self.moment(now, taken);
        let there = now.saturating_since(dispatched.now);
        let served = match work.lasted {
            Some(lasted) if lasted < there => {
                let waited = Nanos::new(there.as_nanos() - lasted.as_nanos());
                let began = self.moment_between(&dispatched, dispatched.now + waited, &end);
                let served = self.count(&began, &end, work, stands_for);
                self.spare.push(began);
                served
            }
            _ => self.count(&dispatched, &end, work, stands_for),
        };
        self.spare.push(dispatched);
        // The next request's service begins here, though none may enter the device.
        match work.lasted {
            Some(_) => self.keep(end),
            None => self.spare.push(end),
        }
        served
    }

    /// Returns what the clocks showed between two moments, by those taken right before and after.
    fn moment_between(&mut self, first: &Moment, now: Instant, last: &Moment) -> Moment {
        let mut waited = self.spare();
        let after = self.past.partition_point(|moment| moment.now <= now);
        let before = after.checked_sub(1).and_then(|before| self.past.get(before));
        let before = before.filter(|before| before.now >= first.now).unwrap_or(first);
        let after = self.past.get(after).unwrap_or(last);
        let gone = now.saturating_since(before.now).as_nanos();
        let whole = after.now.saturating_since(before.now).as_nanos();
        let between = |before: Nanos, after: Nanos| {
            before + part_of_time(after.saturating_sub(before), gone, whole)
        };
        let clocks = after.waited.iter().enumerate();
        waited.extend(clocks.map(|(column, &after)| between(before.waited(column), after)));
        Moment { now, taken: between(before.taken, after.taken), waited }
    }

    /// Counts what was served evenly from one moment to another.
    fn count(&mut self, from: &Moment, to: &Moment, work: Work, stands_for: u64) -> u64 {
        let lasted = to.now.saturating_since(from.now).as_nanos();
        if lasted == 0 {
            return 0;
        }
        let time = work.time.saturating_mul(stands_for);
        for (column, row) in self.rows.iter_mut().enumerate() {
            let waited = to.waited(column).saturating_sub(from.waited(column));
            if waited > Nanos::ZERO {
                let served = part_of(time, waited.as_nanos(), lasted);
                row.served[work.of.index()] += served;
                row.all += served;
            }
        }
        part_of(time, to.taken.saturating_sub(from.taken).as_nanos(), lasted)
    }

    /// What was served of the group itself while it waited, and what of all; none without a row.
    pub(super) fn own_and_all(&self, waiter: Column) -> Option<(u64, u64)> {
        let row = self.rows.get(waiter.index())?;
        Some((row.served[waiter.index()], row.all))
    }

    /// What was served of each other group that has a row while this one waited for its turn, and
    /// what of all that have none.
    pub(super) fn of(&self, waiter: Column) -> (impl Iterator<Item = (GroupId, u64)>, u64) {
        let row = self.rows.get(waiter.index());
        let shared = row.map_or(0, |row| row.served[Column::SHARED.index()]);
        let others =
            row.into_iter().flat_map(move |row| self.rows.iter().zip(&row.served).enumerate());
        let others = others.filter(move |(at, _)| *at != waiter.index());
        (others.map(|(_, (other, served))| (other.group, *served)), shared)
    }
}

fn column(row: usize) -> Column {
    Column(u8::try_from(row).expect("rows are few"))
}
