//! What trials come to, on devices whose speed at each depth is known.

use super::super::price::Tallies;
use super::*;

const RULES: Rules =
    Rules { gains: Gains { plain: 100_000, contested: 500_000 }, rest: Nanos::from_millis(300) };

const BOUNDS: Bounds = Bounds { least: 1, most: 1024, contested_above: None };

/// A depth that is learned, window by window, on a device whose speed follows from the depth.
struct Learned {
    depth: Depth,
    rules: Rules,
    now: Instant,
    number: u64,
    bounds: Bounds,
    events: Vec<Event>,
}

impl Learned {
    fn from(depth: u32) -> Self {
        let mut depth = Depth::starting_at(depth);
        depth.clamp(Instant::START, BOUNDS.least, BOUNDS.most);
        let (now, number) = (Instant::START, BLOCK - 1);
        Self { depth, rules: RULES, now, number, bounds: BOUNDS, events: vec![] }
    }

    /// A window of 3 ms.
    fn window(&mut self, speed: impl Fn(u32) -> u64) {
        let window = Closed {
            number: self.number,
            completions: 100,
            speed: speed(self.depth.of_window(self.number)),
            latency: Nanos::from_micros(100),
            in_device_milli: u64::from(self.depth.of_window(self.number)) * 1000,
            tallies: Tallies::default(),
            mixed: false,
            starved: false,
            bursty: false,
            measured: Nanos::from_millis(2),
            longest_gap: Nanos::ZERO,
            length: Nanos::from_millis(3),
        };
        self.take(&window);
    }

    fn take(&mut self, window: &Closed) {
        self.now = self.now + window.length;
        let Self { depth, rules, now, events, bounds, .. } = self;
        let mut tell = |event| events.push(event);
        self.number = depth.window_closed(*now, window, *rules, &mut tell);
        if self.number.is_multiple_of(BLOCK) {
            depth.begin_trial(*now, window, bounds, &mut tell);
        }
    }

    fn windows(&mut self, count: u32, speed: impl Fn(u32) -> u64 + Copy) {
        for _ in 0..count {
            self.window(speed);
        }
    }

    /// The trials that began since the last call: from, to.
    fn trials(&mut self) -> Vec<(u32, u32)> {
        let trial = |event| match event {
            Event::Wfq(WfqEvent::DepthTrial { from, to, .. }) => Some((from, to)),
            _ => None,
        };
        self.events.drain(..).filter_map(trial).collect()
    }

    fn verdicts(&mut self) -> Vec<(u32, u32, i64, u32, TrialVerdict)> {
        let verdict = |event| match event {
            Event::Wfq(WfqEvent::DepthVerdict { from, to, mean_ppm, pairs, verdict, .. }) => {
                Some((from, to, mean_ppm, pairs, verdict))
            }
            _ => None,
        };
        self.events.drain(..).filter_map(verdict).collect()
    }
}

/// Scenario 25. The rejected trial took the windows 8 to 13; the next is of the block from 16 on.
#[test]
fn depth_that_gives_nothing_is_rejected_after_three_pairs() {
    let mut learned = Learned::from(16);
    learned.windows(7, |_| 1_000_000);
    assert_eq!(learned.number, 16);
    assert_eq!(learned.depth.settled(), 16);
    let rejected = TrialVerdict::Rejected;
    let events = learned.events.clone();
    assert_eq!(learned.verdicts(), [(16, 32, 0, 3, rejected)]);
    learned.events = events;
    assert_eq!(learned.trials(), [(16, 32), (16, 12)]);
}

/// Scenario 26: s = 0.222, so a loss of 7 % is more than 1.3 %.
#[test]
fn shallower_depth_that_loses_is_rejected() {
    let mut learned = Learned::from(20);
    learned.depth.way = Way::Down;
    learned.depth.factor = SMALLEST_FACTOR;
    // 2 × (932 − 1000) / 1932 = −0.0704
    learned.windows(7, |depth| if depth == 16 { 932_000 } else { 1_000_000 });
    assert_eq!(learned.verdicts(), [(20, 16, -70_393, 3, TrialVerdict::Rejected)]);
    assert_eq!(learned.depth.settled(), 20);
}

/// Scenario 27.
#[test]
fn depth_that_gives_much_is_accepted_and_the_next_trial_goes_on() {
    let mut learned = Learned::from(16);
    learned.windows(7, |depth| u64::from(depth) * 100_000);
    assert_eq!(learned.trials(), [(16, 32), (32, 64)]);
}

