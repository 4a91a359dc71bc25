//! The domains: which operations are in each, and what a domain may have.

use crate::request::Op;
use crate::trace::Domain;

/// The domains whose latencies are measured, in the order in which they are judged. The depth of
/// the others never changes.
pub(super) const MEASURED: [Domain; 3] = [Domain::Read, Domain::Write, Domain::Discard];

/// Returns the domain of the requests of an operation.
#[inline]
pub(super) const fn domain_of(op: Op) -> Domain {
    match op {
        Op::Read => Domain::Read,
        Op::Write => Domain::Write,
        Op::Discard => Domain::Discard,
        Op::WriteZeroes | Op::Flush => Domain::Other,
    }
}

/// Returns how many tokens a domain has: its first depth, and the greatest.
pub(super) const fn tokens_of(domain: Domain) -> u32 {
    match domain {
        Domain::Read => 256,
        Domain::Write => 128,
        Domain::Discard => 64,
        Domain::Other => 16,
    }
}

/// Returns how many requests of a domain are dispatched before the next domain's turn.
#[inline]
pub(super) const fn batch_size(domain: Domain) -> u32 {
    match domain {
        Domain::Read => 16,
        Domain::Write => 8,
        Domain::Discard | Domain::Other => 1,
    }
}

/// Returns the domain whose turn is next.
#[inline]
pub(super) const fn after(domain: Domain) -> Domain {
    match domain {
        Domain::Read => Domain::Write,
        Domain::Write => Domain::Discard,
        Domain::Discard => Domain::Other,
        Domain::Other => Domain::Read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_domain_has_its_turn_before_the_first_has_it_again() {
        let turns = std::iter::successors(Some(Domain::Read), |&domain| Some(after(domain)));
        assert!(turns.take(5).eq([
            Domain::Read,
            Domain::Write,
            Domain::Discard,
            Domain::Other,
            Domain::Read
        ]));
    }

    #[test]
    fn what_is_no_read_write_or_discard_is_in_the_last_domain() {
        let domains = Op::ALL.map(domain_of);
        let [read, write, discard, other] = Domain::ALL;
        assert_eq!(domains, [read, write, discard, other, other]);
    }
}
