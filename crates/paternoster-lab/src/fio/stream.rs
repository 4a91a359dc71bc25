//! The I/Os of a job, one after the other.
//!
//! ```text
//!   pass over the files, `loops` times or until `io_size` is done
//!     └─ a sync, if one is due
//!     └─ choose a file, a direction, random or not, a size ──▶ Spot ──▶ a block
//!   end_fsync, fsync_on_close
//! ```
//!
//! A stream says what is next, never when: pace, depth and time are the engine's, which calls
//! [`stop`](Stream::stop) when `runtime` is over, and says how long each direction has to wait.

use std::collections::VecDeque;

use paternoster::{IoPrio, Nanos};
use paternoster_intake::iolog::IoOp;

use super::job::{DataDirection, FileService, IoMix, Modifier, Order, Pattern, used_sizes};
use super::spot::{Block, BlockDraws, Spot};
use super::value::PerDirection;
use paternoster_model::{Draws, Who};

impl From<DataDirection> for IoOp {
    fn from(direction: DataDirection) -> Self {
        match direction {
            DataDirection::Read => Self::Read,
            DataDirection::Write => Self::Write,
            DataDirection::Trim => Self::Trim,
        }
    }
}

/// An I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// What it does.
    pub op: IoOp,
    /// The index of its file in [`Jobs::files`](super::Jobs::files).
    pub file: usize,
    /// Where it starts in the file, in bytes.
    pub offset: u64,
    /// How many bytes it has; a sync has none.
    pub bytes: u64,
    /// A priority of its own, instead of the job's.
    pub io_prio: Option<IoPrio>,
}

/// The I/Os of a job.
#[derive(Clone, Debug)]
pub struct Stream {
    pattern: Pattern,
    draws: StreamDraws,
    spots: Vec<Spot>,
    turn: Turn,
    /// How many passes were begun.
    passes: u32,
    /// I/Os of this pass, and of the job, without syncs.
    pass_ios: u64,
    ios: u64,
    /// Bytes of the job.
    bytes: u64,
    /// Writes of the job.
    writes: u64,
    /// The last I/O was a sync that was due.
    has_synced: bool,
    queue: VecDeque<Io>,
    has_ended: bool,
    /// How long an I/O of each direction would have to wait.
    waits: PerDirection<Nanos>,
}

/// The draws of a job. Each kind has a stream of its own, so that one more of a kind changes no
/// other.
#[derive(Clone, Debug)]
struct StreamDraws {
    directions: Draws,
    blocks: BlockDraws,
    files: Draws,
    priorities: Draws,
}

impl StreamDraws {
    fn new(seed: u64) -> Self {
        let [directions, sizes, positions, files, priorities] =
            [1, 2, 3, 4, 5].map(|number| Draws::new(seed, Who::Job, number));
        Self { directions, blocks: BlockDraws { sizes, positions }, files, priorities }
    }
}

/// Whose turn it is among the files.
#[derive(Clone, Debug, Default)]
struct Turn {
    spot: usize,
    /// How many I/Os it has had.
    ios: u32,
}

impl Stream {
    /// The I/Os of a job with that pattern.
    pub fn new(pattern: &Pattern) -> Self {
        let mut draws = StreamDraws::new(pattern.seed);
        let regions = pattern.regions.iter();
        let spots: Vec<_> = regions
            .map(|&region| Spot::new(region, pattern, &mut draws.blocks.positions))
            .collect();
        Self {
            pattern: pattern.clone(),
            draws,
            spots,
            turn: Turn::default(),
            passes: 1,
            pass_ios: 0,
            ios: 0,
            bytes: 0,
            writes: 0,
            has_synced: false,
            queue: VecDeque::new(),
            has_ended: false,
            waits: [Nanos::ZERO; 3],
        }
    }

    /// The next I/O, where one of each direction would have to wait so long.
    pub(crate) fn next_within(&mut self, waits: [Nanos; 3]) -> Option<Io> {
        self.waits = waits;
        self.next()
    }

    /// Of the I/Os so far only these count towards `number_ios`, as the others were complete before
    /// `ramp_time` was over.
    pub(crate) fn end_ramp(&mut self, ios: u64) {
        self.ios = if self.pattern.mix == IoMix::TrimsAndWrites { ios / 2 } else { ios };
    }

    /// How many passes over its files were begun.
    pub fn passes(&self) -> u32 {
        self.passes
    }

    /// Ends it: only the syncs at its end are left.
    pub fn stop(&mut self) {
        if !self.has_ended {
            self.queue.clear();
            self.end();
        }
    }

