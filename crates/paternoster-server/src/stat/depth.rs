//! The depth that a scheduler has learned, in [`DiskStat::learned_depth`](super::DiskStat).

use std::collections::BTreeMap;

use super::figures::figures;

figures! {
    /// A depth that is learned, and why it is what it is.
    pub struct LearnedDepth, anew if windows | windows_starved falls;
    /// The depth that the scheduler has learned.
    depth: u32, Gauge, metric "disk_learned_depth_requests";
    /// The depth of this moment: another one in half of the time that a trial takes.
    in_force: u32, Gauge;
    /// The depth that the disk would have under `none`, which learns none.
    unlearned: u32, Gauge;
    /// The last change; none so far.
    changed: Option<DepthChange>, Figures;
    /// Windows over which the speed of the disk was measured.
    windows: u64, Counter;
    /// Windows in which for more than a twentieth of the time nothing waited though there was room.
    windows_starved: u64, Counter;
}

figures! {
    /// A change of the depth that holds.
    pub struct DepthChange;
    /// The depth before it.
    from: u32, Gauge;
    /// Why: `deeper` (a trial of more was faster), `shallower` (one of less was faster, as fast, or
    /// slower by little), `unfilled` (clients do not fill the depth, and the same holds of less),
    /// `bounds` (`min_depth`, `max_depth` or the disk's kind).
    why: String, Text;
    /// By how much the disk was faster with the new depth, in parts per million; below 0 it was
    /// slower.
    gain_ppm: i64, Gauge;
    /// How long ago.
    ago_ns: u64, Gauge;
}

impl LearnedDepth {
    /// Reads it from the numbers that the scheduler dumps; none where those are another one's.
    /// `unlearned` is as the back end says, and `now` the time since the start in nanoseconds.
    pub(crate) fn of(numbers: &BTreeMap<String, i64>, unlearned: u32, now: u64) -> Option<Self> {
        let number = |name: &str| numbers.get(name).copied();
        let small = |name: &str| number(name).and_then(|value| u32::try_from(value).ok());
        let count = |name: &str| number(name).and_then(|value| u64::try_from(value).ok());
        let change = |why: &str| {
            let at = count("depth_changed_at_ms")?.saturating_mul(1_000_000);
            Some(DepthChange {
                from: small("depth_changed_from")?,
                why: why.to_owned(),
                gain_ppm: number("depth_changed_gain_ppm")?,
                ago_ns: now.saturating_sub(at),
            })
        };
        let why = ["deeper", "shallower", "unfilled", "bounds"];
        let by = small("depth_changed_by").and_then(|by| usize::try_from(by).ok()).unwrap_or(0);
        Some(Self {
            depth: small("depth_settled")?,
            in_force: small("depth_in_force")?,
            unlearned,
            changed: by.checked_sub(1).and_then(|by| why.get(by)).and_then(|why| change(why)),
            windows: count("windows")?,
            windows_starved: count("windows_starved")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: &[(&str, i64)]) -> BTreeMap<String, i64> {
        let mut all: BTreeMap<_, _> = [
            ("depth_settled", 32),
            ("depth_in_force", 64),
            ("windows", 40),
            ("windows_starved", 3),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        all.extend(numbers.iter().map(|&(name, value)| (name.to_owned(), value)));
        all
    }

    #[test]
    fn change_is_told_by_its_cause_and_its_age() {
        let of = |more: &[_]| LearnedDepth::of(&numbers(more), 8, 5_000_000_000).expect("learned");
        let never = of(&[("depth_changed_by", 0)]);
        let expected = LearnedDepth {
            depth: 32,
            in_force: 64,
            unlearned: 8,
            changed: None,
            windows: 40,
            windows_starved: 3,
        };
        assert_eq!(never, expected);
        let change = |by| {
            let at = [("depth_changed_at_ms", 2_000), ("depth_changed_from", 16)];
            let why = [("depth_changed_by", by), ("depth_changed_gain_ppm", 400_000)];
            of(&[at, why].concat()).changed
        };
        let deeper = DepthChange {
            from: 16,
            why: "deeper".to_owned(),
            gain_ppm: 400_000,
            ago_ns: 3_000_000_000,
        };
        assert_eq!(change(1), Some(deeper));
        let why = [2, 3, 4, 5].map(|by| change(by).map(|change| change.why));
        let expected = [Some("shallower"), Some("unfilled"), Some("bounds"), None];
        assert_eq!(why, expected.map(|why| why.map(str::to_owned)));
        assert_eq!(LearnedDepth::of(&BTreeMap::new(), 8, 0), None);
    }
}