/// 16 servers of 1 s / 10,000: what is more than 16 gains nothing, what is less loses in
/// proportion. From 64 it comes down by 1.25, at most doubled.
#[test]
fn depth_comes_down_to_the_knee_and_stays_there() {
    let mut learned = Learned::from(64);
    learned.windows(2000, |depth| u64::from(depth.min(16)) * 10_000_000);
    assert!((16..=20).contains(&learned.depth.settled()), "{}", learned.depth.settled());
    let begun = learned.trials().len();
    // Two trials of 6 windows of 3 ms, then a rest of 6 × 18 ms: 48 windows for two.
    assert!(begun < 2000 / 20, "{begun} trials");
}

/// Scenario 28. From 40 to 50 must gain 10 % of 0.222; from 50 to 63, above what is fair, half.
#[test]
fn above_the_fair_depth_half_of_a_linear_gain_is_asked_for() {
    let trial = |from, to| {
        let mut learned = Learned::from(from);
        learned.bounds.contested_above = Some(50);
        learned.depth.factor = SMALLEST_FACTOR;
        learned.windows(1, |_| 1_000_000);
        assert_eq!(
            learned.events,
            [Event::Wfq(WfqEvent::DepthTrial { from, to, kind: TrialKind::Up })]
        );
        learned.windows(6, |depth| if depth > from { 1_050_000 } else { 1_000_000 });
        learned.depth.settled()
    };
    assert_eq!(trial(40, 50), 50);
    assert_eq!(trial(50, 63), 50);
}

fn starved(number: u64, in_device: u64, speed: u64) -> Closed {
    Closed {
        number,
        completions: 100,
        speed,
        latency: Nanos::from_micros(100),
        in_device_milli: in_device * 1000,
        tallies: Tallies::default(),
        mixed: false,
        starved: true,
        bursty: false,
        measured: Nanos::from_millis(2),
        longest_gap: Nanos::ZERO,
        length: Nanos::from_millis(3),
    }
}

/// Scenario 29: 96 outstanding in all, and 200 might be in the device.
#[test]
fn depth_that_clients_do_not_fill_is_tried_below_what_they_have() {
    let mut learned = Learned::from(200);
    learned.take(&starved(learned.number, 96, 1_000_000));
    assert_eq!(
        learned.events,
        [Event::Wfq(WfqEvent::DepthTrial { from: 200, to: 76, kind: TrialKind::Soft })]
    );
    while learned.depth.in_trial() == Some(TrialKind::Soft) {
        learned.take(&starved(learned.number, 96, 1_000_000));
    }
    assert_eq!(learned.depth.settled(), 76);
}

/// A depth of 200 after a soft trial that was rejected, with rests of at most so long. A client
/// that does not wait for answers submits as fast as before, and its requests take longer.
fn rejected_softly(rest: Nanos) -> Learned {
    let mut learned = Learned::from(200);
    learned.rules.rest = rest;
    learned.take(&starved(learned.number, 96, 1_000_000));
    while learned.depth.trials.rejected == 0 {
        let probes = learned.depth.of_window(learned.number) == 76;
        let micros = if probes { 120 } else { 100 };
        let window = starved(learned.number, 96, 1_000_000);
        learned.take(&Closed { latency: Nanos::from_micros(micros), ..window });
    }
    learned
}

#[test]
fn shallower_depth_at_which_requests_take_longer_is_rejected() {
    let learned = rejected_softly(RULES.rest);
    assert_eq!(learned.depth.settled(), 200);
    assert!(learned.depth.is_resting(learned.now));
}

/// Three pairs are six windows of 3 ms: 30 times that are 540 ms.
#[test]
fn rest_after_a_soft_trial_follows_what_is_set() {
    let rest = |longest| {
        let learned = rejected_softly(longest);
        learned.depth.resting_until.saturating_since(learned.now)
    };
    assert_eq!(rest(Nanos::ZERO), Nanos::ZERO);
    assert_eq!(rest(Nanos::from_millis(10)), Nanos::from_millis(100));
    assert_eq!(rest(RULES.rest), Nanos::from_millis(540));
}

/// Scenario 31: ⌊20 / 1.5⌋ is next.
#[test]
fn device_that_becomes_another_one_is_followed_at_once() {
    let mut learned = Learned::from(20);
    let ops = Units::OP.count();
    learned.depth.resting_until = learned.now + Nanos::from_secs(1);
    learned.windows(60, |_| 4000 * ops);
    assert!(learned.events.is_empty(), "it rests");
    learned.windows(8, |_| 1000 * ops);
    // Two odd windows have moved the average by an eighth each: 3625, 3296.
    let jolt = Event::Wfq(WfqEvent::DepthJolt { speed: 1000, was: 3296 });
    let trial = Event::Wfq(WfqEvent::DepthTrial { from: 20, to: 13, kind: TrialKind::Down });
    assert_eq!(learned.events, [jolt, trial]);
}

