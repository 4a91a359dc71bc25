//! The client's side, mostly against servers that do what they must not.

mod common;

use bytes::{BufMut, Bytes, BytesMut};
use common::disk;
use paternoster_nbd::client::{
    Answer, ClientOptions, EncodeError, Handshake, HandshakeError, Listed, Progress, Replies,
    ReplyError, Target, Transmission,
};
use paternoster_nbd::proto::{
    MAX_PAYLOAD, OPTION_REPLY_MAGIC, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk, opt, rep,
};
use paternoster_nbd::{
    Command, Extent, ExtentFlags, NbdError, Request, Session, StatusQuery, server,
};

const READ: Command = Command::Read { offset: 1000, len: 100, df: false };
const STATUS: StatusQuery = StatusQuery { offset: 0, len: 100, one: false };

fn options(target: Target) -> ClientOptions {
    ClientOptions { target, replies: Replies::StructuredWithAllocation }
}

fn go() -> ClientOptions {
    options(Target::Go("disk".to_owned()))
}

fn option_reply(option: u32, reply: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_u64(OPTION_REPLY_MAGIC);
    bytes.put_u32(option);
    bytes.put_u32(reply);
    bytes.put_u32(u32::try_from(data.len()).unwrap());
    bytes.put_slice(data);
    bytes.to_vec()
}

/// What a client makes of a greeting and these replies, and what it has sent by then.
fn shake(
    options: ClientOptions,
    replies: &[Vec<u8>],
) -> (Result<Progress, HandshakeError>, BytesMut) {
    let greeting = server::Handshake::greeting().to_vec();
    let mut input = BytesMut::from(&[greeting, replies.concat()].concat()[..]);
    let mut output = BytesMut::new();
    let end = Handshake::new(options).receive(&mut input, &mut output);
    (end, output)
}

/// A client and our server until the client has got where it wanted.
fn meet(
    options: ClientOptions,
    exports: &dyn paternoster_nbd::Exports,
) -> Result<Progress, HandshakeError> {
    let (mut client, mut server) = (Handshake::new(options), server::Handshake::new());
    let mut to_client = BytesMut::from(&server::Handshake::greeting()[..]);
    let mut to_server = BytesMut::new();
    loop {
        let progress = client.receive(&mut to_client, &mut to_server);
        if progress != Ok(Progress::NeedMore) {
            return progress;
        }
        server.receive(&mut to_server, exports, &mut to_client).expect("the client is legal");
    }
}

fn session() -> Session {
    let export = disk("disk", 1 << 20);
    Session { export, structured_replies: true, allocation_context: Some(7) }
}

fn simple_session() -> Session {
    Session { structured_replies: false, allocation_context: None, ..session() }
}

fn chunk(flags: u16, kind: u16, cookie: u64, payload: &[&[u8]]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_u32(STRUCTURED_REPLY_MAGIC);
    bytes.put_u16(flags);
    bytes.put_u16(kind);
    bytes.put_u64(cookie);
    let payload = payload.concat();
    bytes.put_u32(u32::try_from(payload.len()).unwrap());
    bytes.put_slice(&payload);
    bytes.to_vec()
}

fn data(flags: u16, offset: u64, data: &[u8]) -> Vec<u8> {
    chunk(flags, chunk::OFFSET_DATA, 1, &[&offset.to_be_bytes(), data])
}

fn hole(flags: u16, offset: u64, len: u32) -> Vec<u8> {
    chunk(flags, chunk::OFFSET_HOLE, 1, &[&offset.to_be_bytes(), &len.to_be_bytes()])
}

fn extents(flags: u16, context: u32, extents: &[(u32, u32)]) -> Vec<u8> {
    let extents: Vec<u8> = extents
        .iter()
        .flat_map(|(len, flags)| [len.to_be_bytes(), flags.to_be_bytes()].concat())
        .collect();
    chunk(flags, chunk::BLOCK_STATUS, 1, &[&context.to_be_bytes(), &extents])
}

