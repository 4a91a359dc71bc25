//! A machine's memory, into which tests have reads go.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use paternoster_disk::{Buffers, GuestBuffers, GuestSlice, Part, Payload};
use vm_memory::VolatileMemory as _;
use vm_memory::mmap::MmapRegion;

/// Memory, of zeroes at first.
#[derive(Clone, Debug)]
pub(crate) struct Guest(Arc<Mapped>);

#[derive(Debug)]
struct Mapped(MmapRegion<()>);

impl AsRef<MmapRegion<()>> for Mapped {
    fn as_ref(&self) -> &MmapRegion<()> {
        &self.0
    }
}

impl Guest {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Mapped(MmapRegion::new(bytes).expect("there is memory"))))
    }

    /// Those bytes of it, one range after the other.
    pub(crate) fn buffers(&self, ranges: &[Range<usize>]) -> GuestBuffers {
        let slice = |range: &Range<usize>| {
            let len = u32::try_from(range.len()).expect("small");
            GuestSlice::new(Arc::clone(&self.0) as _, range.start, len)
                .expect("it is in the memory")
        };
        ranges.iter().map(slice).collect()
    }

    /// What those ranges hold, one after the other.
    pub(crate) fn bytes(&self, ranges: &[Range<usize>]) -> Vec<u8> {
        let each = ranges.iter().flat_map(|range| {
            let mut bytes = vec![0; range.len()];
            let slice = self.0.0.get_slice(range.start, range.len());
            slice.expect("it is in the memory").copy_to(&mut bytes);
            bytes
        });
        each.collect()
    }
}

/// What a back end makes of data that it has read, which may be short: the guests' parts go there,
/// the others are given back.
pub(crate) fn in_places(parts: &Buffers<Part>, data: &[u8]) -> Payload {
    let mut left = data;
    let each = parts.iter().filter_map(|part| {
        let len = usize::try_from(part.len()).expect("small");
        let (of_part, further) = left.split_at(left.len().min(len));
        left = further;
        match part {
            Part::Own(_) => Some(Bytes::copy_from_slice(of_part)),
            Part::Guest(slice) => {
                slice.write(of_part);
                None
            }
        }
    });
    each.collect()
}
