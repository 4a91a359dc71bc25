//! Who may enter over TLS: the server's certificate, and whose the clients' are.

mod files;
mod identity;

use rustls::{CertificateError, Error};

pub(crate) use files::{InForce, Loaded, Unusable, load};
pub use identity::Identity;
pub(crate) use identity::{Identities, NoIdentity};

/// Why a client is refused, in the words of who has to mend that.
pub(crate) fn why(error: &Error) -> String {
    let said = match error {
        Error::NoCertificatesPresented => "no certificate was shown",
        Error::InvalidCertificate(CertificateError::Revoked) => "its certificate is revoked",
        Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired",
        Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "its certificate is not valid yet",
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is of none of the authorities of client_ca"
        }
        Error::InvalidCertificate(CertificateError::UnknownRevocationStatus) => {
            "its certificate is of an authority without a list in crl"
        }
        Error::EncryptError => {
            "its keys have sealed as much as they may, and TLS 1.2 has no others"
        }
        Error::AlertReceived(alert) => return format!("it refused this server: {alert:?}"),
        other => return other.to_string(),
    };
    said.to_owned()
}
