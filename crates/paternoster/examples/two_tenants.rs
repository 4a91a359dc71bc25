//! What two tenants get of one device, under each scheduler.
//!
//! `silver` has weight 100 and keeps 96 reads outstanding; `gold` has weight 300 and keeps 32. A
//! scheduler without weights gives more to the tenant that asks for more.
//!
//! ```sh
//! cargo run --release --example two_tenants
//! ```

use std::collections::VecDeque;

use paternoster::{
    AnyScheduler, Bio, Device, Driver, Elevator, Instant, IoPrio, Medium, Nanos, NoTrace,
    RequestId, SchedulerKind, Sector, SectorCount, Weight,
};

fn main() {
    println!("scheduler    silver   gold");
    for kind in SchedulerKind::ALL {
        let [silver, gold] = shares(kind);
        println!("{:<11} {silver:5} %  {gold:3} %", kind.name());
    }
}

/// The part of all requests that each tenant was served in three seconds, in percent.
fn shares(kind: SchedulerKind) -> [u32; 2] {
    // Time is what we say it is. A server takes its clock's.
    let mut now = Instant::START;
    let end = now + Nanos::from_millis(3000);

    // A tenant is a group with a weight; an I/O context in it is a client that issues bios.
    let scheduler = AnyScheduler::new(kind, NoTrace);
    let device = Device::solid_state(4); // four requests at once
    let mut elevator = Elevator::fitted(scheduler, device, Medium::NotRotational, now);
    let clients = [100, 300].map(|weight| {
        let weight = Weight::new(weight).expect("1 to 1000");
        let group = elevator.add_group(now, elevator.groups().root(), weight);
        elevator.add_io_context(now, IoPrio::default(), group)
    });
    let mut driver = Driver::new(elevator);

    // Reads to come, by tenant, and requests that the device has, each with its time.
    let mut arrivals: VecDeque<(Instant, usize)> = VecDeque::new();
    arrivals.extend([(now, 0); 96]);
    arrivals.extend([(now, 1); 32]);
    let mut running: VecDeque<(Instant, RequestId)> = VecDeque::new();
    let mut position = 0;
    let mut served = [0, 0];

    while now < end {
        // What happens next: a request is done, a read arrives, or the scheduler's timeout ends.
        let done = running.front().map(|&(at, _)| at);
        let arrival = arrivals.front().map(|&(at, _)| at);
        let next = [done, arrival, driver.poll_timeout()].into_iter().flatten().min();
        now = next.expect("both tenants always ask").max(now);

        if done == Some(now) {
            let (_, rq) = running.pop_front().expect("it is done");
            for tenant in driver.complete(now, rq) {
                let tenant = usize::try_from(tenant).expect("0 or 1");
                served[tenant] += 1;
                arrivals.push_back((now, tenant)); // it asks again
            }
        } else if arrival == Some(now) {
            let (_, tenant) = arrivals.pop_front().expect("it arrives");
            position = (position + 7919 * 64) % 6_400_000; // far from others: none merge
            let bio = Bio::read(clients[tenant], Sector(position), SectorCount(8));
            driver.submit(now, bio.with_user_data(tenant as u64));
        } else {
            driver.handle_timeout(now);
        }

        // After each event start what may start. The device takes 200 µs for a request.
        driver.dispatch(now, |_, rq| running.push_back((now + Nanos::from_micros(200), rq)));
    }
    let all = served[0] + served[1];
    served.map(|count| (100 * count + all / 2) / all)
}

#[test]
fn tenants_get_what_their_weights_say_where_the_scheduler_has_weights() {
    for kind in SchedulerKind::ALL {
        let [silver, gold] = shares(kind);
        let by_weight = (24..=26).contains(&silver) && (74..=76).contains(&gold);
        assert_eq!(by_weight, kind.has_weights(), "{}: {silver} : {gold}", kind.name());
    }
}
