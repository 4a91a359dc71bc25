//! Memory of a virtual machine, where a read may put what it reads without a copy of ours.
//!
//! Nobody here holds a reference into it: the machine may write to it at any time. The kernel reads
//! into it, or bytes are copied to it.

use std::fmt::Debug;
use std::sync::Arc;

use paternoster::Limits;
use vm_memory::mmap::MmapRegion;
use vm_memory::{VolatileMemory as _, VolatileSlice};

/// What a machine's memory is mapped by, and whatever else has to live as long.
pub trait GuestMemory: AsRef<MmapRegion<()>> + Debug + Send + Sync {}

impl<T: AsRef<MmapRegion<()>> + Debug + Send + Sync> GuestMemory for T {}

/// Bytes of a machine's memory, which stay mapped for as long as this is kept.
#[derive(Clone, Debug)]
pub struct GuestSlice {
    memory: Arc<dyn GuestMemory>,
    offset: usize,
    len: u32,
}

impl GuestSlice {
    /// So many bytes from an offset of the memory on; none where they are not all in it.
    pub fn new(memory: Arc<dyn GuestMemory>, offset: usize, len: u32) -> Option<Self> {
        (*memory).as_ref().get_slice(offset, len as usize).ok()?;
        Some(Self { memory, offset, len })
    }

    /// Its bytes.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it begins: mapped for as long as this is kept.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.bytes().ptr_guard_mut().as_ptr()
    }

    /// Copies to it as much as there is room for.
    pub fn write(&self, from: &[u8]) {
        self.bytes().copy_from(from);
    }

    fn bytes(&self) -> VolatileSlice<'_> {
        let mapping = (*self.memory).as_ref();
        mapping.get_slice(self.offset, self.len as usize).expect("it is in the memory")
    }

    fn part(&self, from: u32, len: u32) -> Self {
        Self { memory: Arc::clone(&self.memory), offset: self.offset + from as usize, len }
    }

    fn is_multiple_of(&self, memory: u32, block: u32) -> bool {
        self.as_ptr().addr().is_multiple_of(memory as usize) && self.len.is_multiple_of(block)
    }
}

/// What a read straight into a machine's memory has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestReads {
    /// Of what its addresses in this process are multiples.
    pub memory: u32,
    /// Of what its offset, and the bytes at each address, are multiples.
    pub block: u32,
}

impl GuestReads {
    /// Returns whether a read from `offset` on meets this, with no more addresses than any request
    /// may have.
    pub fn permit(self, offset: u64, into: &GuestBuffers) -> bool {
        offset.is_multiple_of(self.block.into())
            && into.count() <= usize::from(Limits::default().max_segments)
            && into.0.iter().all(|slice| slice.is_multiple_of(self.memory, self.block))
    }
}

/// Where in a machine's memory a read goes, in the order of the disk.
#[derive(Clone, Debug, Default)]
// No larger than what a write has: every command has room for one.
pub struct GuestBuffers(Vec<GuestSlice>);

impl GuestBuffers {
    /// The bytes of all.
    ///
    /// # Panics
    ///
    /// Where they are 4 GiB or more.
    pub fn len(&self) -> u32 {
        let bytes = self.0.iter().map(|slice| u64::from(slice.len)).sum::<u64>();
        u32::try_from(bytes).expect("a command is below 4 GiB")
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|slice| slice.len == 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &GuestSlice> {
        self.0.iter()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// So many bytes of it, from `from` on.
    pub(crate) fn part(&self, from: u32, len: u32) -> Self {
        let (mut skip, mut left) = (from, len);
        let parts = self.0.iter().filter_map(|slice| {
            let skipped = skip.min(slice.len);
            skip -= skipped;
            let here = left.min(slice.len - skipped);
            left -= here;
            (here > 0).then(|| slice.part(skipped, here))
        });
        Self(parts.collect())
    }
}

impl FromIterator<GuestSlice> for GuestBuffers {
    fn from_iter<I: IntoIterator<Item = GuestSlice>>(slices: I) -> Self {
        Self(slices.into_iter().collect())
    }
}

impl Extend<GuestSlice> for GuestBuffers {
    fn extend<I: IntoIterator<Item = GuestSlice>>(&mut self, slices: I) {
        self.0.extend(slices);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u32 = 4096;

    #[derive(Debug)]
    struct Mapped(MmapRegion<()>);

    impl AsRef<MmapRegion<()>> for Mapped {
        fn as_ref(&self) -> &MmapRegion<()> {
            &self.0
        }
    }

    fn memory() -> Arc<dyn GuestMemory> {
        Arc::new(Mapped(MmapRegion::new(16 * PAGE as usize).expect("memory")))
    }

    fn places(buffers: &GuestBuffers) -> Vec<(usize, u32)> {
        buffers.0.iter().map(|slice| (slice.offset, slice.len)).collect()
    }

    #[test]
    fn slice_is_in_its_mapping_or_there_is_none() {
        let memory = memory();
        assert!(GuestSlice::new(Arc::clone(&memory), 15 * PAGE as usize, PAGE).is_some());
        assert!(GuestSlice::new(Arc::clone(&memory), 15 * PAGE as usize, PAGE + 1).is_none());
        assert!(GuestSlice::new(Arc::clone(&memory), usize::MAX, 2).is_none());
    }

    #[test]
    fn part_begins_and_ends_in_any_slice() {
        let memory = memory();
        let slice =
            |offset, len| GuestSlice::new(Arc::clone(&memory), offset, len).expect("it is in it");
        let all: GuestBuffers =
            [slice(0, 100), slice(5000, 50), slice(300, 200)].into_iter().collect();
        assert_eq!(all.len(), 350);
        assert_eq!(places(&all.part(0, 350)), [(0, 100), (5000, 50), (300, 200)]);
        assert_eq!(places(&all.part(99, 52)), [(99, 1), (5000, 50), (300, 1)]);
        assert_eq!(places(&all.part(100, 10)), [(5000, 10)]);
        assert_eq!(places(&all.part(349, 1)), [(499, 1)]);
        assert!(all.part(350, 0).is_empty());
    }

    #[test]
    fn read_is_permitted_that_begins_and_ends_as_it_has_to() {
        let memory = memory();
        let slice =
            |offset, len| GuestSlice::new(Arc::clone(&memory), offset, len).expect("it is in it");
        let one = |offset, len| [slice(offset, len)].into_iter().collect::<GuestBuffers>();
        let reads = |memory, block| GuestReads { memory, block };
        assert!(reads(512, 512).permit(512, &one(512, 1024)));
        assert!(!reads(512, 512).permit(256, &one(512, 1024)), "its offset");
        assert!(!reads(1024, 512).permit(512, &one(512, 1024)), "its address");
        assert!(!reads(512, 1024).permit(1024, &one(512, 512)), "its bytes");
        assert!(reads(1, 1).permit(5, &one(3, 7)));
    }

    #[test]
    fn read_to_more_places_than_a_request_has_is_not_permitted() {
        let memory = memory();
        let slice = |offset| GuestSlice::new(Arc::clone(&memory), offset, 1).expect("it is in it");
        let places = |count| (0..count).map(slice).collect::<GuestBuffers>();
        let any = GuestReads { memory: 1, block: 1 };
        assert!(any.permit(0, &places(128)));
        assert!(!any.permit(0, &places(129)));
    }
}
