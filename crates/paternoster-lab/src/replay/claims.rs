//! Behind what each request of a trace was submitted.
//!
//! ```text
//!   requests    1 2 3 4          5    6  7        5 claims reply 1, 6 reply 2, 7 is of a burst:
//!   replies               1   2                   both replies were claimed before it came
//!
//!   requests    1 2 3        4 5 6               4, 5 and 6 come together: all claim a reply, and
//!   replies          1 2  3                      wait for reply 3, as who waits for all of a batch
//! ```

use std::ops::Range;

use paternoster::Nanos;
use paternoster_intake::Request;

/// When a request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// So long after a reply of its stream.
    Reply {
        /// How many replies come before that.
        number: u32,
        /// The request of which that reply was, as it was recorded.
        of: u32,
        think: Nanos,
    },
    /// So long after the request before it, or after the start.
    Burst { gap: Nanos },
    /// At that time.
    Clock(Nanos),
}

/// Requests come together if no reply is between them, and so many times less time than usual.
const CLOSE: u64 = 10;

/// When each request of a stream is due. They are in the order of their arrival.
///
/// Who waits for all of a batch, and who has several requests on their ways, look alike where
/// requests come close together. But only who waits has as many replies by then as it has requests:
/// it is taken for that if half of its requests come so.
pub(super) fn claims(requests: &[&Request]) -> Vec<Due> {
    let reply = |request: &&Request| request.replied.map(|it| it.at).or(request.completed);
    let replies = requests.iter().zip(0..);
    let replies = replies.filter_map(|(request, index)| Some((reply(request)?, index)));
    let mut replies: Vec<(u64, u32)> = replies.collect();
    replies.sort_unstable();
    let (together, whole) = claims_of(batches(requests, &replies), requests, &replies);
    if 2 * whole >= requests.len() {
        return together;
    }
    let alone = (0..requests.len()).map(|index| index..index + 1);
    claims_of(alone, requests, &replies).0
}

/// When requests are due of which those came together; and how many came in a batch for as many
/// replies as there were.
fn claims_of(
    batches: impl IntoIterator<Item = Range<usize>>,
    requests: &[&Request],
    replies: &[(u64, u32)],
) -> (Vec<Due>, usize) {
    let (mut claimed, mut there, mut before, mut whole) = (0, 0, 0, 0);
    let mut due = Vec::with_capacity(requests.len());
    for batch in batches {
        let arrived = requests[batch.start].arrived;
        // Its own reply comes after it, also where that takes no time.
        let is_before = |of: u32| (of as usize) < batch.start;
        let is_there = |&&(at, of): &&(u64, u32)| at <= arrived && is_before(of);
        there = match requests[batch.start].replied.and_then(|reply| reply.after) {
            Some(after) => there.max((after as usize).min(replies.len())),
            None => there + replies[there..].iter().take_while(is_there).count(),
        };
        if batch.len() > 1 && there - claimed == batch.len() {
            whole += batch.len();
        }
        let left = batch.len().min(there - claimed);
        claimed += left;
        due.push(match claimed.checked_sub(1).filter(|_| left > 0) {
            // All of a batch waited for the last reply that one of it claims.
            Some(last) => {
                let (at, of) = replies[last];
                let number = u32::try_from(last).expect("there are fewer than requests");
                // From when it was done: what its reply took then, it takes in the replay, too.
                let at = requests[of as usize].completed.unwrap_or(at);
                Due::Reply { number, of, think: Nanos::new(arrived.saturating_sub(at)) }
            }
            None => Due::Burst { gap: Nanos::new(arrived - before) },
        });
        for pair in requests[batch.clone()].windows(2) {
            due.push(Due::Burst { gap: Nanos::new(pair[1].arrived - pair[0].arrived) });
        }
        before = requests[batch.end - 1].arrived;
    }
    (due, whole)
}

/// The requests that came together.
fn batches(requests: &[&Request], replies: &[(u64, u32)]) -> Vec<Range<usize>> {
    let span = requests.last().map_or(0, |last| last.arrived - requests[0].arrived);
    let usual = span / (requests.len() as u64).max(1);
    let mut seen = 0;
    let mut begins = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        let seen_before = seen;
        seen += replies[seen..].iter().take_while(|(at, _)| *at <= request.arrived).count();
        let gap = index.checked_sub(1).map(|before| request.arrived - requests[before].arrived);
        let is_close = gap.is_some_and(|gap| gap <= usual / CLOSE);
        if !is_close || seen > seen_before {
            begins.push(index);
        }
    }
    let ends = begins.iter().skip(1).copied().chain([requests.len()]);
    begins.iter().copied().zip(ends).map(|(begin, end)| begin..end).collect()
}

