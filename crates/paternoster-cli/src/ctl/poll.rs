//! What a disk's thread has looked for before it slept, in words.

use paternoster_server::stat::PollStat;

use super::units::percent;

/// How often the thread looked, and what came of it; nothing where it never did.
pub(super) fn in_words(of: &PollStat) -> Option<String> {
    let PollStat { looks, found, looked_ns, next_ns, crowded, .. } = *of;
    (looks > 0).then(|| {
        let (millis, next) = (looked_ns / 1_000_000, next_ns / 1000);
        format!(
            "looked {looks} times before it slept, for {millis} ms: something came in {}, another \
             thread had the processor in {}; the next look takes up to {next} µs",
            percent(found, looks),
            percent(crowded, looks)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_told_where_there_were_any() {
        let never = PollStat { mode: "auto".to_owned(), ..PollStat::default() };
        assert_eq!(in_words(&never), None);
        let of = PollStat {
            looks: 1000,
            found: 900,
            looked_ns: 12_000_000,
            crowded: 10,
            next_ns: 24_500,
            ..never
        };
        let words = in_words(&of).expect("it has looked");
        assert!(words.contains("1000 times before it slept, for 12 ms"), "{words}");
        assert!(words.contains("came in 90.0 %") && words.contains("up to 24 µs"), "{words}");
    }
}
