//! The memory of a machine, which its server has too.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use anyhow::Result;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes as _, FileOffset, VolatileMemory as _};

/// Where it begins in the front-end, whose addresses those of rings are.
const FRONT_END: u64 = 0x7000_0000_0000;

/// A machine's memory, from address 0 on.
#[derive(Debug)]
pub struct Guest {
    file: OwnedFd,
    bytes: u64,
    mapping: MmapRegion<()>,
}

impl Guest {
    /// So many bytes in a file that can be made neither longer nor shorter.
    pub fn new(bytes: u64) -> Result<Self> {
        let guest = Self::unsealed(bytes)?;
        fcntl_add_seals(&guest.file, SealFlags::SHRINK | SealFlags::GROW)?;
        Ok(guest)
    }

    /// The same in one that can.
    pub fn unsealed(bytes: u64) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("machine", flags)?;
        ftruncate(&file, bytes)?;
        let ours = FileOffset::new(file.try_clone()?.into(), 0);
        let mapping = MmapRegion::from_file(ours, usize::try_from(bytes)?)?;
        Ok(Self { file, bytes, mapping })
    }

    /// Its file.
    pub fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// The body of the message that says what it is.
    pub fn table(&self) -> Vec<u8> {
        let region = [0, self.bytes, FRONT_END, 0].map(u64::to_ne_bytes).concat();
        [[1_u32, 0].map(u32::to_ne_bytes).concat(), region].concat()
    }

    /// Where a guest's address is in the front-end.
    pub fn front_end(addr: u64) -> u64 {
        FRONT_END + addr
    }

    /// Writes bytes.
    pub fn write(&self, addr: u64, bytes: &[u8]) {
        let slice = self.mapping.get_slice(offset(addr), bytes.len());
        slice.expect("it is in the memory").copy_from(bytes);
    }

    /// Reads bytes.
    pub fn read(&self, addr: u64, into: &mut [u8]) {
        let slice = self.mapping.get_slice(offset(addr), into.len());
        slice.expect("it is in the memory").copy_to(into);
    }

    /// Reads a little-endian number that the server may write.
    pub(super) fn load(&self, addr: u64) -> u16 {
        let slice = self.mapping.as_volatile_slice();
        let number: u16 = slice.load(offset(addr), Ordering::Acquire).expect("it is aligned");
        u16::from_le(number)
    }

    /// Writes a little-endian number that the server may read.
    pub(super) fn store(&self, addr: u64, number: u16) {
        let slice = self.mapping.as_volatile_slice();
        slice.store(number.to_le(), offset(addr), Ordering::Release).expect("it is aligned");
    }
}

fn offset(addr: u64) -> usize {
    usize::try_from(addr).expect("a guest is small")
}
