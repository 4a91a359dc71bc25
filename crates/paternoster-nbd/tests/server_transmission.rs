//! The transmission phase: which requests get through, and how the others are answered.

mod common;

use bytes::{Buf, Bytes, BytesMut};
use common::{disk, request};
use paternoster_nbd::proto::{
    MAX_PAYLOAD, REQUEST_MAGIC, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk, cmd,
};
use paternoster_nbd::server::{Fatal, Transmission};
use paternoster_nbd::{
    Command, CommandFlags, Extent, ExtentFlags, NbdError, Request, Session, StatusQuery,
    TransmissionFlags,
};

const SIZE: u64 = 100 << 20;
const COOKIE: u64 = 0xc00c1e;

fn session() -> Session {
    let mut export = disk("disk", SIZE);
    export.flags |= TransmissionFlags::HAS_FLAGS;
    Session { export, structured_replies: true, allocation_context: Some(1) }
}

fn without(flags: TransmissionFlags) -> Session {
    let mut session = session();
    session.export.flags -= flags;
    session
}

fn read_only() -> Session {
    let mut session = session();
    session.export.flags |= TransmissionFlags::READ_ONLY;
    session
}

/// What a server makes of one request with a payload, and what it leaves of the input.
fn decode(session: Session, bytes: &[u8]) -> (Option<Command>, Bytes, BytesMut) {
    let mut server = Transmission::new(session);
    let (mut input, mut output) = (BytesMut::from(bytes), BytesMut::new());
    let request = server.decode(&mut input, &mut output).expect("the magic is right");
    let command = request.map(|request| {
        assert_eq!(request.cookie, COOKIE);
        request.command
    });
    (command, output.freeze(), input)
}

fn accepted(session: Session, flags: CommandFlags, code: u16, offset: u64, len: u32) -> Command {
    let (command, output, _) = decode(session, &request(flags.bits(), code, COOKIE, offset, len));
    assert!(output.is_empty());
    command.expect("the request is legal")
}

/// The error that a request is answered with; what is sent after it must stay.
fn refused(session: Session, flags: u16, code: u16, offset: u64, len: u32) -> NbdError {
    let structured = session.structured_replies;
    let payload = if code == cmd::WRITE { len as usize } else { 0 };
    let bytes = [request(flags, code, COOKIE, offset, len), vec![7; payload], b"next".to_vec()];
    let (command, mut output, left) = decode(session, &bytes.concat());
    assert_eq!(command, None);
    assert_eq!(left, "next");
    if !structured {
        assert_eq!(output.get_u32(), SIMPLE_REPLY_MAGIC);
        let error = output.get_u32();
        assert_eq!((output.get_u64(), output.len()), (COOKIE, 0));
        return NbdError::from_code(error);
    }
    assert_eq!(output.get_u32(), STRUCTURED_REPLY_MAGIC);
    assert_eq!((output.get_u16(), output.get_u16()), (chunk::FLAG_DONE, chunk::ERROR));
    assert_eq!(output.get_u64(), COOKIE);
    assert_eq!(output.get_u32() as usize, output.len());
    let error = output.get_u32();
    assert_eq!(usize::from(output.get_u16()), output.len());
    assert!(!output.is_empty(), "a refusal says why");
    NbdError::from_code(error)
}

fn invalid(session: Session, flags: CommandFlags, code: u16, offset: u64, len: u32) {
    assert_eq!(refused(session, flags.bits(), code, offset, len), NbdError::Invalid);
}

const NONE: CommandFlags = CommandFlags::empty();

#[test]
fn requests_arrive_with_their_flags() {
    let all = CommandFlags::FUA | CommandFlags::NO_HOLE | CommandFlags::FAST_ZERO;
    assert_eq!(
        accepted(session(), all, cmd::WRITE_ZEROES, 1, 2),
        Command::WriteZeroes { offset: 1, len: 2, fua: true, no_hole: true, fast: true }
    );
    assert_eq!(
        accepted(session(), CommandFlags::DF, cmd::READ, 3, 4),
        Command::Read { offset: 3, len: 4, df: true }
    );
    assert_eq!(
        accepted(session(), CommandFlags::REQ_ONE, cmd::BLOCK_STATUS, 5, 6),
        Command::BlockStatus(StatusQuery { offset: 5, len: 6, one: true })
    );
    assert_eq!(accepted(session(), NONE, cmd::FLUSH, 0, 0), Command::Flush);
    assert_eq!(accepted(session(), NONE, cmd::DISC, 1, 1), Command::Disconnect);
}

