//! What is learned on devices whose true prices are known.

use super::estimate::{MILLION, Mean, step};
use super::learning::Moved;
use super::*;
use crate::time::Nanos;
use crate::trace::PriceOf;
use crate::wfq::window::Closed;

/// A tenant whose requests are all of a kind: the class and the sectors.
type Kind = (Class, u32);

const SMALL: Kind = (Class::Read, 8);

/// Tenants of one weight on a device that is saturated, window by window.
struct Device {
    pricing: Pricing,
    tenants: Vec<Kind>,
    /// What requests cost the device.
    truth: Prices,
    /// By how many ppm the speed of a window varies at most.
    noise: i64,
    draws: u64,
    number: u64,
    moved: Vec<Moved>,
}

impl Device {
    /// With U = 16 KiB at first.
    fn new(tenants: &[Kind], op_bytes: u64, write: u64) -> Self {
        let truth = Rates { op_bytes, write: write * ONE / 100, fua: ONE };
        Self {
            pricing: Pricing::set_by(&Tunables::with_defaults()),
            tenants: tenants.to_vec(),
            truth: Prices::new(CostMode::Learn, truth),
            noise: 0,
            draws: 1,
            number: 0,
            moved: vec![],
        }
    }

    /// Each tenant gets the same charge; what the device takes for that follows.
    fn window(&mut self) -> Closed {
        let prices = self.pricing.of_window(self.number);
        let mut tallies = Tallies::default();
        for &(class, sectors) in &self.tenants {
            let mut one = Tallies::default();
            one.count(class, SectorCount(sectors));
            let requests = 100_000_000_000_000 / prices.cost(&one);
            tallies.add(class, u64::try_from(requests).expect("units"), sectors);
        }
        let speed = self.pricing.base().cost(&tallies) * 1_000_000_000 / self.truth.cost(&tallies);
        self.draws = self.draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let drawn = i64::try_from(self.draws >> 44).expect("20 bits") * 2 - (1 << 20);
        let factor = MILLION + self.noise * drawn / (1 << 20);
        let speed = i128::try_from(speed).expect("about 10⁹") * i128::from(factor) / 1_000_000;
        closed(self.number, u64::try_from(speed).expect("it is positive"), tallies)
    }

    /// Takes a window; the next block is free of trials or not.
    fn take(&mut self, closed: &Closed, free: bool) {
        self.moved.extend(self.pricing.window_closed(closed));
        self.number += 1;
        if self.number.is_multiple_of(8) {
            self.pricing.begin_block(free);
        }
    }

    fn blocks(&mut self, count: u32) -> &mut Self {
        for _ in 0..8 * count {
            let closed = self.window();
            self.take(&closed, true);
        }
        self
    }

    /// U in parts of so many bytes, in percent.
    fn percent_of(&self, bytes: u64) -> u64 {
        self.pricing.op_bytes() * 100 / bytes
    }
}

fn closed(number: u64, speed: u64, tallies: Tallies) -> Closed {
    Closed {
        number,
        completions: 100,
        speed,
        tallies,
        mixed: true,
        latency: Nanos::from_micros(100),
        in_device_milli: 16_000,
        starved: false,
        bursty: false,
        measured: Nanos::from_millis(2),
        longest_gap: Nanos::ZERO,
        length: Nanos::from_millis(3),
    }
}

/// A mean of blocks that vary by `deviation` either way, in turns.
fn mean(value: i64, deviation: i64, blocks: u32) -> Mean {
    let mut mean = Mean::default();
    for block in 0..blocks {
        mean.take(if block % 2 == 0 { value + deviation } else { value - deviation });
    }
    mean
}

/// Scenario 32. The standard error of 16 blocks is 0.002 / 4, with 15 degrees of freedom. Bytes are
/// too cheap by 0.2, as they are little of the cost; half of it is corrected.
#[test]
fn price_moves_by_half_of_an_error_that_is_sure() {
    let (rho, shift) = (mean(4_000, 2_000, 16), mean(-20_000, 0, 16));
    assert_eq!(step(&rho, &shift, 0).map(|step| step.factor), Some(1_100_000));
    // Where half of the cost is of bytes, 0.2 of it are 1.1 / 0.9 of the price.
    assert_eq!(step(&rho, &shift, 500_000).map(|step| step.factor), Some(1_111_111));
}

/// 1.5 standard errors are asked for, and four for half of the error. Of 16 blocks 13 count: with a
/// deviation of 0.005 there are 2.8, with 0.018 0.8.
#[test]
fn price_moves_less_or_not_at_all_where_it_may_be_chance() {
    let shift = mean(-20_000, 0, 16);
    let factor = |deviation| step(&mean(4_000, deviation, 16), &shift, 0).map(|step| step.factor);
    assert_eq!(factor(5_000), Some(1_030_000));
    assert_eq!(factor(18_000), None);
}

/// Scenario 33.
#[test]
fn tenants_that_are_alike_teach_nothing() {
    let mut device = Device::new(&[SMALL, SMALL], 100 << 10, 300);
    device.noise = 50_000;
    device.blocks(200);
    assert_eq!(device.moved, []);
    assert_eq!(device.pricing.op_bytes(), 16 << 10);
    assert!(!device.pricing.goes_first(true) && !device.pricing.wants_depth());
}

#[test]
fn price_of_bytes_is_found_from_either_side() {
    for (truth, sectors) in [(2 << 10, 128), (8 << 10, 128), (50 << 10, 128), (400 << 10, 2048)] {
        let mut device = Device::new(&[SMALL, (Class::Read, sectors)], truth, 100);
        device.noise = 20_000;
        device.blocks(100);
        let percent = device.percent_of(truth);
        assert!((85..118).contains(&percent), "{truth}: {percent} %");
    }
}