fn simple(error: u32, cookie: u64) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_u32(SIMPLE_REPLY_MAGIC);
    bytes.put_u32(error);
    bytes.put_u64(cookie);
    bytes.to_vec()
}

/// What comes of one request, with cookie 1, and what the server says to it.
fn ask(
    session: Session,
    command: Command,
    said: &[Vec<u8>],
) -> Result<Option<Result<Answer, NbdError>>, ReplyError> {
    let mut client = Transmission::new(session);
    client.encode(&Request { cookie: 1, command }, &mut BytesMut::new()).expect("it can be sent");
    let reply = client.decode(&mut BytesMut::from(&said.concat()[..]))?;
    Ok(reply.map(|reply| reply.result.map_err(|remote| remote.error)))
}

fn why(end: Result<Option<Result<Answer, NbdError>>, ReplyError>) -> &'static str {
    match end {
        Err(ReplyError::BadChunk { why, .. }) => why,
        other => panic!("no bad chunk: {other:?}"),
    }
}

#[test]
fn every_target_is_reached_with_our_server() {
    let mut export = disk("disk", 12345);
    export.description = Some("for a test".to_owned());
    for target in [Target::Go("disk".to_owned()), Target::ExportName("disk".to_owned())] {
        let Ok(Progress::Entered(session)) = meet(options(target.clone()), &export) else {
            panic!("{target:?}")
        };
        assert_eq!((session.export.size, session.allocation_context), (12345, Some(1)));
        assert!(session.structured_replies);
    }
    let Ok(Progress::Described(found)) = meet(options(Target::Info(String::new())), &export) else {
        panic!("no description")
    };
    assert_eq!((found.name, found.description), (export.name.clone(), export.description.clone()));
    let listed = Listed { name: export.name.clone(), description: export.description.clone() };
    assert_eq!(meet(options(Target::List), &export), Ok(Progress::Listed(vec![listed])));
}

#[test]
fn refusal_comes_with_the_servers_words() {
    let end = meet(options(Target::Info("other".to_owned())), &disk("disk", 0));
    let Err(HandshakeError::Refused { option: opt::INFO, reply: rep::ERR_UNKNOWN, message }) = end
    else {
        panic!("{end:?}")
    };
    assert_eq!(message, "there is no export \"other\"");
}

#[test]
fn old_server_is_entered_by_export_name_without_structured_replies() {
    let replies = [
        option_reply(opt::STRUCTURED_REPLY, rep::ERR_UNSUP, b""),
        option_reply(opt::GO, rep::ERR_UNSUP, b""),
        [&(1u64 << 30).to_be_bytes()[..], &[0, 1]].concat(),
    ];
    let (end, _) = shake(go(), &replies);
    let Ok(Progress::Entered(session)) = end else { panic!("{end:?}") };
    assert_eq!((session.export.size, session.structured_replies), (1 << 30, false));
}

/// What is said of a server that says this first.
fn said_of(greeting: &[u8]) -> String {
    let end = Handshake::new(go()).receive(&mut BytesMut::from(greeting), &mut BytesMut::new());
    end.expect_err("it is left").to_string()
}

#[test]
fn server_that_does_not_speak_nbd_is_left() {
    let ssh = said_of(b"SSH-2.0-OpenSSH_9.2");
    assert_eq!(ssh, "it is no NBD server: it says \"SSH-2.0-\" where \"NBDMAGIC\" belongs");
    let short = said_of(b"220 mail\r\n");
    assert!(short.contains("it says \"220 mail\""), "it is not waited for: {short}");
    let other = said_of(b"NBDMAGIC\x01\x02\x03\x04\x05\x06\x07\x08");
    assert!(other.contains("says 0x0102030405060708 where \"IHAVEOPT\""), "{other}");
}

