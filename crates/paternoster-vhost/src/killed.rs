//! A server that is killed before any of its stores to shared memory, and the one after it, which
//! is too: every chain is one that the driver was told of, or one that is taken again.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use crate::proto::{Features, RegionPlace, RingAddresses};
use crate::{Inflight, Memory, Region, Sealed, SplitRing};

const SIZE: u16 = 8;
/// The chains that the driver has offered, in its order.
const OFFERED: [u16; 5] = [4, 0, 3, 1, 2];
/// Where its rings are.
const AVAILABLE: u64 = 0x400;
const USED: u64 = 0x800;

thread_local! {
    /// How many stores this thread does before it is killed; none where it is not.
    static STORES_LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Counts a store that is about to be done.
pub(crate) fn before_store() {
    if let Some(left) = STORES_LEFT.get() {
        assert!(left > 0, "killed");
        STORES_LEFT.set(Some(left - 1));
    }
}

/// A driver, its front-end, and what that holds on to.
struct Guest {
    memory: Memory,
    inflight: Inflight,
}

impl Guest {
    fn new() -> Self {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
        let file = file.expect("memory");
        ftruncate(&file, 4096).expect("room");
        fcntl_add_seals(&file, SealFlags::SHRINK).expect("it may be sealed");
        let place = RegionPlace { guest: 0, size: 4096, front_end: 0, offset: 0 };
        let mut memory = Memory::default();
        let region = Region::map(place, file, Sealed::Required).expect("it is memory");
        memory.add(region).expect("it is the first");
        let (inflight, _file) = Inflight::create(1, SIZE, 1).expect("memory");
        for (entry, head) in (0..).zip(OFFERED) {
            memory.write(AVAILABLE + 4 + 2 * entry, &head.to_le_bytes()).expect("it is there");
        }
        let index = u16::try_from(OFFERED.len()).expect("five");
        memory.write(AVAILABLE + 2, &index.to_le_bytes()).expect("it is there");
        Self { memory, inflight }
    }

    /// A server begins, takes all chains, and gives them back in three batches, the last ones
    /// first; or is killed before so many stores.
    fn serve(&self, stores: Option<u32>) -> bool {
        STORES_LEFT.set(stores);
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let mut ring = self.ring();
            let heads = self.take(&mut ring);
            for batch in heads.rchunks(2) {
                for &head in batch.iter().rev() {
                    ring.push_used(head, 1);
                }
                ring.publish();
            }
        }));
        STORES_LEFT.set(None);
        ended.is_ok()
    }

    fn ring(&self) -> SplitRing {
        let addresses = RingAddresses { descriptors: 0, available: AVAILABLE, used: USED };
        let ring = SplitRing::new(&self.memory, SIZE, addresses, 0, Features::VERSION_1);
        let mut ring = ring.expect("a ring");
        // The first server finds that it is new.
        let _ = ring.recover(self.inflight.ring(0, SIZE).expect("it has one"));
        ring
    }

    /// Takes all chains that there are.
    fn take(&self, ring: &mut SplitRing) -> Vec<u16> {
        let next = || ring.pop(&self.memory).expect("the driver keeps to the rules");
        std::iter::from_fn(next).map(|taken| taken.head).collect()
    }

    /// The chains whose end the driver has seen.
    fn seen(&self) -> Vec<u16> {
        let read = |at| {
            let mut bytes = [0; 2];
            self.memory.read(at, &mut bytes).expect("it is there");
            u16::from_le_bytes(bytes)
        };
        (0..u64::from(read(USED + 2))).map(|entry| read(USED + 4 + 8 * entry)).collect()
    }
}

#[test]
fn every_chain_is_told_of_or_taken_again_wherever_servers_are_killed() {
    let mut kills = 0;
    for first in 0.. {
        let mut is_over = true;
        for second in 0.. {
            let guest = Guest::new();
            is_over = guest.serve(Some(first));
            let is_last = guest.serve(Some(second));
            let mut chains = guest.seen();
            chains.extend(guest.take(&mut guest.ring()));
            chains.sort_unstable();
            assert_eq!(chains, [0, 1, 2, 3, 4], "killed before stores {first} and {second}");
            kills += 1;
            if is_last {
                break;
            }
        }
        if is_over {
            break;
        }
    }
    assert!(kills > 500, "{kills} pairs");
}
