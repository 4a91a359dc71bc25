//! What a tenant keeps of the disk beside neighbours that talk it away: idle time, tiny requests,
//! many connections. In virtual time, with the tunables that fit the device.
//!
//! A tenant is *entitled* to its weight's part of what the disk does when it never stands still,
//! whatever the disk then really does.

mod disk;

use disk::{Client, Disk, GREEDY, PEAK, Tenant, tenant};
use paternoster::{Medium, Op, SchedulerKind};

/// Of what it is entitled to, in percent.
const KEPT: u64 = 95;
const FAIR: [SchedulerKind; 2] = [SchedulerKind::Cfq, SchedulerKind::Bfq];
/// What the attackers think before each request, in microseconds.
const THOUGHTS: [u64; 6] = [0, 30, 100, 300, 700, 1500];

fn disk(kind: SchedulerKind, tenants: &[Tenant]) -> Disk {
    Disk::new(kind, Medium::NotRotational, tenants)
}

/// What the first tenant gets of what it is entitled to, in percent.
fn kept(disk: Disk, tenants: &[Tenant]) -> u64 {
    let weights: u32 = tenants.iter().map(|tenant| tenant.weight).sum();
    let entitled = PEAK * u64::from(tenants[0].weight) / u64::from(weights);
    100 * disk.rates()[0] / entitled
}

/// That beside that attacker, of equal weight.
fn kept_beside(kind: SchedulerKind, attacker: &Tenant) -> u64 {
    let tenants = [tenant(100, 1, GREEDY), attacker.clone()];
    kept(disk(kind, &tenants), &tenants)
}

fn neighbour_keeps_its_part_beside(attackers: &[Tenant]) {
    for kind in FAIR {
        for attacker in attackers {
            let kept = kept_beside(kind, attacker);
            assert!(kept >= KEPT, "{kind}: {kept} % beside {attacker:?}");
        }
    }
}

/// The disk idled for them, and nobody was charged for that: a neighbour kept 9 %.
#[test]
fn who_thinks_before_each_request_pays_for_the_time_for_which_the_disk_idles() {
    let ops = [Op::Read, Op::Write, Op::WriteZeroes, Op::Discard];
    let thinking = |think| ops.map(|op| tenant(100, 1, Client::thinking(think).that_does(op)));
    neighbour_keeps_its_part_beside(&THOUGHTS.map(thinking).concat());
    let several = |think| [2, 4, 16].map(|n| tenant(100, n, Client::thinking(think)));
    neighbour_keeps_its_part_beside(&THOUGHTS.map(several).concat());
    let deep = |think| [2, 8].map(|n| tenant(100, 1, Client::thinking(think).outstanding(n)));
    neighbour_keeps_its_part_beside(&THOUGHTS.map(deep).concat());
}

/// Each connection is an I/O context of its own, of whose I/O pattern nothing was known, and ended
/// its service uncharged: a neighbour kept 50 %.
#[test]
fn who_reconnects_for_each_request_pays_for_the_time_for_which_the_disk_idles() {
    let closing_early = [(100, 20), (100, 120), (300, 300), (930, 950)];
    let closing_late = [(100, 140), (100, 350), (300, 350), (300, 5000)];
    for count in [1, 4, 8] {
        let reconnecting =
            |(think, closes)| tenant(100, count, Client::thinking(think).reconnecting(closes));
        neighbour_keeps_its_part_beside(&closing_early.map(reconnecting));
        neighbour_keeps_its_part_beside(&closing_late.map(reconnecting));
    }
}

#[test]
fn attackers_of_more_weight_or_number_take_no_more_than_their_parts() {
    let thinker = |weight| tenant(weight, 1, Client::thinking(300));
    let reconnecting = tenant(100, 1, Client::thinking(100).reconnecting(350));
    let attacks = [
        vec![thinker(400)],
        vec![thinker(1000)],
        vec![thinker(100), thinker(100)],
        vec![thinker(100), reconnecting, tenant(200, 8, GREEDY.outstanding(8))],
    ];
    for kind in FAIR {
        for attackers in &attacks {
            let tenants = [vec![tenant(100, 1, GREEDY)], attackers.clone()].concat();
            let kept = kept(disk(kind, &tenants), &tenants);
            assert!(kept >= KEPT, "{kind}: {kept} % beside {attackers:?}");
        }
    }
}

/// Idling is what gives it its share at all.
#[test]
fn heavy_tenant_with_one_request_outstanding_gets_its_part_of_the_rate_that_it_has_alone() {
    for kind in FAIR {
        for think in [0, 30, 100, 300, 700] {
            let heavy = tenant(400, 1, Client::thinking(think));
            let alone = disk(kind, std::slice::from_ref(&heavy)).rates()[0];
            let rates = disk(kind, &[tenant(100, 1, GREEDY), heavy]).rates();
            let part = alone * 400 / 500;
            assert!(100 * rates[1] >= KEPT * part, "{kind}, {think} µs: {rates:?}, alone {alone}");
        }
    }
}

