//! One disk's commands, from a front to the back ends of its volumes and back. The engine decides
//! and never acts: it does no I/O, and has no clock: the caller passes each moment, or what says
//! it.
//!
//! ```text
//!   submit ──▶ pieces ──bio──▶ Elevator ──request──▶ step ───────────▶ back end
//!     │ flush                     ▲                                    of the volume
//!     └──────▶ syncs of it ───────┼───────── Transfer::Sync ───────────▶ │
//!               ▲ FUA             │ alone                                ▼
//!   poll_outcome ◀── pieces ◀─────┴─ failed or short ◀──────────── transfer_done
//! ```
//!
//! Volumes share the elevator, and so weights hold among all of them; what one of them holds, syncs
//! or loses is its own ([`volumes`]).
//!
//! A FUA command is two operations: a plain one, whose error is its own, and then the shared sync,
//! whose error is everybody's. The kernel reports a failed writeback once for each open file, to
//! whoever syncs next: a write and a sync in one (`RWF_DSYNC`) could bring a client the error of
//! another's page, and nobody could tell.
//!
//! The caller's law is the elevator's: an input with a clock reading of its own, then
//! [`Engine::step`] until it breaks, then the next input. Several commands may be submitted before
//! that, each with its own reading, so that the scheduler chooses among all of them.
//!
//! What fronts hold back in plugs arrives as batches ([`Engine::submit_batch`]).

mod blocks;
mod command;
mod fault;
mod holds;
mod in_device;
mod kind;
mod lifecycle;
mod paused;
mod pieces;
mod plugged;
mod read_modify_write;
mod stream;
mod sync;
mod touching;
mod turns;
mod volumes;

pub use command::{
    Command, CommandOp, FrontTag, Outcome, Part, Parts, Payload, Transfer, TransferId, Transferred,
};
pub use fault::{DiskOp, Fault, FaultyPiece};
pub use in_device::InDevice;
pub use sync::{SyncRange, SyncStats};
pub use volumes::{NoGrowth, NoVolume, VolumeId, VolumePlace, VolumeStats};

use std::collections::VecDeque;
use std::ops::ControlFlow;

use bytes::Bytes;
use paternoster::scheduler::{Scheduler, SideTable, Work};
use paternoster::{Administration, Bio, Driver, Elevator, Instant, Limits, RequestId, SectorCount};
use rustix::io::Errno;

use self::paused::Paused;
use self::pieces::{CommandId, InOrder, Left, Piece, PieceId, Pieces, Scope, piece_id};
pub(crate) use self::stream::in_one;
use self::stream::{Stream, len_of};
use self::sync::{RunningSync, SyncEnd};
use crate::ring::MAX_BUFFERS;

/// The longest discard in bytes: long enough to be cheap, short enough to share the device, and the
/// thread where it is memory that is cleared.
const MAX_DISCARD: u32 = 4 << 20;

/// One disk's commands and their scheduler.
#[derive(Debug)]
pub struct Engine<S> {
    driver: Driver<S>,
    pieces: Pieces,
    in_device: SideTable<RequestId, InTheDevice>,
    /// Requests of closing and paused volumes that have been dispatched: they do not begin.
    refused: VecDeque<(RequestId, InOrder)>,
    /// Requests in the device whose end blocks have been read, with these: all is to be written.
    to_write: VecDeque<(RequestId, Bytes)>,
    /// Bios to submit: those to be issued again, and of commands that go on.
    to_submit: VecDeque<Bio>,
    outcomes: VecDeque<Outcome>,
    /// Whether another one is about to take over: see [`hold`](Self::hold).
    is_held: bool,
    paused: Paused,
}

impl<S: Scheduler> Engine<S> {
    /// Makes an engine without volumes. Sets the elevator's limits to what back ends take, and lets
    /// it hold any number of requests: fronts bound what they submit.
    pub fn new(mut elevator: Elevator<S>) -> Self {
        let max_segments = u16::try_from(MAX_BUFFERS).expect("1024 fits");
        elevator.set_limits(
            Limits::default()
                .with_max_discard_sectors(MAX_DISCARD.div_ceil(SectorCount::SECTOR_BYTES))
                .with_max_segments(max_segments.min(Limits::default().max_segments)),
        );
        elevator.set_nr_requests(Some(u32::MAX));
        Self {
            driver: Driver::new(elevator),
            pieces: Pieces::new(),
            in_device: SideTable::new(),
            refused: VecDeque::new(),
            to_write: VecDeque::new(),
            to_submit: VecDeque::new(),
            outcomes: VecDeque::new(),
            is_held: false,
            paused: Paused::default(),
        }
    }

