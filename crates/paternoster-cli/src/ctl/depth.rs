//! A disk's depth in words, and why it is what it is where the scheduler has learned it.

use paternoster_server::stat::{DepthChange, DiskStat, LearnedDepth};

use super::units::Time;

/// The depth, in the line of the disk.
pub(super) fn shown(disk: &DiskStat) -> String {
    match &disk.learned_depth {
        Some(learned) => format!("depth {} (learned)", learned.depth),
        None => format!("depth {}", disk.depth),
    }
}

/// A line of its own: the last change, what it would be without learning, and windows that say
/// little.
pub(super) fn in_words(learned: &LearnedDepth) -> String {
    let LearnedDepth { depth, unlearned, changed, windows, windows_starved, .. } = learned;
    let since = match changed {
        None => format!("{depth} since the start"),
        Some(DepthChange { from, ago_ns, why, gain_ppm }) => {
            let compared = compared(*gain_ppm);
            let why = match why.as_str() {
                "deeper" => format!("more was {compared}"),
                "shallower" => format!("less was {compared}"),
                "unfilled" => format!("clients do not fill more, and less was {compared}"),
                _ => "its bounds say so".to_owned(),
            };
            format!("{from} until {} ago, then {depth}, as {why}", Time(*ago_ns))
        }
    };
    format!(
        "learned depth: {since}; {unlearned} without learning; {windows_starved} of {windows} \
         windows starved"
    )
}

/// What the disk was with the new depth beside the old one, by the sign of what it gained. A new
/// depth that is slower was taken because it is slower by little.
fn compared(gain_ppm: i64) -> String {
    // The figure has one decimal.
    let permille = (gain_ppm.abs() + 500) / 1000 * gain_ppm.signum();
    let word = match permille {
        0 => return "as fast".to_owned(),
        1.. => "faster",
        _ => "hardly slower",
    };
    let sign = if permille > 0 { '+' } else { '-' };
    format!("{word} ({sign}{}.{} %)", permille.abs() / 10, permille.abs() % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(change: Option<(&str, i64)>) -> String {
        let changed = change.map(|(why, gain_ppm)| DepthChange {
            from: 16,
            why: why.to_owned(),
            gain_ppm,
            ago_ns: 3_000_000_000,
        });
        let learned = LearnedDepth {
            depth: 8,
            unlearned: 24,
            changed,
            windows: 812,
            windows_starved: 3,
            ..LearnedDepth::default()
        };
        in_words(&learned)
    }

    #[test]
    fn learned_depth_is_told_with_its_last_change_and_why() {
        let rest = "; 24 without learning; 3 of 812 windows starved";
        assert_eq!(learned(None), format!("learned depth: 8 since the start{rest}"));
        for (why, gain, said) in [
            ("deeper", 82_400, "as more was faster (+8.2 %)"),
            ("shallower", -12_000, "as less was hardly slower (-1.2 %)"),
            ("shallower", -499, "as less was as fast"),
            ("shallower", 0, "as less was as fast"),
            ("shallower", 500, "as less was faster (+0.1 %)"),
            ("shallower", 445_000, "as less was faster (+44.5 %)"),
            ("unfilled", 0, "as clients do not fill more, and less was as fast"),
            (
                "unfilled",
                -6_300,
                "as clients do not fill more, and less was hardly slower (-0.6 %)",
            ),
            ("unfilled", 13_000, "as clients do not fill more, and less was faster (+1.3 %)"),
            ("bounds", 0, "as its bounds say so"),
        ] {
            let expected = format!("learned depth: 16 until 3.0 s ago, then 8, {said}{rest}");
            assert_eq!(learned(Some((why, gain))), expected);
        }
    }

    #[test]
    fn depth_that_is_set_is_told_as_it_is() {
        let disk = DiskStat { depth: 16, ..DiskStat::default() };
        assert_eq!(shown(&disk), "depth 16");
        let learned = LearnedDepth { depth: 5, in_force: 10, ..LearnedDepth::default() };
        let disk = DiskStat { learned_depth: Some(learned), ..disk };
        assert_eq!(shown(&disk), "depth 5 (learned)");
    }
}
