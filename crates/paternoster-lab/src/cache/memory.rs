//! Which pages are dropped to make room: those of the extent that was not used for the longest
//! time, roughly. Extents stand in a queue; one that was used since it was last passed over gets a
//! second chance, as Linux's lists give it.

use std::collections::VecDeque;

use super::CachedFile;
use super::pages::Evicted;

/// How much is cached, and what may be dropped first.
#[derive(Debug)]
pub(super) struct Memory {
    /// How many pages there is room for.
    room: u64,
    /// Pages that are cached or on their way.
    held: u64,
    /// Every extent of which something is known, by its file and index.
    queue: VecDeque<(usize, u64)>,
}

impl Memory {
    pub(super) fn new(room: u64) -> Self {
        Self { room, held: 0, queue: VecDeque::new() }
    }

    /// Something is known of one more extent.
    pub(super) fn enlist(&mut self, file: usize, extent: u64) {
        self.queue.push_back((file, extent));
    }

    /// So many more pages are cached or on their way: others are dropped if there is no room. Where
    /// none may be dropped, there are more than there is room for.
    pub(super) fn hold(&mut self, pages: u64, files: &mut [CachedFile]) {
        self.held += pages;
        // Each extent is passed over once because it was used.
        let mut tries = 2 * self.queue.len();
        while self.held > self.room && tries > 0 {
            tries -= 1;
            let Some((file, extent)) = self.queue.pop_front() else { break };
            match files[file].pages.evict(extent) {
                Evicted::All(dropped) => self.held -= dropped,
                Evicted::Some(dropped) => {
                    self.held -= dropped;
                    self.queue.push_back((file, extent));
                }
            }
        }
    }

    /// So many pages of the file were dropped.
    pub(super) fn forgot(&mut self, file: usize, dropped: u64, files: &[CachedFile]) {
        self.held -= dropped;
        self.queue.retain(|&(of, extent)| of != file || files[file].pages.has_extent(extent));
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> u64 {
        self.held
    }
}
