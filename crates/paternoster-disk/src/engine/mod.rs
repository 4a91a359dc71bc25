//! One disk's commands, from a front to a back end and back. Decides, never acts: sans-IO.
//!
//! ```text
//!   submit ──▶ pieces ──bio──▶ Elevator ──request──▶ settle ─────────▶ back end
//!     │ flush                     ▲                                      │
//!     └──────▶ syncs ─────────────┼───────── Transfer::Sync ───────────▶ │
//!               ▲ FUA             │ alone                                ▼
//!   poll_outcome ◀── pieces ◀─────┴─ failed or short ◀──────────── transfer_done
//! ```
//!
//! A FUA command is two operations: a plain one, whose error is its own, and then the shared sync,
//! whose error is everybody's. The kernel tells a failed writeback once for each open file, to
//! whoever syncs next: a write and a sync in one (`RWF_DSYNC`) could bring a client the error of
//! another's page, and nobody could tell.
//!
//! The owner's law is the elevator's: one input with a clock reading of its own, then
//! [`Engine::settle`], then the next.

mod command;
mod fault;
mod in_device;
mod pieces;
mod sync;

pub use command::{Command, CommandOp, Outcome, Payload, Transfer, TransferId, Transferred};
pub use fault::{DiskOp, Fault, FaultyPiece};
pub use in_device::InDevice;
pub use sync::{SyncRange, SyncStats};

use std::collections::VecDeque;

use bytes::BytesMut;
use paternoster::{Bio, Elevator, Instant, Limits, RequestId, Scheduler, SideTable, Submitted};
use rustix::io::Errno;
use smallvec::SmallVec;

use self::pieces::{CommandId, Kind, Left, Piece, PieceId, Pieces, piece_id};
use self::sync::Syncs;
use crate::clock::Clock;
use crate::ring::{Buffers, MAX_BUFFERS};

/// The longest discard: long enough to be cheap, short enough to share the device, and the thread
/// where it is memory that is cleared.
const MAX_DISCARD_SECTORS: u32 = 4 << 11;

/// The pieces of one request in the device, in the order of the disk.
type InOrder = SmallVec<[PieceId; 1]>;

/// One disk's commands and their scheduler.
#[derive(Debug)]
pub struct Engine<S> {
    elevator: Elevator<S>,
    pieces: Pieces,
    syncs: Syncs<CommandId>,
    /// Whether zeroing a range without writing it is possible.
    fast_zero: bool,
    /// The pieces of each request in the device.
    in_device: SideTable<RequestId, InOrder>,
    /// Bios to submit: those of the command at hand, and those to be issued again.
    to_submit: VecDeque<Bio>,
    /// Bios that the elevator turned away, in order of arrival.
    turned_away: VecDeque<Bio>,
    /// Those of them that it has called to try again.
    called: VecDeque<Bio>,
    outcomes: VecDeque<Outcome>,
}

impl<S: Scheduler> Engine<S> {
    /// An engine without commands. Sets the elevator's limits to what back ends take, and lets it
    /// hold any number of requests: fronts bound what they submit.
    pub fn new(mut elevator: Elevator<S>, fast_zero: bool) -> Self {
        let max_segments = u16::try_from(MAX_BUFFERS).expect("1024 fits");
        elevator.set_limits(Limits {
            max_discard_sectors: MAX_DISCARD_SECTORS,
            max_segments: max_segments.min(Limits::default().max_segments),
            ..Limits::default()
        });
        elevator.set_nr_requests(Some(u32::MAX));
        Self {
            elevator,
            pieces: Pieces::default(),
            syncs: Syncs::new(),
            fast_zero,
            in_device: SideTable::new(),
            to_submit: VecDeque::new(),
            turned_away: VecDeque::new(),
            called: VecDeque::new(),
            outcomes: VecDeque::new(),
        }
    }

    /// A command arrives.
    pub fn submit(&mut self, command: Command) {
        match command.op {
            _ if self.syncs.failed() && wants_durability(&command.op) => {
                self.outcomes.push_back(Outcome { tag: command.tag, result: Err(Errno::IO) });
            }
            CommandOp::Flush => {
                let flush = self.pieces.begin(command.tag);
                self.syncs.wait(flush, SyncRange::Disk);
            }
            CommandOp::Zero { fast: true, allocate, .. } if allocate || !self.fast_zero => {
                let result = Err(Errno::OPNOTSUPP);
                self.outcomes.push_back(Outcome { tag: command.tag, result });
            }
            _ if is_empty(&command.op) => {
                let result = Ok(Payload::new());
                self.outcomes.push_back(Outcome { tag: command.tag, result });
            }
            _ => {
                let command = self.pieces.add(command);
                self.pieces.cut(command, self.elevator.limits(), &mut self.to_submit);
            }
        }
    }

