//! Timestamps stay near their tree's time, however long queues come and go.
//!
//! Let `D` be what the greatest budget takes at the least weight, and `d` what a request takes at
//! the least sum of weights, which is the least weight as well. An entity gets its start
//!
//! ```text
//!   when it comes              start = vtime, or the finish that is remembered of it
//!   when its service ends         start ≤ vtime as the service began, plus D
//!                              finish ≤ start + D
//! ```
//!
//! and vtime goes back, where nothing waits, to the last finish that is remembered. It is past that
//! by no more than the requests that were served since: each forgets one of the `n` entities. So
//! `finish − vtime ≤ 2 D + n d`; and no finish is passed by more than `D` (`fairness.rs`).
//!
//! In Linux the second line does not hold. A queue that is left as candidate when another goes idle
//! is served without a look-up, and only a look-up moves the time up to the start of one that is
//! alone. So what such a queue is ahead of its time, it stays ahead; and each time another comes
//! for a moment and is forgotten, late by the rest of a request, it gets further ahead. It *does*
//! run away, by at most `d` for each comeback of others, and will have to wait for as long once
//! others stay. In real loads that takes thousands of short visits to a queue of little weight.

use crate::bfq::wf2q::entity::{OnTree, Vtime};
use crate::bfq::wf2q::tests::{Candidate, Field, Random, millions};
use crate::bfq::wf2q::tree::{Greedy, Lookup};
use crate::bfq::wf2q::{ActivationKind, QueueId};
use crate::io_context::IoClass;
use crate::request::SectorCount;

/// Requests of a seed, for each million of events that are asked for: ten million in all.
const REQUESTS: u64 = 1_000_000;
/// So many requests long, queues come or do not.
const PHASE: u64 = 5000;
const SEEDS: u64 = 10;
const QUEUES: u32 = 12;
const LONGEST: u32 = 128;
const MAX_BUDGET: u32 = 16384;
const LEAST_BUDGET: u32 = 512;
/// A queue that is back before so many requests of others were served is back in time.
const IN_TIME: u64 = 20;

/// A queue, and how many requests of it wait.
struct Source {
    id: QueueId,
    waiting: u32,
    /// When it ran empty.
    idle_since: u64,
}

struct Coming<L> {
    candidate: Candidate,
    random: Random,
    field: Field<L>,
    sources: Vec<Source>,
    least_weight: u32,
    in_service: Option<usize>,
    served: u64,
    comebacks: u64,
    /// The greatest distances of a finish from vtime, in permille of `D`.
    late: u64,
    early: u64,
}

impl<L: Lookup> Coming<L> {
    fn new(seed: u64, candidate: Candidate) -> Self {
        let mut random = Random(seed);
        let mut field = Field::new();
        let mut least_weight = u32::MAX;
        let mut sources = vec![];
        for _ in 0..QUEUES {
            let weight = random.spread(1000);
            let (weight, raising) = random.pick(&[(weight, 1), (weight, 1), (40, 1), (40, 30)]);
            least_weight = least_weight.min(weight * raising);
            sources.push(Source { id: field.add(weight, raising), waiting: 0, idle_since: 0 });
        }
        Self {
            candidate,
            random,
            field,
            sources,
            least_weight,
            in_service: None,
            served: 0,
            comebacks: 0,
            late: 0,
            early: 0,
        }
    }

    fn budget(&mut self) -> SectorCount {
        SectorCount(LEAST_BUDGET + self.random.below(MAX_BUDGET - LEAST_BUDGET + 1))
    }

    /// Requests arrive for one of the queues.
    fn arrive(&mut self) {
        let which = self.random.below(QUEUES) as usize;
        let source = &mut self.sources[which];
        let was_idle = source.waiting == 0 && self.in_service != Some(which);
        source.waiting += 1 + self.random.below(40);
        let id = source.id;
        if was_idle {
            let in_time = self.served - source.idle_since <= IN_TIME;
            let kind = if in_time { ActivationKind::InTime } else { ActivationKind::New };
            self.comebacks += 1;
            let budget = self.budget();
            self.field.activate(id, budget, kind);
            self.look_at(id);
        }
    }

