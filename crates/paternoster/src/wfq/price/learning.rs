//! The prices that hold, and how they are learned: block by block, one price at a time.
//!
//! ```text
//!   windows of a block ──▶ ρ, f of each part ──▶ means ──▶ the surest error ──▶ a price moves
//!   (none invalid, no trial)
//! ```
//!
//! In a block that teaches the depth is a quarter more. At a depth a little too low for the device
//! a request costs a place in it, whatever its size; then bytes would seem to cost nothing, more of
//! them would be let in, and still less depth would do.

use super::dither::{Signs, is_plus};
use super::estimate::{LEAST_BLOCKS, MILLION, Mean, Step, is_shift, step};
use super::turns::{Turns, is_far};
use super::{ONE, Prices, Rates};
use crate::request::Request;
use crate::trace::PriceOf;
use crate::wfq::service::Units;
use crate::wfq::tunables::{CostMode, Tunables};
use crate::wfq::window::{BLOCK, Closed};

/// The windows of a block.
const WINDOWS: usize = 8;
const _: () = assert!(BLOCK == 8, "a block has as many windows as patterns have signs");

/// The least and the greatest U, in bytes.
const OP_BYTES: (u64, u64) = (512, 4 << 20);

/// The least and the greatest factor.
const FACTOR: (u64, u64) = (ONE / 16, 64 * ONE);

/// What has a price of its own; parts of the cost are in this order.
const PARTS: [PriceOf; 3] = [PriceOf::Bytes, PriceOf::Writes, PriceOf::Fua];

/// A price that has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Moved {
    /// Whose price.
    pub(in super::super) which: PriceOf,
    /// What it was, in bytes an op, or in percent of a read.
    pub(in super::super) from: u64,
    /// What it is now, in the same.
    pub(in super::super) to: u64,
}

/// The prices, and what is known of their errors.
#[derive(Debug)]
pub(in super::super) struct Pricing {
    /// How requests are priced; only [`CostMode::Learn`] moves a price.
    mode: CostMode,
    /// U and the factors that hold: those that are set, until one is learned.
    rates: Rates,
    /// The prices of those rates, neither higher nor lower for a window.
    base: Prices,
    /// The prices of the current window.
    in_force: Prices,
    /// The windows of the block so far; what is said of others is void.
    block: Vec<Seen>,
    /// ρ by part, in ppm.
    speeds: [Mean; 3],
    /// By which part was dearer, and by part: f, in ppm.
    shifts: [[Mean; 3]; 3],
    /// Blocks that were used.
    blocks: u64,
    /// The last window had requests of different kinds.
    mixed: bool,
    /// Whether this block teaches, and whether prices or the depth go next.
    turns: Turns,
}

/// What a window showed.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Units completed in a second, at the prices that hold.
    speed: u64,
    /// Of bytes, of writes, of FUA: what part of its cost, in ppm.
    parts: [i64; 3],
}

impl Pricing {
    /// Begins with what is set.
    pub(in super::super) fn set_by(tunables: &Tunables) -> Self {
        let (mode, rates) = (tunables.cost_mode(), Rates::set_by(tunables));
        let base = Prices::new(mode, rates);
        Self {
            mode,
            rates,
            base,
            in_force: base,
            block: Vec::with_capacity(WINDOWS),
            speeds: Default::default(),
            shifts: Default::default(),
            blocks: 0,
            mixed: false,
            turns: Turns::default(),
        }
    }

    /// The prices that hold.
    pub(in super::super) fn base(&self) -> Prices {
        self.base
    }

    /// Puts the prices of window `number` in force.
    pub(in super::super) fn put_in_force(&mut self, number: u64) {
        self.in_force = self.of_window(number);
    }

    /// Returns the charge of a request in the current window, at least one unit.
    #[inline]
    pub(in super::super) fn charge(&self, rq: &Request) -> Units {
        self.in_force.charge(rq)
    }

    /// The prices of window `number`.
    pub(super) fn of_window(&self, number: u64) -> Prices {
        if self.turns.teaches { self.base.dithered(Signs::of_window(number)) } else { self.base }
    }

    /// Begins a block, in which no trial of the depth runs if it is `free`.
    pub(in super::super) fn begin_block(&mut self, free: bool) {
        let may_teach = free && self.mode == CostMode::Learn && self.mixed;
        self.turns.begin_block(may_teach, self.block.len() == WINDOWS);
        self.block.clear();
    }

    /// Returns whether prices go before a trial of the depth, which may have run up to now.
    pub(in super::super) fn goes_first(&self, after_trial: bool) -> bool {
        let is_new = self.blocks < LEAST_BLOCKS.into();
        self.may_teach() && self.turns.goes_first(after_trial || is_new)
    }

    /// Returns whether the depth is to be more than it is, for this block.
    pub(in super::super) fn wants_depth(&self) -> bool {
        self.turns.teaches && self.may_teach()
    }

    /// Returns whether tenants differ, or that is not known yet.
    fn may_teach(&self) -> bool {
        let differs = |part: usize| {
            let shift = &self.shifts[part][part];
            shift.blocks() < LEAST_BLOCKS || is_shift(shift)
        };
        self.mode == CostMode::Learn && self.mixed && (0..PARTS.len()).any(differs)
    }

    /// U, in bytes.
    pub(in super::super) fn op_bytes(&self) -> u64 {
        self.rates.op_bytes
    }

