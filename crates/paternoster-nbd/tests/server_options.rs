//! The option phase: what each option is answered with.

mod common;

use bytes::{BufMut, BytesMut};
use common::{
    CLIENT_FLAGS, OptionReply, client_flags, codes, disk, enter, info_request, meta_request,
    negotiate, option, option_replies, run, string,
};
use paternoster_nbd::proto::{MAX_OPTIONS, info, opt, rep};
use paternoster_nbd::server::{Handshake, HandshakeError, Progress};
use paternoster_nbd::{ExportInfo, TransmissionFlags};

const ALLOCATION: &str = "base:allocation";

fn two_disks() -> Vec<ExportInfo> {
    let mut second = disk("second", 2 << 20);
    second.description = Some("the other one".to_owned());
    vec![disk("first", 1 << 20), second]
}

fn go(name: &str) -> Vec<u8> {
    option(opt::GO, &info_request(name, &[]))
}

fn structured() -> Vec<u8> {
    option(opt::STRUCTURED_REPLY, &[])
}

fn select(name: &str, queries: &[&str]) -> Vec<u8> {
    option(opt::SET_META_CONTEXT, &meta_request(name, queries))
}

/// The only reply to one option.
fn answer(option: Vec<u8>) -> OptionReply {
    let (end, mut replies) = negotiate(&two_disks(), &[option]);
    assert_eq!(end, Ok(Progress::NeedMore));
    assert_eq!(replies.len(), 1, "{replies:?}");
    replies.remove(0)
}

#[test]
fn greeting_offers_fixed_newstyle_without_padding() {
    assert_eq!(&Handshake::greeting()[..], b"NBDMAGICIHAVEOPT\0\x03");
}

#[test]
fn unknown_client_flags_close_the_connection() {
    let (end, output) = run(&mut Handshake::new(), &two_disks(), &client_flags(7));
    assert_eq!(end, Err(HandshakeError::UnknownClientFlags { found: 7 }));
    assert!(output.is_empty());
}

/// The first bytes of a client that speaks TLS before NBD: a handshake record of TLS 1.0 to 1.3.
#[test]
fn client_that_begins_with_tls_is_told_from_one_with_strange_flags() {
    for minor in [1, 3] {
        let mut handshake = Handshake::new();
        let mut input = BytesMut::from(&[0x16, 3, minor, 0, 200, 1][..]);
        let end = handshake.receive(&mut input, &two_disks(), &mut BytesMut::new());
        assert_eq!(end, Err(HandshakeError::Tls));
    }
}

#[test]
fn option_starttls_is_refused_in_words_and_the_caller_hears_of_it_once() {
    let mut handshake = Handshake::new();
    let mut input = BytesMut::from(&[0, 0, 0, 3][..]);
    input.extend_from_slice(&option(opt::STARTTLS, &[]));
    let mut output = BytesMut::new();
    let end = handshake.receive(&mut input, &two_disks(), &mut output);
    assert_eq!(end, Ok(Progress::NeedMore));
    let words = b"there is no TLS here";
    assert!(output.windows(words.len()).any(|part| part == words), "{output:?}");
    assert!(handshake.take_refused_tls());
    assert!(!handshake.take_refused_tls());
}

#[test]
fn option_without_its_magic_closes_the_connection() {
    let (end, _) = negotiate(&two_disks(), &[b"IHAVENOTxxxxxxxx".to_vec()]);
    let found = u64::from_be_bytes(*b"IHAVENOT");
    assert_eq!(end, Err(HandshakeError::BadMagic { found }));
}

#[test]
fn unknown_options_are_unsupported_and_parsing_goes_on() {
    for unknown in [0, 4, opt::STARTTLS, opt::EXTENDED_HEADERS, 12, u32::MAX] {
        let options = [option(unknown, b"with some data"), structured()];
        let (_, replies) = negotiate(&two_disks(), &options);
        assert_eq!(codes(&replies), [rep::ERR_UNSUP, rep::ACK]);
        assert_eq!(replies[0].option, unknown);
    }
}

#[test]
fn list_names_every_export_with_its_description() {
    let (_, replies) = negotiate(&two_disks(), &[option(opt::LIST, &[])]);
    assert_eq!(codes(&replies), [rep::SERVER, rep::SERVER, rep::ACK]);
    assert_eq!(replies[0].data, string(b"first"));
    assert_eq!(replies[1].data, [string(b"second"), b"the other one".to_vec()].concat());
}