#[test]
fn fua_is_taken_on_every_command() {
    let fua = CommandFlags::FUA;
    let trim = accepted(session(), fua, cmd::TRIM, 0, 9);
    assert_eq!(trim, Command::Trim { offset: 0, len: 9, fua: true });
    for code in [cmd::READ, cmd::CACHE, cmd::BLOCK_STATUS] {
        accepted(session(), fua, code, 0, 9);
    }
    accepted(session(), fua, cmd::FLUSH, 0, 0);
    accepted(without(TransmissionFlags::SEND_FUA), fua, cmd::READ, 0, 9);
}

#[test]
fn fua_on_a_writing_command_needs_to_be_offered() {
    for code in [cmd::WRITE, cmd::TRIM, cmd::WRITE_ZEROES] {
        invalid(without(TransmissionFlags::SEND_FUA), CommandFlags::FUA, code, 0, 9);
    }
}

#[test]
fn the_data_of_a_write_is_the_input_itself() {
    let mut server = Transmission::new(session());
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    input.extend_from_slice(&request(0, cmd::WRITE, COOKIE, 8, 5));
    input.extend_from_slice(b"hello, and more");
    let place = input[28..].as_ptr();
    let decoded = server.decode(&mut input, &mut output).unwrap().unwrap();
    let Command::Write { offset: 8, data, fua: false } = decoded.command else {
        panic!("{decoded:?}")
    };
    assert_eq!(data, "hello");
    assert_eq!(data.as_ptr(), place);
    assert_eq!(input, ", and more");
}

#[test]
fn wanted_is_what_is_missing_of_a_payload() {
    let mut server = Transmission::new(session());
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    assert_eq!(server.wanted(), 28);
    input.extend_from_slice(&request(0, cmd::WRITE, COOKIE, 0, MAX_PAYLOAD));
    input.extend_from_slice(&[0; 100]);
    assert_eq!(server.decode(&mut input, &mut output), Ok(None));
    assert_eq!(server.wanted(), MAX_PAYLOAD as usize - 100);
}

#[test]
fn writes_past_the_end_find_no_space_and_the_rest_is_invalid() {
    for (code, error) in [
        (cmd::WRITE, NbdError::NoSpace),
        (cmd::WRITE_ZEROES, NbdError::NoSpace),
        (cmd::TRIM, NbdError::Invalid),
        (cmd::READ, NbdError::Invalid),
        (cmd::CACHE, NbdError::Invalid),
        (cmd::BLOCK_STATUS, NbdError::Invalid),
    ] {
        for (offset, len) in [(SIZE - 1, 2), (SIZE, 1), (u64::MAX, 1), (u64::MAX, u32::MAX >> 9)] {
            assert_eq!(refused(session(), 0, code, offset, len), error, "{code} at {offset}");
        }
        accepted_or_payload(code);
    }
}

/// The last byte of the export is inside.
fn accepted_or_payload(code: u16) {
    let bytes = [request(0, code, COOKIE, SIZE - 1, 1), b"x".to_vec()].concat();
    assert!(decode(session(), &bytes).0.is_some());
}

#[test]
fn writing_a_read_only_export_is_not_permitted() {
    for code in [cmd::WRITE, cmd::TRIM, cmd::WRITE_ZEROES] {
        assert_eq!(refused(read_only(), 0, code, 0, 512), NbdError::NotPermitted);
        assert_eq!(refused(read_only(), 0, code, SIZE, 512), NbdError::NotPermitted);
    }
    accepted(read_only(), NONE, cmd::FLUSH, 0, 0);
}

#[test]
fn unknown_commands_and_flags_are_invalid() {
    for code in [8, 9, 0x7fff, 0xffff] {
        invalid(session(), NONE, code, 0, 0);
    }
    for code in 0..8 {
        if code != cmd::DISC {
            for bit in 5..16 {
                let error = refused(session(), 1 << bit, code, 0, 0);
                assert_eq!(error, NbdError::Invalid);
            }
        }
    }
}

#[test]
fn flags_of_another_command_are_invalid() {
    invalid(session(), CommandFlags::DF, cmd::WRITE, 0, 9);
    invalid(session(), CommandFlags::NO_HOLE, cmd::TRIM, 0, 9);
    invalid(session(), CommandFlags::REQ_ONE, cmd::READ, 0, 9);
    invalid(session(), CommandFlags::FAST_ZERO, cmd::WRITE, 0, 9);
    invalid(session(), CommandFlags::NO_HOLE, cmd::FLUSH, 0, 0);
}

