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
//!
//! Where a back end takes only whole blocks, the sectors around the bytes are those of whole
//! blocks, pieces are cut where blocks end, and what is no whole blocks never merges.
//!
//! Bytes are those of the command's volume. So are its sectors until a bio is made for the
//! scheduler: then the first sector of the volume's slot is added.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf as _, Bytes};
use paternoster::{Bio, BioFlags, IocId, Limits, Sector, SectorCount};
use rustix::io::Errno;
use slotmap::{Key, KeyData, SlotMap, new_key_type};
use smallvec::SmallVec;

use super::blocks::Blocks;
use super::command::{Command, CommandOp, FrontTag, Outcome, Part, Parts, Payload, Transfer};
use super::fault::{Fault, Faults, FaultyPiece};
use super::kind::Kind;
use super::stream::{ReadByPieces, Stream};
use super::volumes::{Volume, VolumeId, Volumes};
use crate::ring::Buffers;

new_key_type! {
    pub(super) struct CommandId;
    pub(super) struct PieceId;
}

/// The pieces of one request in the device, in the order of their volume.
pub(super) type InOrder = SmallVec<[PieceId; 1]>;

const SECTOR_BYTES: u64 = SectorCount::SECTOR_BYTES as u64;

/// Pieces of one command that there may be at once: enough to keep a device busy with a single
/// command.
pub(super) const PIECES_AT_ONCE: u32 = 4;

/// A command in flight.
#[derive(Debug)]
pub(super) struct Running {
    tag: FrontTag,
    pub(super) volume: VolumeId,
    /// The I/O context that issued it.
    pub(super) ioc: IocId,
    /// What no piece has been made of yet.
    uncut: Option<Box<Uncut>>,
    /// The bytes that a sync at the end is to make durable; none where nothing is promised.
    pub(super) sync_afterwards: Option<Range<u64>>,
    /// Whether it was cancelled but for what had begun: it fails even if its sync succeeds.
    pub(super) is_cancelled: bool,
    pieces_left: u32,
    /// The error of the earliest piece that failed, and that piece's number.
    failure: Option<(u32, Errno)>,
    /// What was read; nothing for other commands.
    read: ReadByPieces,
    /// What was submitted, of one in several pieces, or of which a part was done or cancelled.
    whole: Option<Box<CommandOp>>,
    /// Whether something of it was cancelled.
    is_left: bool,
}

/// The part of a command that has yet to be cut into pieces.
#[derive(Debug)]
pub(super) struct Uncut {
    /// The command as a single piece.
    whole: Piece,
    /// Its sectors that are left.
    left: Bio,
    /// The number of the next piece.
    number: u32,
}

/// One bio of a command.
#[derive(Debug)]
pub(super) struct Piece {
    command: CommandId,
    pub(super) volume: VolumeId,
    /// Its number in the command.
    number: u32,
    ioc: IocId,
    pub(super) kind: Kind,
    /// First byte that is left to do.
    pub(super) offset: u64,
    /// Bytes that are left to do.
    pub(super) len: u32,
    /// First byte, also of what is done.
    start: u64,
    /// Whether it, or the rest of it, is issued again, and so alone.
    reissued: bool,
}

impl Piece {
    /// The byte behind its last.
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.len)
    }

    /// The bytes that are left to do.
    pub(super) fn bytes(&self) -> Range<u64> {
        self.offset..self.end()
    }

    /// Returns whether what is read is given to its client.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.kind, Kind::Read)
    }

    /// The numbers of the blocks of its volume that it touches, or has touched.
    pub(super) fn touches(&self, blocks: Blocks) -> Range<u64> {
        blocks.numbers(&(self.start..self.end()))
    }

    /// The parts of what it reads.
    fn parts(&self) -> Buffers<Part> {
        match &self.kind {
            Kind::ReadInto(into) => into.iter().cloned().map(Part::Guest).collect(),
            _ => Buffers::from_elem(Part::Own(self.len), 1),
        }
    }

    /// What it writes.
    pub(super) fn data(&self) -> Option<&Bytes> {
        match &self.kind {
            Kind::Write { data, .. } => Some(data),
            _ => None,
        }
    }

    /// The bio of the whole blocks around its bytes, in the sectors of its volume.
    fn bio(&self, blocks: Blocks, id: PieceId) -> Bio {
        let (first, sectors) = blocks.sectors_around(&self.bytes());
        let mut flags = self.kind.bio_flags();
        flags.set(BioFlags::NO_MERGE, flags.contains(BioFlags::NO_MERGE) || self.reissued);
        Bio::new(self.kind.op(), self.ioc, first, sectors)
            .with_flags(flags)
            .with_segments(self.kind.segments())
            .with_user_data(id.data().as_ffi())
    }
}