    /// Lets so many volumes sync at once; 4 do unless told.
    #[must_use]
    pub fn with_sync_depth(mut self, volumes: usize) -> Self {
        self.pieces.volumes.set_sync_depth(volumes);
        self
    }

    /// Takes a command that arrives now: its first bios enter the elevator. The caller lets the
    /// engine take steps afterwards; more commands may come before.
    pub fn submit(&mut self, now: Instant, command: Command) {
        if let Err(errno) = self.accept(&command) {
            self.outcomes.push_back(Outcome::new(command.tag, Err(errno)));
            return;
        }
        if let Command { op: CommandOp::Flush, tag, volume, ioc } = command {
            let flush = self.pieces.begin(tag, volume, ioc);
            self.pieces.volumes.wait_for_sync(volume, flush, SyncRange::Whole);
            return;
        }
        if is_empty(&command.op) {
            self.outcomes.push_back(Outcome::new(command.tag, Ok(Payload::new())));
            return;
        }
        let (command, uncut) = self.pieces.add(command);
        let Some(uncut) = uncut else { return self.end_command(command) };
        self.pieces.cut(command, uncut, self.driver.elevator().limits(), &mut self.to_submit);
        for bio in self.to_submit.drain(..) {
            self.driver.submit(now, bio);
        }
    }

    /// Refuses a command that cannot be carried out.
    fn accept(&self, command: &Command) -> Result<(), Errno> {
        let volumes = &self.pieces.volumes;
        let volume = match command.op {
            // For whoever closes it, to have what was written made durable.
            CommandOp::Flush => volumes.get(command.volume),
            _ => volumes.open(command.volume),
        };
        let volume = volume.ok_or(Errno::SHUTDOWN)?;
        match &command.op {
            op if volume.syncs().failed() && wants_durability(op) => Err(Errno::IO),
            op if !volume.is_fast_enough(op) => Err(Errno::OPNOTSUPP),
            CommandOp::ReadInto { offset, into }
                if !volume.reads_into.is_some_and(|reads| reads.permit(*offset, into)) =>
            {
                Err(Errno::INVAL)
            }
            _ => Ok(()),
        }
    }

    /// A step after an input: has `start` begin every transfer that may begin at a moment, then
    /// gives the elevator one more input, at a moment of its own: the end of a request that does
    /// not begin, or one of the bios that wait. It breaks when there is none; else the caller takes
    /// another step. `clock` is read for each of these moments: to begin transfers may take long.
    pub fn step(
        &mut self,
        mut clock: impl FnMut() -> Instant,
        mut start: impl FnMut(Instant, TransferId, Transfer),
    ) -> ControlFlow<()> {
        let now = clock();
        let Self { driver, pieces, in_device, refused, to_write, to_submit, paused, .. } = self;
        while let Some((volume, range)) = pieces.volumes.begin_sync(now) {
            start(now, TransferId::Sync(volume), Transfer::Sync { range });
        }
        for (rq, read) in to_write.drain(..) {
            let first = in_device[rq].order[0];
            let transfer = pieces.write_of_all(first, &read);
            start(now, TransferId::Request(pieces.piece(first).volume, rq), transfer);
        }
        driver.dispatch(now, |elevator, rq| {
            let order = pieces.in_order(elevator.request(rq).user_data());
            let volume = pieces.piece(order[0]).volume;
            let of = &pieces.volumes[volume];
            if of.is_closing || of.is_paused {
                refused.push_back((rq, order));
                return;
            }
            let is_reading_ends = pieces.is_read_first(of.blocks, &order);
            let transfer = if is_reading_ends {
                pieces.read_of_ends(order[0])
            } else {
                pieces.transfer(of.blocks, &order)
            };
            in_device.insert(rq, InTheDevice { order, is_reading_ends });
            start(now, TransferId::Request(volume, rq), transfer);
        });
        if let Some(rq) = paused.free_next() {
            driver.complete(clock(), rq);
            return ControlFlow::Continue(());
        }
        if let Some((rq, order)) = refused.pop_front() {
            self.refuse(clock(), rq, order);
            return ControlFlow::Continue(());
        }
        let Some(bio) = to_submit.pop_front() else { return ControlFlow::Break(()) };
        driver.submit(clock(), bio);
        ControlFlow::Continue(())
    }