#[test]
fn what_was_not_offered_is_invalid() {
    invalid(without(TransmissionFlags::SEND_FLUSH), NONE, cmd::FLUSH, 0, 0);
    invalid(without(TransmissionFlags::SEND_TRIM), NONE, cmd::TRIM, 0, 9);
    invalid(without(TransmissionFlags::SEND_CACHE), NONE, cmd::CACHE, 0, 9);
    invalid(without(TransmissionFlags::SEND_WRITE_ZEROES), NONE, cmd::WRITE_ZEROES, 0, 9);
    invalid(without(TransmissionFlags::SEND_DF), CommandFlags::DF, cmd::READ, 0, 9);
    let slow = without(TransmissionFlags::SEND_FAST_ZERO);
    invalid(slow, CommandFlags::FAST_ZERO, cmd::WRITE_ZEROES, 0, 9);
    let no_context = Session { allocation_context: None, ..session() };
    invalid(no_context, NONE, cmd::BLOCK_STATUS, 0, 9);
}

#[test]
fn flush_with_a_range_is_invalid() {
    invalid(session(), NONE, cmd::FLUSH, 0, 1);
    invalid(session(), NONE, cmd::FLUSH, 1, 0);
}

#[test]
fn more_than_32_mib_of_payload_is_refused_after_it_has_passed() {
    invalid(session(), NONE, cmd::READ, 0, MAX_PAYLOAD + 1);
    let with_df = refused(session(), CommandFlags::DF.bits(), cmd::READ, 0, MAX_PAYLOAD + 1);
    assert_eq!(with_df, NbdError::Overflow);
    invalid(session(), NONE, cmd::WRITE, 0, MAX_PAYLOAD + 1);
    accepted(session(), NONE, cmd::READ, 0, MAX_PAYLOAD);
}

#[test]
fn refused_payload_is_never_stored() {
    let mut server = Transmission::new(session());
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    input.extend_from_slice(&request(0, cmd::WRITE, COOKIE, 0, 1 << 30));
    for _ in 0..1 << 10 {
        assert_eq!(server.decode(&mut input, &mut output), Ok(None));
        assert!(input.is_empty() && output.is_empty() && server.wanted() <= 28);
        input.resize(1 << 20, 0);
    }
    assert_eq!(server.decode(&mut input, &mut output), Ok(None));
    assert!(!output.is_empty());
}

#[test]
fn what_is_answered_at_once_is_bounded_and_the_server_says_that_there_is_more() {
    let mut server = Transmission::new(session());
    let illegal = request(0, 0xff, COOKIE, 0, 0);
    let mut input = BytesMut::from(&illegal.repeat(40)[..]);
    input.extend_from_slice(&request(0, cmd::FLUSH, COOKIE, 0, 0));
    let mut calls = 0;
    let decoded = loop {
        let (mut output, before) = (BytesMut::new(), input.len());
        let decoded = server.decode(&mut input, &mut output).expect("the magic is right");
        calls += 1;
        assert!(before - input.len() <= 17 * illegal.len(), "{} bytes at once", input.len());
        match decoded {
            Some(request) => break request,
            None => assert!(server.has_more(), "it does not wait for input"),
        }
    };
    assert_eq!((decoded.command, calls), (Command::Flush, 3));
    assert_eq!(server.decode(&mut input, &mut BytesMut::new()), Ok(None));
    assert!(!server.has_more() && server.wanted() == illegal.len(), "now it does");
    input.extend_from_slice(&request(0, cmd::DISC, COOKIE, 0, 0));
    server.decode(&mut input, &mut BytesMut::new()).unwrap().expect("a farewell");
    assert_eq!(server.decode(&mut input, &mut BytesMut::new()), Ok(None));
    assert!(!server.has_more(), "nothing comes after a farewell");
}

#[test]
fn lengths_without_payload_may_pass_32_mib() {
    let len = u32::try_from(SIZE).unwrap();
    for code in [cmd::TRIM, cmd::CACHE, cmd::WRITE_ZEROES, cmd::BLOCK_STATUS] {
        accepted(session(), NONE, code, 0, len);
    }
}

#[test]
fn requests_off_the_minimum_block_are_invalid() {
    let mut session = session();
    session.export.block_size.min = 512;
    for code in [cmd::READ, cmd::WRITE, cmd::TRIM, cmd::CACHE, cmd::WRITE_ZEROES] {
        invalid(session.clone(), NONE, code, 256, 512);
        invalid(session.clone(), NONE, code, 512, 513);
    }
    accepted(session, NONE, cmd::READ, 512, 1024);
}

#[test]
fn nothing_to_do_is_done_at_once() {
    for code in [cmd::WRITE, cmd::TRIM, cmd::CACHE, cmd::WRITE_ZEROES] {
        let (command, mut output, _) = decode(session(), &request(0, code, COOKIE, SIZE, 0));
        assert_eq!(command, None);
        assert_eq!((output.get_u32(), output.get_u32()), (SIMPLE_REPLY_MAGIC, 0));
        assert_eq!((output.get_u64(), output.len()), (COOKIE, 0));
    }
    invalid(session(), NONE, cmd::BLOCK_STATUS, 0, 0);
}

