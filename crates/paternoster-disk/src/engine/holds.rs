//! Blocks that are held: nothing else that touches them starts until who holds them is done.
//!
//! ```text
//!   block 7    held by a read-modify-write ◀── a read ◀── a write ◀── a read-modify-write
//!              or shared by pieces that cover it whole     waiting, in order of arrival
//! ```
//!
//! A read-modify-write of a part of a block writes what it has read of the rest: what another wrote
//! there meanwhile would be lost. So it holds the blocks of which it covers a part. Everything
//! that touches them waits, before the scheduler: it takes no place in the device, and its time is
//! its own tenant's. All come in the order of their arrival on every block, so that nobody waits in
//! a circle.
//!
//! Where nothing is held, nothing is kept: a block is entered here with the first piece that is to
//! hold it, and those that touch it already are counted then.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use paternoster::Bio;

use super::pieces::PieceId;

/// What a piece wants of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// That nobody holds it.
    Share,
    /// To hold it.
    Hold,
}

/// A block that somebody holds or waits to hold.
#[derive(Debug, Default)]
struct Block {
    /// Pieces that have come in: any number that share it, or the one that holds it.
    inside: usize,
    /// Whether the one inside holds it.
    is_held: bool,
    /// Those that wait, in order of arrival.
    waiting: VecDeque<(PieceId, Claim)>,
}

/// A piece that waits.
#[derive(Debug)]
struct Waiting {
    /// What is submitted when it has come in everywhere.
    bio: Bio,
    /// Blocks that it waits for.
    blocks: usize,
}

/// The blocks that are held, and who waits for them.
#[derive(Debug, Default)]
pub(super) struct Holds {
    blocks: BTreeMap<u64, Block>,
    waiting: BTreeMap<PieceId, Waiting>,
}

impl Holds {
    /// Returns whether no block is held.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns how many pieces wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A piece arrives: it touches those blocks and is to hold some of them; so many others that
    /// have arrived touch a block, by `sharers`. Returns its bio if it need not wait.
    pub(super) fn arrive(
        &mut self,
        piece: PieceId,
        touches: Range<u64>,
        held: &[u64],
        sharers: impl Fn(u64) -> usize,
        bio: Bio,
    ) -> Option<Bio> {
        for &number in held {
            let enter = || Block { inside: sharers(number), ..Block::default() };
            self.blocks.entry(number).or_insert_with(enter);
        }
        let mut blocks = 0;
        for (number, block) in self.blocks.range_mut(touches) {
            let claim = if held.contains(number) { Claim::Hold } else { Claim::Share };
            if block.waiting.is_empty() && block.admits(claim) {
                block.enter(claim);
            } else {
                block.waiting.push_back((piece, claim));
                blocks += 1;
            }
        }
        if blocks == 0 {
            return Some(bio);
        }
        self.waiting.insert(piece, Waiting { bio, blocks });
        None
    }

    /// A piece that touches those blocks is done, or given up while it waits. `come_in` takes the
    /// bios of those that need not wait any more.
    pub(super) fn leave(
        &mut self,
        piece: PieceId,
        touches: Range<u64>,
        mut come_in: impl FnMut(Bio),
    ) {
        if self.blocks.is_empty() {
            return;
        }
        let gives_up = self.waiting.remove(&piece).is_some();
        let Self { blocks, waiting } = self;
        for block in blocks.range_mut(touches.clone()).map(|(_, block)| block) {
            if !(gives_up && block.give_up(piece)) {
                block.leave();
            }
            while let Some(next) = block.admit_next() {
                let now = waiting.get_mut(&next).expect("it waits");
                now.blocks -= 1;
                if now.blocks == 0 {
                    come_in(waiting.remove(&next).expect("it waits").bio);
                }
            }
        }
        let numbers = blocks.range(touches).filter(|(_, block)| !block.is_wanted());
        let over: Vec<u64> = numbers.map(|(&number, _)| number).collect();
        for number in over {
            blocks.remove(&number);
        }
    }

    /// The pieces that wait.
    pub(super) fn all_waiting(&self) -> Vec<PieceId> {
        self.waiting.keys().copied().collect()
    }
}

impl Block {
    fn admits(&self, claim: Claim) -> bool {
        match claim {
            Claim::Share => !self.is_held,
            Claim::Hold => self.inside == 0,
        }
    }

    fn enter(&mut self, claim: Claim) {
        self.inside += 1;
        self.is_held = claim == Claim::Hold;
    }

    /// The piece waits no more. Returns whether it did.
    fn give_up(&mut self, piece: PieceId) -> bool {
        let waits = self.waiting.iter().position(|&(other, _)| other == piece);
        waits.and_then(|at| self.waiting.remove(at)).is_some()
    }

    /// A piece that has come in leaves.
    fn leave(&mut self) {
        self.inside -= 1;
        self.is_held = false;
    }

    /// Lets the piece in that is next, if it may come in.
    fn admit_next(&mut self) -> Option<PieceId> {
        let &(piece, claim) = self.waiting.front()?;
        if !self.admits(claim) {
            return None;
        }
        self.waiting.pop_front();
        self.enter(claim);
        Some(piece)
    }

    /// Whether somebody holds it, or waits to: who is next and only shares has come in already.
    fn is_wanted(&self) -> bool {
        self.is_held || !self.waiting.is_empty()
    }
}