#[test]
fn three_windows_that_say_nothing_end_a_trial() {
    let mut learned = Learned::from(16);
    learned.window(|_| 1_000_000);
    assert_eq!(learned.trials(), [(16, 32)]);
    // The probe may run dry: it tells what raising gives.
    for _ in 0..8 {
        learned.take(&starved(learned.number, 10, 1_000_000));
    }
    let verdict = learned.verdicts();
    assert_eq!(verdict, [(16, 32, 0, 0, TrialVerdict::Rejected)]);
}

#[test]
fn depth_stays_within_its_bounds() {
    let mut learned = Learned::from(16);
    learned.bounds = Bounds { least: 4, most: 40, contested_above: None };
    learned.windows(500, |depth| u64::from(depth) * 100_000);
    assert_eq!(learned.depth.settled(), 40);
    learned.windows(500, |depth| 100_000_000 / u64::from(depth));
    assert_eq!(learned.depth.settled(), 4);
}

/// Once the bounds are wider, the first rejection turns the direction and the second one rests.
#[test]
fn depth_that_has_no_choice_counts_no_rejections() {
    let mut learned = Learned::from(4);
    learned.bounds = Bounds { least: 4, most: 4, contested_above: None };
    learned.windows(1000, |_| 1_000_000);
    assert_eq!(learned.events, []);
    learned.bounds = BOUNDS;
    learned.windows(BLOCK.try_into().expect("8"), |_| 1_000_000);
    assert_eq!(learned.depth.trials.rejected, 1);
    assert!(!learned.depth.is_resting(learned.now));
}

/// There is no event that would tell of a jolt, and nothing that it would restart.
#[test]
fn depth_that_is_set_has_no_jolts() {
    let mut depth = Depth::starting_at(4);
    let window = Closed { starved: false, ..starved(0, 4, 4_000_000) };
    for speed in [4_000_000, 1_000_000, 1_000_000, 1_000_000] {
        depth.note_speed(&Closed { speed, ..window });
    }
    assert_eq!((depth.trials, depth.way, depth.factor), (Trials::default(), Way::Up, 2_000_000));
    // 4 − 3/8 = 3.625, 3.625 − 2.625/8 = 3.297, 3.297 − 2.297/8 = 3.010 million.
    assert_eq!(depth.usual_speed().map(|speed| speed / 1000), Some(3009));
}

/// A window of a trial from 3 to 2 on a scheduler that loses its core for 4 ms at a time: half of
/// the speed around such a gap, all of it between two.
fn beside_gaps(learned: &Learned, measured: Nanos, gap: Nanos) -> Closed {
    let speed = if gap == Nanos::ZERO { 1_000_000 } else { 500_000 };
    let window = starved(learned.number, 3, speed);
    Closed { starved: false, measured, longest_gap: gap, length: measured, ..window }
}

fn three_or_two() -> Learned {
    let mut learned = Learned::from(3);
    learned.depth.way = Way::Down;
    learned.depth.factor = SMALLEST_FACTOR;
    learned.window(|_| 500_000);
    assert_eq!(learned.trials(), [(3, 2)]);
    learned
}

/// Those of the probe happened to lie between two gaps: it seemed to gain two thirds, and three
/// pairs were enough to believe it.
#[test]
fn window_around_a_gap_is_not_compared_with_one_between_two() {
    let mut learned = three_or_two();
    while learned.depth.trials.rejected == 0 {
        let probes = learned.depth.of_window(learned.number) == 2;
        let (measured, gap) = if probes { (2, 0) } else { (32, 4) };
        let [measured, gap] = [measured, gap].map(Nanos::from_millis);
        let window = beside_gaps(&learned, measured, gap);
        learned.take(&window);
    }
    assert_eq!(learned.verdicts(), [(3, 2, 0, 0, TrialVerdict::Rejected)]);
    assert_eq!(learned.depth.settled(), 3);
}

