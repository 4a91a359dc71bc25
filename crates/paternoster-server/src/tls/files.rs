//! The files of TLS: the server's certificate and key, and by whom clients' certificates are
//! signed.
//!
//! They are read when the configuration is: at the start, and again at each reload, for clients
//! that come from then on.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use paternoster_nbd::tls::without_sign;
use rustix::fs::Mode;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite};

use super::identity::Identity;
use crate::config::TlsKeys;
use crate::sandbox;

/// The largest file that is read.
const FILE_MAX: u64 = 16 << 20;

/// A file that cannot be used: which key names it, and why.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) key: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) why: String,
}

impl Unusable {
    pub(crate) fn into_error(self) -> anyhow::Error {
        let Self { key, path, why } = self;
        anyhow::anyhow!("[tls] {key}: {}: {why}", path.display())
    }
}

/// The files as they were read.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) config: Arc<ServerConfig>,
    /// Whether each client has to show a certificate.
    pub(crate) asks_for_certificates: bool,
    /// What each file is, by its key: its path, and the fingerprint of what is in it.
    pub(crate) files: Vec<(&'static str, String)>,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Loaded").field(&self.files).finish()
    }
}

/// The files that hold for clients who come now; none where there is no TLS.
#[derive(Debug, Default)]
pub(crate) struct InForce(RwLock<Option<Arc<Loaded>>>);

impl InForce {
    pub(crate) fn new(loaded: Option<Loaded>) -> Self {
        Self(RwLock::new(loaded.map(Arc::new)))
    }

    pub(crate) fn get(&self) -> Option<Arc<Loaded>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// These hold from now on, unless they are the same: then clients that negotiate go on.
    pub(crate) fn set(&self, loaded: Option<Loaded>) {
        let mut in_force = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let files = |of: &Loaded| of.files.clone();
        if in_force.as_deref().map(files) != loaded.as_ref().map(files) {
            *in_force = loaded.map(Arc::new);
        }
    }
}

/// A file of TLS, and which key names it.
struct PemFile<'k> {
    key: &'static str,
    path: &'k Path,
    text: Vec<u8>,
}

impl<'k> PemFile<'k> {
    fn read(key: &'static str, path: &'k Path) -> Result<Self, Unusable> {
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut text));
        let file = Self { key, path, text };
        match read {
            Ok(bytes) if bytes as u64 > FILE_MAX => {
                Err(file.unusable(format!("it has more than {FILE_MAX} bytes")))
            }
            Ok(_) => Ok(file),
            Err(error) => Err(file.unusable(sandbox::explained(&error))),
        }
    }

    /// All of one kind that it has; at least one.
    fn all<T: PemObject>(&self, what: &str) -> Result<Vec<T>, Unusable> {
        let all: Result<Vec<_>, _> = T::pem_slice_iter(&self.text).collect();
        match all {
            Ok(all) if !all.is_empty() => Ok(all),
            Ok(_) | Err(PemError::NoItemsFound) => {
                Err(self.unusable(format!("there is no {what} in PEM in it; one is needed")))
            }
            Err(error) => Err(self.unusable(format!("it is no PEM: {error}"))),
        }
    }

    fn unusable(&self, why: impl Into<String>) -> Unusable {
        Unusable { key: self.key, path: self.path.to_owned(), why: why.into() }
    }

    /// The file as it is told.
    fn shown(&self) -> (&'static str, String) {
        let print = Identity::fingerprint(&self.text).to_string();
        let print = print.get(..SHOWN).unwrap_or_default();
        (self.key, format!("{} ({print}…)", self.path.display()))
    }
}

/// How much of a fingerprint is shown.
const SHOWN: usize = "sha256:".len() + 12;

/// Reads the files that these keys name.
pub(crate) fn load(keys: &TlsKeys) -> Result<Option<Loaded>, Unusable> {
    let (Some(certificate), Some(key)) = (&keys.certificate, &keys.key) else { return Ok(None) };
    let chain = PemFile::read("certificate", certificate)?;
    let certificates: Vec<CertificateDer<'static>> = chain.all("certificate")?;
    let secret = PemFile::read("key", key)?;
    check_mode(key).map_err(|why| secret.unusable(why))?;
    let private = secret.all::<PrivateKeyDer<'static>>("unencrypted private key")?;
    let private = without_sign(private.into_iter().next().expect("there is one"));
    let provider = Arc::new(provider());
    let mut files = vec![chain.shown(), secret.shown()];
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| chain.unusable(error.to_string()))?;
    let builder = match &keys.client_ca {
        Some(path) => {
            let ca = PemFile::read("client_ca", path)?;
            files.push(ca.shown());
            let crl = keys.crl.as_deref().map(|path| PemFile::read("crl", path)).transpose()?;
            files.extend(crl.as_ref().map(PemFile::shown));
            builder.with_client_cert_verifier(verifier(&ca, crl.as_ref(), provider)?)
        }
        None => builder.with_no_client_auth(),
    };
    let config = builder.with_single_cert(certificates, private);
    let mut config = config.map_err(|error| secret.unusable(of_pair(&error)))?;
    config.ignore_client_order = true;
    // Nothing is resumed: each session asks for the certificate again.
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    let asks_for_certificates = keys.client_ca.is_some();
    Ok(Some(Loaded { config: Arc::new(config), asks_for_certificates, files }))
}

/// The suites of rustls, with ChaCha20 first in TLS 1.2: keys of AES seal 2²⁴ records there,
/// minutes of a busy volume, and new ones are agreed on by TLS 1.3 alone.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    let seals_few = |suite: &SupportedCipherSuite| match suite {
        SupportedCipherSuite::Tls12(suite) => suite.common.confidentiality_limit < u64::MAX,
        SupportedCipherSuite::Tls13(_) => false,
    };
    provider.cipher_suites.sort_by_key(seals_few);
    provider
}

fn verifier(
    ca: &PemFile<'_>,
    crl: Option<&PemFile<'_>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, Unusable> {
    let mut roots = RootCertStore::empty();
    for certificate in ca.all::<CertificateDer<'static>>("certificate")? {
        roots.add(certificate).map_err(|error| ca.unusable(error.to_string()))?;
    }
    let lists: Vec<CertificateRevocationListDer<'static>> =
        crl.map(|crl| crl.all("revocation list")).transpose()?.unwrap_or_default();
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let built = builder.with_crls(lists).build();
    built.map_err(|error| crl.unwrap_or(ca).unusable(error.to_string()))
}

/// A key is its owner's: others who read it can be the server.
fn check_mode(path: &Path) -> Result<(), String> {
    let mode = fs::metadata(path).map_err(|error: io::Error| error.to_string())?;
    let mode = Mode::from_raw_mode(mode.permissions().mode());
    if !mode.intersects(Mode::RWXO) {
        return Ok(());
    }
    let mode = mode.bits() & 0o777;
    Err(format!("its mode is {mode:04o}, so that others may use it; 0600 or 0640 is allowed"))
}

/// Why a certificate and a key make no pair.
fn of_pair(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => "it is not the key of that certificate".to_owned(),
        other => other.to_string(),
    }
}
