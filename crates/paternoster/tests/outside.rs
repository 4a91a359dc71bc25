//! A scheduler that is not of this crate, written with public names alone: it is driven to the end
//! of its work, its order is what is dispatched, and merging works with it.

use paternoster::scheduler::{Cx, Fifo, InsertAt, Requeue, Scheduler, SortList, tunables};
use paternoster::{
    Bio, Device, Elevator, Instant, IoPrio, IocId, MergeKind, Nanos, NoTrace, RequestId, Sector,
    SectorCount, Submitted, TunableError, TunableInfo,
};

tunables! {
    struct Tunables of "downward";
    patience: "ms", 500, 0, 60_000, "After how long a request is served out of sector order.";
}

/// From the highest sector to the lowest, then again; whoever has waited too long goes first.
struct Downward {
    sorted: SortList,
    fifo: Fifo,
    /// What is below the request that was served last.
    next: Option<RequestId>,
    tunables: Tunables,
    trace: NoTrace,
}

impl Downward {
    fn new() -> Self {
        let (sorted, fifo, tunables) =
            (SortList::default(), Fifo::default(), Tunables::with_defaults());
        Self { sorted, fifo, next: None, tunables, trace: NoTrace }
    }

    fn take(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        self.next = SortList::before(cx.requests, rq);
        self.sorted.remove(cx.requests, rq);
        self.fifo.remove(cx.requests, rq);
    }
}

impl Scheduler for Downward {
    type Trace = NoTrace;

    fn name(&self) -> &'static str {
        "downward"
    }

    fn insert(&mut self, cx: &mut Cx<'_>, rq: RequestId, _: InsertAt) {
        let patience = Nanos::from_millis(self.tunables.patience.cast_unsigned());
        self.fifo.push(cx.requests, rq, cx.now + patience);
        self.sorted.insert(cx.requests, rq);
    }

    fn requeue(&mut self, _: &mut Cx<'_>, _: RequestId) -> Requeue {
        Requeue::Elevator
    }

    fn find_front_merge(&self, cx: &Cx<'_>, bio: &Bio) -> Option<RequestId> {
        self.sorted.find_start(cx.requests, bio.end())
    }

    fn request_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, kind: MergeKind) {
        if kind == MergeKind::Front {
            self.sorted.reposition(cx.requests, rq);
        }
    }

    fn requests_merged(&mut self, cx: &mut Cx<'_>, rq: RequestId, absorbed: RequestId) {
        if cx.requests[absorbed].is_queued() {
            let next = self.next;
            self.take(cx, absorbed);
            self.next = if next == Some(absorbed) { Some(rq) } else { next };
        }
    }

    fn dispatch(&mut self, cx: &mut Cx<'_>) -> Option<RequestId> {
        let oldest = self.fifo.first()?;
        let is_late = cx.requests[oldest].deadline <= cx.now;
        let on = self.next.or_else(|| self.sorted.iter(cx.requests).last());
        let rq = if is_late { oldest } else { on.expect("both lists hold the same") };
        self.take(cx, rq);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.sorted.is_empty()
    }

    fn drain(&mut self, cx: &mut Cx<'_>, out: &mut Vec<RequestId>) {
        while let Some(rq) = self.fifo.first() {
            self.take(cx, rq);
            out.push(rq);
        }
        self.next = None;
    }

    fn tunables(&self) -> &'static [TunableInfo] {
        Tunables::TABLE
    }

    fn tunable(&self, name: &str) -> Result<i64, TunableError> {
        self.tunables.get(name)
    }

    fn set_tunable(&mut self, _: &mut Cx<'_>, name: &str, value: i64) -> Result<i64, TunableError> {
        self.tunables.set(name, value)
    }

    fn trace(&mut self) -> &mut NoTrace {
        &mut self.trace
    }
}

/// What the device takes for a request.
const SERVICE: Nanos = Nanos::from_millis(10);

