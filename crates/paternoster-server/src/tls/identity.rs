//! Whose a certificate is: which of its names a group has.
//!
//! ```text
//!   certificate ──▶ uri:spiffe://host/gold   [groups."/gold"]
//!                   dns:vm1.example          identities = ["uri:spiffe://host/gold"]
//!                   sha256:3f5c…             ▼
//!                                            enters the exports of /gold and of groups below
//! ```
//!
//! The common name is not among them: RFC 9525 ended that use of it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

use ring::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::config::parent_of;

/// A name of a certificate, or its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A URI among its subject's alternative names, as of SPIFFE.
    Uri(String),
    /// A DNS name among these, in lower case.
    Dns(String),
    /// SHA-256 of the certificate.
    Sha256([u8; 32]),
}

/// A text that is no identity.
#[derive(Debug, PartialEq, Eq)]
pub struct NoIdentity;

impl FromStr for Identity {
    type Err = NoIdentity;

    /// A fingerprint may have colons, as programs print it.
    fn from_str(text: &str) -> Result<Self, NoIdentity> {
        match text.split_once(':') {
            Some(("uri", uri)) if uri.contains(':') => Ok(Self::Uri(uri.to_owned())),
            Some(("dns", name)) if !name.is_empty() && name.is_ascii() => {
                Ok(Self::Dns(name.to_ascii_lowercase()))
            }
            Some(("sha256", digits)) => fingerprint(digits).map(Self::Sha256).ok_or(NoIdentity),
            _ => Err(NoIdentity),
        }
    }
}

fn fingerprint(text: &str) -> Option<[u8; 32]> {
    let digits = text.replace(':', "");
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        let pair = str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri(uri) => write!(f, "uri:{uri}"),
            Self::Dns(name) => write!(f, "dns:{name}"),
            Self::Sha256(bytes) => {
                f.write_str("sha256:")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl Identity {
    /// The fingerprint of a certificate.
    pub(crate) fn fingerprint(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Self::Sha256(bytes)
    }

    /// All of a certificate, those of a person first.
    pub(crate) fn all_of(certificate: &CertificateDer<'_>) -> Vec<Self> {
        let mut all = Vec::new();
        if let Ok(names) = EndEntityCert::try_from(certificate) {
            all.extend(names.valid_uri_names().map(|uri| Self::Uri(uri.to_owned())));
            let of_dns = names.valid_dns_names();
            all.extend(of_dns.map(|name| Self::Dns(name.to_ascii_lowercase())));
        }
        all.push(Self::fingerprint(certificate));
        all
    }
}

/// The identities of groups, by their paths: those of each that has some.
#[derive(Debug, Default)]
pub(crate) struct Identities(RwLock<BTreeMap<String, Vec<Identity>>>);

impl Identities {
    /// A group has these from now on.
    pub(crate) fn set(&self, group: &str, identities: &[Identity]) {
        let mut groups = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if identities.is_empty() {
            groups.remove(group);
        } else {
            groups.insert(group.to_owned(), identities.to_vec());
        }
    }

    /// The first of the visitor's that a group has, or one above it.
    pub(crate) fn known_in(&self, group: &str, of_visitor: &[Identity]) -> Option<Identity> {
        let groups = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let lineage = std::iter::successors(Some(group), |path| parent_of(path));
        let mut known = lineage.filter_map(|path| groups.get(path)).flatten();
        known.find(|identity| of_visitor.contains(identity)).cloned()
    }

    /// Returns whether a group has one of the visitor's.
    pub(crate) fn know(&self, of_visitor: &[Identity]) -> bool {
        let groups = self.0.read().unwrap_or_else(PoisonError::into_inner);
        groups.values().flatten().any(|identity| of_visitor.contains(identity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(text: &str) -> Identity {
        text.parse().expect(text)
    }

    #[test]
    fn identities_are_read_and_shown() {
        let digits = "3f5C:".repeat(16);
        let sha = format!("sha256:{}", digits.trim_end_matches(':'));
        for (text, shown) in [
            ("uri:spiffe://host/tenant/Gold", "uri:spiffe://host/tenant/Gold"),
            ("dns:VM1.example", "dns:vm1.example"),
            (&sha, &format!("sha256:{}", "3f5c".repeat(16))),
        ] {
            assert_eq!(identity(text).to_string(), shown);
        }
        for wrong in
            ["", "gold", "cn:gold", "uri:", "uri:gold", "dns:", "dns:ü", "sha256:3f", "uri"]
        {
            assert_eq!(wrong.parse::<Identity>(), Err(NoIdentity), "{wrong}");
        }
        assert_eq!(format!("sha256:{}", "xy".repeat(32)).parse::<Identity>(), Err(NoIdentity));
        assert_eq!(format!("sha256:{}", "+1".repeat(32)).parse::<Identity>(), Err(NoIdentity));
    }

    #[test]
    fn certificate_has_its_names_and_its_fingerprint() {
        let mut asked =
            rcgen::CertificateParams::new(vec!["VM1.example".to_owned()]).expect("names");
        let uri = "spiffe://host/gold".try_into().expect("ASCII");
        asked.subject_alt_names.push(rcgen::SanType::URI(uri));
        asked.distinguished_name.push(rcgen::DnType::CommonName, "silver");
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = asked.self_signed(&key).expect("a certificate");
        let all = Identity::all_of(certificate.der());
        let [uri, dns, sha] = &all[..] else { panic!("{all:?}") };
        assert_eq!([uri, dns], [&identity("uri:spiffe://host/gold"), &identity("dns:vm1.example")]);
        assert_eq!(sha, &Identity::fingerprint(certificate.der()));
    }

    #[test]
    fn group_has_the_identities_of_those_above_it() {
        let (gold, vm) = (identity("uri:spiffe://gold"), identity("dns:vm1"));
        let groups = Identities::default();
        groups.set("/gold", std::slice::from_ref(&gold));
        groups.set("/gold/vm1", std::slice::from_ref(&vm));
        let known = |group: &str, of: &Identity| groups.known_in(group, std::slice::from_ref(of));
        assert_eq!(known("/gold/vm1/disk", &gold).as_ref(), Some(&gold));
        assert_eq!(known("/gold/vm1", &vm).as_ref(), Some(&vm));
        assert_eq!((known("/gold", &vm), known("/goldfish", &gold)), (None, None));
        assert!(groups.know(std::slice::from_ref(&vm)));
        groups.set("/gold/vm1", &[]);
        assert!(!groups.know(&[vm]) && groups.know(&[gold]));
    }
}
