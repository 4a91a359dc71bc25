//! Pieces that are no whole blocks. A write of one is a read-modify-write: one request, and two
//! transfers.
//!
//! ```text
//!   blocks     │         │         │         │
//!   piece      ├───────────────────────┤
//!   1. read                        ├─────────┤    the block at its end; or two, if they are
//!   2. write   ├───────────────────────┼─────┤    neighbours: see `Blocks::next_cut`
//! ```
//!
//! It holds the blocks at its ends ([`Holds`](super::holds::Holds)) until all is written. A read of
//! a part of a block reads whole ones, and gives its client its own bytes.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use paternoster::Bio;
use slotmap::SlotMap;
use smallvec::SmallVec;

use super::blocks::Blocks;
use super::command::Transfer;
use super::kind::Kind;
use super::pieces::{InOrder, Piece, PieceId, Pieces, Scope, one_part};
use super::touching::Touching;
use super::volumes::{Volume, VolumeId};

impl Piece {
    /// Returns whether it is a read-modify-write: what is around it in its blocks is read first.
    fn is_read_first(&self, blocks: Blocks) -> bool {
        matches!(self.kind, Kind::Write { .. }) && !blocks.are_whole(&self.bytes())
    }
}

impl Volume {
    /// A piece arrives at its blocks. Returns its bio, unless it has to wait for one of them. The
    /// first that has to hold a block has all pieces of the volume counted, which `counted` notes.
    pub(super) fn arrive(
        &mut self,
        pieces: &SlotMap<PieceId, Piece>,
        id: PieceId,
        bio: Bio,
        counted: &mut Vec<VolumeId>,
    ) -> Option<Bio> {
        let Self { blocks, holds, touching, .. } = self;
        let piece = &pieces[id];
        let is_read_first = piece.is_read_first(*blocks);
        if is_read_first && touching.is_none() {
            let mut by_others = Touching::default();
            let others =
                pieces.iter().filter(|&(other, of)| other != id && of.volume == piece.volume);
            others.for_each(|(_, other)| by_others.add(other.touches(*blocks)));
            *touching = Some(by_others);
            counted.push(piece.volume);
        }
        let Some(by_others) = touching else { return Some(bio) };
        let touches = piece.touches(*blocks);
        let arrived = if !is_read_first && holds.is_empty() {
            Some(bio)
        } else {
            let held = if is_read_first { blocks.ends(&piece.bytes()) } else { SmallVec::new() };
            holds.arrive(id, touches.clone(), &held, |number| by_others.count(number), bio)
        };
        by_others.add(touches);
        arrived
    }

    /// A piece is done, or given up while it waits. `bios` takes those that waited for its blocks
    /// and need not any more.
    pub(super) fn leave(&mut self, id: PieceId, piece: &Piece, bios: &mut VecDeque<Bio>) {
        let touches = piece.touches(self.blocks);
        self.holds.leave(id, touches.clone(), |bio| bios.push_back(bio));
        if let Some(touching) = &mut self.touching {
            touching.remove(touches);
        }
    }
}

impl Pieces {
    /// The pieces that wait for a block.
    pub(super) fn waiting(&self, of: Scope) -> Vec<PieceId> {
        let volumes = self.volumes.iter().filter(|&(id, _)| of.includes(id));
        volumes.flat_map(|(_, volume)| volume.holds.all_waiting()).collect()
    }

    /// How many pieces wait for a block.
    pub(super) fn waiting_for_blocks(&self) -> usize {
        self.volumes.iter().map(|(_, volume)| volume.holds.waiting()).sum()
    }

    /// Returns whether the request of those pieces is a read-modify-write.
    pub(super) fn is_read_first(&self, blocks: Blocks, order: &InOrder) -> bool {
        self.piece(order[0]).is_read_first(blocks)
    }

    /// The bytes of the blocks at the ends of a piece, which are neighbours.
    fn ends(&self, id: PieceId) -> Range<u64> {
        let (blocks, bytes) = (self.blocks_of(id), self.piece(id).bytes());
        let around = blocks.around(bytes.clone());
        let inside = blocks.inside(bytes);
        match () {
            // One block, or two that are both covered in part.
            () if inside.is_empty() => around,
            () if inside.start > around.start => around.start..inside.start,
            () => inside.end..around.end,
        }
    }

    /// Makes the transfer that reads the blocks at the ends of a piece.
    pub(super) fn read_of_ends(&self, id: PieceId) -> Transfer {
        let Range { start: offset, end } = self.ends(id);
        Transfer::Read { offset, parts: one_part(end - offset) }
    }