fn elevator() -> (Elevator<Downward>, IocId) {
    let mut elevator = Elevator::new(Downward::new(), Device::disk(1), Instant::START);
    let root = elevator.groups().root();
    let ioc = elevator.add_io_context(Instant::START, IoPrio::default(), root);
    (elevator, ioc)
}

/// A read of 8 sectors, which goes by its sector.
fn read(ioc: IocId, sector: u64) -> Bio {
    Bio::read(ioc, Sector(sector), SectorCount(8)).with_user_data(sector)
}

/// Serves all that waits, one at a time: the bios of each request.
fn serve(elevator: &mut Elevator<Downward>, now: &mut Instant) -> Vec<Vec<u64>> {
    let mut served = vec![];
    while let Some(rq) = elevator.dispatch(*now) {
        assert_eq!(elevator.dispatch(*now), None, "the device takes one at a time");
        *now = *now + SERVICE;
        served.push(elevator.complete(*now, rq).user_data.to_vec());
        elevator.check();
    }
    assert_eq!((elevator.queued(), elevator.in_flight()), (0, 0));
    served
}

#[test]
fn its_own_order_is_what_is_dispatched() {
    let (mut elevator, ioc) = elevator();
    let mut now = Instant::START;
    for sector in [500, 100, 900, 300, 700] {
        assert!(matches!(elevator.submit(now, read(ioc, sector)), Submitted::Queued(_)));
    }
    let downwards = [900, 700, 500, 300, 100].map(|sector| vec![sector]);
    assert_eq!(serve(&mut elevator, &mut now), downwards);
}

/// 500 ms are over when 50 requests of 10 ms were served. The lowest of 60 waits for that.
#[test]
fn its_tunable_decides_who_has_waited_too_long() {
    let order = |patience| {
        let (mut elevator, ioc) = elevator();
        assert_eq!(elevator.tunable("patience"), Ok(500));
        elevator.set_tunable(Instant::START, "patience", patience).expect("it has that");
        for sector in (0..60).map(|n| 100 * n) {
            let _queued = elevator.submit(Instant::START, read(ioc, sector));
        }
        serve(&mut elevator, &mut { Instant::START })
    };
    let patient = order(60_000);
    assert_eq!(patient.iter().position(|bios| bios == &[0]), Some(59));
    let as_it_comes = order(500);
    assert_eq!(as_it_comes.iter().position(|bios| bios == &[0]), Some(50));
}

/// Behind, before, and in between: three bios become part of one request, and two requests one.
#[test]
fn bios_and_requests_merge_in_it() {
    let (mut elevator, ioc) = elevator();
    let mut now = Instant::START;
    let Submitted::Queued(low) = elevator.submit(now, read(ioc, 100)) else { panic!("it is new") };
    let Submitted::Queued(_) = elevator.submit(now, read(ioc, 116)) else { panic!("it is new") };
    let Submitted::Queued(_) = elevator.submit(now, read(ioc, 800)) else { panic!("it is new") };
    let merged = |kind| Submitted::Merged { into: low, kind };
    assert_eq!(elevator.submit(now, read(ioc, 92)), merged(MergeKind::Front));
    assert_eq!(elevator.submit(now, read(ioc, 108)), merged(MergeKind::Back));
    elevator.check();
    assert_eq!(elevator.request(low).sectors, SectorCount(32), "with the one behind the gap");
    assert_eq!(serve(&mut elevator, &mut now), [vec![800], vec![100, 92, 108, 116]]);
}

/// Half of its work is taken from it by another of its kind, in flight.
#[test]
fn it_is_switched_to_and_gives_up_all_that_it_holds() {
    let (mut elevator, ioc) = elevator();
    let mut now = Instant::START;
    for sector in [100, 300, 500] {
        let _queued = elevator.submit(now, read(ioc, sector));
    }
    let rq = elevator.dispatch(now).expect("three wait");
    let old = elevator.switch(now, Downward::new());
    assert!(!old.has_work());
    elevator.requeue(now, rq);
    assert_eq!(serve(&mut elevator, &mut now), [[500], [300], [100]]);
}
