//! How long it takes until two groups, of weights 1 : 3, have the shares that these are worth: the
//! figures of the crate's documentation.

use paternoster::{
    AnyScheduler, Arrival, Bio, Device, Driver, Elevator, Instant, IoPrio, Medium, Nanos, NoTrace,
    RequestId, SchedulerKind, Sector, SectorCount, Weight,
};

/// What the device takes for a read: 20,000 a second.
const SERVICE: Nanos = Nanos::from_micros(50);
/// Reads that each group keeps outstanding.
const OUTSTANDING: u64 = 64;

type AnyElevator = Elevator<AnyScheduler<NoTrace>>;
type AnyDriver = Driver<AnyScheduler<NoTrace>>;

fn linux(kind: SchedulerKind) -> AnyElevator {
    Elevator::new(AnyScheduler::new(kind, NoTrace), Device::solid_state(1), Instant::START)
}

fn fitted(kind: SchedulerKind) -> AnyElevator {
    let scheduler = AnyScheduler::new(kind, NoTrace);
    Elevator::fitted(scheduler, Device::solid_state(1), Medium::NotRotational, Instant::START)
}

/// The part, in percent, that the group of weight 300 has had of all reads when each of `millis`
/// has passed. The one of weight 100 came first.
fn parts_after(mut elevator: AnyElevator, millis: &[u64]) -> Vec<u64> {
    let mut now = Instant::START;
    let root = elevator.groups().root();
    let tenants = [100, 300].map(|weight| {
        let group = elevator.add_group(now, root, Weight::new(weight).expect("a weight"));
        elevator.add_io_context(now, IoPrio::default(), group)
    });
    let mut driver = Driver::new(elevator);
    let mut next = 0;
    let mut read = |driver: &mut AnyDriver, now, tenant: usize| {
        next += 1;
        let sector = Sector(next * 7919 % 100_003 * 64);
        let bio = Bio::read(tenants[tenant], sector, SectorCount(8)).with_user_data(tenant as u64);
        assert!(matches!(driver.submit(now, bio), Arrival::Queued(_)), "far from others");
    };
    for _ in 0..OUTSTANDING {
        read(&mut driver, now, 0);
        read(&mut driver, now, 1);
    }
    let mut done = [0, 0];
    let mut in_device: Option<RequestId> = None;
    let part_at = |end| {
        while now < end {
            driver.dispatch(now, |_, rq| in_device = Some(rq));
            if let Some(rq) = in_device.take() {
                now = now + SERVICE;
                let tenants = driver.complete(now, rq);
                driver.dispatch(now, |_, rq| in_device = Some(rq));
                for tenant in tenants {
                    let tenant = usize::try_from(tenant).expect("0 or 1");
                    done[tenant] += 1;
                    read(&mut driver, now, tenant);
                }
            } else {
                now = driver.poll_timeout().expect("it waits for something").max(now);
                driver.handle_timeout(now);
            }
        }
        100 * done[1] / (done[0] + done[1])
    };
    millis.iter().map(|&ms| Instant::START + Nanos::from_millis(ms)).map(part_at).collect()
}

#[test]
fn weights_show_within_a_tenth_of_a_second_where_the_tunables_fit_the_device() {
    let after = |kind| parts_after(fitted(kind), &[100, 300, 1000]);
    let cfq = after(SchedulerKind::Cfq);
    assert!((60..=80).contains(&cfq[0]), "cfq: {cfq:?}");
    assert!((68..=78).contains(&cfq[1]), "cfq: {cfq:?}");
    assert!((72..=76).contains(&cfq[2]), "cfq: {cfq:?}");
    let bfq = after(SchedulerKind::Bfq);
    assert!((70..=78).contains(&bfq[0]), "bfq: {bfq:?}");
    assert!((72..=76).contains(&bfq[2]), "bfq: {bfq:?}");
}

/// Its slices of 100 ms were taken for weights that do not work.
#[test]
fn with_the_defaults_of_linux_cfq_gives_the_first_tenth_of_a_second_to_one_group() {
    let cfq = parts_after(linux(SchedulerKind::Cfq), &[50, 100, 10_000]);
    assert_eq!(cfq[..2], [0, 0]);
    assert!((72..=76).contains(&cfq[2]), "{cfq:?}");
}
