//! The keys of `[tls]`.

use std::path::PathBuf;

use super::{PATH, keys};

keys! {
    /// What is set of TLS.
    pub struct TlsKeys, states TlsStates {
        certificate: Option<PathBuf> = None, PATH, live, default "–", range "a file in PEM";
            "The server's certificate, and behind it those between it and its authority.";
        key: Option<PathBuf> = None, PATH, live, default "–",
            range "a file in PEM that others may not read";
            "The key of that certificate.";
        client_ca: Option<PathBuf> = None, PATH, live, range "a file in PEM";
            "The authorities of clients' certificates: each client has to show one, and enters the \
             exports of groups that have one of its `identities`. Without it TLS keeps secrets, \
             and anybody enters.";
        crl: Option<PathBuf> = None, PATH, live, range "a file in PEM";
            "Certificates that those authorities have revoked. Each of them needs a list in it.";
    }
}

impl TlsKeys {
    /// The files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.certificate, &self.key, &self.client_ca, &self.crl].into_iter().flatten()
    }
}