    /// Takes the result of a transfer that the back end has finished.
    pub fn transfer_done(&mut self, now: Instant, id: TransferId, transferred: Transferred) {
        match id {
            TransferId::Request(_, rq) => self.request_done(now, rq, transferred),
            TransferId::Sync(volume) => {
                self.charge_sync(now, volume);
                let ended = match transferred.result {
                    Ok(_) => SyncEnd::Durable,
                    Err(_) if transferred.is_uncertain => SyncEnd::NotAsked,
                    Err(_) => SyncEnd::Failed,
                };
                if let Err(errno) = transferred.result {
                    let (op, poisons) = (DiskOp::Sync, ended == SyncEnd::Failed);
                    self.pieces.faults.add(Fault { volume, op, errno, poisons, piece: None });
                }
                for command in self.pieces.volumes.end_sync(volume, ended) {
                    self.end_durable(command, ended);
                }
            }
        }
    }

    /// A sync is no request, and its time is the disk's: the group of each command that it was for
    /// is charged its part.
    fn charge_sync(&mut self, now: Instant, volume: VolumeId) {
        let running = self.pieces.volumes[volume].syncs().running();
        let Some(RunningSync { began, waiters }) = running else { return };
        let waited_for_by = u32::try_from(waiters.len()).unwrap_or(u32::MAX);
        let work = Work::Sync { took: now.saturating_since(*began), waiters: waited_for_by };
        for &command in waiters {
            let group = self.driver.elevator().group_of(self.pieces.command(command).ioc);
            self.driver.administer(|elevator| elevator.charge(now, group, work));
        }
    }

    /// Takes the outcome of the next command that is done.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Returns whether `poll_outcome` has something.
    pub fn has_outcome(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// Returns when `handle_timeout` is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.driver.poll_timeout()
    }