#[test]
fn server_of_the_old_handshake_is_left_with_that_reason() {
    // The protocol's text: NBDMAGIC, cliserv_magic, the size, flags, and 124 zeroes.
    let magics = [0x4e42_444d_4147_4943u64, 0x0000_4202_8186_1253, 1 << 20];
    let old = [magics.map(u64::to_be_bytes).concat(), vec![0; 4 + 124]].concat();
    assert!(said_of(&old).contains("the old handshake"), "{}", said_of(&old));
}

#[test]
fn refusal_says_what_is_wrong_and_quotes_no_more_than_two_hundred_characters() {
    let refused = |code, words: &[u8]| {
        let replies =
            [option_reply(opt::STRUCTURED_REPLY, code, words), option_reply(opt::GO, code, words)];
        // To shut down is the one refusal of structured replies that ends it.
        let replies = &replies[..if code == rep::ERR_SHUTDOWN { 1 } else { 2 }];
        shake(go(), replies).0.expect_err("it is refused").to_string()
    };
    for (code, told) in [
        (rep::ERR_UNKNOWN, "the server has no such export"),
        (rep::ERR_TLS_REQD, "the server wants TLS"),
        (rep::ERR_POLICY, "the server does not let this client in"),
        (rep::ERR_SHUTDOWN, "the server is shutting down"),
        (rep::ERR_INVALID, "the server refuses"),
    ] {
        let said = refused(code, b"no\x1b[31m\r\n");
        assert!(said.starts_with(told) && said.ends_with(r#": "no\u{1b}[31m\r\n")"#), "{said}");
    }
    let silent = refused(rep::ERR_TLS_REQD, b"");
    assert_eq!(silent, "the server wants TLS (option 7 is answered with 0x80000005)");
    let long = refused(rep::ERR_UNKNOWN, "x".repeat(60_000).as_bytes());
    assert!(long.ends_with(&format!("\"{}…\")", "x".repeat(200))), "{long}");
}

#[test]
fn export_that_is_asked_for_in_the_old_way_is_known_to_be() {
    let mut handshake = Handshake::new(go());
    let mut output = BytesMut::new();
    let greeting = [b"NBDMAGICIHAVEOPT".as_slice(), &[0, 1]].concat();
    let replies = [opt::STRUCTURED_REPLY, opt::GO].map(|of| option_reply(of, rep::ERR_UNSUP, b""));
    for (bytes, asks) in [(&greeting, false), (&replies[0], false), (&replies[1], true)] {
        let more = handshake.receive(&mut BytesMut::from(&bytes[..]), &mut output);
        assert_eq!(more, Ok(Progress::NeedMore));
        assert_eq!(handshake.asks_by_export_name(), asks);
    }
}

#[test]
fn replies_to_other_options_and_of_other_kinds_are_errors() {
    let (end, _) = shake(go(), &[option_reply(opt::GO, rep::ACK, b"")]);
    assert!(matches!(end, Err(HandshakeError::WrongOption { .. })));
    let (end, _) = shake(go(), &[option_reply(opt::STRUCTURED_REPLY, rep::SERVER, b"")]);
    assert!(matches!(end, Err(HandshakeError::BadReply { .. })));
    let plain = ClientOptions { replies: Replies::Simple, ..go() };
    let (end, _) = shake(plain, &[option_reply(opt::GO, rep::ACK, b"")]);
    assert!(matches!(end, Err(HandshakeError::BadReply { .. })));
}

#[test]
fn list_without_end_is_cut_off() {
    let entry = option_reply(opt::LIST, rep::SERVER, &[0; 4]);
    let (end, _) = shake(options(Target::List), &vec![entry; (1 << 16) + 1]);
    assert!(matches!(end, Err(HandshakeError::TooMuch { unit: "replies", .. })));
    let mut huge = option_reply(opt::LIST, rep::SERVER, b"");
    huge[16..].copy_from_slice(&u32::MAX.to_be_bytes());
    let (end, _) = shake(options(Target::List), &[huge]);
    assert!(matches!(end, Err(HandshakeError::TooMuch { unit: "bytes at once", .. })));
    let long = option_reply(opt::LIST, rep::SERVER, &[&[0; 4][..], &[b'd'; 4096]].concat());
    let (end, _) = shake(options(Target::List), &vec![long; 5000]);
    assert!(matches!(end, Err(HandshakeError::TooMuch { unit: "bytes in all", .. })));
}

#[test]
fn one_chunk_is_handed_on_without_a_copy() {
    let mut client = Transmission::new(session());
    client.encode(&Request { cookie: 1, command: READ }, &mut BytesMut::new()).unwrap();
    let mut input = BytesMut::from(&data(1, 1000, &[b'x'; 100])[..]);
    let place = input[28..].as_ptr();
    let reply = client.decode(&mut input).unwrap().unwrap();
    let Ok(Answer::Data(data)) = reply.result else { panic!("{reply:?}") };
    assert_eq!((data.as_ptr(), data.len(), client.in_flight()), (place, 100, 0));
}

#[test]
fn chunks_come_in_any_order_and_holes_are_zeroes() {
    let said = [
        data(0, 1090, &[b'c'; 10]),
        hole(0, 1020, 70),
        data(0, 1000, &[b'a'; 20]),
        chunk(1, chunk::NONE, 1, &[]),
    ];
    let expected = [&[b'a'; 20][..], &[0; 70], &[b'c'; 10]].concat();
    assert_eq!(ask(session(), READ, &said), Ok(Some(Ok(Answer::Data(expected.into())))));
    assert_eq!(ask(session(), READ, &said[..3]), Ok(None));
}

#[test]
fn chunks_may_not_overlap_or_leave_the_range_or_a_gap() {
    let overlap = "a chunk that overlaps an earlier one";
    for second in [data(0, 1019, b"x"), data(0, 1009, &[1; 12]), hole(0, 1000, 100)] {
        assert_eq!(why(ask(session(), READ, &[data(0, 1010, &[0; 10]), second])), overlap);
    }
    let whole = data(0, 1000, &[0; 100]);
    assert_eq!(why(ask(session(), READ, &[whole.clone(), whole])), overlap);
    let outside = "a chunk outside the range asked for";
    for out in [data(0, 999, b"x"), data(0, 1100, b"x"), hole(0, 1099, 2), hole(0, 0, u32::MAX)] {
        assert_eq!(why(ask(session(), READ, &[out])), outside);
    }
    let gap = [data(0, 1000, &[0; 99]), chunk(1, chunk::NONE, 1, &[])];
    assert_eq!(why(ask(session(), READ, &gap)), "it ends a reply that lacks some of the data");
    assert_eq!(why(ask(session(), READ, &[hole(0, 1000, 0)])), "an empty chunk");
}

#[test]
fn df_allows_one_chunk() {
    let read = Command::Read { offset: 1000, len: 100, df: true };
    let said = [data(0, 1000, &[0; 50]), data(1, 1050, &[0; 50])];
    let reason = why(ask(session(), read, &said));
    assert_eq!(reason, "a second chunk, though no more than one was asked for");
}

#[test]
fn the_first_error_counts_whatever_follows() {
    let error = |code: u32| [&code.to_be_bytes()[..], &[0, 2], b"no"].concat();
    let said = [
        chunk(0, chunk::ERROR, 1, &[&error(5)]),
        data(0, 1000, &[0; 50]),
        chunk(1, chunk::ERROR_OFFSET, 1, &[&error(22), &[0; 8]]),
    ];
    assert_eq!(ask(session(), READ, &said), Ok(Some(Err(NbdError::Io))));
    let unknown = chunk(1, chunk::ERROR_BIT + 99, 1, &[&error(12345)]);
    assert_eq!(ask(session(), READ, &[unknown]), Ok(Some(Err(NbdError::Invalid))));
}

#[test]
fn lengths_are_judged_before_the_payload_has_come() {
    let mut client = Transmission::new(session());
    client.encode(&Request { cookie: 1, command: READ }, &mut BytesMut::new()).unwrap();
    for (kind, len) in [
        (chunk::NONE, 1),
        (chunk::OFFSET_DATA, 8),
        (chunk::OFFSET_DATA, 109),
        (chunk::OFFSET_HOLE, 13),
        (chunk::ERROR, 5),
        (chunk::ERROR, u32::MAX),
    ] {
        let mut header = chunk(1, kind, 1, &[]);
        header[16..].copy_from_slice(&u32::to_be_bytes(len));
        let end = client.decode(&mut BytesMut::from(&header[..]));
        assert!(matches!(end, Err(ReplyError::BadChunk { .. })), "{kind} {len}: {end:?}");
    }
}

#[test]
fn extents_are_checked() {
    let status = Command::BlockStatus(STATUS);
    let good = [(60, 3), (60, 0)];
    let expected = good
        .map(|(len, flags)| Extent { len, flags: ExtentFlags::from_bits_truncate(flags) })
        .to_vec();
    let end = ask(session(), status.clone(), &[extents(1, 7, &good)]);
    assert_eq!(end, Ok(Some(Ok(Answer::Extents(expected)))));
    let one = Command::BlockStatus(StatusQuery { one: true, ..STATUS });
    for (command, said, reason) in [
        (&status, extents(1, 8, &good), "its context was not selected"),
        (&status, extents(1, 7, &[(0, 0)]), "an extent is empty"),
        (&status, extents(1, 7, &[(100, 0), (1, 1)]), "extents go on after the range asked for"),
        (&status, extents(1, 7, &[]), "its length is wrong"),
        (&status, chunk(1, chunk::NONE, 1, &[]), "it ends a reply that lacks the extents"),
        (&one, extents(1, 7, &good), "more than the one extent asked for"),
        (&one, extents(1, 7, &[(101, 0)]), "the one extent is longer than the range asked for"),
    ] {
        assert_eq!(why(ask(session(), command.clone(), &[said])), reason);
    }
    let twice = [extents(0, 7, &good), extents(1, 7, &good)];
    assert_eq!(why(ask(session(), status, &twice)), "the extents have come already");
}

#[test]
fn simple_replies_are_taken_where_they_are_legal() {
    let end = ask(simple_session(), READ, &[simple(0, 1), vec![9; 100]]);
    assert_eq!(end, Ok(Some(Ok(Answer::Data(Bytes::from(vec![9; 100]))))));
    let error = ask(simple_session(), READ, &[simple(28, 1)]);
    assert_eq!(error, Ok(Some(Err(NbdError::NoSpace))));
    assert_eq!(ask(session(), Command::Flush, &[simple(0, 1)]), Ok(Some(Ok(Answer::Done))));
    let not = Err(ReplyError::NotStructured { cookie: 1 });
    assert_eq!(ask(session(), READ, &[simple(0, 1)]), not);
    assert_eq!(ask(session(), Command::BlockStatus(STATUS), &[simple(0, 1)]), not);
    let structured = ask(simple_session(), READ, &[data(1, 1000, &[0; 100])]);
    assert_eq!(structured, Err(ReplyError::BadMagic { found: STRUCTURED_REPLY_MAGIC }));
}

#[test]
fn replies_to_nothing_are_errors() {
    let unknown = Err(ReplyError::UnknownCookie { cookie: 2 });
    assert_eq!(ask(session(), READ, &[simple(0, 2)]), unknown);
    assert_eq!(ask(session(), READ, &[chunk(1, chunk::NONE, 2, &[])]), unknown);
    let flush = ask(session(), Command::Flush, &[data(1, 0, b"x")]);
    assert_eq!(why(flush), "it does not belong to this request");
}

#[test]
fn what_could_not_be_understood_is_not_sent() {
    let mut client = Transmission::new(simple_session());
    let mut output = BytesMut::new();
    let mut send = |cookie, command| client.encode(&Request { cookie, command }, &mut output);
    assert_eq!(send(1, READ), Ok(()));
    assert_eq!(send(1, READ), Err(EncodeError::CookieInFlight { cookie: 1 }));
    assert_eq!(send(2, Command::BlockStatus(STATUS)), Err(EncodeError::NoContext));
    let long = MAX_PAYLOAD as usize + 1;
    let read = Command::Read { offset: 0, len: MAX_PAYLOAD + 1, df: false };
    assert_eq!(send(2, read), Err(EncodeError::TooLong { len: long }));
    let write = Command::Write { offset: 0, data: vec![0; long].into(), fua: false };
    assert_eq!(send(2, write), Err(EncodeError::TooLong { len: long }));
    assert_eq!(send(2, Command::Disconnect), Ok(()));
    assert_eq!(send(3, READ), Err(EncodeError::Disconnected));
    assert_eq!(output.len(), 2 * 28);
}

/// A client within TLS and our server, which requires it, until the client has got where it wanted.
fn meet_within_tls(options: ClientOptions) -> Result<Progress, HandshakeError> {
    let mut client = Handshake::new(options).within_tls();
    let mut server = server::Handshake::requiring_tls();
    let mut to_client = BytesMut::from(&server::Handshake::greeting()[..]);
    let (mut to_server, mut begun) = (BytesMut::new(), false);
    loop {
        match client.receive(&mut to_client, &mut to_server)? {
            Progress::StartTls => {
                assert!(!std::mem::replace(&mut begun, true) && to_server.is_empty());
                continue;
            }
            Progress::NeedMore => {}
            progress => {
                assert!(begun, "it has not waited for TLS");
                return Ok(progress);
            }
        }
        let exports = disk("disk", 1 << 20);
        server.receive(&mut to_server, &exports, &mut to_client).expect("the client is legal");
    }
}

#[test]
fn client_begins_tls_before_it_asks_for_anything() {
    for target in [Target::List, Target::Info("disk".into()), Target::Go("disk".into())] {
        for replies in [Replies::Simple, Replies::StructuredWithAllocation] {
            let options = ClientOptions { target: target.clone(), replies };
            meet_within_tls(options).expect("the server agrees");
        }
    }
}

#[test]
fn server_without_tls_is_told_from_others() {
    let mut client = Handshake::new(go()).within_tls();
    let mut server = server::Handshake::new();
    let mut to_client = BytesMut::from(&server::Handshake::greeting()[..]);
    let mut to_server = BytesMut::new();
    assert_eq!(client.receive(&mut to_client, &mut to_server), Ok(Progress::NeedMore));
    let exports = disk("disk", 1 << 20);
    server.receive(&mut to_server, &exports, &mut to_client).expect("it is legal");
    let refused = client.receive(&mut to_client, &mut to_server).expect_err("there is no TLS");
    assert!(matches!(refused, HandshakeError::Refused { option: opt::STARTTLS, .. }), "{refused}");
}

/// Whoever is on the way may put bytes behind the answer, in the clear.
#[test]
fn what_follows_the_answer_to_starttls_in_the_clear_ends_the_handshake() {
    let greeting = server::Handshake::greeting().to_vec();
    let ack = option_reply(opt::STARTTLS, rep::ACK, &[]);
    let behind = option_reply(opt::STRUCTURED_REPLY, rep::ACK, &[]);
    let mut input = BytesMut::from(&[greeting, ack, behind.clone()].concat()[..]);
    let ended = Handshake::new(go()).within_tls().receive(&mut input, &mut BytesMut::new());
    assert_eq!(ended, Err(HandshakeError::BehindStartTls { len: behind.len() }));
}