/// All commands in flight.
#[derive(Debug)]
#[allow(clippy::struct_field_names)] // Its pieces are what it is named after.
pub(super) struct Pieces {
    pub(super) volumes: Volumes,
    commands: SlotMap<CommandId, Running>,
    pub(super) pieces: SlotMap<PieceId, Piece>,
    /// Volumes whose pieces are counted on each block.
    pub(super) counted: Vec<VolumeId>,
    /// What went wrong and was not taken yet.
    pub(super) faults: Faults,
}

/// The name of a piece, as the elevator keeps it.
pub(super) fn piece_id(user_data: u64) -> PieceId {
    PieceId::from(KeyData::from_ffi(user_data))
}

impl Pieces {
    pub(super) fn new() -> Self {
        Self {
            volumes: Volumes::new(),
            commands: SlotMap::default(),
            pieces: SlotMap::default(),
            counted: Vec::new(),
            faults: Faults::default(),
        }
    }

    /// Returns whether no command is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Takes a command, which has no pieces yet: for a flush that is all.
    #[inline]
    pub(super) fn begin(&mut self, tag: FrontTag, volume: VolumeId, ioc: IocId) -> CommandId {
        self.volumes[volume].commands += 1;
        self.commands.insert(Running {
            tag,
            volume,
            ioc,
            uncut: None,
            sync_afterwards: None,
            is_cancelled: false,
            pieces_left: 0,
            failure: None,
            read: ReadByPieces::default(),
            whole: None,
            is_left: false,
        })
    }

    /// Takes a command that covers bytes. Returns what is to be cut: none where that is nothing, as
    /// of a trim only whole blocks are trimmed.
    pub(super) fn add(&mut self, command: Command) -> (CommandId, Option<Uncut>) {
        let Command { tag, volume, ioc, op } = command;
        self.volumes[volume].asked.count(&op);
        let (kind, bytes, fua) = taken_apart(op);
        let command = self.begin(tag, volume, ioc);
        let Self { volumes, commands, .. } = self;
        let (of, running) = (&volumes[volume], &mut commands[command]);
        running.sync_afterwards = fua.then(|| bytes.clone());
        let bytes = match kind {
            Kind::Trim => of.trimmed(bytes),
            _ => bytes,
        };
        let len = u32::try_from(bytes.end - bytes.start).expect("a command is below 4 GiB");
        let uncut = (len > 0).then(|| {
            let (offset, start) = (bytes.start, bytes.start);
            let (number, reissued) = (0, false);
            let whole = Piece { command, volume, number, ioc, kind, offset, len, start, reissued };
            let left = whole.bio(of.blocks, PieceId::null());
            Uncut { whole, left, number: 0 }
        });
        (command, uncut)
    }

    /// Cuts the first pieces of a command, as many as it may have, by the elevator's limits; `bios`
    /// takes theirs in order, but for those that have to wait for a block.
    pub(super) fn cut(
        &mut self,
        id: CommandId,
        mut uncut: Uncut,
        limits: &Limits,
        bios: &mut VecDeque<Bio>,
    ) {
        let Self { volumes, commands, pieces, counted, .. } = self;
        let running = &mut commands[id];
        let volume = &mut volumes[running.volume];
        let limits = volume.limits(limits);
        loop {
            let (bio, left) = uncut.split(volume.blocks, &limits);
            let (piece, bio) = volume.cut_off(pieces, &uncut.whole, uncut.number, bio);
            running.pieces_left += 1;
            bios.extend(volume.arrive(pieces, piece, bio, counted));
            let Some(left) = left else { return };
            if uncut.number == 0 {
                let Piece { kind, offset, len, .. } = &uncut.whole;
                let fua = running.sync_afterwards.is_some();
                running.whole = kind.command(*offset, *len, fua).map(Box::new);
            }
            (uncut.left, uncut.number) = (left, uncut.number + 1);
            if running.pieces_left == PIECES_AT_ONCE {
                running.uncut = Some(Box::new(uncut));
                return;
            }
        }
    }