#[test]
fn list_with_data_is_invalid() {
    assert_eq!(answer(option(opt::LIST, b"x")).reply, rep::ERR_INVALID);
}

#[test]
fn structured_reply_with_data_is_invalid() {
    assert_eq!(answer(option(opt::STRUCTURED_REPLY, b"x")).reply, rep::ERR_INVALID);
}

#[test]
fn abort_is_acknowledged_and_ends_the_session_even_with_data() {
    let (end, replies) = negotiate(&two_disks(), &[option(opt::ABORT, b"bye"), structured()]);
    assert_eq!(end, Ok(Progress::Aborted));
    assert_eq!(codes(&replies), [rep::ACK]);
}

#[test]
fn export_name_enters_with_padding_unless_both_left_it_out() {
    for (flags, padding) in [(1, 124), (3, 0), (0, 124)] {
        let sent = [client_flags(flags), option(opt::EXPORT_NAME, b"first")].concat();
        let (end, output) = run(&mut Handshake::new(), &two_disks(), &sent);
        let Ok(Progress::Entered(session)) = end else { panic!("{end:?}") };
        assert!(!session.structured_replies);
        let mut expected = BytesMut::new();
        expected.put_u64(1 << 20);
        expected.put_u16(session.export.flags.bits());
        expected.put_bytes(0, padding);
        assert_eq!(output, expected);
    }
}

#[test]
fn export_name_of_a_missing_export_closes_the_connection() {
    let (end, replies) = negotiate(&two_disks(), &[option(opt::EXPORT_NAME, b"third")]);
    assert_eq!(end, Err(HandshakeError::UnknownExport { name: "third".to_owned() }));
    assert!(replies.is_empty());
}

#[test]
fn export_name_that_is_no_text_closes_the_connection() {
    let (end, _) = negotiate(&two_disks(), &[option(opt::EXPORT_NAME, b"\xff")]);
    assert_eq!(end, Err(HandshakeError::BadExportName { len: 1 }));
}

#[test]
fn the_empty_name_is_the_default_export() {
    let session = enter(&two_disks(), &[go("")]);
    assert_eq!(session.export.name, "first");
}

#[test]
fn info_tells_what_was_asked_and_stays_in_the_handshake() {
    let kinds = [info::BLOCK_SIZE, info::DESCRIPTION, info::NAME, 77];
    let ask = option(opt::INFO, &info_request("second", &kinds));
    let (end, replies) = negotiate(&two_disks(), &[ask]);
    assert_eq!(end, Ok(Progress::NeedMore));
    let data: Vec<&[u8]> = replies.iter().map(|reply| &reply.data[..]).collect();
    let flags =
        TransmissionFlags::all() - TransmissionFlags::READ_ONLY - TransmissionFlags::SEND_DF;
    let mut export = vec![0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0];
    export.extend_from_slice(&flags.bits().to_be_bytes());
    assert_eq!(data[0], export);
    assert_eq!(data[1], b"\0\x01second");
    assert_eq!(data[2], b"\0\x02the other one");
    assert_eq!(data[3], [0, 3, 0, 0, 0, 1, 0, 0, 16, 0, 2, 0, 0, 0]);
    assert_eq!(codes(&replies)[4..], [rep::ACK]);
}

#[test]
fn go_of_an_unknown_export_is_answered_and_another_may_follow() {
    let (end, replies) = negotiate(&two_disks(), &[go("third"), go("second")]);
    assert_eq!(codes(&replies), [rep::ERR_UNKNOWN, rep::INFO, rep::ACK]);
    let Ok(Progress::Entered(session)) = end else { panic!("{end:?}") };
    assert_eq!(session.export.name, "second");
}

#[test]
fn requests_sent_with_go_stay_in_the_input() {
    let sent = [client_flags(CLIENT_FLAGS), go("first"), b"requests".to_vec()].concat();
    let (mut input, mut output) = (BytesMut::from(&sent[..]), BytesMut::new());
    let end = Handshake::new().receive(&mut input, &two_disks(), &mut output);
    assert!(matches!(end, Ok(Progress::Entered(_))));
    assert_eq!(input, "requests");
}