/// The first two pairs were between two gaps. Then all windows last eight gaps of 4 ms: with a loss
/// of a fifth where six hundredths of 0.4 are allowed.
#[test]
fn trial_begins_anew_with_windows_that_are_long_beside_its_longest_gap() {
    let mut learned = three_or_two();
    assert_eq!(learned.depth.least_window(), Nanos::ZERO);
    for _ in 0..4 {
        let window = beside_gaps(&learned, Nanos::from_millis(2), Nanos::ZERO);
        learned.take(&window);
    }
    let gap = Nanos::from_millis(4);
    let window = beside_gaps(&learned, Nanos::from_millis(2), gap);
    learned.take(&window);
    assert_eq!(learned.depth.least_window(), Nanos::from_millis(32));
    while learned.depth.trials.rejected == 0 {
        let window = beside_gaps(&learned, Nanos::from_millis(32), gap);
        let probes = learned.depth.of_window(learned.number) == 2;
        let speed = if probes { 400_000 } else { 500_000 };
        learned.take(&Closed { speed, ..window });
    }
    // 2 × (400 − 500) / 900
    assert_eq!(learned.verdicts(), [(3, 2, -222_222, 3, TrialVerdict::Rejected)]);
}

/// A gap that is a little longer than those before it changes nothing.
#[test]
fn trial_goes_on_through_gaps_that_are_hardly_longer_than_others() {
    let mut learned = three_or_two();
    for gap in [4, 5, 4, 7, 6, 8] {
        let [measured, gap] = [32, gap].map(Nanos::from_millis);
        let window = beside_gaps(&learned, measured, gap);
        learned.take(&window);
    }
    assert_eq!(learned.verdicts(), [(3, 2, 0, 3, TrialVerdict::Accepted)]);
}

/// Up by two, whatever was rejected before: what smaller steps gain is lost in noise. At the end
/// the mean decides, 8 % where 6.7 are asked for; without gaps what is not sure is rejected.
#[test]
fn among_gaps_a_deeper_queue_is_taken_that_is_better_on_average() {
    let up_from_16 = |gap: u64| {
        let mut learned = Learned::from(16);
        learned.depth.factor = SMALLEST_FACTOR;
        let [short, gap] = [2, gap].map(Nanos::from_millis);
        let window = starved(learned.number, 16, 1_000_000);
        let window = Closed { starved: false, measured: short, longest_gap: gap, ..window };
        learned.take(&window);
        let [(16, probe)] = learned.trials()[..] else { panic!("a trial") };
        for pair in 0..16 {
            let more: i64 = if pair % 2 == 0 { 480_000 } else { -320_000 };
            for _ in 0..2 {
                let probes = learned.depth.of_window(learned.number) == probe;
                // 2 × (X′ − X) / (X′ + X) is 0.48 or −0.32 with X = 1,000,000.
                let speed = 1_000_000 * (2_000_000 + more) / (2_000_000 - more);
                let speed = if probes { speed.unsigned_abs() } else { 1_000_000 };
                let measured = Nanos::from_millis(32);
                learned.take(&Closed { number: learned.number, speed, measured, ..window });
            }
        }
        (probe, learned.depth.settled())
    };
    assert_eq!(up_from_16(4), (32, 32));
    assert_eq!(up_from_16(0), (20, 16));
}

/// Clients that have lost their core ask for nothing: the trial is not a soft one, and goes on
/// through windows in which the device had room. A gap is known while there are others like it.
#[test]
fn among_gaps_it_says_nothing_that_nothing_waits() {
    let mut learned = Learned::from(16);
    let gap = Nanos::from_millis(4);
    let window = starved(learned.number, 12, 1_000_000);
    learned.take(&Closed { measured: Nanos::from_millis(2), longest_gap: gap, ..window });
    assert_eq!(learned.trials(), [(16, 32)]);
    while learned.depth.trials.accepted == 0 {
        let probes = learned.depth.of_window(learned.number) == 32;
        let speed = if probes { 1_300_000 } else { 1_000_000 };
        let measured = Nanos::from_millis(32);
        learned.take(&Closed {
            number: learned.number,
            speed,
            measured,
            longest_gap: gap,
            ..window
        });
    }
    assert_eq!((learned.depth.settled(), learned.depth.trials.rejected), (32, 0));
    let measured = Nanos::from_millis(32);
    for _ in 0..100 {
        let [number, longest_gap] = [learned.number, gap.as_nanos() * 3 / 4];
        learned.take(&Closed { number, measured, longest_gap: Nanos::new(longest_gap), ..window });
    }
    assert!(learned.depth.is_among_gaps());
    for _ in 0..100 {
        learned.take(&Closed { number: learned.number, measured, ..window });
    }
    assert!(!learned.depth.is_among_gaps());
}