    /// Cuts the next pieces of a command, of which something has not been cut.
    pub(super) fn cut_on(&mut self, id: CommandId, limits: &Limits, bios: &mut VecDeque<Bio>) {
        let uncut = self.commands[id].uncut.take().expect("something is left to cut");
        self.cut(id, *uncut, limits, bios);
    }

    /// Gives up what has not been cut of commands, with that error. Each still has pieces.
    pub(super) fn give_up_uncut(&mut self, of: Scope, errno: Errno) {
        for running in self.commands.values_mut().filter(|running| of.includes(running.volume)) {
            if let Some(uncut) = running.uncut.take() {
                running.fail(uncut.number, errno);
                running.is_left = matches!(of, Scope::All);
            }
        }
    }

    /// Notes that a piece of a command is about to be cancelled.
    pub(super) fn note_left(&mut self, id: PieceId) {
        self.keep_whole(id);
        self.commands[self.pieces[id].command].is_left = true;
    }

    /// Keeps the command of a piece as it was submitted.
    fn keep_whole(&mut self, id: PieceId) {
        let piece = &self.pieces[id];
        let running = &mut self.commands[piece.command];
        if running.whole.is_none() {
            let fua = running.sync_afterwards.is_some();
            running.whole = piece.kind.command(piece.offset, piece.len, fua).map(Box::new);
        }
    }

    /// Ends a command of which nothing is left but a sync that somebody else will do.
    pub(super) fn leave_sync(&mut self, id: CommandId) -> Outcome {
        let Outcome { tag, .. } = self.end_command(id, None);
        Outcome::cancelled(tag, CommandOp::Flush)
    }

    /// Cancels the syncs of commands but those that wait for one that runs.
    pub(super) fn cancel_syncs(&mut self, of: Scope) {
        let Self { volumes, commands, .. } = self;
        for (id, command) in commands.iter_mut().filter(|(_, command)| of.includes(command.volume))
        {
            let running = volumes[command.volume].syncs().running();
            command.is_cancelled = running.is_none_or(|sync| !sync.waiters.contains(&id));
        }
    }

    /// The error of a piece whose transfer was given up with that one. If its command was
    /// cancelled, nobody is told of it.
    pub(super) fn given_up(&self, id: PieceId, errno: Errno) -> Errno {
        let is_cancelled = self.commands[self.pieces[id].command].is_cancelled;
        if is_cancelled { Errno::SHUTDOWN } else { errno }
    }

    pub(super) fn piece(&self, id: PieceId) -> &Piece {
        &self.pieces[id]
    }

    /// Returns whether the piece is in flight.
    pub(super) fn has(&self, id: PieceId) -> bool {
        self.pieces.contains_key(id)
    }

    /// The pieces of a request of those bios in the order of their volume, which is that of its
    /// buffers.
    pub(super) fn in_order(&self, user_data: &[u64]) -> InOrder {
        let mut order: InOrder = user_data.iter().map(|&data| piece_id(data)).collect();
        order.sort_unstable_by_key(|&piece| self.piece(piece).offset);
        order
    }

    /// The blocks of a piece's volume.
    pub(super) fn blocks_of(&self, id: PieceId) -> Blocks {
        self.volumes[self.piece(id).volume].blocks
    }

    /// The bytes that a transfer of those pieces covers.
    pub(super) fn range(&self, blocks: Blocks, order: &InOrder) -> Range<u64> {
        let last = order.last().expect("a request has a piece");
        blocks.around(self.piece(order[0]).offset..self.piece(*last).end())
    }