    /// After each input: submits what waits to be submitted, each bio at its own moment, and has
    /// `start` begin every transfer that may begin now.
    pub fn settle(
        &mut self,
        clock: &impl Clock,
        mut start: impl FnMut(Instant, TransferId, Transfer),
    ) {
        loop {
            if let Some(range) = self.syncs.begin() {
                start(clock.now(), TransferId::Sync, Transfer::Sync { range });
            }
            let now = clock.now();
            while let Some(rq) = self.elevator.dispatch(now) {
                let transfer = self.transfer(rq);
                start(now, TransferId::Request(rq), transfer);
            }
            let submitted = if let Some(bio) = self.called.pop_front() {
                self.elevator.resubmit(clock.now(), bio)
            } else if let Some(bio) = self.to_submit.pop_front() {
                self.elevator.submit(clock.now(), bio)
            } else {
                return;
            };
            if let Submitted::Later(bio) = submitted {
                self.turned_away.push_back(bio);
            }
        }
    }

    /// The back end is done with a transfer.
    pub fn transfer_done(&mut self, now: Instant, id: TransferId, transferred: Transferred) {
        match id {
            TransferId::Request(rq) => self.request_done(now, rq, transferred),
            TransferId::Sync => {
                if let Err(errno) = transferred.result {
                    self.pieces.faults.add(Fault { op: DiskOp::Sync, errno, piece: None });
                }
                for command in self.syncs.end(transferred.result.map(drop)) {
                    self.end_durable(command);
                }
            }
        }
    }

    /// What became of the next command that is done.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Whether `poll_outcome` has something.
    pub fn has_outcome(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// When the scheduler wants to be told the time.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.elevator.poll_timeout()
    }