    /// Runs the scheduler's timer; called at the moment that `poll_timeout` named.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.driver.handle_timeout(now);
    }

    /// Fails with ESHUTDOWN everything that is not in the device yet.
    pub fn cancel_queued(&mut self, now: Instant) {
        let queued = self.driver.cancel_queued(now).into_iter().map(piece_id).collect();
        self.end_waiting(Scope::All, queued);
    }

    /// Cancels every sync that has not begun. It is carried out all the same: a flush or FUA
    /// command that waits for it then fails with ESHUTDOWN, or with EIO if the sync fails, as that
    /// is told only once. A transfer in the device that is given up fails with ESHUTDOWN too.
    pub fn cancel_syncs(&mut self) {
        self.pieces.cancel_syncs(Scope::All);
    }

    /// Gives up all that is not in the device, for somebody else to do it, who has the same files
    /// open: what is left of each command comes with its outcome. A sync that has not begun is
    /// left to him as well: he hears of what has failed. The caller lets the engine take steps
    /// afterwards, and submits nothing but flushes until [`go_on`](Self::go_on).
    pub fn hold(&mut self, now: Instant) {
        self.is_held = true;
        self.cancel_queued(now);
        for command in self.pieces.volumes.give_up_waiting_syncs() {
            self.outcomes.push_back(self.pieces.leave_sync(command));
        }
    }

    /// Nobody takes over: what has been given up may be submitted again.
    pub fn go_on(&mut self) {
        self.is_held = false;
    }

    /// Fails with ESHUTDOWN what of those volumes waits before the scheduler, and those pieces.
    fn end_waiting(&mut self, of: Scope, queued: Vec<PieceId>) {
        self.pieces.give_up_uncut(of, Errno::SHUTDOWN);
        let mut all = self.pieces.waiting(of);
        all.extend(queued);
        all.extend(self.paused.take_waiting(of, &self.pieces));
        let bios = self.to_submit.iter().map(|bio| piece_id(bio.user_data));
        all.extend(bios.filter(|&piece| of.includes(self.pieces.piece(piece).volume)));
        for piece in all {
            if matches!(of, Scope::All) {
                self.pieces.note_left(piece);
            }
            self.end_piece(piece, Err(Errno::SHUTDOWN));
        }
        // Some of those that waited for a block could have had it when others were gone.
        let Self { pieces, to_submit, .. } = self;
        to_submit.retain(|bio| pieces.has(piece_id(bio.user_data)));
    }

    /// Returns how many pieces of commands wait for a block that is held, before the scheduler.
    pub fn waiting_for_blocks(&self) -> usize {
        self.pieces.waiting_for_blocks()
    }

    /// Returns whether no command is in flight and no outcome waits.
    pub fn is_idle(&self) -> bool {
        self.pieces.is_empty() && self.outcomes.is_empty()
    }

    /// Returns the elevator, to read its state.
    pub fn elevator(&self) -> &Elevator<S> {
        self.driver.elevator()
    }

    /// Returns the sink of the scheduler's events.
    pub fn trace(&mut self) -> &mut S::Trace {
        self.driver.trace()
    }

    /// Lets `change` change groups, I/O contexts, tunables or depth of the elevator. The caller
    /// lets the engine take steps afterwards, as [`Owner::administer`](crate::Owner::administer)
    /// does.
    pub fn administer<R>(&mut self, change: impl FnOnce(&mut Administration<'_, S>) -> R) -> R {
        self.driver.administer(change)
    }

    /// Asserts what always holds of the elevator, by walking everything.
    pub fn check(&mut self) {
        self.driver.check();
    }

    /// Each piece of a request gets its own result: what is not done and may yet be is issued
    /// again, alone.
    fn request_done(&mut self, now: Instant, rq: RequestId, transferred: Transferred) {
        let order = if let Some(order) = self.paused.take_started(rq) {
            order
        } else {
            let of = self.in_device.get_mut(rq).expect("a request is done once");
            if std::mem::take(&mut of.is_reading_ends) {
                self.ends_read(now, rq, &transferred);
                return;
            }
            self.driver.complete(now, rq);
            self.in_device.remove(rq).expect("it is in the device").order
        };
        let blocks = self.pieces.blocks_of(order[0]);
        let start = self.pieces.range(blocks, &order).start;
        let done_until = transferred.result.map(|bytes| blocks.done_until(start + bytes));
        let is_last_word = order.len() == 1 || transferred.is_uncertain;
        let ended = Ended { is_last_word, done_until };
        let mut read = Stream::new(transferred.read);
        if !read.is_empty() {
            // Bytes before the piece are there only to fill its first block.
            read.skip(self.pieces.offset_in_blocks(blocks, order[0]));
        }
        for &id in &order {
            let piece = self.pieces.piece(id);
            let len = piece.len as usize;
            let takes = piece.is_read() && !read.is_empty();
            let data = if takes { read.take(len) } else { Payload::new() };
            match ended.verdict(piece) {
                Verdict::Done => {
                    // A client would take what follows for the rest of its data.
                    let is_whole = !piece.is_read() || len_of(&data) == len;
                    self.end_piece(id, if is_whole { Ok(data) } else { Err(Errno::IO) });
                }
                Verdict::Failed(errno) if transferred.is_uncertain => {
                    self.end_piece(id, Err(self.pieces.given_up(id, errno)));
                }
                Verdict::Failed(errno) => self.end_piece(id, Err(errno)),
                Verdict::GoOn { done_until } => {
                    self.pieces.keep_rest(id, done_until, data);
                    self.to_submit.push_back(self.pieces.reissue(id));
                }
                Verdict::Again => self.to_submit.push_back(self.pieces.reissue(id)),
            }
        }
    }

    /// The end blocks of a read-modify-write have been read, or not: then nothing is written.
    fn ends_read(&mut self, now: Instant, rq: RequestId, transferred: &Transferred) {
        let piece = self.in_device[rq].order[0];
        let Transfer::Read { parts, .. } = self.pieces.read_of_ends(piece) else {
            unreachable!("ends are read")
        };
        let read = in_one(&transferred.read);
        let is_whole = read.len() == parts[0] as usize;
        match transferred.result {
            Ok(_) if is_whole => self.to_write.push_back((rq, read)),
            result => {
                self.driver.complete(now, rq);
                self.in_device.remove(rq);
                let errno = result.err().unwrap_or(Errno::IO);
                let given_up = transferred.is_uncertain.then(|| self.pieces.given_up(piece, errno));
                self.end_piece(piece, Err(given_up.unwrap_or(errno)));
            }
        }
    }

    fn end_piece(&mut self, id: PieceId, result: Result<Payload, Errno>) {
        match self.pieces.end_piece(id, result, &mut self.to_submit) {
            (_, Left::Pieces) => {}
            (command, Left::Uncut) => {
                self.pieces.cut_on(command, self.driver.elevator().limits(), &mut self.to_submit);
            }
            (command, Left::Nothing) => self.end_command(command),
        }
    }

    /// Nothing is left to do of a command but, where it promised that, to make it durable.
    fn end_command(&mut self, command: CommandId) {
        let running = self.pieces.command(command);
        let Some(range) = &running.sync_afterwards else {
            let outcome = self.pieces.end_command(command, None);
            self.outcomes.push_back(outcome);
            return;
        };
        let volume = running.volume;
        let has_failed = self.pieces.volumes[volume].syncs().failed();
        if running.has_failed() || has_failed {
            // It has failed itself, or nothing is durable any more.
            let ended = if has_failed { SyncEnd::Failed } else { SyncEnd::Durable };
            self.end_durable(command, ended);
        } else if self.is_held {
            self.outcomes.push_back(self.pieces.leave_sync(command));
        } else {
            let range = SyncRange::Bytes(range.clone());
            self.pieces.volumes.wait_for_sync(volume, command, range);
        }
    }

    /// Ends a command that promises durability, after its sync.
    fn end_durable(&mut self, command: CommandId, sync: SyncEnd) {
        let is_cancelled = self.pieces.command(command).is_cancelled;
        let error = match sync {
            SyncEnd::Durable => is_cancelled.then_some(Errno::SHUTDOWN),
            SyncEnd::Failed | SyncEnd::NotAsked => Some(Errno::IO),
        };
        let outcome = self.pieces.end_command(command, error);
        self.outcomes.push_back(outcome);
    }
}

