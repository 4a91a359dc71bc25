//! Memory as direct I/O takes it.

use bytes::{Bytes, BytesMut};

use crate::ring::Buffers;
use crate::spare::SpareBuffers;

/// What direct I/O asks for, in bytes, both powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Alignment {
    /// Of positions and lengths.
    pub(super) block: u32,
    /// Of addresses in memory.
    pub(super) memory: u32,
}

impl Alignment {
    /// Where the last block of so many bytes begins if it is short; else the end.
    pub(super) fn tail(self, size: u64) -> u64 {
        size / u64::from(self.block) * u64::from(self.block)
    }

    /// An empty buffer with room for so many bytes, which begins at an aligned address.
    pub(super) fn room(self, spare: &mut SpareBuffers, len: u32) -> BytesMut {
        spare.take_aligned(len as usize, self.memory as usize)
    }

    /// The same bytes in aligned memory: as they are, or all copied into one buffer.
    pub(super) fn aligned(self, spare: &mut SpareBuffers, from: Buffers<Bytes>) -> Buffers<Bytes> {
        if from.iter().all(|part| self.fits(part)) {
            return from;
        }
        let len: usize = from.iter().map(Bytes::len).sum();
        let len = u32::try_from(len).expect("a transfer is shorter than 4 GiB");
        let mut whole = self.room(spare, len);
        from.iter().for_each(|part| whole.extend_from_slice(part));
        Buffers::from_buf([whole.freeze()])
    }

    fn fits(self, part: &Bytes) -> bool {
        part.as_ptr().addr().is_multiple_of(self.memory as usize)
            && part.len().is_multiple_of(self.block as usize)
    }
}

#[cfg(test)]
mod tests {
    use bytes::BufMut as _;

    use super::*;

    const ALIGNMENT: Alignment = Alignment { block: 512, memory: 4096 };

    #[test]
    fn room_is_aligned_and_long_enough() {
        let mut spare = SpareBuffers::default();
        for len in [1, 512, 70_000] {
            let room = ALIGNMENT.room(&mut spare, len);
            assert!(room.as_ptr().addr().is_multiple_of(4096));
            assert!(room.is_empty() && room.capacity() >= len as usize);
        }
    }

    #[test]
    fn bytes_that_are_aligned_are_not_copied_and_others_become_one_buffer() {
        let mut spare = SpareBuffers::default();
        let mut block = ALIGNMENT.room(&mut spare, 1024);
        block.put_bytes(7, 1024);
        let block = block.freeze();
        let aligned: Buffers<Bytes> = [block.clone()].into_iter().collect();
        let kept = ALIGNMENT.aligned(&mut spare, aligned);
        assert_eq!(kept[0].as_ptr(), block.as_ptr());
        let odd = [block.slice(0..100), block.slice(100..612)].into_iter().collect();
        let copied = ALIGNMENT.aligned(&mut spare, odd);
        assert_eq!((copied.len(), copied[0].len()), (1, 612));
        assert!(copied[0].as_ptr().addr().is_multiple_of(4096));
    }
}
