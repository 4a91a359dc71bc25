//! Reports the state of Kyber, by the names of Linux's debugfs.

use super::{DomainState, Kyber};
use crate::dump::Dump;
use crate::trace::Trace;

/// The names of a domain's numbers.
struct Names {
    tokens: &'static str,
    tokens_out: &'static str,
    ready: &'static str,
    throttled: &'static str,
}

const NAMES: [Names; 4] = [
    Names {
        tokens: "read_tokens",
        tokens_out: "read_tokens_busy",
        ready: "read_rqs",
        throttled: "read_waiting",
    },
    Names {
        tokens: "write_tokens",
        tokens_out: "write_tokens_busy",
        ready: "write_rqs",
        throttled: "write_waiting",
    },
    Names {
        tokens: "discard_tokens",
        tokens_out: "discard_tokens_busy",
        ready: "discard_rqs",
        throttled: "discard_waiting",
    },
    Names {
        tokens: "other_tokens",
        tokens_out: "other_tokens_busy",
        ready: "other_rqs",
        throttled: "other_waiting",
    },
];

impl<T: Trace> Kyber<T> {
    pub(super) fn dump_all(&self, out: &mut dyn Dump) {
        out.number("cur_domain", self.current as i64);
        out.number("batching", self.batching.into());
        for (names, DomainState { queue, tokens, throttled }) in NAMES.iter().zip(&self.domains) {
            out.number(names.tokens, tokens.depth().into());
            out.number(names.tokens_out, tokens.out().into());
            out.number(names.ready, queue.ready().into());
            out.number(names.throttled, (*throttled).into());
        }
    }
}
