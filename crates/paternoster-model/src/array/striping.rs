//! Where the sectors of the array lie on its disks: in chunks, with a chunk of parity a stripe.
//!
//! ```text
//!   disk        0     1     2     3     4     5
//!   row 0     │ 0a  │ 0b  │ 0P  │ 1a  │ 1P  │ 1b  │     two chunks of data a stripe,
//!   row 1     │ 2P  │ 2a  │ 2b  │ 3a  │ 3b  │ 3P  │     six disks
//! ```
//!
//! A stripe takes the next chunks, one a disk, and begins anew with disk 0 behind the last one. Its
//! parity is one chunk before that of the stripe before; its data begin behind the parity, around
//! the stripe.

use std::ops::Range;

use paternoster::{Sector, SectorCount};

/// How the data are spread over the disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Striping {
    /// Disks.
    pub disks: u32,
    /// Chunks of data a stripe, fewer than there are disks.
    pub data: u32,
    /// Sectors of a chunk, at least one.
    pub chunk: SectorCount,
}

/// A stripe, by its number from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stripe(pub(super) u64);

/// Sectors in a row on one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) disk: usize,
    /// The sectors of the disk.
    pub(super) on_disk: Range<Sector>,
    /// The sectors of the array; for parity those of the chunk that begins the stripe.
    pub(super) in_array: Range<Sector>,
}

impl Striping {
    /// The end of the array: the sector behind its last whole stripe on disks that end there.
    pub(super) fn end(self, disk_end: Sector) -> Sector {
        let chunks = disk_end.0 / self.chunk() * u64::from(self.disks);
        Sector(chunks / self.width() * self.stripe_sectors())
    }

    /// The stripe of a sector.
    pub(super) fn stripe_of(self, sector: Sector) -> Stripe {
        Stripe(sector.0 / self.stripe_sectors())
    }

    /// The sectors of a stripe.
    pub(super) fn sectors(self, stripe: Stripe) -> Range<Sector> {
        let first = stripe.0 * self.stripe_sectors();
        Sector(first)..Sector(first + self.stripe_sectors())
    }

    /// The stripes that have sectors of `range`, with those sectors.
    pub(super) fn by_stripe(
        self,
        range: Range<Sector>,
    ) -> impl Iterator<Item = (Stripe, Range<Sector>)> {
        parts(range, self.stripe_sectors()).map(move |part| (self.stripe_of(part.start), part))
    }

    /// The pieces of `range`, in its order.
    pub(super) fn pieces(self, range: Range<Sector>) -> impl Iterator<Item = Piece> {
        parts(range, self.chunk()).map(move |part| {
            let stripe = self.stripe_of(part.start);
            let within = part.start.0 % self.stripe_sectors();
            let turn = (self.parity_turn(stripe) + 1 + within / self.chunk()) % self.width();
            self.piece(stripe, turn, part)
        })
    }

    /// The piece of parity for `parts` of a stripe, of which there is at least one: from the first
    /// to the last place in a chunk where there is something of them.
    pub(super) fn parity(self, stripe: Stripe, parts: &[Range<Sector>]) -> Piece {
        let chunk = self.chunk();
        let pieces = parts.iter().flat_map(|part| self::parts(part.clone(), chunk));
        let (first, end) = pieces.fold((chunk, 0), |(first, end), piece| {
            let start = piece.start.0 % chunk;
            (first.min(start), end.max(start + piece.end.0 - piece.start.0))
        });
        let begin = self.sectors(stripe).start.0;
        let range = Sector(begin + first)..Sector(begin + end);
        self.piece(stripe, self.parity_turn(stripe), range)
    }

    fn piece(self, stripe: Stripe, turn: u64, in_array: Range<Sector>) -> Piece {
        let place = stripe.0 * self.width() + turn;
        let disks = u64::from(self.disks);
        let first = place / disks * self.chunk() + in_array.start.0 % self.chunk();
        let on_disk = Sector(first)..Sector(first + in_array.end.0 - in_array.start.0);
        let disk = usize::try_from(place % disks).expect("a disk has a small number");
        Piece { disk, on_disk, in_array }
    }

