//! What a tenant keeps of the disk beside neighbours that talk it away: idle time, tiny requests,
//! many connections. In virtual time, as the server has it, with the tunables that fit the device.
//!
//! The disk is the demo's: 4 servers of 200 µs, 20,000 requests a second, given 8 at once. A tenant
//! is *entitled* to its weight's part of what the disk does when it never stands still, whatever
//! the disk then really does.

use paternoster::{Nanos, Sector};
use paternoster_lab::closed_loop::{Turnaround, Virtual};
use paternoster_model::{Kind, Room, ServersParameters, Service};
use paternoster_scene::{Outcome, Scene, Tenant, World as _};

/// What the disk does when it never stands still, a second.
const PEAK: f64 = 20_000.0;
/// Of what it is entitled to, in percent.
const KEPT: f64 = 95.0;
const FAIR: [&str; 2] = ["cfq", "bfq"];
/// What the attackers think before each request, in microseconds.
const THOUGHTS: [u64; 6] = [0, 30, 100, 300, 700, 1500];

/// 64 requests of 4 KiB outstanding.
fn greedy() -> Tenant {
    Tenant::reads(100, 1, 64)
}

/// One request outstanding on each connection, and that long a thought before the next.
fn thinking(connections: u32, micros: u64) -> Tenant {
    Tenant { think: Nanos::from_micros(micros), ..Tenant::reads(100, connections, 1) }
}

/// The same, where each connection ends that long after its only reply.
fn reconnecting(connections: u32, think: u64, ends: u64) -> Tenant {
    Tenant { reconnects: Some(Nanos::from_micros(ends)), ..thinking(connections, think) }
}

/// The same tenant that reads, writes, writes zeroes, and discards.
fn each_op(tenant: &Tenant) -> [Tenant; 4] {
    let write = Tenant { write_percent: 100, ..tenant.clone() };
    let zero = Tenant { zeroes: true, ..write.clone() };
    [tenant.clone(), write, zero, Tenant { trim_percent: 100, ..tenant.clone() }]
}

/// As the server has it; the way of a reply to its client and of the next request to the disk takes
/// 30 µs.
fn world() -> Virtual {
    let turnaround = Turnaround { least: Nanos::from_micros(30), mean_us: 0.0 };
    Virtual { served: true, turnaround, ..Virtual::default() }
}

/// What becomes of tenants under a scheduler, each in a group of its own.
fn play(world: Virtual, scheduler: &str, tenants: &[Tenant]) -> Outcome {
    play_named(world, scheduler, tenants, &["1", "2", "3", "4", "5", "6", "7", "8"])
}

/// The same with these groups. Each tenant has 64 MiB.
fn play_named(world: Virtual, scheduler: &str, tenants: &[Tenant], names: &[&str]) -> Outcome {
    assert!(tenants.len() <= names.len(), "each has a name");
    let tenants = tenants.iter().zip(names);
    let tenants: Vec<_> = tenants.map(|(tenant, name)| tenant.clone().named(*name)).collect();
    let service = Service::constant(Nanos::from_micros(200));
    let room = Room { depth: 8, end: Sector((1 << 17) * tenants.len() as u64) };
    let disk = ServersParameters::new(4, service).with_room(room.depth, room.end);
    // It warms up for a second: until services and estimates have settled.
    let scene = Scene::new(Kind::Servers(disk), tenants);
    let scheduler = scheduler.parse().expect("it is one");
    let mut world = world;
    world.play(&scene, &scheduler, 1).expect("it is played")
}

/// What a tenant gets, in requests a second.
#[allow(clippy::cast_precision_loss, reason = "some ten thousands")]
fn rate(outcome: &Outcome, tenant: usize) -> f64 {
    outcome.tenants[tenant].requests as f64 / outcome.seconds
}

/// What the first tenant gets of what it is entitled to, in percent.
fn kept(outcome: &Outcome) -> f64 {
    100.0 * rate(outcome, 0) / (PEAK * outcome.entitled(&outcome.tenants[0]))
}