/// BFQ counts sectors, of which these have one each: a neighbour kept 22 %.
#[test]
fn tiny_requests_are_charged_what_each_costs_the_disk() {
    let tiny = GREEDY.of_sectors(1);
    let attackers = [
        tenant(100, 1, tiny),
        tenant(100, 16, tiny),
        tenant(100, 1, tiny.that_does(Op::Write)),
        tenant(100, 1, Client::thinking(100).of_sectors(1)),
    ];
    neighbour_keeps_its_part_beside(&attackers);
    let kept = |least| {
        let tenants = [tenant(100, 1, GREEDY), attackers[0].clone()];
        kept(disk(SchedulerKind::Bfq, &tenants).set("least_charge", least), &tenants)
    };
    assert!(kept(0) < 30, "as in Linux it keeps {} %", kept(0));
    // Between the two: 4 sectors against 8.
    assert!((60..75).contains(&kept(4)), "{} %", kept(4));
}

#[test]
fn connections_and_requests_outstanding_buy_nothing() {
    let attackers = [
        tenant(100, 16, GREEDY),
        tenant(100, 8, GREEDY.outstanding(8)),
        tenant(100, 2, GREEDY.outstanding(4)),
        tenant(100, 4, GREEDY.outstanding(2)),
        tenant(100, 1, GREEDY.that_does(Op::Discard)).and(1, GREEDY),
        tenant(100, 8, Client::thinking(100).that_does(Op::Discard)).and(1, Client::thinking(300)),
        tenant(100, 1, GREEDY.of_sectors(2048)),
    ];
    neighbour_keeps_its_part_beside(&attackers);
    for kind in FAIR {
        // The last has no more outstanding than the device takes: while the device idles for it, it
        // pays.
        for (attacker, least) in attackers[..4].iter().zip([KEPT, KEPT, KEPT, 75]) {
            let rates = disk(kind, &[tenant(100, 1, GREEDY), attacker.clone()]).rates();
            let part = rates[1] * 100 / (PEAK / 2);
            assert!(part >= least, "{kind}: {part} % for {attacker:?}");
        }
    }
}

/// Linux charges a slice from its first completion on. That is little of a slice that is over with
/// its second: a neighbour kept 33 %.
#[test]
fn short_slices_are_charged_whole_under_cfq_where_it_charges_time() {
    let tenants = [tenant(100, 1, GREEDY), tenant(100, 8, GREEDY.outstanding(8))];
    let disk = || Disk::new(SchedulerKind::Cfq, Medium::Rotational, &tenants);
    let whole = kept(disk(), &tenants);
    assert!((KEPT..=105).contains(&whole), "{whole} %");
    let as_in_linux = kept(disk().set("charge_whole_turn", 0), &tenants);
    assert!(as_in_linux < 50, "{as_in_linux} % as in Linux");
}

#[test]
fn with_the_rules_of_linux_waiting_is_free() {
    let tenants = [tenant(100, 1, GREEDY), tenant(100, 1, Client::thinking(300))];
    for (kind, name) in FAIR.into_iter().zip(["charge_whole_turn", "charge_waiting"]) {
        let kept = kept(disk(kind, &tenants).set(name, 0), &tenants);
        assert!(kept < 25, "{kind}: {kept} % as in Linux");
    }
}

/// Tenants as a generator draws them, all with more outstanding than the disk takes.
fn drawn(seed: u64) -> Vec<Tenant> {
    let mut state = seed;
    let mut draw = |from: u64, to: u64| {
        // Knuth's generator of 64 bits.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        from + (state >> 33) % (to - from + 1)
    };
    let tenants = draw(2, 8);
    let mut tenant_of = || {
        let weight = u32::try_from(draw(50, 800)).expect("a weight");
        let connections = usize::try_from(draw(1, 16)).expect("some");
        let depth = u32::try_from(draw(8, 32)).expect("some");
        let op = [Op::Read, Op::Write][usize::from(draw(0, 1) == 1)];
        tenant(weight, connections, GREEDY.outstanding(depth).that_does(op))
    };
    (0..tenants).map(|_| tenant_of()).collect()
}

#[test]
fn tenants_that_ask_all_the_time_get_their_shares() {
    for kind in FAIR {
        for seed in 0..10 {
            let tenants = drawn(seed);
            let rates = disk(kind, &tenants).rates();
            let weights: u32 = tenants.iter().map(|tenant| tenant.weight).sum();
            let all: u64 = rates.iter().sum();
            for (rate, tenant) in rates.iter().zip(&tenants) {
                let share = 1000 * rate * u64::from(weights) / (all * u64::from(tenant.weight));
                assert!((950..=1050).contains(&share), "{kind}, {seed}: {share} for {tenant:?}");
            }
        }
    }
}