    /// Makes the transfer of a request of those pieces.
    pub(super) fn transfer(&self, blocks: Blocks, order: &InOrder) -> Transfer {
        let first = self.piece(order[0]);
        let Range { start: offset, end } = self.range(blocks, order);
        let len = end - offset;
        let each = || order.iter().map(|&piece| self.piece(piece));
        let is_into_guest = |piece: &Piece| matches!(piece.kind, Kind::ReadInto(_));
        match &first.kind {
            Kind::Read if order.len() == 1 => Transfer::Read { offset, parts: one_part(len) },
            Kind::ReadInto(_) if order.len() == 1 => {
                Transfer::ReadInto { offset, parts: first.parts() }
            }
            Kind::Read | Kind::ReadInto(_) if each().any(is_into_guest) => {
                Transfer::ReadInto { offset, parts: each().flat_map(Piece::parts).collect() }
            }
            Kind::ReadInto(_) => unreachable!("one of them is into a guest"),
            Kind::Read => Transfer::Read { offset, parts: each().map(|piece| piece.len).collect() },
            Kind::Write { .. } => {
                let from = each().filter_map(|piece| piece.data().cloned()).collect();
                Transfer::Write { offset, from }
            }
            Kind::Cache => Transfer::Cache { offset, len },
            Kind::Trim => Transfer::Trim { offset, len },
            Kind::Zero { allocate } => Transfer::Zero { offset, len, allocate: *allocate },
        }
    }

    /// The bio to issue the piece again with, alone.
    pub(super) fn reissue(&mut self, id: PieceId) -> Bio {
        let piece = &mut self.pieces[id];
        piece.reissued = true;
        let volume = &self.volumes[piece.volume];
        volume.place.for_elevator(piece.bio(volume.blocks, id))
    }

    /// A transfer ended inside the piece, `done_until` in bytes of its volume, after it had read
    /// `data`. What is left of the piece is its rest.
    pub(super) fn keep_rest(&mut self, id: PieceId, done_until: u64, data: Payload) {
        // Whoever does it again does all of it: a rest may begin inside a block.
        self.keep_whole(id);
        let piece = &mut self.pieces[id];
        assert!((piece.offset..piece.end()).contains(&done_until), "a rest is left");
        let done = u32::try_from(done_until - piece.offset).expect("less than the piece");
        piece.offset += u64::from(done);
        piece.len -= done;
        match &mut piece.kind {
            Kind::Write { data, .. } => data.advance(done as usize),
            Kind::Read => {
                let done = Stream::new(data).take(done as usize);
                self.commands[piece.command].read.add(piece.number, done);
            }
            Kind::ReadInto(into) => *into = into.part(done, piece.len),
            Kind::Cache | Kind::Trim | Kind::Zero { .. } => {}
        }
    }