#[test]
fn malformed_info_is_invalid() {
    let good = info_request("first", &[info::NAME]);
    let mut lying = good.clone();
    lying[3] = 200;
    let malformed = [&good[..good.len() - 1], &good[..3], b"", &lying, &[&good[..], b"x"].concat()]
        .map(<[u8]>::to_vec);
    for data in malformed {
        assert_eq!(answer(option(opt::INFO, &data)).reply, rep::ERR_INVALID, "{data:?}");
    }
}

#[test]
fn names_of_4096_bytes_are_looked_up_and_longer_ones_refused() {
    let long = "n".repeat(4096);
    let exports = vec![disk(&long, 4096)];
    for end in [enter(&exports, &[go(&long)]), enter(&exports, &[option(1, long.as_bytes())])] {
        assert_eq!(end.export.name, long);
    }
    let longer = "n".repeat(4097);
    let ask = option(opt::GO, &info_request(&longer, &[]));
    assert_eq!(answer(ask).reply, rep::ERR_TOO_BIG);
    let (end, _) = negotiate(&exports, &[option(opt::EXPORT_NAME, longer.as_bytes())]);
    assert_eq!(end, Err(HandshakeError::BadExportName { len: 4097 }));
}

#[test]
fn message_that_quotes_a_long_name_is_cut() {
    let reply = answer(go(&"\u{1}".repeat(4096)));
    assert_eq!(reply.reply, rep::ERR_UNKNOWN);
    assert!(reply.data.len() <= 4096);
}

#[test]
fn option_of_4_gib_is_passed_over_without_being_stored() {
    let mut handshake = Handshake::new();
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut header = option(99, &[]);
    header[12..].copy_from_slice(&u32::MAX.to_be_bytes());
    input.extend_from_slice(&[client_flags(CLIENT_FLAGS), header].concat());
    let mut left = u64::from(u32::MAX);
    let piece = vec![0; 1 << 20];
    while left > 0 {
        let end = handshake.receive(&mut input, &two_disks(), &mut output);
        assert_eq!(end, Ok(Progress::NeedMore));
        assert!(input.is_empty() && output.is_empty() && handshake.wanted() <= 16);
        let len = left.min(piece.len() as u64);
        input.extend_from_slice(&piece[..usize::try_from(len).unwrap()]);
        left -= len;
    }
    input.extend_from_slice(&structured());
    let end = handshake.receive(&mut input, &two_disks(), &mut output);
    assert_eq!(end, Ok(Progress::NeedMore));
    let replies = option_replies(output.freeze());
    assert_eq!(codes(&replies), [rep::ERR_TOO_BIG, rep::ACK]);
}

#[test]
fn nobody_negotiates_forever() {
    let options = vec![structured(); MAX_OPTIONS as usize + 1];
    let (end, replies) = negotiate(&two_disks(), &options);
    assert_eq!(end, Err(HandshakeError::TooManyOptions));
    assert_eq!(replies.len(), MAX_OPTIONS as usize);
}

#[test]
fn answers_that_pile_up_stop_the_machine() {
    let exports: Vec<_> = (0..100).map(|number| disk(&number.to_string(), 0)).collect();
    let sent = [client_flags(CLIENT_FLAGS), option(opt::LIST, &[]).repeat(1000)].concat();
    let (mut input, mut output) = (BytesMut::from(&sent[..]), BytesMut::new());
    let end = Handshake::new().receive(&mut input, &exports, &mut output);
    assert_eq!(end, Ok(Progress::SendOutput));
    assert!(output.len() < 70_000 && !input.is_empty());
}

#[test]
fn df_is_offered_with_structured_replies_only() {
    let plain = enter(&two_disks(), &[go("first")]);
    assert!(!plain.export.flags.contains(TransmissionFlags::SEND_DF));
    let structured = enter(&two_disks(), &[structured(), go("first")]);
    assert!(structured.export.flags.contains(TransmissionFlags::SEND_DF));
}

#[test]
fn flags_are_those_of_the_export_made_legal() {
    let mut export = disk("d", 0);
    export.flags = TransmissionFlags::CAN_MULTI_CONN | TransmissionFlags::SEND_FAST_ZERO;
    export.block_size.max = u32::MAX;
    let session = enter(&export, &[go("d")]);
    let expected = TransmissionFlags::HAS_FLAGS | TransmissionFlags::CAN_MULTI_CONN;
    assert_eq!(session.export.flags, expected);
    assert_eq!(session.export.block_size.max, 32 << 20);
}

