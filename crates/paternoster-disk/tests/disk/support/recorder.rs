//! The *recording* back end: a device with a volatile cache, that can be cut off at any moment.
//!
//! ```text
//!   tick      1    2    3    4    5    6    7    8
//!   write A   ├─────────┤                             on the medium from 7 on
//!   write B        ├──────────────┤                   volatile: it ended after the sync began
//!   sync                     ├──────────────┤
//!   write C                            ├────…         may have reached the medium, or not
//! ```
//!
//! Volumes lie on it one behind the other, and a sync is of one of them.
//!
//! What is written stays volatile until a sync of its range that began after the write ended has
//! ended. A cut
//! leaves of the volatile writes any subset, each wholly or not at all; two that overlap take
//! effect in the order in which they ran, or in any if they ran at the same time.

use std::ops::Range;

use paternoster_disk::{SyncRange, Transfer, TransferId};

use super::random::Random;

/// How the device keeps what it promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Honesty {
    /// It does what it says.
    Honest,
    /// A sync ends well and makes nothing durable.
    SyncsDoNothing,
    /// The same of a sync that is not of a whole volume.
    SyncsOfRangesDoNothing,
    /// A sync of a volume makes another one durable.
    SyncsOfOthers,
}

/// One transfer that changes the disk, or a sync.
#[derive(Clone)]
struct Record {
    id: TransferId,
    /// What the device has of the volume.
    volume: Range<usize>,
    began: u64,
    ended: Option<u64>,
    change: Change,
    /// From when on a cut cannot lose it.
    kept_from: Option<u64>,
}

#[derive(Clone)]
enum Change {
    None,
    Sync(SyncRange),
    Write { offset: usize, bytes: Vec<u8> },
    Zero { offset: usize, len: usize },
}

impl Change {
    fn range(&self) -> Range<usize> {
        match self {
            Self::None | Self::Sync(_) => 0..0,
            Self::Write { offset, bytes } => *offset..offset + bytes.len(),
            Self::Zero { offset, len } => *offset..offset + len,
        }
    }

    /// The part of it in the range.
    fn part(&self, range: Range<usize>) -> Self {
        match self {
            Self::None | Self::Sync(_) => self.clone(),
            Self::Write { offset, bytes } => Self::Write {
                offset: range.start,
                bytes: bytes[range.start - offset..range.end - offset].to_vec(),
            },
            Self::Zero { .. } => Self::Zero { offset: range.start, len: range.len() },
        }
    }
}

/// All that the device was asked to do.
pub(crate) struct Recorder {
    honesty: Honesty,
    size: usize,
    records: Vec<Record>,
}

impl Recorder {
    /// A disk of zeroes.
    pub(crate) fn new(honesty: Honesty, size: usize) -> Self {
        Self { honesty, size, records: Vec::new() }
    }

    /// Returns whether it is to be told that this transfer begins.
    pub(crate) fn is_new(&self, id: TransferId) -> bool {
        !self.records.iter().any(|record| record.id == id && record.ended.is_none())
    }

    /// A transfer of the volume that lies there begins.
    pub(crate) fn begin(
        &mut self,
        tick: u64,
        volume: Range<usize>,
        (id, transfer): &(TransferId, Transfer),
    ) {
        let index = |at: u64| volume.start + usize::try_from(at).expect("inside the volume");
        let change = match transfer {
            Transfer::Read { .. } | Transfer::ReadInto { .. } | Transfer::Cache { .. } => {
                Change::None
            }
            Transfer::Sync { range } => Change::Sync(range.clone()),
            Transfer::Write { offset, from } => {
                Change::Write { offset: index(*offset), bytes: from.concat() }
            }
            Transfer::Trim { offset, len } | Transfer::Zero { offset, len, .. } => {
                Change::Zero { offset: index(*offset), len: index(*offset + *len) - index(*offset) }
            }
        };
        assert!(
            change.range().end <= volume.end,
            "{transfer:?} is of a volume that has {volume:?}"
        );
        let (id, ended, kept_from) = (*id, None, None);
        let record = Record { id, volume, began: tick, ended, change, kept_from };
        self.records.push(record);
    }

    pub(crate) fn end(&mut self, tick: u64, id: TransferId) {
        let in_flight = |record: &&mut Record| record.id == id && record.ended.is_none();
        let record = self.records.iter_mut().find(in_flight).expect("it is in flight");
        record.ended = Some(tick);
        let (began, volume) = (record.began, record.volume.clone());
        let synced = match (&record.change, self.honesty) {
            (Change::Sync(_), Honesty::SyncsDoNothing)
            | (Change::Sync(SyncRange::Bytes(_)), Honesty::SyncsOfRangesDoNothing) => return,
            (Change::Sync(_), Honesty::SyncsOfOthers) => {
                let next = if volume.end == self.size { 0 } else { volume.end };
                next..next + volume.len()
            }
            (Change::Sync(SyncRange::Whole), _) => volume,
            (Change::Sync(SyncRange::Bytes(bytes)), _) => {
                let index =
                    |at: u64| volume.start + usize::try_from(at).expect("inside the volume");
                index(bytes.start)..index(bytes.end)
            }
            _ => return,
        };
        self.keep(tick, began, &synced);
    }

    /// What was written to the range before `began` is kept from `tick` on; of a write that lies
    /// there in part, that part.
    fn keep(&mut self, tick: u64, began: u64, synced: &Range<usize>) {
        let mut outside = Vec::new();
        for record in &mut self.records {
            let is_covered = record.ended.is_some_and(|ended| ended < began);
            let whole = record.change.range();
            let inside = whole.start.max(synced.start)..whole.end.min(synced.end);
            if !is_covered || record.kept_from.is_some() || inside.is_empty() {
                continue;
            }
            for rest in [whole.start..inside.start, inside.end..whole.end] {
                if !rest.is_empty() {
                    let change = record.change.part(rest);
                    outside.push(Record { change, ..record.clone() });
                }
            }
            record.change = record.change.part(inside);
            record.kept_from = Some(tick);
        }
        self.records.append(&mut outside);
        self.records.sort_by_key(|record| record.began);
    }

    /// What the medium may hold if the device is cut off after that tick.
    pub(crate) fn cut(&self, tick: u64, random: &mut Random) -> Vec<u8> {
        let lost_once_in = random.of(1..5);
        let mut reached: Vec<(u64, &Change)> = Vec::new();
        for record in self.records.iter().take_while(|record| record.began <= tick) {
            let is_kept = record.kept_from.is_some_and(|from| from <= tick);
            if is_kept || !random.once_in(lost_once_in) {
                let until = record.ended.map_or(tick, |ended| ended.min(tick));
                reached.push((random.of(record.began..until + 1), &record.change));
            }
        }
        reached.sort_by_key(|(moment, _)| *moment);
        let mut medium = vec![0; self.size];
        for (_, change) in reached {
            match change {
                Change::None | Change::Sync(_) => {}
                Change::Write { offset, bytes } => {
                    medium[*offset..offset + bytes.len()].copy_from_slice(bytes);
                }
                Change::Zero { offset, len } => medium[*offset..offset + len].fill(0),
            }
        }
        medium
    }
}
