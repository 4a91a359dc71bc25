//! B-WF2Q+ on its own: queues of one class in one group, served by the rules of `expire.rs` and
//! `select.rs`, without a device.

mod changes;
mod fairness;
mod horizon;
mod lookup;

use crate::arena::{Arena, GroupId, Slot};
use crate::bfq::wf2q::tree::Lookup;
use crate::bfq::wf2q::{ActivationKind, Leaving, QueueId, Retired, Service, Wf2q};
use crate::io_context::IoPrio;
use crate::request::SectorCount;
use crate::time::{Hz, Instant, Jiffies};

/// How many millions of events `PATERNOSTER_SWARM_EVENTS` asks for; one at least.
fn millions() -> u64 {
    let text = std::env::var("PATERNOSTER_SWARM_EVENTS").unwrap_or_default();
    text.parse::<u64>().map_or(1, |events| (events / 1_000_000).max(1))
}

/// Numbers that follow from a seed (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((z ^ (z >> 31)) % u64::from(bound)).expect("below 32 bits")
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(u32::try_from(from.len()).expect("a few")) as usize]
    }

    fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// As many small ones as large ones, up to `bound`.
    fn spread(&mut self, bound: u32) -> u32 {
        let bits = self.below(bound.ilog2() + 1);
        (1 + self.below(2 << bits)).min(bound)
    }
}

/// Who is due, as a service begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    /// Whom the changes so far left as candidate, as in Linux.
    Kept,
    /// The look-up says it.
    Anew,
}

/// The server of one group, and its queues.
struct Field<L> {
    wf2q: Wf2q<L>,
    root: GroupId,
    now: Jiffies,
}

impl<L: Lookup> Field<L> {
    fn new() -> Self {
        let root = Arena::<GroupId, ()>::default().insert(());
        let now = Hz::MILLI.jiffies(Instant::START);
        let mut wf2q = Wf2q::new();
        wf2q.set_root(root, now, Hz::MILLI);
        Self { wf2q, root, now }
    }

    /// A queue of that weight, raised by that factor.
    fn add(&mut self, weight: u32, raising: u32) -> QueueId {
        let queue = self.wf2q.add_queue(self.root, IoPrio::default());
        self.wf2q.set_weight(queue, weight);
        self.wf2q.set_raising_factor(queue, raising);
        queue
    }

    fn activate(&mut self, queue: QueueId, budget: SectorCount, kind: ActivationKind) {
        self.wf2q.reset_service(queue);
        self.wf2q.set_budget(queue, budget);
        let retired = self.wf2q.activate(queue, kind, self.now);
        self.let_go(&retired);
    }

    fn serve_next(&mut self, candidate: Candidate) -> QueueId {
        if candidate == Candidate::Anew {
            self.wf2q.update_next(self.root, Slot::NONE, Service::Ends, self.now);
        }
        let (queue, retired) = self.wf2q.serve_next(self.root, self.now);
        self.let_go(&retired);
        queue
    }

    fn charge(&mut self, queue: QueueId, sectors: SectorCount) {
        let retired = self.wf2q.charge(queue, sectors);
        self.let_go(&retired);
    }

    /// The service of the queue ends; it wants another, with that budget.
    fn requeue(&mut self, queue: QueueId, budget: SectorCount) {
        self.wf2q.set_budget(queue, budget);
        let retired = self.wf2q.reinsert(queue, Service::Ends, self.now);
        self.leave(queue, &retired);
    }

    /// The service of the queue ends; it wants no other.
    fn go_idle(&mut self, queue: QueueId) {
        let retired = self.wf2q.deactivate(queue, Leaving::KeepOnIdleTree, Service::Ends, self.now);
        self.leave(queue, &retired);
    }

    fn leave(&mut self, queue: QueueId, retired: &Retired) {
        self.wf2q.leave_service(queue);
        self.wf2q.reset_service(queue);
        self.let_go(retired);
    }

    /// Queues that have retired stay: they may come back.
    fn let_go(&mut self, retired: &Retired) {
        while self.wf2q.next_retired(retired).is_some() {}
    }
}