/// A device limited by requests alone: bytes cost nothing, so U goes up to its bound.
#[test]
fn bytes_that_cost_nothing_are_charged_next_to_nothing() {
    let mut device = Device::new(&[SMALL, (Class::Read, 2048)], 1 << 30, 100);
    device.blocks(30);
    assert!(device.pricing.op_bytes() > 2 << 20, "{}", device.pricing.op_bytes());
    assert!(
        device.moved.iter().all(|moved| moved.which == PriceOf::Bytes && moved.to > moved.from)
    );
}

/// Bytes cost nothing, but U cannot be more than 4 MiB: a read of 8 MiB is charged 3 and takes 1,
/// and of all errors that one stays the surest. What is charged 1 takes 1 of small reads and ⅓ of
/// those, ⅔ on average. A write takes 2, so it is to be charged 3 times a small read.
#[test]
fn price_at_its_bound_does_not_keep_others_from_being_learned() {
    let tenants = [SMALL, (Class::Read, 16 << 10), (Class::Write, 8)];
    let mut device = Device::new(&tenants, 1 << 30, 200);
    device.blocks(40);
    assert_eq!(device.pricing.op_bytes(), 4 << 20);
    let [write, _] = device.pricing.factors();
    assert!((285..315).contains(&write), "{write} %");
}

/// A write of 4 KiB takes 5 times a read of 1 MiB. Of two tenants only that can be known. As U is
/// 16 KiB at first, a read costs 65 op, so the factor of writes comes to its bound before it is
/// right; then U goes up until it is.
#[test]
fn price_is_learned_by_another_one_where_its_own_is_at_its_bound() {
    let (large, write) = ((Class::Read, 2048), (Class::Write, 8));
    let mut device = Device::new(&[large, write], 1 << 30, 500);
    device.noise = 20_000;
    device.blocks(40);
    assert_eq!(device.pricing.factors()[0], 6400);
    let cost = |(class, sectors)| {
        let mut one = Tallies::default();
        one.count(class, SectorCount(sectors));
        device.pricing.base().cost(&one)
    };
    let percent = cost(write) * 100 / cost(large);
    assert!((450..550).contains(&percent), "{percent} %");
}

/// Windows vary by 30 % for other reasons. Of 500 blocks few say anything by chance, and no price
/// wanders far.
#[test]
fn price_that_is_right_stays_where_much_is_chance() {
    let mut device = Device::new(&[SMALL, (Class::Read, 128)], 16 << 10, 100);
    device.noise = 300_000;
    for _ in 0..50 {
        device.blocks(10);
        let percent = device.percent_of(16 << 10);
        assert!((50..200).contains(&percent), "{percent} %");
    }
}

/// One window in eight says nothing, or a trial runs. Then the depth may be tried at once; before
/// that four blocks go first.
#[test]
fn block_with_a_trial_or_an_invalid_window_does_not_count() {
    let mut device = Device::new(&[SMALL, (Class::Read, 128)], 100 << 10, 100);
    device.blocks(1);
    assert!(device.pricing.goes_first(false));
    for _ in 0..800 {
        let window = device.window();
        let starved = device.number % 8 == 5;
        let free = device.number < 800;
        device.take(&Closed { starved, ..window }, free);
    }
    assert!(!device.pricing.goes_first(true));
    for _ in 0..800 {
        let window = device.window();
        device.take(&window, false);
    }
    assert_eq!((device.pricing.blocks(), device.moved.len()), (0, 0));
    assert!(device.pricing.goes_first(false));
    device.blocks(21);
    assert_eq!(device.pricing.blocks(), 20);
    assert!(device.pricing.op_bytes() > 50 << 10);
}

/// After 16 blocks without a move one of four teaches.
#[test]
fn prices_that_stand_still_are_looked_at_less_often() {
    let mut device = Device::new(&[SMALL, (Class::Read, 128)], 16 << 10, 100);
    device.blocks(1 + 16 + 40);
    assert_eq!((device.pricing.blocks(), device.moved.len()), (16 + 10, 0));
}

/// U = 512, ω = 64, both dearer; then as cheap as can be.
#[test]
fn nothing_overflows_at_extreme_prices() {
    let rates = Rates { op_bytes: 512, write: 64 * ONE, fua: 64 * ONE };
    let dear = Prices::new(CostMode::Fixed, rates).dithered(Signs::of_window(0));
    let rates = Rates { op_bytes: 4 << 20, write: ONE / 16, fua: ONE / 16 };
    let cheap = Prices::new(CostMode::Bytes, rates).dithered(Signs::of_window(5));
    let mut tallies = Tallies::default();
    for class in [Class::Read, Class::Write, Class::Fua] {
        tallies.add(class, 1000, u32::MAX);
    }
    // 2³² sectors of one op each, 1.25 times as dear: 2³² × 2²⁰ × 1.25, and writes 80 times that.
    let one = (u128::from(u32::MAX) * (5 << 18)) + (1 << 20);
    assert_eq!(dear.cost(&tallies), 1000 * one * 161);
    assert!(cheap.cost(&tallies) > 3000);
    let mut empty = Device::new(&[SMALL, (Class::Write, u32::MAX)], 512, 6400);
    empty.noise = 900_000;
    empty.blocks(100);
    assert!((512..=4 << 20).contains(&empty.pricing.op_bytes()));
}