/// A request in the device.
#[derive(Debug)]
struct InTheDevice {
    /// Its pieces.
    order: InOrder,
    /// Whether it is a read-modify-write whose end blocks are being read.
    is_reading_ends: bool,
}

/// How the transfer of a request has ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    /// Whether an error is for each of its pieces: it was of a single one, or may yet be done.
    is_last_word: bool,
    /// The byte of its volume up to which it is done, or why it failed.
    done_until: Result<u64, Errno>,
}

/// What becomes of a piece whose transfer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All of it is done.
    Done,
    /// It is done up to that byte of its volume; the rest may succeed, or say why it does not.
    GoOn { done_until: u64 },
    /// Another piece may have been the trouble: one bad sector is its own client's alone.
    Again,
    /// It will not be done.
    Failed(Errno),
}

impl Ended {
    /// A transfer of one piece that moved nothing would move nothing again: EIO.
    fn verdict(self, piece: &Piece) -> Verdict {
        match self.done_until {
            Ok(done_until) if done_until >= piece.end() => Verdict::Done,
            Ok(done_until) if done_until > piece.offset => Verdict::GoOn { done_until },
            Ok(_) if self.is_last_word => Verdict::Failed(Errno::IO),
            Err(errno) if self.is_last_word => Verdict::Failed(errno),
            Ok(_) | Err(_) => Verdict::Again,
        }
    }
}

fn wants_durability(op: &CommandOp) -> bool {
    match op {
        CommandOp::Flush => true,
        CommandOp::Write { fua, .. }
        | CommandOp::Trim { fua, .. }
        | CommandOp::Zero { fua, .. } => *fua,
        CommandOp::Read { .. } | CommandOp::ReadInto { .. } | CommandOp::Cache { .. } => false,
    }
}

fn is_empty(op: &CommandOp) -> bool {
    match op {
        CommandOp::Flush => false,
        CommandOp::Write { data, .. } => data.is_empty(),
        CommandOp::ReadInto { into, .. } => into.is_empty(),
        CommandOp::Read { len, .. }
        | CommandOp::Cache { len, .. }
        | CommandOp::Trim { len, .. }
        | CommandOp::Zero { len, .. } => *len == 0,
    }
}
