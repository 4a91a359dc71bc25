//! Commands in pieces: one bio each, with the exact bytes beside it.
//!
//! ```text
//!   command   bytes 700 ──────────────────────────────▶ 3500
//!   bio       sectors [1,+4) …          whole sectors around them, cut at the largest request
//!   piece     bytes 700…2560, 2560…3500                 what is really read or written
//! ```
//!
//! A command is cut as it goes: it has at most [`PIECES_AT_ONCE`] pieces, and the next is cut when
//! one of them is done. So the memory and the work that a command costs do not grow with its
//! length, and a command of 4 GiB queues no more than others.
//!
//! The pieces of one request go to the back end in one transfer. A command is done when its last
//! piece is, with the error of the first piece that failed. Of a piece that a transfer did in part,
//! the rest stays.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf as _, Bytes, BytesMut};
use paternoster::{Bio, BioFlags, IocId, Limits, Op, Sector, SectorCount};
use rustix::io::Errno;
use slotmap::{Key, KeyData, SlotMap, new_key_type};
use smallvec::SmallVec;

use super::command::{Command, CommandOp, Outcome, Payload, Transfer};
use super::fault::{Fault, Faults, FaultyPiece};

new_key_type! {
    pub(super) struct CommandId;
    pub(super) struct PieceId;
}

/// The pieces of one request in the device, in the order of the disk.
pub(super) type InOrder = SmallVec<[PieceId; 1]>;

const SECTOR_BYTES: u64 = SectorCount::SECTOR_BYTES as u64;

/// Pieces of one command that there may be at once: enough to keep a device busy with a single
/// command.
pub(super) const PIECES_AT_ONCE: u32 = 4;

/// A command in flight.
#[derive(Debug)]
pub(super) struct Running {
    tag: u64,
    /// The I/O context that issued it.
    pub(super) ioc: IocId,
    /// What no piece has been made of yet.
    uncut: Option<Box<Uncut>>,
    /// The bytes that a sync at the end is to make durable; none where nothing is promised.
    pub(super) sync_afterwards: Option<Range<u64>>,
    pieces_left: u32,
    /// The error of the earliest piece that failed, and that piece's number.
    failure: Option<(u32, Errno)>,
    /// What was read, by the piece's number; empty for other commands.
    read: Payload,
}

/// The part of a command that has yet to be cut into pieces.
#[derive(Debug)]
struct Uncut {
    /// The command as a single piece.
    whole: Piece,
    /// Its sectors that are left.
    left: Bio,
    /// The number of the next piece.
    number: u32,
}

/// What a piece does, beyond its range.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Read,
    /// A read whose data nobody wants.
    Cache,
    Write {
        data: Bytes,
        /// Its command ends with a sync.
        fua: bool,
    },
    Trim,
    Zero {
        /// The range must stay allocated.
        allocate: bool,
    },
}

impl Kind {
    fn op(&self) -> Op {
        match self {
            Self::Read | Self::Cache => Op::Read,
            Self::Write { .. } => Op::Write,
            Self::Trim => Op::Discard,
            Self::Zero { .. } => Op::WriteZeroes,
        }
    }

    /// The flags of its bios. Every write is synchronous; a discard is not, in Linux neither. After
    /// a plain write its submitter goes on, as after an `O_DIRECT` one; one with FUA ends
    /// something, as a journal's does. FUA itself stays here: with that flag the bio would bypass
    /// the scheduler.
    fn bio_flags(&self) -> BioFlags {
        match self {
            Self::Write { fua: true, .. } => BioFlags::SYNC | BioFlags::NO_MERGE,
            Self::Write { .. } => BioFlags::SYNC | BioFlags::IDLE,
            Self::Zero { .. } => BioFlags::SYNC,
            Self::Cache => BioFlags::NO_MERGE,
            Self::Read | Self::Trim => BioFlags::empty(),
        }
    }

    /// The bio of a range of whole sectors; none if they are not.
    pub(super) fn whole_sectors(&self, ioc: IocId, offset: u64, len: u32) -> Option<Bio> {
        let sectors = SectorCount(len / SectorCount::SECTOR_BYTES);
        let is_whole = offset.is_multiple_of(SECTOR_BYTES)
            && len.is_multiple_of(SectorCount::SECTOR_BYTES)
            && len > 0;
        let bio = Bio::new(self.op(), ioc, Sector(offset / SECTOR_BYTES), sectors);
        is_whole.then(|| bio.with_flags(self.bio_flags()))
    }

    /// The same for a part of the range.
    fn part(&self, from: usize, len: usize) -> Self {
        match self {
            Self::Write { data, fua } => {
                Self::Write { data: data.slice(from..from + len), fua: *fua }
            }
            whole => whole.clone(),
        }
    }
}

/// One bio of a command.
#[derive(Debug)]
pub(super) struct Piece {
    command: CommandId,
    /// Its number in the command.
    number: u32,
    ioc: IocId,
    pub(super) kind: Kind,
    /// First byte.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) len: u32,
    /// Whether it, or the rest of it, is issued again, and so alone.
    reissued: bool,
}

