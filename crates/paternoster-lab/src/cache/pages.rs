//! The pages of one file, as far as they are cached: 64 in a row are an extent, a bit for each.
//!
//! ```text
//!   present  1111111111110000…    cached, or on its way
//!   here     1111111100000000…    cached
//!   marked   0000000010000000…    the next window is read when a reader comes here
//!   dirty    0011000000000000…    to be written to the device
//!   writing  0000110000000000…    on its way there; it may become dirty again
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Pages of an extent.
const EXTENT: u64 = 64;

/// The pages of a file.
#[derive(Debug, Default)]
pub(super) struct FilePages {
    extents: BTreeMap<u64, Extent>,
    /// Those with dirty pages.
    dirty: BTreeSet<u64>,
}

/// Pages in a row, the first of which is a multiple of 64; a bit for each.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// Cached or on its way.
    present: u64,
    /// Cached.
    here: u64,
    /// With the mark of readahead.
    marked: u64,
    /// To be written to the device.
    dirty: u64,
    /// Being written.
    writing: u64,
    /// Whether it was used since it was last passed over when room was made.
    is_used: bool,
}

/// The part of a range of pages that is in one extent.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The index of the extent.
    extent: u64,
    /// The pages, a bit for each.
    bits: u64,
}

impl FilePages {
    pub(super) fn is_present(&self, page: u64) -> bool {
        self.bit(page, |extent| extent.present)
    }

    /// Takes the mark from the page. Returns whether it had one.
    pub(super) fn take_mark(&mut self, page: u64) -> bool {
        let Some(extent) = self.extents.get_mut(&(page / EXTENT)) else { return false };
        let bit = 1 << (page % EXTENT);
        let was_marked = extent.marked & bit != 0;
        extent.marked &= !bit;
        was_marked
    }

    pub(super) fn mark(&mut self, page: u64) {
        if let Some(extent) = self.extents.get_mut(&(page / EXTENT)) {
            extent.marked |= 1 << (page % EXTENT);
        }
    }

    /// How many pages from there on are present, up to `most`.
    pub(super) fn present_from(&self, page: u64, most: u64) -> u64 {
        self.run(page, most, |extent| extent.present)
    }

    /// How many pages right before it are present, up to `most`.
    pub(super) fn present_before(&self, page: u64, most: u64) -> u64 {
        let most = most.min(page);
        let mut count = 0;
        while count < most {
            let last = page - count - 1;
            let extent = self.extents.get(&(last / EXTENT)).copied().unwrap_or_default();
            let before = last % EXTENT + 1;
            let ones = u64::from((extent.present << (EXTENT - before)).leading_ones());
            count += ones;
            if ones < before {
                break;
            }
        }
        count.min(most)
    }

    /// How many pages from there on are cached and have no mark, up to `most`. They count as used.
    pub(super) fn use_run(&mut self, page: u64, most: u64) -> u64 {
        let count = self.run(page, most, |extent| extent.here & !extent.marked);
        for part in parts(page..page + count) {
            let extent = self.extents.get_mut(&part.extent).expect("it has pages that are here");
            extent.is_used = true;
        }
        count
    }

    /// The first run among the pages of which none is present.
    pub(super) fn missing(&self, pages: Range<u64>) -> Option<Range<u64>> {
        let start = pages.start + self.present_from(pages.start, pages.end - pages.start);
        let absent = self.run(start, pages.end - start, |extent| !extent.present);
        (absent > 0).then_some(start..start + absent)
    }

    /// The pages, none of which is present, are on their way. `made` hears of each extent of which
    /// nothing was known.
    pub(super) fn request(&mut self, pages: Range<u64>, mut made: impl FnMut(u64)) {
        for Part { extent, bits } in parts(pages) {
            let entry = self.extents.entry(extent).or_insert_with(|| {
                made(extent);
                Extent::default()
            });
            entry.present |= bits;
            entry.is_used = true;
        }
    }

    /// The pages have arrived.
    pub(super) fn arrived(&mut self, pages: Range<u64>) {
        for Part { extent, bits } in parts(pages) {
            let extent = self.extents.get_mut(&extent).expect("pages on their way stay");
            extent.here |= bits;
        }
    }

    /// How many pages from there on can be overwritten as a whole, up to `most`: those that are not
    /// on their way.
    pub(super) fn free_run(&self, page: u64, most: u64) -> u64 {
        self.run(page, most, |extent| !extent.present | extent.here)
    }

    pub(super) fn is_here(&self, page: u64) -> bool {
        self.bit(page, |extent| extent.here)
    }

    /// The pages were written into, and are cached. Returns how many were clean; `made` hears of
    /// each extent of which nothing was known.
    pub(super) fn dirty(&mut self, pages: Range<u64>, mut made: impl FnMut(u64)) -> Dirtied {
        let mut dirtied = Dirtied::default();
        for Part { extent: index, bits } in parts(pages) {
            let extent = self.extents.entry(index).or_insert_with(|| {
                made(index);
                Extent::default()
            });
            dirtied.clean += u64::from((bits & !extent.dirty).count_ones());
            dirtied.absent += u64::from((bits & !extent.present).count_ones());
            extent.present |= bits;
            extent.here |= bits;
            extent.dirty |= bits;
            extent.is_used = true;
            self.dirty.insert(index);
        }
        dirtied
    }

    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    pub(super) fn is_writing(&self, page: u64) -> bool {
        self.bit(page, |extent| extent.writing)
    }