/// That beside an attacker of equal weight.
fn kept_beside(scheduler: &str, attacker: &Tenant) -> f64 {
    kept(&play(world(), scheduler, &[greedy(), attacker.clone()]))
}

fn neighbour_keeps_its_part_beside(attackers: &[Tenant]) {
    for scheduler in FAIR {
        for attacker in attackers {
            let kept = kept_beside(scheduler, attacker);
            assert!(kept >= KEPT, "{scheduler}: {kept} % beside {attacker:?}");
        }
    }
}

/// The disk idled for them, and nobody was charged for that: a neighbour kept 9 %.
#[test]
fn who_thinks_before_each_request_pays_for_the_time_for_which_the_disk_idles() {
    neighbour_keeps_its_part_beside(&THOUGHTS.map(|think| each_op(&thinking(1, think))).concat());
    let several = |think| [2, 4, 16].map(|connections| thinking(connections, think));
    neighbour_keeps_its_part_beside(&THOUGHTS.map(several).concat());
    let deep = |think| [2, 8].map(|depth| Tenant { depth, ..thinking(1, think) });
    neighbour_keeps_its_part_beside(&THOUGHTS.map(deep).concat());
}

/// Each connection is an I/O context of its own, of whose I/O pattern nothing was known, and ended
/// its service uncharged: a neighbour kept 50 %.
#[test]
fn who_reconnects_for_each_request_pays_for_the_time_for_which_the_disk_idles() {
    let closing_early = [(100, 20), (100, 120), (300, 300), (930, 950)];
    let closing_late = [(100, 140), (100, 350), (300, 350), (300, 5000)];
    for connections in [1, 4, 8] {
        let attacker = |(think, ends)| reconnecting(connections, think, ends);
        neighbour_keeps_its_part_beside(&closing_early.map(attacker));
        neighbour_keeps_its_part_beside(&closing_late.map(attacker));
    }
}

#[test]
fn attackers_of_more_weight_or_number_take_no_more_than_their_parts() {
    let thinker = |weight| Tenant { weight, ..thinking(1, 300) };
    let attacks = [
        vec![thinker(400)],
        vec![thinker(1000)],
        vec![thinker(100), thinker(100)],
        vec![thinker(100), reconnecting(1, 100, 350), Tenant::reads(200, 8, 8)],
    ];
    for scheduler in FAIR {
        for attackers in &attacks {
            let tenants = [vec![greedy()], attackers.clone()].concat();
            let kept = kept(&play(world(), scheduler, &tenants));
            assert!(kept >= KEPT, "{scheduler}: {kept} % beside {attackers:?}");
        }
    }
}

/// Idling is what gives it its share at all.
#[test]
fn heavy_tenant_with_one_request_outstanding_gets_its_part_of_the_rate_that_it_has_alone() {
    for scheduler in FAIR {
        for think in [0, 30, 100, 300, 700] {
            let heavy = Tenant { weight: 400, ..thinking(1, think) };
            let alone = rate(&play(world(), scheduler, std::slice::from_ref(&heavy)), 0);
            let beside = rate(&play(world(), scheduler, &[greedy(), heavy]), 1);
            let part = 100.0 * beside / (alone * 400.0 / 500.0);
            assert!(part >= KEPT, "{scheduler}, {think} µs: {part} % of {alone}");
        }
    }
}

/// BFQ counts sectors, of which these have one each: a neighbour kept 22 %.
#[test]
fn tiny_requests_are_charged_what_each_costs_the_disk() {
    let tiny = Tenant { block: 512, ..greedy() };
    let attackers = [
        tiny.clone(),
        Tenant { connections: 16, ..tiny.clone() },
        Tenant { write_percent: 100, ..tiny.clone() },
        Tenant { block: 512, ..thinking(1, 100) },
    ];
    neighbour_keeps_its_part_beside(&attackers);
    let as_in_linux = kept_beside("bfq:least_charge=0", &tiny);
    assert!(as_in_linux < 30.0, "as in Linux it keeps {as_in_linux} %");
    // Between the two: 4 sectors against 8.
    let between = kept_beside("bfq:least_charge=4", &tiny);
    assert!((60.0..75.0).contains(&between), "{between} %");
}

