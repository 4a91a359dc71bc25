//! Whom the device serves while a group waits for its turn.
//!
//! Each group that waits has a row: what was served of each other group meanwhile. A completion
//! enters a log, and a row takes it from there: all of a block of the log at once if the group
//! waited throughout, else what was added while it waited.
//!
//! ```text
//!   log       b a b b | a b a a c … end of the block
//!   /x waits  ├──────────────────────────────┤   adds the block's totals: a 4, b 4, c 1
//!   /y waits      ├─────┤                         adds these four: b 2, a 1, b 1
//! ```
//!
//! So a group that waits all the time costs next to nothing, and one that waits often costs a look
//! at what completed meanwhile. Where many groups do that, only some of their waits are looked at:
//! a completion pays for [`LOOKS`] entries.

use crate::arena::GroupId;

/// How many groups have rows. All others share a column.
const ROWS: u8 = 64;

/// One for each of them, and the one that is shared.
const COLUMNS: usize = ROWS as usize + 1;

/// Entries in a block of the log.
const BLOCK: usize = 256;

/// How many entries of the log may be looked at for each that is made, in the long run.
const LOOKS: usize = 4;

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
    /// From which entry of the log on it waits; none if it does not.
    waits_from: Option<usize>,
    /// By column.
    served: [u64; COLUMNS],
}

/// What was served of each group while another one waited for its turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Behind {
    log: Vec<(Column, u64)>,
    rows: Vec<Row>,
    /// Entries that may be looked at.
    credit: usize,
}

impl Behind {
    /// Gives a group a row, if there is one: a new one, or that of a group that is gone.
    pub(super) fn enter(&mut self, group: GroupId, exists: impl Fn(GroupId) -> bool) -> Column {
        let row = Row { group, waits_from: None, served: [0; COLUMNS] };
        if self.rows.len() < usize::from(ROWS) {
            self.rows.push(row);
            return self.last_column();
        }
        let Some(gone) = self.rows.iter().position(|row| !exists(row.group)) else {
            return Column::SHARED;
        };
        self.rows[gone] = row;
        self.rows.iter_mut().for_each(|row| row.served[gone] = 0);
        column(gone)
    }

    fn last_column(&self) -> Column {
        column(self.rows.len() - 1)
    }

    /// Adds a completion to the log. Returns whether its block is full: then
    /// [`end_block`](Self::end_block) has to be called.
    #[inline]
    pub(super) fn served(&mut self, column: Column, time: u64) -> bool {
        self.log.push((column, time));
        self.credit = (self.credit + LOOKS).min(LOOKS * BLOCK);
        self.log.len() == BLOCK
    }

    /// The group waits for its turn from now on, or does no more.
    #[inline]
    pub(super) fn set_waits(&mut self, column: Column, waits: bool) {
        let Some(row) = self.rows.get_mut(column.index()) else { return };
        match (row.waits_from, waits) {
            (None, true) => row.waits_from = Some(self.log.len()),
            (Some(from), false) => {
                row.waits_from = None;
                // Whether this one is looked at does not depend on how long it was.
                if self.credit > 0 {
                    let entries = &self.log[from..];
                    self.credit = self.credit.saturating_sub(entries.len());
                    row.add(entries);
                }
            }
            _ => {}
        }
    }

    /// Adds the block to the rows of those that wait, and begins another one. `totals` is what the
    /// log has of each column; a column may come more than once.
    pub(super) fn end_block(&mut self, totals: &[(Column, u64)]) {
        for row in &mut self.rows {
            let Some(from) = row.waits_from else { continue };
            row.waits_from = Some(0);
            row.add(if from == 0 { totals } else { &self.log[from..] });
        }
        self.log.clear();
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

impl Row {
    fn add(&mut self, entries: &[(Column, u64)]) {
        for &(column, time) in entries {
            self.served[column.index()] += time;
        }
    }
}

fn column(row: usize) -> Column {
    Column(u8::try_from(row).expect("rows are few"))
}
