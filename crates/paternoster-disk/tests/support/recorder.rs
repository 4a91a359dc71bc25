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
//! What is written stays volatile until a sync that began after the write ended has ended. A cut
//! leaves of the volatile writes any subset, each wholly or not at all; two that overlap take
//! effect in the order in which they ran, or in any if they ran at the same time.

use paternoster_disk::{Transfer, TransferId};

use super::random::Random;

/// How the device keeps what it promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Honesty {
    /// It does what it says.
    Honest,
    /// A sync ends well and makes nothing durable.
    SyncsDoNothing,
    /// A durable write is like any other.
    DurableIsPlain,
}

/// One transfer that changes the disk, or a sync.
struct Record {
    id: TransferId,
    began: u64,
    ended: Option<u64>,
    durable: bool,
    change: Change,
    /// From when on a cut cannot lose it.
    kept_from: Option<u64>,
}

enum Change {
    None,
    Write { offset: usize, bytes: Vec<u8> },
    Zero { offset: usize, len: usize },
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

    /// Whether it is to be told that this transfer begins.
    pub(crate) fn is_new(&self, id: TransferId) -> bool {
        !self.records.iter().any(|record| record.id == id && record.ended.is_none())
    }

    pub(crate) fn begin(&mut self, tick: u64, id: TransferId, transfer: &Transfer) {
        let index = |at: u64| usize::try_from(at).expect("inside the disk");
        let (change, durable) = match transfer {
            Transfer::Read { .. } | Transfer::Sync => (Change::None, false),
            Transfer::Write { offset, from, durable } => {
                (Change::Write { offset: index(*offset), bytes: from.concat() }, *durable)
            }
            Transfer::Trim { offset, len } | Transfer::Zero { offset, len, .. } => {
                (Change::Zero { offset: index(*offset), len: index(*len) }, false)
            }
        };
        let record = Record { id, began: tick, ended: None, durable, change, kept_from: None };
        self.records.push(record);
    }

    pub(crate) fn end(&mut self, tick: u64, id: TransferId) {
        let under_way = |record: &&mut Record| record.id == id && record.ended.is_none();
        let record = self.records.iter_mut().find(under_way).expect("it is under way");
        record.ended = Some(tick);
        let began = record.began;
        if record.durable && self.honesty != Honesty::DurableIsPlain {
            record.kept_from = Some(tick);
        }
        if id == TransferId::Sync && self.honesty != Honesty::SyncsDoNothing {
            let covered = |record: &&mut Record| record.ended.is_some_and(|ended| ended < began);
            for record in self.records.iter_mut().filter(covered) {
                record.kept_from.get_or_insert(tick);
            }
        }
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
                Change::None => {}
                Change::Write { offset, bytes } => {
                    medium[*offset..offset + bytes.len()].copy_from_slice(bytes);
                }
                Change::Zero { offset, len } => medium[*offset..offset + len].fill(0),
            }
        }
        medium
    }
}
