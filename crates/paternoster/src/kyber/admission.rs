//! How many requests may exist: Kyber keeps a quarter for those that somebody waits for.
//!
//! Reads are always synchronous, so this bounds asynchronous writes and discards. In Linux the
//! requests that may exist are the bits of a bitmap, and the quarter is of each word of it.

use super::token_map::word_size;

/// The part of the requests that may be asynchronous.
const ASYNC_PERCENT: u32 = 75;

/// Returns how many requests may exist for an asynchronous bio to become one, of `nr_requests` in
/// all; one at least.
pub(super) fn async_depth(nr_requests: u32) -> u32 {
    let size = word_size(nr_requests);
    let of_word = size * ASYNC_PERCENT / 100;
    let last = (nr_requests % size).min(of_word);
    (nr_requests / size * of_word + last).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 256 are four words of 64; 100 are six words of 16 and one of 4; 6 are words of 1, which have
    /// no bit that an asynchronous request might take.
    #[test]
    fn three_quarters_of_each_word_are_for_asynchronous_requests() {
        assert_eq!(async_depth(256), 4 * 48);
        assert_eq!(async_depth(64), 4 * 12);
        assert_eq!(async_depth(100), 6 * 12 + 4);
        assert_eq!(async_depth(u32::MAX), u32::MAX / 64 * 48 + 48);
    }

    #[test]
    fn asynchronous_requests_never_wait_for_ever() {
        for nr_requests in 1..1000 {
            assert!((1..=nr_requests).contains(&async_depth(nr_requests)), "{nr_requests}");
        }
    }
}