#[test]
fn contexts_are_listed_by_query() {
    for (queries, listed) in [
        (&[][..], true),
        (&["base:"], true),
        (&[ALLOCATION], true),
        (&["qemu:", "base:nothing", "no colon"], false),
    ] {
        let ask = option(opt::LIST_META_CONTEXT, &meta_request("first", queries));
        let (_, replies) = negotiate(&two_disks(), &[ask]);
        let expected: &[u32] = if listed { &[rep::META_CONTEXT, rep::ACK] } else { &[rep::ACK] };
        assert_eq!(codes(&replies), expected, "{queries:?}");
    }
}

#[test]
fn only_the_exact_name_selects_a_context() {
    for (queries, selected) in [(&[][..], false), (&["base:"], false), (&["x", ALLOCATION], true)] {
        let session = enter(&two_disks(), &[structured(), select("first", queries), go("first")]);
        assert_eq!(session.allocation_context.is_some(), selected, "{queries:?}");
    }
}

#[test]
fn selecting_contexts_without_structured_replies_is_invalid() {
    let options = [select("first", &[ALLOCATION]), structured(), go("first")];
    let (end, replies) = negotiate(&two_disks(), &options);
    assert_eq!(replies[0].reply, rep::ERR_INVALID);
    let Ok(Progress::Entered(session)) = end else { panic!("{end:?}") };
    assert_eq!(session.allocation_context, None);
}

#[test]
fn context_belongs_to_the_export_it_was_selected_for() {
    let set = select("first", &[ALLOCATION]);
    let other = enter(&two_disks(), &[structured(), set.clone(), go("second")]);
    assert_eq!(other.allocation_context, None);
    let by_name = enter(&two_disks(), &[structured(), set, option(opt::EXPORT_NAME, b"first")]);
    assert_eq!(by_name.allocation_context, Some(1));
}

#[test]
fn the_last_selection_counts_even_if_it_fails() {
    let set = select("first", &[ALLOCATION]);
    for last in
        [select("nobody", &[ALLOCATION]), select("first", &[]), select("second", &[ALLOCATION])]
    {
        let session = enter(&two_disks(), &[structured(), set.clone(), last, go("first")]);
        assert_eq!(session.allocation_context, None);
    }
}

#[test]
fn malformed_context_requests_are_invalid() {
    let good = meta_request("first", &[ALLOCATION]);
    let mut many = good.clone();
    many[9..13].copy_from_slice(&u32::MAX.to_be_bytes());
    let malformed = [&good[..good.len() - 1], &good[..10], b"", &many, &[&good[..], b"x"].concat()]
        .map(<[u8]>::to_vec);
    for data in malformed {
        let reply = answer(option(opt::LIST_META_CONTEXT, &data));
        assert_eq!(reply.reply, rep::ERR_INVALID, "{data:?}");
    }
    let unknown = answer(option(opt::LIST_META_CONTEXT, &meta_request("third", &[])));
    assert_eq!(unknown.reply, rep::ERR_UNKNOWN);
}

#[test]
fn shutdown_refuses_all_but_abort() {
    let mut handshake = Handshake::new();
    handshake.begin_shutdown();
    let sent = [client_flags(3), go("first"), option(opt::LIST, &[]), option(opt::ABORT, &[])];
    let (end, output) = run(&mut handshake, &two_disks(), &sent.concat());
    assert_eq!(end, Ok(Progress::Aborted));
    let replies = option_replies(output);
    assert_eq!(codes(&replies), [rep::ERR_SHUTDOWN, rep::ERR_SHUTDOWN, rep::ACK]);
}

#[test]
fn going_on_after_the_end_is_an_error() {
    let mut handshake = Handshake::new();
    let sent = [client_flags(3), option(opt::ABORT, &[])].concat();
    assert_eq!(run(&mut handshake, &two_disks(), &sent).0, Ok(Progress::Aborted));
    assert_eq!(run(&mut handshake, &two_disks(), &sent).0, Err(HandshakeError::Over));
}