#[test]
fn connections_and_requests_outstanding_buy_nothing() {
    let attackers = [
        Tenant::reads(100, 16, 64),
        Tenant::reads(100, 8, 8),
        Tenant::reads(100, 2, 4),
        Tenant::reads(100, 4, 2),
        Tenant { trim_percent: 50, ..Tenant::reads(100, 2, 64) },
        Tenant { block: 1 << 20, ..greedy() },
    ];
    neighbour_keeps_its_part_beside(&attackers);
    // Clients of two kinds in one group, of which the weight counts once.
    let trims = |tenant: Tenant| Tenant { trim_percent: 100, ..tenant };
    for [one, other] in [[trims(greedy()), greedy()], [trims(thinking(8, 100)), thinking(1, 300)]] {
        let same_group = Tenant { light: true, ..other };
        for scheduler in FAIR {
            let tenants = [greedy(), one.clone(), same_group.clone()];
            let kept = kept(&play_named(world(), scheduler, &tenants, &["victim", "a", "a"]));
            assert!(kept >= KEPT, "{scheduler}: {kept} % beside {tenants:?}");
        }
    }
    for scheduler in FAIR {
        // The last has no more outstanding than the device takes: while the device idles for it, it
        // pays.
        for (attacker, least) in attackers[..4].iter().zip([KEPT, KEPT, KEPT, 75.0]) {
            let part = 100.0 * rate(&play(world(), scheduler, &[greedy(), attacker.clone()]), 1);
            let part = part / (PEAK / 2.0);
            assert!(part >= least, "{scheduler}: {part} % for {attacker:?}");
        }
    }
}

/// Linux charges a slice from its first completion on. That is little of a slice that is over with
/// its second: a neighbour kept 33 %.
#[test]
fn short_slices_are_charged_whole_under_cfq_where_it_charges_time() {
    let rotates = Virtual { rotational: Some(true), ..world() };
    let tenants = [greedy(), Tenant::reads(100, 8, 8)];
    let whole = kept(&play(rotates, "cfq", &tenants));
    assert!((KEPT..=105.0).contains(&whole), "{whole} %");
    let as_in_linux = kept(&play(rotates, "cfq:charge_whole_turn=0", &tenants));
    assert!(as_in_linux < 50.0, "{as_in_linux} % as in Linux");
}

#[test]
fn with_the_rules_of_linux_waiting_is_free() {
    for scheduler in ["cfq:charge_whole_turn=0", "bfq:charge_waiting=0"] {
        let kept = kept_beside(scheduler, &thinking(1, 300));
        assert!(kept < 25.0, "{scheduler}: {kept} % as in Linux");
    }
}

/// Tenants as a generator draws them, all with more outstanding than the disk takes.
fn drawn(seed: u64) -> Vec<Tenant> {
    let mut state = seed;
    let mut draw = |from: u32, to: u32| {
        // Knuth's generator of 64 bits.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        from + u32::try_from((state >> 33) % u64::from(to - from + 1)).expect("below a u32")
    };
    let tenants = draw(2, 8);
    let mut tenant = || {
        let (weight, connections, depth) = (draw(50, 800), draw(1, 16), draw(8, 32));
        let write_percent = 100 * draw(0, 1);
        Tenant { write_percent, ..Tenant::reads(weight, connections, depth) }
    };
    (0..tenants).map(|_| tenant()).collect()
}

#[test]
fn tenants_that_ask_all_the_time_get_their_shares() {
    for scheduler in FAIR {
        for seed in 0..10 {
            let outcome = play(world(), scheduler, &drawn(seed));
            let error = outcome.share_error();
            assert!(error <= 0.05, "{scheduler}, {seed}: {error} of a share is missing");
        }
    }
}
