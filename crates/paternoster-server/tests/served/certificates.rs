//! Certificates for tests, and a client's end of TLS that others speak through in the clear.

#![allow(dead_code, reason = "each test program uses some of it")]

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::thread;

use bytes::BytesMut;
use paternoster_nbd::tls::{Opened, Tls};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    KeyIdMethod, KeyPair, RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};

/// A certificate and its key, in PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Who signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, key()).expect("a certificate"))
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate of these names, URIs among them, with this number.
    pub(crate) fn signs(&self, names: &[&str], number: u64) -> Pair {
        self.sign(names, number, |_| {})
    }

    /// One that has expired.
    pub(crate) fn signed_long_ago(&self, names: &[&str]) -> Pair {
        self.sign(names, 1, |params| params.not_after = date_time_ymd(2001, 1, 1))
    }

    fn sign(
        &self,
        names: &[&str],
        number: u64,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Pair {
        let (uris, dns): (Vec<&str>, Vec<_>) = names.iter().partition(|name| name.contains(':'));
        let dns: Vec<_> = dns.into_iter().map(ToOwned::to_owned).collect();
        let mut params = CertificateParams::new(dns).expect("names");
        let uris = uris.into_iter().map(|uri| SanType::URI(uri.try_into().expect("ASCII")));
        params.subject_alt_names.extend(uris);
        params.serial_number = Some(SerialNumber::from(number));
        change(&mut params);
        let key = key();
        let certificate = params.signed_by(&key, &self.0).expect("a certificate").pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// The list of these, which are revoked.
    pub(crate) fn revokes(&self, numbers: &[u64]) -> String {
        let day = date_time_ymd(2026, 1, 1);
        let revoked = numbers.iter().map(|&number| RevokedCertParams {
            serial_number: SerialNumber::from(number),
            revocation_time: day,
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: day,
            next_update: date_time_ymd(2096, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).expect("a list").pem().expect("it is short")
    }
}

fn key() -> KeyPair {
    KeyPair::generate().expect("a key")
}

/// How a client speaks TLS that trusts this authority and shows that, to a server of that name.
pub(crate) fn client_tls(trusted: &str, shown: Option<&Pair>) -> Tls {
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_slice(trusted.as_bytes()).expect("a certificate");
    roots.add(trusted).expect("it is one");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("they are known")
        .with_root_certificates(roots);
    let config = match shown {
        None => builder.with_no_client_auth(),
        Some(Pair { certificate, key }) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            let chain = vec![certificate.expect("a certificate")];
            builder.with_client_auth_cert(chain, key).expect("they belong together")
        }
    };
    let name = ServerName::try_from("localhost").expect("a name");
    Tls::client(Arc::new(config), name).expect("it is configured")
}

/// Both ends of TLS that agree on keys already, the server's first.
pub(crate) fn agreed() -> [Tls; 2] {
    static CONFIGURED: OnceLock<(Arc<ServerConfig>, String)> = OnceLock::new();
    let (config, trusted) = CONFIGURED.get_or_init(|| {
        let authority = Authority::new();
        let Pair { certificate, key } = authority.signs(&["localhost"], 2);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("they are known")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.expect("a certificate")], key)
            .expect("they belong together");
        (Arc::new(config), authority.pem())
    });
    let mut server = Tls::server(Arc::clone(config)).expect("it is configured");
    let mut client = client_tls(trusted, None);
    while server.is_handshaking() || client.is_handshaking() || server.has_to_say() {
        server.sealed().extend_from_slice(&client.say());
        assert_eq!(server.open(&mut BytesMut::new(), 1), Ok(Opened::Missing));
        client.sealed().extend_from_slice(&server.say());
        assert_eq!(client.open(&mut BytesMut::new(), 1), Ok(Opened::Missing));
    }
    [server, client]
}

/// The clear end of a client's TLS: what is written there arrives at the other end of `sealed`.
/// New keys are used after so many bytes. It ends with either end.
pub(crate) fn relay(mut tls: Tls, mut sealed: UnixStream, new_keys: usize) -> UnixStream {
    let (ours, mut clear) = UnixStream::pair().expect("sockets");
    thread::spawn(move || {
        let mut chunk = vec![0; 64 << 10];
        let mut since = 0;
        loop {
            let [local, remote] = readable(&clear, &sealed);
            if local {
                let Ok(read @ 1..) = clear.read(&mut chunk) else { break };
                since += read;
                if since > new_keys {
                    tls.refresh_keys().expect("TLS 1.3 has that");
                    since = 0;
                }
                let said = tls.seal(&[&chunk[..read]]).expect("it may be sealed");
                if sealed.write_all(&said).is_err() {
                    break;
                }
            }
            if remote {
                let Ok(read @ 1..) = sealed.read(&mut chunk) else { break };
                tls.sealed().extend_from_slice(&chunk[..read]);
                let mut opened = BytesMut::new();
                while let Ok(Opened::Data(_)) = tls.open(&mut opened, 1 << 20) {}
                // It may have to say its part of agreeing on keys, or why it does not.
                let said = sealed.write_all(&tls.say());
                if said.and_then(|()| clear.write_all(&opened)).is_err() || tls.has_ended() {
                    break;
                }
            }
        }
        tls.end();
        let _ = sealed.write_all(&tls.say());
    });
    ours
}

fn readable(one: &UnixStream, other: &UnixStream) -> [bool; 2] {
    let mut both = [one, other].map(|stream| PollFd::new(stream, PollFlags::IN));
    poll(&mut both, None).expect("they are open");
    both.map(|one| !one.revents().is_empty())
}