    /// Makes the transfer that writes a piece, and around it what has been read at its ends.
    pub(super) fn write_of_all(&self, id: PieceId, read: &Bytes) -> Transfer {
        let (piece, ends) = (self.piece(id), self.ends(id));
        let Range { start: offset, end } = self.blocks_of(id).around(piece.bytes());
        let part = |range: Range<u64>| {
            let index = |at: u64| usize::try_from(at - ends.start).expect("inside two blocks");
            (!range.is_empty()).then(|| read.slice(index(range.start)..index(range.end)))
        };
        let before = part(offset..piece.offset);
        let after = part(piece.end()..end);
        let from = before.into_iter().chain(piece.data().cloned()).chain(after).collect();
        Transfer::Write { offset, from }
    }

    /// Bytes from the first block that a piece touches to its first byte.
    pub(super) fn offset_in_blocks(&self, blocks: Blocks, id: PieceId) -> usize {
        let piece = self.piece(id);
        let before = piece.offset - blocks.around(piece.bytes()).start;
        usize::try_from(before).expect("less than a block")
    }
}

#[cfg(test)]
mod tests {
    use paternoster::{IocId, Limits};

    use super::*;
    use crate::backend::Capabilities;
    use crate::engine::command::{Command, CommandOp, Payload};

    /// Each looked at all that were outstanding: 16,000 writes of one byte took the owner's thread
    /// from its neighbours for four fifths of the time.
    #[test]
    fn write_inside_a_block_costs_a_few_looks_however_many_are_outstanding() {
        const WRITES: u64 = 16_000;
        let mut pieces = Pieces::new();
        let blocks = Capabilities { block: 4096, ..Capabilities::new(WRITES << 13, 1) };
        let volume = pieces.volumes.add(&blocks).expect("there is room");
        let mut bios = VecDeque::new();
        // Each once, in an order that jumps.
        for number in (0..WRITES).map(|turn| turn * 7919 % WRITES) {
            let data = Bytes::from_static(&[7]);
            // Every other block, and the one behind it for each tenth.
            let offset = (number << 13) + if number % 10 == 0 { 4097 } else { 1 };
            let op = CommandOp::Write { offset, data, fua: false };
            let (command, uncut) =
                pieces.add(Command { tag: number.into(), volume, ioc: IocId::default(), op });
            pieces.cut(command, uncut.expect("a byte"), &Limits::default(), &mut bios);
        }
        let looks = pieces.volumes[volume].touching.as_ref().map_or(0, Touching::looks);
        assert!(looks <= 4 * WRITES, "{looks} looks");
        let ids: Vec<_> = pieces.pieces.keys().collect();
        assert_eq!((ids.len(), bios.len()), (16_000, 16_000), "none waits for another");
        for id in ids {
            let (command, _) = pieces.end_piece(id, Ok(Payload::new()), &mut bios);
            pieces.end_command(command, None);
        }
        assert!(pieces.volumes[volume].touching.is_none() && pieces.counted.is_empty());
        assert!(pieces.volumes[volume].takes_bios());
    }

    /// Else each command of who writes parts of blocks one at a time would look at all pieces of
    /// its neighbours.
    #[test]
    fn pieces_of_a_volume_are_counted_once_while_others_have_some() {
        let mut pieces = Pieces::new();
        let blocks = Capabilities { block: 4096, ..Capabilities::new(1 << 20, 1) };
        let [other, volume] = [(); 2].map(|()| pieces.volumes.add(&blocks).expect("there is room"));
        let mut bios = VecDeque::new();
        let mut put = |pieces: &mut Pieces, volume| {
            let op = CommandOp::Write { offset: 1, data: Bytes::from_static(&[7]), fua: false };
            let (command, uncut) =
                pieces.add(Command { tag: 0.into(), volume, ioc: IocId::default(), op });
            pieces.cut(command, uncut.expect("a byte"), &Limits::default(), &mut bios);
            pieces.pieces.keys().last().expect("a piece")
        };
        let neighbour = put(&mut pieces, other);
        for _ in 0..3 {
            let piece = put(&mut pieces, volume);
            assert_eq!(pieces.counted, [other, volume]);
            let (command, _) = pieces.end_piece(piece, Ok(Payload::new()), &mut VecDeque::new());
            pieces.end_command(command, None);
        }
        pieces.end_piece(neighbour, Ok(Payload::new()), &mut VecDeque::new());
        assert!(pieces.counted.is_empty());
    }
}
