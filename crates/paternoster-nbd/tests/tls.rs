//! TLS: whatever is sealed on one side is opened on the other, however it is cut on the way.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fastrand::Rng;
use paternoster_nbd::tls::{Opened, Tls};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, crypto::ring};

/// The two ends of a connection by that version; the server's first.
fn ends(version: &'static SupportedProtocolVersion) -> [Tls; 2] {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .expect("it is known")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("they belong together");
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a certificate");
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .expect("it is known")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let server = Tls::server(Arc::new(server)).expect("it is configured");
    [server, Tls::client(Arc::new(client), name).expect("it is configured")]
}

/// Has what one end has to say arrive at the other, which opens what comes of that.
fn tell(from: &mut Tls, to: &mut Tls, data: &[&[u8]]) -> BytesMut {
    let sealed = from.seal(data).expect("it may be sealed");
    to.sealed().extend_from_slice(&sealed);
    let mut opened = BytesMut::new();
    while let Opened::Data(_) = to.open(&mut opened, 1000).expect("it is right") {}
    opened
}

fn agreed(version: &'static SupportedProtocolVersion) -> [Tls; 2] {
    let [mut server, mut client] = ends(version);
    assert!(server.is_handshaking() && client.is_handshaking());
    while server.is_handshaking() || client.is_handshaking() {
        assert_eq!(tell(&mut client, &mut server, &[]), "");
        assert_eq!(tell(&mut server, &mut client, &[]), "");
    }
    [server, client]
}

#[test]
fn what_is_sealed_is_opened_however_it_is_cut() {
    for version in [&TLS12, &TLS13] {
        let [mut server, mut client] = agreed(version);
        let mut rng = Rng::with_seed(7);
        let sent: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(300_000).collect();
        let (mut left, mut opened) = (&sent[..], BytesMut::new());
        while !left.is_empty() {
            let (piece, rest) = left.split_at(rng.usize(..=left.len().min(70_000)));
            let sealed = client.seal(&[piece]).expect("it may be sealed");
            let mut way = sealed;
            while !way.is_empty() {
                let part = way.split_to(rng.usize(1..=way.len()));
                assert!(server.wanted() > 0);
                server.sealed().extend_from_slice(&part);
                let room = rng.usize(1..5000);
                loop {
                    let before = opened.len();
                    match server.open(&mut opened, room).expect("it is right") {
                        Opened::Data(count) => {
                            assert_eq!(opened.len() - before, count);
                            assert!(count <= room, "{count} bytes in a room of {room}");
                        }
                        Opened::Missing => break,
                        Opened::Ended => panic!("nobody has said that"),
                    }
                }
            }
            left = rest;
        }
        assert!(opened == sent, "what came is not what was sent");
        assert_eq!(server.sealed().len(), 0);
    }
}

#[test]
fn part_of_a_record_is_held_and_its_rest_is_wanted() {
    let [mut server, mut client] = agreed(&TLS13);
    let sealed = client.seal(&[&[7; 100]]).expect("it may be sealed");
    let (most, last) = sealed.split_at(sealed.len() - 1);
    server.sealed().extend_from_slice(&most[..2]);
    assert_eq!(server.wanted(), 3);
    server.sealed().extend_from_slice(&most[2..]);
    let mut opened = BytesMut::new();
    assert_eq!(server.open(&mut opened, 1000), Ok(Opened::Missing));
    assert_eq!(server.wanted(), 1);
    server.sealed().extend_from_slice(last);
    for opens in [Opened::Data(60), Opened::Data(40), Opened::Missing] {
        assert_eq!(server.open(&mut opened, 60), Ok(opens));
    }
}

#[test]
fn keys_are_refreshed_on_the_way() {
    let [mut server, mut client] = agreed(&TLS13);
    for _ in 0..5 {
        client.refresh_keys().expect("TLS 1.3 has that");
        assert_eq!(tell(&mut client, &mut server, &[b"one", b"two"]), "onetwo");
        assert_eq!(tell(&mut server, &mut client, &[b"back"]), "back");
    }
}