impl Piece {
    /// Returns whether its bytes are whole sectors.
    fn is_whole_sectors(&self) -> bool {
        self.offset.is_multiple_of(SECTOR_BYTES)
            && self.len.is_multiple_of(SectorCount::SECTOR_BYTES)
    }

    /// The byte behind its last.
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    /// Returns whether its client wants what is read.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.kind, Kind::Read)
    }

    /// What it writes.
    fn data(&self) -> Option<&Bytes> {
        match &self.kind {
            Kind::Write { data, .. } => Some(data),
            _ => None,
        }
    }

    /// The bio of its sectors, as far as they are whole ones around its bytes.
    fn bio(&self, id: PieceId) -> Bio {
        let (first, last) = (self.offset / SECTOR_BYTES, self.end().div_ceil(SECTOR_BYTES));
        let mut flags = self.kind.bio_flags();
        flags.set(BioFlags::NO_MERGE, flags.contains(BioFlags::NO_MERGE) || self.reissued);
        Bio::new(self.kind.op(), self.ioc, Sector(first), sectors_between(first, last))
            .with_flags(flags)
            .with_user_data(id.data().as_ffi())
    }
}

/// All commands in flight.
#[derive(Debug, Default)]
#[allow(clippy::struct_field_names)] // Its pieces are what it is named after.
pub(super) struct Pieces {
    commands: SlotMap<CommandId, Running>,
    pieces: SlotMap<PieceId, Piece>,
    /// What went wrong and was not taken yet.
    pub(super) faults: Faults,
}

/// The name of a piece, as the elevator keeps it.
pub(super) fn piece_id(user_data: u64) -> PieceId {
    PieceId::from(KeyData::from_ffi(user_data))
}

impl Pieces {
    /// Returns whether no command is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Takes a command, which has no pieces yet: for a flush that is all.
    pub(super) fn begin(&mut self, tag: u64, ioc: IocId) -> CommandId {
        self.commands.insert(Running {
            tag,
            ioc,
            uncut: None,
            sync_afterwards: None,
            pieces_left: 0,
            failure: None,
            read: Payload::new(),
        })
    }

    /// Takes a command, to be cut.
    pub(super) fn add(&mut self, command: Command) -> CommandId {
        let Command { tag, ioc, op } = command;
        let (kind, offset, len, fua) = taken_apart(op);
        let command = self.begin(tag, ioc);
        let whole = Piece { command, number: 0, ioc, kind, offset, len, reissued: false };
        let running = &mut self.commands[command];
        running.sync_afterwards = fua.then(|| whole.offset..whole.end());
        let left = whole.bio(PieceId::null());
        running.uncut = Some(Box::new(Uncut { whole, left, number: 0 }));
        command
    }

    /// Cuts the next pieces of a command, as many as it may have; `bios` takes theirs in order.
    pub(super) fn cut(&mut self, id: CommandId, limits: &Limits, bios: &mut VecDeque<Bio>) {
        while self.commands[id].pieces_left < PIECES_AT_ONCE
            && let Some(mut uncut) = self.commands[id].uncut.take()
        {
            let (bio, left) = limits.split(uncut.left);
            bios.push_back(self.add_piece(&uncut.whole, uncut.number, bio));
            let running = &mut self.commands[id];
            running.pieces_left += 1;
            if matches!(uncut.whole.kind, Kind::Read) {
                running.read.push(BytesMut::new());
            }
            if let Some(left) = left {
                (uncut.left, uncut.number) = (left, uncut.number + 1);
                running.uncut = Some(uncut);
            }
        }
    }

    /// Gives up what has not been cut of any command, with that error. Each still has pieces.
    pub(super) fn give_up_uncut(&mut self, errno: Errno) {
        for running in self.commands.values_mut() {
            if let Some(uncut) = running.uncut.take() {
                running.fail(uncut.number, errno);
            }
        }
    }

    /// Makes the piece of `whole` that lies in `bio`'s sectors: the bio under its name.
    fn add_piece(&mut self, whole: &Piece, number: u32, bio: Bio) -> Bio {
        let offset = whole.offset.max(bio.sector.0 * SECTOR_BYTES);
        let end = whole.end().min(bio.end().0 * SECTOR_BYTES);
        let len = u32::try_from(end - offset).expect("a part is not longer than the whole");
        let from = usize::try_from(offset - whole.offset).expect("inside the command");
        let kind = whole.kind.part(from, len as usize);
        let Piece { command, ioc, .. } = *whole;
        let piece = Piece { command, number, ioc, kind, offset, len, reissued: false };
        let mut flags = bio.flags;
        flags.set(
            BioFlags::NO_MERGE,
            flags.contains(BioFlags::NO_MERGE) || !piece.is_whole_sectors(),
        );
        let id = self.pieces.insert(piece);
        bio.with_flags(flags).with_user_data(id.data().as_ffi())
    }

    pub(super) fn piece(&self, id: PieceId) -> &Piece {
        &self.pieces[id]
    }

