//! A scheduler that is not of this crate, written with public names alone: it is driven to the end
//! of its work, its order is what is dispatched, and merging works with it.

use paternoster::scheduler::{
    Cx, Fifo, InsertAt, Scheduler, SortList, WaitingRequests, tunable_methods, tunables,
};
use paternoster::{
    Arrival, Bio, Device, Driver, Elevator, Instant, IoPrio, IocId, MergeKind, Nanos, NoTrace,
    RequestId, Sector, SectorCount,
};

tunables! {
    struct Tunables of "downward";
    patience: "ms", 500, 0, 60_000, "After how long a request is served out of sector order.";
}

/// From the highest sector to the lowest, then again; whoever has waited too long goes first.
struct Downward {
    waiting: WaitingRequests,
    tunables: Tunables,
    trace: NoTrace,
}

impl Scheduler for Downward {
    type Trace = NoTrace;

    fn name(&self) -> &'static str {
        "downward"
    }

    fn insert(&mut self, cx: &mut Cx, rq: RequestId, _: InsertAt) {
        let patience = Nanos::from_millis(self.tunables.patience.cast_unsigned());
        self.waiting.insert(&mut cx.requests, rq, cx.now + patience);
    }

    fn find_front_merge(&mut self, cx: &Cx, bio: &Bio) -> Option<RequestId> {
        self.waiting.find_front(&cx.requests, bio)
    }

    fn request_merged(&mut self, cx: &mut Cx, rq: RequestId, _: MergeKind) {
        self.waiting.reposition(&mut cx.requests, rq);
    }

    fn requests_merged(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        if cx.requests[absorbed].is_queued() {
            self.waiting.absorb(&mut cx.requests, rq, absorbed);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        let below = self.waiting.next().or_else(|| self.waiting.iter(&cx.requests).last());
        let rq = self.waiting.overdue(&cx.requests, cx.now).or(below)?;
        let next = SortList::before(&cx.requests, rq);
        self.waiting.remove(&mut cx.requests, rq, next);
        Some(rq)
    }

    fn has_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    tunable_methods!(tunables: Tunables);

    fn trace(&mut self) -> &mut NoTrace {
        &mut self.trace
    }
}

fn downward() -> Downward {
    let (waiting, tunables) = (WaitingRequests::default(), Tunables::with_defaults());
    Downward { waiting, tunables, trace: NoTrace }
}

/// What the device takes for a request.
const SERVICE: Nanos = Nanos::from_millis(10);

fn driver() -> (Driver<Downward>, IocId) {
    let mut elevator = Elevator::new(downward(), Device::disk(1), Instant::START);
    let root = elevator.groups().root();
    let ioc = elevator.add_io_context(Instant::START, IoPrio::default(), root);
    (Driver::new(elevator), ioc)
}

/// A read of 8 sectors, which goes by its sector.
fn read(ioc: IocId, sector: u64) -> Bio {
    Bio::read(ioc, Sector(sector), SectorCount(8)).with_user_data(sector)
}

/// What starts at `now`, if anything does.
fn dispatch(driver: &mut Driver<Downward>, now: Instant) -> Option<RequestId> {
    let rq = driver.dispatch_next(now)?;
    assert_eq!(driver.dispatch_next(now), None, "the device takes one at a time");
    Some(rq)
}

/// Serves all that waits, one at a time: the bios of each request.
fn serve(driver: &mut Driver<Downward>) -> Vec<Vec<u64>> {
    let (mut now, mut served) = (Instant::START, vec![]);
    while let Some(rq) = dispatch(driver, now) {
        now = now + SERVICE;
        served.push(driver.complete(now, rq).to_vec());
        driver.check();
    }
    assert_eq!((driver.elevator().queued(), driver.elevator().in_flight()), (0, 0));
    served
}

#[test]
fn its_own_order_is_what_is_dispatched() {
    let (mut driver, ioc) = driver();
    for sector in [500, 100, 900, 300, 700] {
        let arrival = driver.submit(Instant::START, read(ioc, sector));
        assert!(matches!(arrival, Arrival::Queued(_)));
    }
    assert_eq!(serve(&mut driver), [[900], [700], [500], [300], [100]]);
}