    /// The moment that `poll_timeout` named has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.elevator.handle_timeout(now);
    }

    /// Fails with ESHUTDOWN everything that is not in the device yet.
    pub fn cancel_queued(&mut self, now: Instant) {
        self.pieces.give_up_uncut(Errno::SHUTDOWN);
        let cancelled = self.elevator.cancel_queued(now);
        let queued = cancelled.into_iter().flat_map(|bios| bios.user_data);
        let turned_away = self.turned_away.drain(..).chain(self.called.drain(..));
        let waiting = self.to_submit.drain(..).chain(turned_away);
        let all: Vec<u64> = queued.chain(waiting.map(|bio| bio.user_data)).collect();
        for user_data in all {
            self.end_piece(piece_id(user_data), Err(Errno::SHUTDOWN));
        }
    }

    /// Whether no command is under way and no outcome waits.
    pub fn is_idle(&self) -> bool {
        self.pieces.is_empty() && self.syncs.is_idle() && self.outcomes.is_empty()
    }

    /// What became of the syncs.
    pub fn sync_stats(&self) -> SyncStats {
        self.syncs.stats()
    }

    /// The elevator, to look at.
    pub fn elevator(&self) -> &Elevator<S> {
        &self.elevator
    }

    /// The elevator, for its administration: groups, I/O contexts, tunables, depth.
    pub fn elevator_mut(&mut self) -> &mut Elevator<S> {
        &mut self.elevator
    }

    /// The transfer of a request: the buffers of its pieces in the order of the disk.
    fn transfer(&mut self, rq: RequestId) -> Transfer {
        let mut order: InOrder =
            self.elevator.request(rq).user_data().iter().map(|&data| piece_id(data)).collect();
        order.sort_unstable_by_key(|&piece| self.pieces.piece(piece).offset);
        let first = self.pieces.piece(order[0]);
        let offset = first.offset;
        let each = || order.iter().map(|&piece| self.pieces.piece(piece));
        let len = || each().map(|piece| u64::from(piece.len)).sum();
        let transfer = match &first.kind {
            Kind::Read => {
                let into = each().map(|piece| BytesMut::zeroed(piece.len as usize)).collect();
                Transfer::Read { offset, into }
            }
            Kind::Write { .. } => {
                let from = each().filter_map(|piece| piece.data().cloned()).collect();
                Transfer::Write { offset, from }
            }
            Kind::Cache => Transfer::Cache { offset, len: len() },
            Kind::Trim => Transfer::Trim { offset, len: len() },
            Kind::Zero { allocate } => Transfer::Zero { offset, len: len(), allocate: *allocate },
        };
        self.in_device.insert(rq, order);
        transfer
    }

    /// Each piece of a request gets its own result: what is not done and may yet be is issued
    /// again, alone.
    fn request_done(&mut self, now: Instant, rq: RequestId, transferred: Transferred) {
        let bios = self.elevator.complete(now, rq);
        let order = self.in_device.remove(rq).expect("a request is done once");
        let start = self.pieces.piece(order[0]).offset;
        let ended = Ended { alone: order.len() == 1, start, result: transferred.result };
        let mut filled: Buffers<BytesMut> = transferred.filled;
        for (index, &id) in order.iter().enumerate() {
            let mut data = || filled.get_mut(index).map(std::mem::take).unwrap_or_default();
            match ended.verdict(self.pieces.piece(id)) {
                Verdict::Done => self.end_piece(id, Ok(data())),
                Verdict::Failed(errno) => self.end_piece(id, Err(errno)),
                Verdict::GoOn { done_until } => {
                    self.pieces.keep_rest(id, done_until, data());
                    self.to_submit.push_back(self.pieces.reissue(id));
                }
                Verdict::Again => self.to_submit.push_back(self.pieces.reissue(id)),
            }
        }
        if bios.call_waiters {
            self.called.append(&mut self.turned_away);
        }
    }

    fn end_piece(&mut self, id: PieceId, result: Result<BytesMut, Errno>) {
        match self.pieces.end_piece(id, result) {
            (_, Left::Pieces) => {}
            (command, Left::Uncut) => {
                self.pieces.cut(command, self.elevator.limits(), &mut self.to_submit);
            }
            (command, Left::Nothing) => self.end_command(command),
        }
    }

    /// Nothing is left to do of a command but, where it promised that, to make it durable.
    fn end_command(&mut self, command: CommandId) {
        let running = self.pieces.command(command);
        match &running.sync_afterwards {
            None => {
                let outcome = self.pieces.end_command(command, None);
                self.outcomes.push_back(outcome);
            }
            Some(range) if !running.has_failed() && !self.syncs.failed() => {
                self.syncs.wait(command, SyncRange::Bytes(range.clone()));
            }
            Some(_) => self.end_durable(command),
        }
    }

    /// Ends a command that promises durability: nothing is durable after a failed sync.
    fn end_durable(&mut self, command: CommandId) {
        let error = self.syncs.failed().then_some(Errno::IO);
        let outcome = self.pieces.end_command(command, error);
        self.outcomes.push_back(outcome);
    }
}

/// How the transfer of a request has ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    /// Whether it was of a single piece.
    alone: bool,
    /// First byte.
    start: u64,
    /// Bytes done, or why it failed.
    result: Result<u64, Errno>,
}

/// What becomes of a piece whose transfer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// All of it is done.
    Done,
    /// It is done up to that byte of the disk; the rest may succeed, or say why it does not.
    GoOn { done_until: u64 },
    /// Another piece may have been the trouble: one bad sector is its own client's alone.
    Again,
    /// It will not be done.
    Failed(Errno),
}

impl Ended {
    /// A transfer of one piece that moved nothing would move nothing again: EIO.
    fn verdict(self, piece: &Piece) -> Verdict {
        match self.result.map(|bytes| self.start + bytes) {
            Ok(done_until) if done_until >= piece.end() => Verdict::Done,
            Ok(done_until) if done_until > piece.offset => Verdict::GoOn { done_until },
            Ok(_) if self.alone => Verdict::Failed(Errno::IO),
            Err(errno) if self.alone => Verdict::Failed(errno),
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
        CommandOp::Read { .. } | CommandOp::Cache { .. } => false,
    }
}

fn is_empty(op: &CommandOp) -> bool {
    match op {
        CommandOp::Flush => false,
        CommandOp::Write { data, .. } => data.is_empty(),
        CommandOp::Read { len, .. }
        | CommandOp::Cache { len, .. }
        | CommandOp::Trim { len, .. }
        | CommandOp::Zero { len, .. } => *len == 0,
    }
}
