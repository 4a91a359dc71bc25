//! The server behind a disk that is another server's export, in words.

use std::fmt::Write as _;

use paternoster_server::stat::FarStat;

use super::units::plural;

/// Where it is, and what has become of its connections.
pub(super) fn in_words(far: &FarStat) -> String {
    let FarStat { uri, connections, lost, sent_again, in_doubt, quiesced, p50_ns, p99_ns, .. } =
        far;
    let mut text = format!("{uri}: {}", plural(*connections, "connection"));
    if *lost > 0 {
        let requests = if *sent_again == 1 { "request" } else { "requests" };
        let _ = write!(text, ", {lost} lost so far, {sent_again} {requests} sent again");
    }
    if let (Some(p50), Some(p99)) = (p50_ns, p99_ns) {
        let [p50, p99] = [p50, p99].map(|nanos| nanos / 1000);
        let _ = write!(text, ", answers within {p50} us (p50), {p99} us (p99)");
    }
    if *quiesced {
        text += "; QUIESCED: requests wait until it is resumed";
    }
    if *in_doubt {
        text += "; IN DOUBT: writes were answered and not flushed when one was lost";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_where_there_were_any() {
        let mut far =
            FarStat { uri: "nbd://a:1/".to_owned(), connections: 2, ..FarStat::default() };
        assert_eq!(in_words(&far), "nbd://a:1/: 2 connections");
        let timed = FarStat {
            p50_ns: Some(800_000),
            p99_ns: Some(2_000_999),
            quiesced: true,
            ..far.clone()
        };
        let expected = "nbd://a:1/: 2 connections, answers within 800 us (p50), 2000 us (p99); \
                        QUIESCED: requests wait until it is resumed";
        assert_eq!(in_words(&timed), expected);
        far = FarStat { connections: 1, lost: 3, sent_again: 1, in_doubt: true, ..far };
        let expected = "nbd://a:1/: 1 connection, 3 lost so far, 1 request sent again; IN DOUBT: \
                        writes were answered and not flushed when one was lost";
        assert_eq!(in_words(&far), expected);
    }
}
