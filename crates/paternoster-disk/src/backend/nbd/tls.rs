//! TLS to a server: whom it has to be, and what is shown to it.
//!
//! ```text
//!   nbds://HOST/EXPORT?tls-certificates=FOLDER     as libnbd has it
//!   FOLDER  ca-cert.pem                            who signs the server's certificate
//!           client-cert.pem, client-key.pem        what is shown to it, if they are there
//! ```
//!
//! The files are read for each connection, so that one that is made anew has what was renewed.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use paternoster_nbd::tls::{Opened, Tls, without_sign};
use rustix::fs::OFlags;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::dial::{DialError, lost_within, receive, send_all};

const CA: &str = "ca-cert.pem";
const CERTIFICATE: &str = "client-cert.pem";
const KEY: &str = "client-key.pem";

/// The most that is read of a file.
const FILE_MAX: u64 = 16 << 20;

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
            send_all(socket, &tls.say(), deadline).map_err(lost_within)?;
            let opened = tls.open(&mut nothing, 1);
            if opened.is_err() {
                // It learns why.
                let _ = send_all(socket, &tls.say(), deadline);
            }
            if opened.map_err(session)? == Opened::Missing && tls.is_handshaking() {
                receive(socket, tls.sealed(), deadline).map_err(lost_within)?;
            }
        }
        send_all(socket, &tls.say(), deadline).map_err(lost_within)?;
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
        let shown = fs::symlink_metadata(self.certificates.join(CERTIFICATE));
        if shown.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
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
        let text = read_regular(&self.certificates.join(file));
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

    /// Those that it may read.
    pub fn files(&self) -> [PathBuf; 3] {
        [CA, CERTIFICATE, KEY].map(|file| self.certificates.join(file))
    }
}

/// What is in a file, which neither blocks nor has no end.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag");
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = Vec::new();
    file.take(FILE_MAX).read_to_end(&mut text)?;
    Ok(text)
}