    /// The factors of writes and of FUA, in percent.
    pub(in super::super) fn factors(&self) -> [u64; 2] {
        [self.rates.write, self.rates.fua].map(in_percent)
    }

    /// Blocks from which prices were learned.
    pub(in super::super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Takes a window; returns the price that moves because of it.
    pub(in super::super) fn window_closed(&mut self, closed: &Closed) -> Option<Moved> {
        self.mixed = closed.mixed;
        let at = usize::try_from(closed.number % BLOCK).expect("below 8");
        if !self.turns.teaches || closed.starved || closed.bursty || at != self.block.len() {
            return None;
        }
        let cost = self.base.cost_by_part(&closed.tallies);
        let parts = cost.parts.map(|part| ppm(part, cost.all));
        self.block.push(Seen { speed: closed.speed, parts });
        if self.block.len() < WINDOWS {
            return None;
        }
        self.take_block();
        let moved = self.move_surest();
        let by = moved.map(|moved| moved.from.abs_diff(moved.to) * 1_000_000 / moved.from.max(1));
        self.turns.taught(by);
        if by.is_some_and(is_far) {
            self.speeds.iter_mut().chain(self.shifts.as_flattened_mut()).for_each(Mean::doubt);
        }
        moved
    }

    fn take_block(&mut self) {
        self.blocks += 1;
        for dearer in 0..PARTS.len() {
            let sums = |plus: bool| {
                let arm =
                    self.block.iter().enumerate().filter(|&(at, _)| is_plus(at)[dearer] == plus);
                arm.fold((0, [0; 3]), |(speed, parts), (_, seen)| {
                    let parts: [i64; 3] =
                        std::array::from_fn(|part| parts[part] + seen.parts[part]);
                    (speed + i128::from(seen.speed), parts)
                })
            };
            let ((fast, plus), (slow, minus)) = (sums(true), sums(false));
            let rho = 2 * i128::from(MILLION) * (fast - slow) / (fast + slow).max(1);
            self.speeds[dearer].take(i64::try_from(rho).expect("prices within their bounds"));
            for part in 0..PARTS.len() {
                self.shifts[dearer][part].take((plus[part] - minus[part]) / 4);
            }
        }
    }

    /// Moves the price that is most surely wrong, of those that are not at their bounds.
    fn move_surest(&mut self) -> Option<Moved> {
        let steps = (0..PARTS.len()).filter_map(|part| {
            let on_average = self.block.iter().map(|seen| seen.parts[part]).sum::<i64>() / 8;
            Some((part, step(&self.speeds[part], &self.shifts[part][part], on_average)?))
        });
        let moves = steps.filter_map(|(part, step)| Some((part, step, self.moved_by(part, step)?)));
        let (part, step, rates) = moves.max_by_key(|(_, step, _)| step.sureness)?;
        let before = std::mem::replace(&mut self.rates, rates);
        let change = step.change_by(before.factor_to(rates, part));
        for dearer in 0..PARTS.len() {
            let by = change * self.shifts[dearer][part].value() / MILLION;
            self.speeds[dearer].shift(by);
        }
        self.base = Prices::new(self.mode, rates);
        Some(Moved { which: PARTS[part], from: before.shown(part), to: rates.shown(part) })
    }

    /// Returns the rates once that step has moved the price of a part; none where that is at its
    /// bound.
    fn moved_by(&self, part: usize, step: Step) -> Option<Rates> {
        let factor = u64::try_from(step.factor).expect("it is positive");
        let one = MILLION.cast_unsigned();
        let scaled = |price: u64, (least, most)| (price * factor / one).clamp(least, most);
        let mut rates = self.rates;
        match PARTS[part] {
            PriceOf::Bytes => {
                let op_bytes = rates.op_bytes * one / factor;
                rates.op_bytes = op_bytes.clamp(OP_BYTES.0, OP_BYTES.1);
            }
            PriceOf::Writes => rates.write = scaled(rates.write, FACTOR),
            PriceOf::Fua => rates.fua = scaled(rates.fua, FACTOR),
        }
        (rates != self.rates).then_some(rates)
    }
}

impl Rates {
    /// What the price of a part is multiplied with from these rates to others, in ppm. Bytes cost
    /// more where fewer of them cost as much as an op.
    fn factor_to(self, other: Self, part: usize) -> i64 {
        let (from, to) = match PARTS[part] {
            PriceOf::Bytes => (other.op_bytes, self.op_bytes),
            PriceOf::Writes => (self.write, other.write),
            PriceOf::Fua => (self.fua, other.fua),
        };
        ppm(to.into(), from.into())
    }

    /// The price of a part, in bytes an op, or in percent of a read.
    fn shown(self, part: usize) -> u64 {
        match PARTS[part] {
            PriceOf::Bytes => self.op_bytes,
            PriceOf::Writes => in_percent(self.write),
            PriceOf::Fua => in_percent(self.fua),
        }
    }
}

fn in_percent(factor: u64) -> u64 {
    (factor * 100 + ONE / 2) / ONE
}

/// `part` of `all`, in ppm.
fn ppm(part: u128, all: u128) -> i64 {
    let ppm = part * u128::from(MILLION.cast_unsigned()) / all.max(1);
    i64::try_from(ppm).expect("prices within their bounds")
}