    /// The first dirty page among those.
    pub(super) fn first_dirty(&self, pages: Range<u64>) -> Option<u64> {
        self.first(pages, |extent| extent.dirty)
    }

    /// Takes the first dirty pages among those, up to `most` in a row: they are being written. What
    /// is being written already is passed over.
    pub(super) fn take_dirty(&mut self, pages: Range<u64>, most: u64) -> Option<Range<u64>> {
        let is_free = |extent: &Extent| extent.dirty & !extent.writing;
        let first = self.first(pages.clone(), is_free)?;
        let run = first..first + self.run(first, most.min(pages.end - first), is_free);
        for Part { extent: index, bits } in parts(run.clone()) {
            let extent = self.extents.get_mut(&index).expect("it has dirty pages");
            extent.dirty &= !bits;
            extent.writing |= bits;
            if extent.dirty == 0 {
                self.dirty.remove(&index);
            }
        }
        Some(run)
    }

    /// The pages were written.
    pub(super) fn written(&mut self, pages: Range<u64>) {
        for Part { extent, bits } in parts(pages) {
            let extent = self.extents.get_mut(&extent).expect("pages that are written stay");
            extent.writing &= !bits;
        }
    }

    /// Drops the pages that nothing is under way for. Returns how many.
    pub(super) fn forget(&mut self) -> u64 {
        let dropped = self.extents.values_mut().map(Extent::forget).sum();
        self.extents.retain(|_, extent| extent.present != 0);
        dropped
    }

    /// Whether something is known of the extent.
    pub(super) fn has_extent(&self, extent: u64) -> bool {
        self.extents.contains_key(&extent)
    }

    /// Makes room: drops the pages of an extent that may be dropped, unless the extent was used
    /// since this was asked before.
    pub(super) fn evict(&mut self, extent: u64) -> Evicted {
        let Some(found) = self.extents.get_mut(&extent) else { return Evicted::All(0) };
        if found.is_used {
            found.is_used = false;
            return Evicted::Some(0);
        }
        let dropped = found.forget();
        if found.present != 0 {
            return Evicted::Some(dropped);
        }
        self.extents.remove(&extent);
        Evicted::All(dropped)
    }

    /// The first page among those that has its bit set; only extents with dirty pages count.
    fn first(&self, pages: Range<u64>, bits: impl Fn(&Extent) -> u64) -> Option<u64> {
        let extents = self.dirty.range(pages.start / EXTENT..);
        let extents = extents.take_while(|extent| *extent * EXTENT < pages.end);
        let mut found = extents.filter_map(|&index| {
            let start = index * EXTENT;
            let within = pages.start.max(start)..pages.end.min(start + EXTENT);
            let part = parts(within).next()?;
            let bits = bits(&self.extents[&index]) & part.bits;
            (bits != 0).then(|| start + u64::from(bits.trailing_zeros()))
        });
        found.next()
    }

    fn bit(&self, page: u64, bits: impl Fn(&Extent) -> u64) -> bool {
        let extent = self.extents.get(&(page / EXTENT));
        extent.is_some_and(|extent| bits(extent) >> (page % EXTENT) & 1 != 0)
    }

    /// How many pages from there on have their bit set, up to `most`.
    fn run(&self, page: u64, most: u64, bits: impl Fn(&Extent) -> u64) -> u64 {
        let mut count = 0;
        while count < most {
            let (index, offset) = ((page + count) / EXTENT, (page + count) % EXTENT);
            let extent = self.extents.get(&index).copied().unwrap_or_default();
            let ones = u64::from((bits(&extent) >> offset).trailing_ones());
            count += ones;
            if ones < EXTENT - offset {
                break;
            }
        }
        count.min(most)
    }
}

/// What pages were before they were written into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dirtied {
    /// How many were not dirty.
    pub(super) clean: u64,
    /// How many were not cached.
    pub(super) absent: u64,
}

/// What was dropped of an extent to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evicted {
    /// So many pages, and nothing is known of it any more.
    All(u64),
    /// So many pages; others stay.
    Some(u64),
}

impl Extent {
    fn forget(&mut self) -> u64 {
        let dropped = self.here & !self.dirty & !self.writing;
        self.present &= !dropped;
        self.marked &= !dropped;
        self.here &= !dropped;
        u64::from(dropped.count_ones())
    }
}

/// The pages by extents.
fn parts(pages: Range<u64>) -> impl Iterator<Item = Part> {
    let end = if pages.is_empty() { 0 } else { pages.end.div_ceil(EXTENT) };
    (pages.start / EXTENT..end).map(move |extent| {
        let first = extent * EXTENT;
        let from = pages.start.max(first) - first;
        let to = pages.end.min(first + EXTENT) - first;
        let bits = u64::MAX >> (EXTENT - (to - from)) << from;
        Part { extent, bits }
    })
}