#[test]
fn empty_read_is_answered_in_the_form_agreed_on() {
    let read = request(0, cmd::READ, COOKIE, 0, 0);
    let (_, mut structured, _) = decode(session(), &read);
    assert_eq!(structured.get_u32(), STRUCTURED_REPLY_MAGIC);
    assert_eq!((structured.get_u16(), structured.get_u16()), (chunk::FLAG_DONE, chunk::NONE));
    let simple = Session { structured_replies: false, ..session() };
    let (_, mut simple, _) = decode(simple, &read);
    assert_eq!((simple.get_u32(), simple.get_u32(), simple.len()), (SIMPLE_REPLY_MAGIC, 0, 8));
}

#[test]
fn errors_are_simple_without_structured_replies() {
    let session = Session { structured_replies: false, allocation_context: None, ..session() };
    assert_eq!(refused(session.clone(), 0, cmd::WRITE, SIZE, 1), NbdError::NoSpace);
    assert_eq!(refused(session, 0, cmd::BLOCK_STATUS, 0, 1), NbdError::Invalid);
}

#[test]
fn shutdown_refuses_everything_but_goodbye() {
    let mut server = Transmission::new(session());
    server.begin_shutdown();
    let sent = [request(0, cmd::WRITE, 1, 0, 3), b"abc".to_vec(), request(0, cmd::DISC, 2, 0, 0)];
    let (mut input, mut output) = (BytesMut::from(&sent.concat()[..]), BytesMut::new());
    let decoded = server.decode(&mut input, &mut output);
    assert_eq!(decoded, Ok(Some(Request { cookie: 2, command: Command::Disconnect })));
    assert_eq!((&output[20..24]).get_u32(), NbdError::Shutdown.code());
}

#[test]
fn nothing_is_heard_after_goodbye() {
    let mut server = Transmission::new(session());
    let sent = [request(0, cmd::DISC, 1, 0, 0), request(0, cmd::READ, 2, 0, 9)].concat();
    let (mut input, mut output) = (BytesMut::from(&sent[..]), BytesMut::new());
    assert!(server.decode(&mut input, &mut output).unwrap().is_some());
    assert_eq!(server.decode(&mut input, &mut output), Ok(None));
    assert!(input.is_empty() && output.is_empty());
}

#[test]
fn request_without_its_magic_is_fatal() {
    let mut bytes = request(0, cmd::READ, 1, 0, 9);
    bytes[0] ^= 1;
    let (mut input, mut output) = (BytesMut::from(&bytes[..]), BytesMut::new());
    let end = Transmission::new(session()).decode(&mut input, &mut output);
    assert_eq!(end, Err(Fatal::BadMagic { found: REQUEST_MAGIC ^ 0x0100_0000 }));
}

/// The extents a server sends for a range of 100 bytes.
fn sent_extents(one: bool, extents: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let extents: Vec<Extent> = extents
        .iter()
        .map(|&(len, flags)| Extent { len, flags: ExtentFlags::from_bits_retain(flags) })
        .collect();
    let query = StatusQuery { offset: 0, len: 100, one };
    let mut output = BytesMut::new();
    Transmission::new(session()).reply_block_status(COOKIE, query, &extents, &mut output);
    assert_eq!((&output[16..20]).get_u32() as usize, output.len() - 20);
    assert_eq!((&output[20..24]).get_u32(), 1);
    let mut descriptors = &output[24..];
    let mut sent = Vec::new();
    while descriptors.has_remaining() {
        sent.push((descriptors.get_u32(), descriptors.get_u32()));
    }
    sent
}

#[test]
fn extents_are_joined_and_end_with_the_range() {
    let found = [(10, 0), (20, 0), (0, 3), (30, 3), (0, 1), (10, 3), (90, 1), (10, 2)];
    assert_eq!(sent_extents(false, &found), [(30, 0), (40, 3), (30, 1)]);
    assert_eq!(sent_extents(false, &[(40, 2)]), [(40, 2)]);
}

#[test]
fn one_extent_is_sent_if_one_is_asked_for() {
    assert_eq!(sent_extents(true, &[(10, 0), (20, 0), (30, 3)]), [(30, 0)]);
    assert_eq!(sent_extents(true, &[(200, 3)]), [(100, 3)]);
}

#[test]
fn unknown_range_counts_as_data() {
    assert_eq!(sent_extents(false, &[]), [(100, 0)]);
}

#[test]
fn long_message_is_cut() {
    let mut output = BytesMut::new();
    let message = "ä".repeat(5000);
    Transmission::new(session()).reply_error(COOKIE, NbdError::Io, &message, &mut output);
    assert_eq!((&output[24..26]).get_u16(), 4096);
    assert_eq!(output.len(), 20 + 6 + 4096);
}