    /// How much it has given of how much in all, in bytes or in I/Os, whichever ends it first; none
    /// where only [`stop`](Self::stop) ends it.
    pub(crate) fn work(&self) -> Option<(u64, u64)> {
        let bytes = self.whole_bytes().map(|whole| (self.bytes, whole));
        let ios = self.whole_ios().map(|whole| (self.ios, whole));
        let part =
            |(done, whole): (u64, u64)| u128::from(done) * (1 << 64) / u128::from(whole.max(1));
        [bytes, ios].into_iter().flatten().max_by_key(|&work| part(work))
    }

    /// Puts what is next into the queue, or ends.
    fn advance(&mut self) {
        if self.is_over() {
            return self.end();
        }
        if let Some(sync) = self.due_sync()
            && let Some(spot) = self.choose_spot()
        {
            self.has_synced = true;
            return self.push_sync(sync, spot);
        }
        while let Some(spot) = self.choose_spot() {
            if let Some(block) = self.spots[spot].trimmed.take() {
                return self.transfer(spot, DataDirection::Write, block);
            }
            let direction = self.choose_direction();
            if let Some(block) = self.block(spot, direction) {
                return self.transfer(spot, direction, block);
            }
            self.spots[spot].is_done = true;
        }
        if !self.next_pass() {
            self.end();
        }
    }

    /// An I/O. What is trimmed counts when it is written: as in fio, that is the next I/O in the
    /// same file.
    fn transfer(&mut self, spot: usize, direction: DataDirection, block: Block) {
        self.pass_ios += 1;
        self.has_synced = false;
        self.push(spot, direction, block);
        if self.pattern.mix == IoMix::TrimsAndWrites && direction == DataDirection::Trim {
            self.spots[spot].trimmed = Some(block);
            return;
        }
        self.ios += 1;
        self.bytes = self.bytes.saturating_add(block.bytes);
    }

    fn block(&mut self, spot: usize, direction: DataDirection) -> Option<Block> {
        let StreamDraws { directions, blocks, .. } = &mut self.draws;
        let pattern = &self.pattern;
        let spot = &mut self.spots[spot];
        let is_random = pattern.order == Order::Random
            && directions.percent(pattern.percent_random[direction as usize]);
        if !is_random {
            let holes = match pattern.modifier {
                Some(Modifier::Holes(bytes)) => bytes,
                Some(Modifier::Runs(_) | Modifier::Repeats(_)) | None => 0,
            };
            let sizes = pattern.sizes_of(direction, Order::Sequential);
            let following = spot.follow(direction, sizes, holes, blocks);
            if following.is_some() || pattern.order == Order::Sequential {
                return following;
            }
        }
        let sizes = pattern.sizes_of(direction, Order::Random);
        spot.jump(direction, sizes, pattern.modifier, blocks)
    }

    /// The direction of the next I/O. Where the one that was drawn would have to wait longer than
    /// the other, that one is done, as in fio: a rate is of each direction by itself. A mix that is
    /// all of one direction has no other.
    fn choose_direction(&mut self) -> DataDirection {
        match self.pattern.mix {
            IoMix::Only(direction) => direction,
            IoMix::TrimsAndWrites => DataDirection::Trim,
            IoMix::ReadsAndWrites { reads } => {
                let [read, write, _] = self.waits;
                let is_read = self.draws.directions.percent(reads);
                match (is_read, reads) {
                    (true, 1..100) if write < read => DataDirection::Write,
                    (false, 1..100) if read < write => DataDirection::Read,
                    (true, _) => DataDirection::Read,
                    (false, _) => DataDirection::Write,
                }
            }
        }
    }

    /// The file whose turn it is, by its spot; none where all are done.
    fn choose_spot(&mut self) -> Option<usize> {
        let ios = match self.pattern.file_service {
            FileService::RoundRobin { ios } | FileService::Random { ios } => ios,
            FileService::Sequential => u32::MAX,
        };
        if self.turn.ios >= ios || self.spots[self.turn.spot].is_done {
            let count = self.spots.len();
            let first = match self.pattern.file_service {
                FileService::Random { .. } => {
                    let count = u64::try_from(count).expect("a length fits");
                    usize::try_from(self.draws.files.below(count)).expect("it is below a length")
                }
                _ => self.turn.spot + 1,
            };
            let spots = (0..count).map(|behind| (first + behind) % count);
            let spot = spots.into_iter().find(|&spot| !self.spots[spot].is_done)?;
            self.turn = Turn { spot, ios: 0 };
        }
        self.turn.ios = self.turn.ios.saturating_add(1);
        Some(self.turn.spot)
    }

    /// Whether all was done that the job is to do.
    fn is_over(&self) -> bool {
        let bytes = self.whole_bytes().unwrap_or(u64::MAX);
        self.bytes >= bytes || self.whole_ios().is_some_and(|ios| self.ios >= ios)
    }