    /// Which chunk of the stripe is parity.
    fn parity_turn(self, stripe: Stripe) -> u64 {
        self.width() - 1 - stripe.0 % self.width()
    }

    fn chunk(self) -> u64 {
        u64::from(self.chunk.0)
    }

    /// Chunks a stripe, parity included.
    fn width(self) -> u64 {
        u64::from(self.data) + 1
    }

    fn stripe_sectors(self) -> u64 {
        u64::from(self.data) * self.chunk()
    }
}

/// The parts of `range` between multiples of `each`.
fn parts(range: Range<Sector>, each: u64) -> impl Iterator<Item = Range<Sector>> {
    let mut next = range.start;
    std::iter::from_fn(move || {
        let end = Sector((next.0 / each + 1) * each).min(range.end);
        let part = next..end;
        (part.start < part.end).then(|| {
            next = end;
            part
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The striping of the picture.
    const SIX: Striping = Striping { disks: 6, data: 2, chunk: SectorCount(8) };

    fn range(first: u64, end: u64) -> Range<Sector> {
        Sector(first)..Sector(end)
    }

    /// The disk, its first sector, and how many, of each piece.
    fn places(pieces: impl Iterator<Item = Piece>) -> Vec<(usize, u64, u64)> {
        let place = |piece: Piece| {
            (piece.disk, piece.on_disk.start.0, piece.on_disk.end.0 - piece.on_disk.start.0)
        };
        pieces.map(place).collect()
    }

    #[test]
    fn data_and_parity_lie_as_in_the_picture() {
        // The chunks 0a 0b 1a 1b 2a 2b 3a 3b.
        let data = [(0, 0, 8), (1, 0, 8), (5, 0, 8), (3, 0, 8)];
        let more = [(1, 8, 8), (2, 8, 8), (3, 8, 8), (4, 8, 8)];
        let found = places(SIX.pieces(range(0, 64)));
        assert_eq!(found[..2], data[..2]);
        assert_eq!(found[4..], more);
        let parity = |stripe| {
            let stripe = Stripe(stripe);
            SIX.parity(stripe, &[SIX.sectors(stripe)]).disk
        };
        assert_eq!([0, 1, 2, 3].map(parity), [2, 4, 0, 5]);
    }

    #[test]
    fn range_is_cut_at_chunks() {
        // Sectors 5 to 8 are the end of 0a, 8 to 10 the beginning of 0b.
        assert_eq!(places(SIX.pieces(range(5, 10))), [(0, 5, 3), (1, 0, 2)]);
        assert_eq!(SIX.pieces(range(5, 5)).count(), 0);
    }

    #[test]
    fn parity_of_parts_reaches_from_their_first_place_to_their_last() {
        // In their chunks they are at 2 to 4, and at 5 to 6: the parity of 2 to 6 changes.
        let piece = SIX.parity(Stripe(2), &[range(34, 36), range(45, 46)]);
        assert_eq!((piece.disk, piece.on_disk), (0, range(10, 14)));
    }

    #[test]
    fn array_ends_with_its_last_whole_stripe() {
        // 17 sectors are two chunks a disk, 12 in all: four stripes of 16 sectors of data.
        assert_eq!(SIX.end(Sector(17)), Sector(64));
    }

    /// Each place of a disk has one chunk: no two of data or parity are at the same.
    #[test]
    fn no_two_chunks_share_a_place() {
        for (disks, data) in [(3, 2), (5, 4), (12, 4), (12, 11), (7, 3)] {
            let striping = Striping { disks, data, chunk: SectorCount(1) };
            let stripes = 4 * u64::from(disks);
            let all = range(0, stripes * u64::from(data));
            let mut places = places(striping.pieces(all));
            places.extend((0..stripes).map(|stripe| {
                let stripe = Stripe(stripe);
                let piece = striping.parity(stripe, &[striping.sectors(stripe)]);
                (piece.disk, piece.on_disk.start.0, 1)
            }));
            let count = places.len();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), count, "{disks} disks, {data} of data");
        }
    }
}