    /// Makes the transfer of a request of those bios. Returns it and the pieces in the order of the
    /// disk, which is that of its buffers.
    pub(super) fn transfer(&self, user_data: &[u64]) -> (Transfer, InOrder) {
        let mut order: InOrder = user_data.iter().map(|&data| piece_id(data)).collect();
        order.sort_unstable_by_key(|&piece| self.piece(piece).offset);
        let first = self.piece(order[0]);
        let offset = first.offset;
        let each = || order.iter().map(|&piece| self.piece(piece));
        let len = || each().map(|piece| u64::from(piece.len)).sum();
        let transfer = match &first.kind {
            Kind::Read => Transfer::Read { offset, parts: each().map(|piece| piece.len).collect() },
            Kind::Write { .. } => {
                let from = each().filter_map(|piece| piece.data().cloned()).collect();
                Transfer::Write { offset, from }
            }
            Kind::Cache => Transfer::Cache { offset, len: len() },
            Kind::Trim => Transfer::Trim { offset, len: len() },
            Kind::Zero { allocate } => Transfer::Zero { offset, len: len(), allocate: *allocate },
        };
        (transfer, order)
    }

    /// The bio to issue the piece again with, alone.
    pub(super) fn reissue(&mut self, id: PieceId) -> Bio {
        let piece = &mut self.pieces[id];
        piece.reissued = true;
        piece.bio(id)
    }

    /// A transfer ended inside the piece, `done_until` in bytes of the disk, after it had read
    /// `data`. What is left of the piece is its rest.
    pub(super) fn keep_rest(&mut self, id: PieceId, done_until: u64, mut data: BytesMut) {
        let piece = &mut self.pieces[id];
        assert!((piece.offset..piece.end()).contains(&done_until), "a rest is left");
        let done = u32::try_from(done_until - piece.offset).expect("less than the piece");
        piece.offset += u64::from(done);
        piece.len -= done;
        match &mut piece.kind {
            Kind::Write { data, .. } => data.advance(done as usize),
            Kind::Read => {
                data.truncate(done as usize);
                self.commands[piece.command].read[piece.number as usize].unsplit(data);
            }
            Kind::Cache | Kind::Trim | Kind::Zero { .. } => {}
        }
    }

    /// A piece is done: what of its command that leaves.
    pub(super) fn end_piece(
        &mut self,
        id: PieceId,
        result: Result<BytesMut, Errno>,
    ) -> (CommandId, Left) {
        let piece = self.pieces.remove(id).expect("a piece ends once");
        let command = &mut self.commands[piece.command];
        match (result, piece.kind) {
            (Ok(data), Kind::Read) => command.read[piece.number as usize].unsplit(data),
            (Err(error), kind) => {
                let (tag, offset, len) = (command.tag, piece.offset, u64::from(piece.len));
                let place = Some(FaultyPiece { tag, offset, len });
                self.faults.add(Fault { op: (&kind).into(), errno: error, piece: place });
                command.fail(piece.number, error);
                // Nobody wants the rest of what has failed.
                command.uncut = None;
            }
            _ => {}
        }
        command.pieces_left -= 1;
        let left = match (&command.uncut, command.pieces_left) {
            (Some(_), _) => Left::Uncut,
            (None, 0) => Left::Nothing,
            (None, _) => Left::Pieces,
        };
        (piece.command, left)
    }

    pub(super) fn command(&self, id: CommandId) -> &Running {
        &self.commands[id]
    }

    /// Ends a command and returns its outcome. An `error` comes after those of its pieces.
    pub(super) fn end_command(&mut self, id: CommandId, error: Option<Errno>) -> Outcome {
        let command = self.commands.remove(id).expect("a command ends once");
        let failure = command.failure.map(|(_, error)| error).or(error);
        let result = match failure {
            Some(error) => Err(error),
            None => Ok(command.read),
        };
        Outcome { tag: command.tag, result }
    }
}

/// What is left of a command when a piece of it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Something to cut the next piece from.
    Uncut,
    /// Pieces that are in flight.
    Pieces,
    /// Nothing: it is done.
    Nothing,
}

impl Running {
    /// Notes the error of a piece; the earliest one's counts.
    fn fail(&mut self, number: u32, error: Errno) {
        if self.failure.is_none_or(|(first, _)| number <= first) {
            self.failure = Some((number, error));
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }
}

/// What a command does to which range, and whether it is to be durable when it is done.
fn taken_apart(op: CommandOp) -> (Kind, u64, u32, bool) {
    match op {
        CommandOp::Read { offset, len } => (Kind::Read, offset, len, false),
        CommandOp::Cache { offset, len } => (Kind::Cache, offset, len, false),
        CommandOp::Write { offset, data, fua } => {
            let len = u32::try_from(data.len()).expect("a command is shorter than 4 GiB");
            (Kind::Write { data, fua }, offset, len, fua)
        }
        CommandOp::Trim { offset, len, fua } => (Kind::Trim, offset, len, fua),
        CommandOp::Zero { offset, len, fua, allocate, .. } => {
            (Kind::Zero { allocate }, offset, len, fua)
        }
        CommandOp::Flush => unreachable!("a flush has no pieces"),
    }
}

fn sectors_between(first: u64, last: u64) -> SectorCount {
    SectorCount(u32::try_from(last - first).expect("a command is shorter than 4 GiB"))
}