    /// The I/Os that the job is to do, if their number is to end it. As in fio, `number_ios` counts
    /// in each loop, and does not end a job that its time ends.
    fn whole_ios(&self) -> Option<u64> {
        let Pattern { number_ios, loops, is_endless, .. } = self.pattern;
        number_ios.filter(|_| !is_endless).map(|ios| ios.saturating_mul(loops.into()))
    }

    /// The bytes that the job is to do; none where it begins again for ever.
    fn whole_bytes(&self) -> Option<u64> {
        let Pattern { io_bytes, loops, is_endless, .. } = &self.pattern;
        let once = io_bytes.unwrap_or_else(|| self.region_bytes());
        (!is_endless).then(|| once.saturating_mul((*loops).into()))
    }

    /// The bytes of its regions.
    fn region_bytes(&self) -> u64 {
        let regions = self.pattern.regions.iter();
        regions.fold(0, |sum, region| sum.saturating_add(region.bytes))
    }

    /// Whether it ends with this pass. As in fio, `io_size` asks for more passes than `loops` as
    /// long as the largest I/O is left of it. What is trimmed and then written counts twice there.
    fn is_last_pass(&self) -> bool {
        let Pattern { io_bytes, loops, is_endless, mix, sizes_by_order, .. } = self.pattern;
        let times = if mix == IoMix::TrimsAndWrites { 2 } else { 1 };
        let done = self.bytes.saturating_mul(times);
        let used = used_sizes(mix, sizes_by_order).iter();
        let largest = used.map(|&index| self.pattern.sizes[index].max()).max().unwrap_or(1);
        let lacks_bytes = io_bytes.is_some_and(|bytes| done.saturating_add(largest) <= bytes);
        self.passes >= loops && !lacks_bytes && !is_endless
    }

    /// Begins the next pass over the files, if there is one: they are closed and opened again.
    fn next_pass(&mut self) -> bool {
        if self.pass_ios == 0 || self.is_last_pass() {
            return false;
        }
        self.close_files();
        self.passes = self.passes.saturating_add(1);
        self.pass_ios = 0;
        self.has_synced = false;
        // As in fio, the pass begins with the file behind the last one.
        self.turn.ios = u32::MAX;
        if self.pattern.repeat && !self.pattern.is_endless {
            self.draws = StreamDraws::new(self.pattern.seed);
        }
        for spot in &mut self.spots {
            spot.restart(&self.pattern, &mut self.draws.blocks.positions);
        }
        true
    }

    /// The sync that is due before the next I/O. As in fio, one is due as long as the number of
    /// writes is a multiple, so that reads in a mix are each followed by another, and none is
    /// among trims that are followed by writes.
    fn due_sync(&self) -> Option<IoOp> {
        let is_due =
            |every: u32| every > 0 && self.writes > 0 && self.writes.is_multiple_of(every.into());
        match self.pattern.syncs {
            _ if self.has_synced || self.pattern.mix == IoMix::TrimsAndWrites => None,
            syncs if is_due(syncs.fsync) => Some(IoOp::Sync),
            syncs if is_due(syncs.fdatasync) => Some(IoOp::DataSync),
            _ => None,
        }
    }

    /// Closes the files at the end of a pass, with the syncs that belong there. As in fio,
    /// `end_fsync` is for all files, but not right behind another sync.
    fn close_files(&mut self) {
        let syncs = self.pattern.syncs;
        let syncs_all = syncs.at_end && self.writes > 0 && !self.has_synced;
        for spot in 0..self.spots.len() {
            if syncs_all || syncs.at_close && self.spots[spot].is_dirty {
                self.push_sync(IoOp::Sync, spot);
            }
        }
    }

    /// Ends the job.
    fn end(&mut self) {
        self.has_ended = true;
        self.close_files();
    }

    fn push_sync(&mut self, op: IoOp, spot: usize) {
        let file = self.spots[spot].region.file;
        self.queue.push_back(Io { op, file, offset: 0, bytes: 0, io_prio: None });
        self.spots[spot].is_dirty = false;
    }

    fn push(&mut self, spot: usize, direction: DataDirection, block: Block) {
        let Block { offset, bytes } = block;
        let priorities = &self.pattern.command_priorities;
        let io_prio = priorities.draw(direction.into(), bytes, &mut self.draws.priorities);
        let file = self.spots[spot].region.file;
        self.queue.push_back(Io { op: direction.into(), file, offset, bytes, io_prio });
        if direction == DataDirection::Write {
            self.writes += 1;
            self.spots[spot].is_dirty = true;
        }
    }
}

impl Iterator for Stream {
    type Item = Io;

    fn next(&mut self) -> Option<Io> {
        while self.queue.is_empty() && !self.has_ended {
            self.advance();
        }
        self.queue.pop_front()
    }
}
