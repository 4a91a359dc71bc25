//! The server behind a disk that is another server's export, in words.

use std::fmt::Write as _;

use paternoster_server::stat::FarStat;

use super::units::plural;

/// Where it is, and what has become of its connections.
pub(super) fn in_words(far: &FarStat) -> String {
    let FarStat { uri, connections, lost, sent_again, in_doubt } = far;
    let mut text = format!("{uri}: {}", plural(*connections, "connection"));
    if *lost > 0 {
        let requests = if *sent_again == 1 { "request" } else { "requests" };
        let _ = write!(text, ", {lost} lost so far, {sent_again} {requests} sent again");
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
        far = FarStat { connections: 1, lost: 3, sent_again: 1, in_doubt: true, ..far };
        let expected = "nbd://a:1/: 1 connection, 3 lost so far, 1 request sent again; IN DOUBT: \
                        writes were answered and not flushed when one was lost";
        assert_eq!(in_words(&far), expected);
    }
}
