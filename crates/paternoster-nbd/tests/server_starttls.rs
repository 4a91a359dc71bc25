//! STARTTLS: nothing is told in the clear, and nothing that came in the clear counts within TLS.

mod common;

use bytes::BytesMut;
use common::{
    CLIENT_FLAGS, client_flags, codes, disk, info_request, meta_request, option, option_replies,
    run,
};
use paternoster_nbd::proto::{opt, rep};
use paternoster_nbd::server::{Handshake, HandshakeError, Progress};
use paternoster_nbd::{ExportInfo, Session};

fn starttls() -> Vec<u8> {
    option(opt::STARTTLS, &[])
}

fn go() -> Vec<u8> {
    option(opt::GO, &info_request("disk", &[]))
}

/// A handshake that has had a client's flags and these options.
fn asked(options: &[Vec<u8>]) -> (Handshake, Result<Progress, HandshakeError>, Vec<u32>) {
    let mut handshake = Handshake::requiring_tls();
    let sent = [client_flags(CLIENT_FLAGS), options.concat()].concat();
    let (end, output) = run(&mut handshake, &exports(), &sent);
    (handshake, end, codes(&option_replies(output)))
}

fn exports() -> ExportInfo {
    disk("disk", 1 << 20)
}

/// What a client enters within TLS by these options, after those in the clear.
fn entered(clear: &[Vec<u8>], within: &[Vec<u8>]) -> Session {
    let (mut handshake, end, _) = asked(&[clear, &[starttls()]].concat());
    assert_eq!(end, Ok(Progress::StartTls));
    match run(&mut handshake, &exports(), &within.concat()).0 {
        Ok(Progress::Entered(session)) => session,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_told_before_tls() {
    let meta = |code| option(code, &meta_request("disk", &["base:allocation"]));
    let mut options = vec![
        option(opt::LIST, &[]),
        option(opt::INFO, &info_request("disk", &[])),
        go(),
        option(opt::STRUCTURED_REPLY, &[]),
        meta(opt::LIST_META_CONTEXT),
        meta(opt::SET_META_CONTEXT),
        option(4711, &[]),
    ];
    let (_, end, replies) = asked(&options);
    assert_eq!((end, replies), (Ok(Progress::NeedMore), vec![rep::ERR_TLS_REQD; 7]));
    options.push(option(opt::ABORT, &[]));
    assert_eq!(asked(&options).1, Ok(Progress::Aborted));
    let by_name = asked(&[option(opt::EXPORT_NAME, b"disk")]);
    assert_eq!((by_name.1, by_name.2), (Err(HandshakeError::TlsRequired), vec![]));
    // That of an export that there is not ends alike.
    assert_eq!(asked(&[option(opt::EXPORT_NAME, b"none")]).1, Err(HandshakeError::TlsRequired));
}

/// The hole of other servers (CVE-2021-3716): a structured reply that whoever is on the way puts
/// before STARTTLS held within TLS, where the client did not ask for it.
#[test]
fn what_was_agreed_in_the_clear_is_forgotten() {
    let structured = option(opt::STRUCTURED_REPLY, &[]);
    assert!(!entered(std::slice::from_ref(&structured), &[go()]).structured_replies);
    assert!(entered(&[], &[structured, go()]).structured_replies);
}

#[test]
fn what_follows_starttls_in_the_clear_ends_the_session() {
    for behind in [vec![0], go()] {
        let len = behind.len();
        let (_, end, replies) = asked(&[starttls(), behind]);
        assert_eq!((end, replies), (Err(HandshakeError::BehindStartTls { len }), vec![]));
    }
}

#[test]
fn starttls_is_asked_for_once_and_without_data() {
    let (mut handshake, end, replies) = asked(&[option(opt::STARTTLS, b"x"), starttls()]);
    assert_eq!((end, replies), (Ok(Progress::StartTls), vec![rep::ERR_INVALID, rep::ACK]));
    let (end, output) = run(&mut handshake, &exports(), &starttls());
    assert_eq!(end, Ok(Progress::NeedMore));
    assert_eq!(codes(&option_replies(output)), [rep::ERR_INVALID]);
    assert!(!handshake.take_refused_tls(), "it is not that there is none");
}

#[test]
fn client_flags_hold_within_tls() {
    // Without NO_ZEROES: EXPORT_NAME is answered with 124 bytes more.
    let mut handshake = Handshake::requiring_tls();
    let (end, _) = run(&mut handshake, &exports(), &[client_flags(1), starttls()].concat());
    assert_eq!(end, Ok(Progress::StartTls));
    let by_name = option(opt::EXPORT_NAME, b"disk");
    let (end, output) = run(&mut handshake, &exports(), &by_name);
    assert!(matches!(end, Ok(Progress::Entered(_))), "{end:?}");
    assert_eq!(output.len(), 8 + 2 + 124);
}

#[test]
fn server_that_is_being_shut_down_begins_no_tls() {
    let mut handshake = Handshake::requiring_tls();
    handshake.begin_shutdown();
    let sent = [client_flags(CLIENT_FLAGS), starttls()].concat();
    let mut output = BytesMut::new();
    let end = handshake.receive(&mut BytesMut::from(&sent[..]), &exports(), &mut output);
    assert_eq!(end, Ok(Progress::NeedMore));
    assert_eq!(codes(&option_replies(output.freeze())), [rep::ERR_SHUTDOWN]);
}
