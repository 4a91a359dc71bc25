//! `[tls]`: the files of TLS, where a socket needs them, and who is let in by them.

use super::draft::Draft;
use super::error::Problem;
use super::keys::{IDENTITIES, ListenTls, TlsKeys};
use super::mistakes::Mistakes;
use crate::tls::{Unusable, load};

/// The files of TLS; none where no socket needs them.
pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> TlsKeys {
    let requiring = draft.listen.iter().filter(|listen| listen.keys.tls == ListenTls::Require);
    let requiring: Vec<_> = requiring.collect();
    let asks = draft.tls.as_ref().is_some_and(|tls| !tls.states.client_ca.is_missing());
    let is_known = draft.tls.is_some() || !draft.has_gaps;
    for group in draft.groups.iter().filter(|_| is_known && !asks) {
        let problem = Problem::WithoutClientCa { key: IDENTITIES };
        mistakes.note(group.states.identities.refuse(problem));
    }
    let Some(tls) = &draft.tls else {
        for listen in requiring.iter().filter(|_| !draft.has_gaps) {
            mistakes.note(listen.states.tls.refuse(Problem::NoTls));
        }
        return TlsKeys::default();
    };
    let is_open = draft.listen.iter().any(|listen| listen.states.tls.is_wrong());
    if requiring.is_empty() && !is_open && !draft.has_gaps {
        mistakes.add(&tls.name.place, Problem::UnusedTls);
    }
    let needed = [("certificate", &tls.states.certificate), ("key", &tls.states.key)];
    for (key, _) in needed.iter().filter(|(_, state)| state.is_missing() && !tls.has_gaps) {
        mistakes.add(&tls.name.place, Problem::Missing { key });
    }
    if tls.states.client_ca.is_missing() {
        mistakes.note(tls.states.crl.refuse(Problem::WithoutClientCa { key: "crl" }));
    }
    if let Err(Unusable { key, path, why }) = load(&tls.keys) {
        let problem = Problem::UnusableTls { key, path, why };
        mistakes.note(tls.state(key).refuse(problem));
    }
    tls.keys.clone()
}