    /// A piece is done: what of its command that leaves. `bios` takes those that waited for its
    /// blocks and need not any more.
    pub(super) fn end_piece(
        &mut self,
        id: PieceId,
        result: Result<Payload, Errno>,
        bios: &mut VecDeque<Bio>,
    ) -> (CommandId, Left) {
        let piece = self.pieces.remove(id).expect("a piece ends once");
        self.volumes[piece.volume].leave(id, &piece, bios);
        if self.pieces.is_empty() {
            // Until a block has to be held, to count would be for nothing.
            for volume in self.counted.drain(..) {
                self.volumes.stop_counting(volume);
            }
        }
        let command = &mut self.commands[piece.command];
        match (result, piece.kind) {
            (Ok(data), Kind::Read) => command.read.add(piece.number, data),
            (Err(error), kind) => {
                let (tag, offset, len) = (command.tag, piece.offset, u64::from(piece.len));
                let (op, place) = ((&kind).into(), Some(FaultyPiece { tag, offset, len }));
                let (volume, errno, poisons) = (piece.volume, error, false);
                // A machine's memory that is gone is no fault of the disk.
                if !(matches!(kind, Kind::ReadInto(_)) && errno == Errno::FAULT) {
                    self.faults.add(Fault { volume, op, errno, poisons, piece: place });
                }
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
        self.volumes[command.volume].commands -= 1;
        let failure = command.failure.map(|(_, error)| error).or(error);
        let result = match failure {
            Some(error) => Err(error),
            None => Ok(command.read.in_order()),
        };
        let is_cancelled = command.is_left && result.as_ref().err() == Some(&Errno::SHUTDOWN);
        Outcome { tag: command.tag, result, left: command.whole.filter(|_| is_cancelled) }
    }
}

impl Uncut {
    /// The next bio of the command, and what is left of it.
    fn split(&self, blocks: Blocks, limits: &Limits) -> (Bio, Option<Bio>) {
        let Self { whole, left, .. } = self;
        let cut = blocks.next_cut(&whole.kind, &whole.bytes(), left);
        let (bio, _) = limits.split(part(left, left.sector, cut));
        let rest = (bio.end() < left.end()).then(|| part(left, bio.end(), left.end()));
        (bio, rest)
    }
}

impl Volume {
    /// Makes the piece of `whole` that lies in `bio`'s sectors: it, and its bio for the scheduler.
    /// Zeroes that are no whole blocks are written.
    fn cut_off(
        &self,
        pieces: &mut SlotMap<PieceId, Piece>,
        whole: &Piece,
        number: u32,
        bio: Bio,
    ) -> (PieceId, Bio) {
        let offset = whole.offset.max(bio.sector.0 * SECTOR_BYTES);
        let end = whole.end().min(bio.end().0 * SECTOR_BYTES);
        let len = u32::try_from(end - offset).expect("a part is not longer than the whole");
        let from = u32::try_from(offset - whole.offset).expect("inside the command");
        let is_whole = self.blocks.are_whole(&(offset..end));
        let kind = match &whole.kind {
            Kind::Zero { .. } if !is_whole => Kind::zeroes(len as usize),
            kind => kind.part(from, len),
        };
        let is_mergeable = is_whole && is_whole_sectors(offset, end);
        let flags = match &whole.kind {
            Kind::Zero { .. } => kind.bio_flags() | bio.flags,
            _ => bio.flags,
        };
        let flags = if is_mergeable { flags } else { flags | BioFlags::NO_MERGE };
        let (op, segments) = (kind.op(), kind.segments());
        let Piece { command, volume, ioc, .. } = *whole;
        let (start, reissued) = (offset, false);
        let piece = Piece { command, volume, number, ioc, kind, offset, len, start, reissued };
        let id = pieces.insert(piece);
        let bio = Bio::new(op, ioc, bio.sector, bio.sectors)
            .with_flags(flags)
            .with_segments(segments)
            .with_user_data(id.data().as_ffi());
        (id, self.place.for_elevator(bio))
    }
}

/// Of which volumes commands are meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    All,
    One(VolumeId),
}

impl Scope {
    pub(super) fn includes(self, volume: VolumeId) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == volume,
        }
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

/// What a command does to which bytes, and whether it is to be durable when it is done.
fn taken_apart(op: CommandOp) -> (Kind, Range<u64>, bool) {
    let bytes = |offset: u64, len: u32| offset..offset + u64::from(len);
    match op {
        CommandOp::Read { offset, len } => (Kind::Read, bytes(offset, len), false),
        CommandOp::ReadInto { offset, into } => {
            let bytes = bytes(offset, into.len());
            (Kind::ReadInto(into), bytes, false)
        }
        CommandOp::Cache { offset, len } => (Kind::Cache, bytes(offset, len), false),
        CommandOp::Write { offset, data, fua } => {
            let bytes = offset..offset + data.len() as u64;
            (Kind::Write { data, fua }, bytes, fua)
        }
        CommandOp::Trim { offset, len, fua } => (Kind::Trim, bytes(offset, len), fua),
        CommandOp::Zero { offset, len, fua, allocate, .. } => {
            (Kind::Zero { allocate }, bytes(offset, len), fua)
        }
        CommandOp::Flush => unreachable!("a flush has no pieces"),
    }
}

/// The part of a bio between two sectors.
fn part(bio: &Bio, from: Sector, to: Sector) -> Bio {
    let sectors = u32::try_from(to.0 - from.0).expect("a part is not longer than the whole");
    Bio::new(bio.op, bio.ioc, from, SectorCount(sectors))
        .with_flags(bio.flags)
        .with_user_data(bio.user_data)
}

fn is_whole_sectors(offset: u64, end: u64) -> bool {
    offset.is_multiple_of(SECTOR_BYTES) && end.is_multiple_of(SECTOR_BYTES)
}

pub(super) fn one_part(len: u64) -> Parts {
    Parts::from_buf([u32::try_from(len).expect("a transfer is shorter than 4 GiB")])
}