/// 500 ms are over when 50 requests of 10 ms were served. The lowest of 60 waits for that.
#[test]
fn its_tunable_decides_who_has_waited_too_long() {
    let order = |patience| {
        let (mut driver, ioc) = driver();
        driver.administer(|elevator| {
            assert_eq!(elevator.tunable("patience"), Ok(500));
            elevator.set_tunable(Instant::START, "patience", patience).expect("it has that");
        });
        for sector in (0..60).map(|n| 100 * n) {
            driver.submit(Instant::START, read(ioc, sector));
        }
        serve(&mut driver)
    };
    let patient = order(60_000);
    assert_eq!(patient.iter().position(|bios| bios == &[0]), Some(59));
    let as_it_comes = order(500);
    assert_eq!(as_it_comes.iter().position(|bios| bios == &[0]), Some(50));
}

/// Behind, before, and in between: three bios become part of one request, and two requests one.
#[test]
fn bios_and_requests_merge_in_it() {
    let (mut driver, ioc) = driver();
    let mut submit = |sector| driver.submit(Instant::START, read(ioc, sector));
    let Arrival::Queued(low) = submit(100) else { panic!("it is new") };
    assert!(matches!(submit(116), Arrival::Queued(_)));
    assert!(matches!(submit(800), Arrival::Queued(_)));
    assert_eq!(submit(92), Arrival::Merged { into: low, kind: MergeKind::Front });
    assert_eq!(submit(108), Arrival::Merged { into: low, kind: MergeKind::Back });
    driver.check();
    let sectors = driver.elevator().request(low).sectors;
    assert_eq!(sectors, SectorCount(32), "with the one behind the gap");
    assert_eq!(serve(&mut driver), [vec![800], vec![100, 92, 108, 116]]);
}

/// Half of its work is taken from it by another of its kind, in flight.
#[test]
fn it_is_switched_to_and_gives_up_all_that_it_holds() {
    let (mut driver, ioc) = driver();
    for sector in [100, 300, 500] {
        driver.submit(Instant::START, read(ioc, sector));
    }
    let rq = dispatch(&mut driver, Instant::START).expect("three wait");
    let old = driver.administer(|elevator| elevator.switch(Instant::START, downward()));
    assert!(!old.has_work());
    assert_eq!(dispatch(&mut driver, Instant::START), None, "the device is full");
    driver.requeue(Instant::START, rq);
    assert_eq!(serve(&mut driver), [[500], [300], [100]]);
}

tunables! {
    struct NoTunables of "in-order";
    unused: "count", 0, 0, 0, "Nothing.";
}

/// In order of arrival: what waits is in no sort list.
struct InOrder {
    fifo: Fifo,
    tunables: NoTunables,
    trace: NoTrace,
}

impl Scheduler for InOrder {
    type Trace = NoTrace;

    fn name(&self) -> &'static str {
        "in-order"
    }

    fn insert(&mut self, cx: &mut Cx, rq: RequestId, _: InsertAt) {
        self.fifo.push(&mut cx.requests, rq, cx.now);
    }

    fn requests_merged(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        if cx.requests[absorbed].is_queued() {
            self.fifo.absorb(&mut cx.requests, rq, absorbed);
        }
    }

    fn dispatch(&mut self, cx: &mut Cx) -> Option<RequestId> {
        self.fifo.pop(&mut cx.requests)
    }

    fn has_work(&self) -> bool {
        !self.fifo.is_empty()
    }

    tunable_methods!(tunables: NoTunables);

    fn trace(&mut self) -> &mut NoTrace {
        &mut self.trace
    }
}

/// A request that has grown looks for its neighbours, of which it has none.
#[test]
fn bios_merge_in_one_without_a_sort_list() {
    let tunables = NoTunables::with_defaults();
    let in_order = InOrder { fifo: Fifo::default(), tunables, trace: NoTrace };
    let mut elevator = Elevator::new(in_order, Device::disk(1), Instant::START);
    let root = elevator.groups().root();
    let ioc = elevator.add_io_context(Instant::START, IoPrio::default(), root);
    let mut driver = Driver::new(elevator);
    let mut submit = |sector| driver.submit(Instant::START, read(ioc, sector));
    let Arrival::Queued(first) = submit(100) else { panic!("it is new") };
    assert_eq!(submit(108), Arrival::Merged { into: first, kind: MergeKind::Back });
    assert_eq!(submit(92), Arrival::Merged { into: first, kind: MergeKind::Front });
    assert!(matches!(submit(500), Arrival::Queued(_)));
    driver.check();
    let rq = driver.dispatch_next(Instant::START).expect("two wait");
    assert_eq!(driver.elevator().request(rq).user_data(), [100, 108, 92]);
}