/// All are due when they were recorded.
pub(super) fn by_clock(requests: &[&Request]) -> Vec<Due> {
    requests.iter().map(|request| Due::Clock(Nanos::new(request.arrived))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster::Op;
    use paternoster_intake::{ContextId, Replied};

    fn request(arrived: u64, completed: Option<u64>) -> Request {
        Request { completed, ..Request::new(arrived, ContextId(0), Op::Read, 0, 4096) }
    }

    fn claims_at(times: &[(u64, Option<u64>)]) -> Vec<Due> {
        let requests: Vec<_> = times.iter().map(|&(at, done)| request(at, done)).collect();
        claims(&requests.iter().collect::<Vec<_>>())
    }

    fn reply(number: u32, of: u32, think: u64) -> Due {
        Due::Reply { number, of, think: Nanos::new(think) }
    }

    fn burst(gap: u64) -> Due {
        Due::Burst { gap: Nanos::new(gap) }
    }

    #[test]
    fn request_claims_the_oldest_reply_that_is_left() {
        // Two outstanding; the second one is answered first.
        let found = claims_at(&[(5, Some(50)), (6, Some(40)), (45, Some(90)), (70, Some(95))]);
        assert_eq!(found, [burst(5), burst(1), reply(0, 1, 5), reply(1, 0, 20)]);
    }

    #[test]
    fn reply_is_claimed_once_and_what_follows_is_a_burst() {
        let found = claims_at(&[(0, Some(10)), (12, Some(30)), (14, Some(31)), (15, None)]);
        assert_eq!(found, [burst(0), reply(0, 0, 2), burst(2), burst(1)]);
    }

    #[test]
    fn lost_reply_is_nobodys() {
        let found = claims_at(&[(0, None), (1, Some(10)), (12, None), (13, None)]);
        assert_eq!(found, [burst(0), burst(1), reply(0, 1, 2), burst(1)]);
    }

    /// Who waits for all of a batch waits for the last reply, and then all come.
    #[test]
    fn batch_waits_for_the_last_reply_that_it_claims() {
        let of = |at: u64| [(at, Some(at + 40)), (at, Some(at + 10)), (at, Some(at + 20))];
        let found = claims_at(&[of(0), of(100), of(200)].concat());
        let batch = |number, of| [reply(number, of, 60), burst(0), burst(0)];
        let wanted = [[burst(0); 3], batch(2, 0), batch(5, 3)].concat();
        assert_eq!(found, wanted);
        // Four are outstanding, and two come for each two that are answered.
        let two = |at: u64, one: u64, other: u64| [(at, Some(one)), (at, Some(other))];
        let pairs = [two(0, 10, 20), two(0, 50, 60), two(25, 80, 90), two(61, 110, 120)];
        let found = claims_at(&pairs.concat());
        let pair = |number, of, think| [reply(number, of, think), burst(0)];
        let wanted = [[burst(0); 2], [burst(0); 2], pair(1, 1, 5), pair(3, 3, 1)].concat();
        assert_eq!(found, wanted);
    }

    /// Two of four replies are left each time: those who think do not wait for each other.
    #[test]
    fn who_has_more_replies_than_requests_does_not_wait_for_all() {
        let requests = [
            [(0, Some(10)), (0, Some(20)), (0, Some(30)), (0, Some(40))],
            [(100, Some(110)), (100, Some(120)), (140, Some(150)), (140, Some(160))],
        ];
        let found = claims_at(&requests.concat());
        assert_eq!(found[4..6], [reply(0, 0, 90), reply(1, 1, 80)]);
    }

    /// Of two replies at the time when a request comes, its client may have had one.
    #[test]
    fn recording_says_which_replies_a_client_had() {
        let after = |replies: u32| Some(Replied { at: 10, after: Some(replies) });
        let requests = [
            Request { replied: after(0), ..request(0, Some(9)) },
            Request { replied: after(0), ..request(0, Some(10)) },
            Request { replied: after(1), ..request(10, Some(30)) },
            Request { replied: after(1), ..request(10, Some(31)) },
        ];
        let found = claims(&requests.iter().collect::<Vec<_>>());
        assert_eq!(found, [burst(0), burst(0), reply(0, 0, 1), burst(0)]);
    }

    /// It is answered when it comes, and cannot have been waited for.
    #[test]
    fn request_does_not_claim_its_own_reply() {
        assert_eq!(claims_at(&[(7, Some(7)), (9, None)]), [burst(7), reply(0, 0, 2)]);
    }
}