    /// A request is served, if one waits.
    fn serve(&mut self) {
        let Some(which) = self.in_service.or_else(|| self.begin_service()) else { return };
        let id = self.sources[which].id;
        let sectors = SectorCount(1 + self.random.below(LONGEST));
        let exhausted = i64::from(sectors.0) > self.field.wf2q.entities[id].left();
        if !exhausted {
            self.field.charge(id, sectors);
            self.sources[which].waiting -= 1;
            self.served += 1;
        }
        if self.sources[which].waiting == 0 {
            self.field.go_idle(id);
            self.sources[which].idle_since = self.served;
        } else if exhausted {
            let budget = self.budget();
            self.field.requeue(id, budget);
        } else {
            return;
        }
        self.in_service = None;
        self.look_at(id);
    }

    fn begin_service(&mut self) -> Option<usize> {
        if self.sources.iter().all(|source| source.waiting == 0) {
            return None;
        }
        let id = self.field.serve_next(self.candidate);
        self.in_service = self.sources.iter().position(|source| source.id == id);
        self.in_service
    }

    fn look_at(&mut self, id: QueueId) {
        let entity = &self.field.wf2q.entities[id];
        if entity.on_tree == OnTree::Neither {
            return;
        }
        let tree = &self.field.wf2q.servers[self.field.root].classes[IoClass::Be as usize];
        let whole = Vtime(0).after(SectorCount(MAX_BUDGET), self.least_weight.into()).0;
        let finish = entity.finish;
        let ahead = finish.0.wrapping_sub(tree.vtime.0).cast_signed();
        let permille = i128::from(ahead) * 1000 / i128::from(whole);
        let permille = i64::try_from(permille).expect("timestamps are near");
        self.early = self.early.max(permille.max(0).unsigned_abs());
        self.late = self.late.max(permille.min(0).unsigned_abs());
    }

    fn look_at_all(&mut self) {
        for which in 0..self.sources.len() {
            self.look_at(self.sources[which].id);
        }
    }
}

/// The greatest distances of finish times behind and ahead of vtime, and how often queues came
/// back: for each seed.
fn run(candidate: Candidate) -> impl Iterator<Item = [u64; 3]> {
    (0..SEEDS).map(move |seed| {
        let mut coming = Coming::<Greedy>::new(seed, candidate);
        for step in 0..REQUESTS * millions() {
            // Now more, now less than is served.
            let is_busy = (step / PHASE).is_multiple_of(2);
            if is_busy && coming.random.one_in(10) {
                coming.arrive();
            }
            coming.serve();
            if step % 64 == 0 {
                coming.look_at_all();
            }
        }
        coming.field.wf2q.check();
        let Coming { late, early, comebacks, .. } = coming;
        println!(
            "seed {seed}, {candidate:?}: finish − vtime from −{late} to {early} permille of a \
             budget at the least weight, with {comebacks} comebacks"
        );
        [late, early, comebacks]
    })
}

/// Permille of the greatest budget that the largest request is.
const REQUEST: u64 = LONGEST as u64 * 1000 / MAX_BUDGET as u64;

#[test]
fn finish_times_stay_within_two_budgets_of_vtime_if_each_service_begins_with_a_look_up() {
    for [late, early, _] in run(Candidate::Anew) {
        assert!(late <= 1000 && early <= 2000 + u64::from(QUEUES) * REQUEST, "{late}, {early}");
    }
}

#[test]
fn finish_times_run_away_by_no_more_than_a_request_for_each_comeback() {
    for [late, early, comebacks] in run(Candidate::Kept) {
        assert!(late <= 1000 && early <= 2000 + comebacks * REQUEST, "{late}, {early}");
    }
}
