//! TLS to a server: whom it has to be, and what is shown to it.
//!
//! ```text
//!   nbds://HOST/EXPORT?tls-certificates=FOLDER     as libnbd has it
//!   FOLDER  ca-cert.pem                            who signs the server's certificate
//!           client-cert.pem, client-key.pem        what is shown to it, if they are there
//! ```
//!
//! The files are read for each connection, so that one that is made anew has what was renewed.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use paternoster_nbd::tls::{Opened, Tls, without_sign};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::dial::{DialError, receive, send_all};

const CA: &str = "ca-cert.pem";
const CERTIFICATE: &str = "client-cert.pem";
const KEY: &str = "client-key.pem";

/// How TLS is spoken to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdTls {
    /// The folder of the files.
    pub certificates: PathBuf,
    /// The name that the server's certificate has to have, if it is not that of the host.
    pub hostname: Option<String>,
}

impl NbdTls {
    /// Agrees on keys over a socket, with the server of that host.
    pub(super) fn begin(
        &self,
        socket: &OwnedFd,
        host: &str,
        deadline: Instant,
    ) -> Result<Tls, DialError> {
        let host = self.hostname.as_deref().unwrap_or(host);
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| DialError::TlsName { name: host.to_owned() })?;
        let session = |error: rustls::Error| DialError::TlsSession(error);
        let mut tls = Tls::client(Arc::new(self.config()?), name).map_err(session)?;
        let mut nothing = BytesMut::new();
        while tls.is_handshaking() {
            send_all(socket, &tls.say(), deadline).map_err(DialError::Lost)?;
            let opened = tls.open(&mut nothing, 1);
            if opened.is_err() {
                // It learns why.
                let _ = send_all(socket, &tls.say(), deadline);
            }
            if opened.map_err(session)? == Opened::Missing && tls.is_handshaking() {
                receive(socket, tls.sealed(), deadline).map_err(DialError::Lost)?;
            }
        }
        send_all(socket, &tls.say(), deadline).map_err(DialError::Lost)?;
        Ok(tls)
    }

    fn config(&self) -> Result<ClientConfig, DialError> {
        let mut roots = RootCertStore::empty();
        for certificate in self.read::<CertificateDer<'static>>(CA)? {
            roots.add(certificate).map_err(|error| self.unusable(CA, &error))?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(DialError::TlsSession)?
            .with_root_certificates(roots);
        if !self.certificates.join(CERTIFICATE).exists() {
            return Ok(builder.with_no_client_auth());
        }
        let chain = self.read(CERTIFICATE)?;
        let key: PrivateKeyDer<'static> = self.read(KEY)?.swap_remove(0);
        builder
            .with_client_auth_cert(chain, without_sign(key))
            .map_err(|error| self.unusable(KEY, &error))
    }

    /// All of one kind in a file; at least one.
    fn read<T: PemObject>(&self, file: &str) -> Result<Vec<T>, DialError> {
        let text = fs::read(self.certificates.join(file));
        let text = text.map_err(|error| self.unusable(file, &error))?;
        let all: Result<Vec<_>, _> = T::pem_slice_iter(&text).collect();
        let all = all.map_err(|error| self.unusable(file, &error))?;
        if all.is_empty() {
            return Err(self.unusable(file, &"there is none in PEM in it"));
        }
        Ok(all)
    }

    fn unusable(&self, file: &str, why: &dyn std::fmt::Display) -> DialError {
        DialError::TlsFile { path: self.certificates.join(file), why: why.to_string() }
    }
}