#[test]
fn end_is_told_and_nothing_behind_it_counts() {
    let [mut server, mut client] = agreed(&TLS13);
    assert!(!server.has_ended());
    let stray = client.seal(&[b"last"]).expect("it may be sealed");
    client.end();
    let end = client.say();
    for part in [&stray, &end, &stray] {
        server.sealed().extend_from_slice(part);
    }
    let mut opened = BytesMut::new();
    assert_eq!(server.open(&mut opened, 1000), Ok(Opened::Data(4)));
    assert_eq!(server.open(&mut opened, 1000), Ok(Opened::Ended));
    assert!(server.has_ended() && opened == "last");
}

#[test]
fn what_is_no_tls_is_an_error_of_which_the_peer_hears() {
    let nbd = Bytes::from_static(b"IHAVEOPT\0\0\0\x03\0\0\0\0");
    let too_long = Bytes::from_static(&[0x16, 3, 3, 0xff, 0xff, 1, 2, 3, 4]);
    for sent in [nbd, too_long] {
        let [mut server, _] = ends(&TLS13);
        server.sealed().extend_from_slice(&sent);
        server.open(&mut BytesMut::new(), 1000).expect_err(&format!("{sent:?} is no TLS"));
        assert!(server.has_to_say());
        let alert = server.say();
        assert_eq!(alert[0], 21, "a record of an alert");
    }
    let [mut server, mut client] = agreed(&TLS12);
    let mut sealed = client.seal(&[b"hello"]).expect("it may be sealed").to_vec();
    *sealed.last_mut().expect("a byte") ^= 1;
    server.sealed().extend_from_slice(&sealed);
    server.open(&mut BytesMut::new(), 1000).expect_err("it was changed on the way");
}

/// Records of a byte, each of which costs as much as one of kilobytes, come a few at a time.
#[test]
fn few_records_are_opened_at_once() {
    let [mut server, mut client] = agreed(&TLS13);
    for _ in 0..100 {
        let sealed = client.seal(&[b"x"]).expect("it may be sealed");
        server.sealed().extend_from_slice(&sealed);
    }
    let (before, mut opened) = (server.records(), BytesMut::new());
    let counts = std::iter::from_fn(|| match server.open(&mut opened, 1000) {
        Ok(Opened::Data(count)) => Some(count),
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [32, 32, 32, 4]);
    assert_eq!(server.records() - before, 100);
}

/// What came before a record that is wrong counts, and then the error is told.
#[test]
fn data_before_a_bad_record_is_given_first() {
    let [mut server, mut client] = agreed(&TLS13);
    let good = client.seal(&[b"good"]).expect("it may be sealed");
    let mut bad = client.seal(&[b"bad"]).expect("it may be sealed").to_vec();
    *bad.last_mut().expect("a byte") ^= 1;
    server.sealed().extend_from_slice(&[&good[..], &bad].concat());
    let mut opened = BytesMut::new();
    assert_eq!(server.open(&mut opened, 1000), Ok(Opened::Data(4)));
    server.open(&mut opened, 1000).expect_err("it was changed on the way");
    assert_eq!(opened, "good");
}

/// A reply's header and its data are one record, not two.
#[test]
fn pieces_share_records() {
    let [mut server, mut client] = agreed(&TLS13);
    let pieces: [&[u8]; 3] = [&[1; 20], &[2; 4096], &[3; 20]];
    server.sealed().extend_from_slice(&client.seal(&pieces).expect("it may be sealed"));
    let (before, mut opened) = (server.records(), BytesMut::new());
    assert_eq!(server.open(&mut opened, 1 << 20), Ok(Opened::Data(4136)));
    assert_eq!((server.records() - before, &opened[..]), (1, &pieces.concat()[..]));
}
