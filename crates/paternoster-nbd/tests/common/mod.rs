//! Bytes as a client sends them, written by hand, and what a server's bytes mean.

#![allow(dead_code, reason = "each test file uses some of it")]

use bytes::{Buf, BufMut, Bytes, BytesMut};
use paternoster_nbd::proto::{OPTION_MAGIC, OPTION_REPLY_MAGIC, REQUEST_MAGIC};
use paternoster_nbd::server::{Handshake, HandshakeError, Progress};
use paternoster_nbd::{BlockSize, ExportInfo, Exports, Session, TransmissionFlags};

/// Both sides know fixed newstyle and leave out the padding.
pub(crate) const CLIENT_FLAGS: u32 = 3;

/// One reply to an option.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OptionReply {
    pub(crate) option: u32,
    pub(crate) reply: u32,
    pub(crate) data: Bytes,
}

pub(crate) fn disk(name: &str, size: u64) -> ExportInfo {
    let flags = TransmissionFlags::all() - TransmissionFlags::READ_ONLY;
    let block_size = BlockSize::default();
    ExportInfo { name: name.to_owned(), description: None, size, flags, block_size }
}

pub(crate) fn client_flags(flags: u32) -> Vec<u8> {
    flags.to_be_bytes().to_vec()
}

pub(crate) fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_u64(OPTION_MAGIC);
    bytes.put_u32(option);
    bytes.put_u32(u32::try_from(data.len()).unwrap());
    bytes.put_slice(data);
    bytes.to_vec()
}

/// A length and what has it.
pub(crate) fn string(text: &[u8]) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text].concat()
}

/// Data of `INFO` and `GO`.
pub(crate) fn info_request(name: &str, kinds: &[u16]) -> Vec<u8> {
    let count = u16::try_from(kinds.len()).unwrap().to_be_bytes();
    let kinds: Vec<u8> = kinds.iter().flat_map(|kind| kind.to_be_bytes()).collect();
    [string(name.as_bytes()), count.to_vec(), kinds].concat()
}

/// Data of `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
pub(crate) fn meta_request(name: &str, queries: &[&str]) -> Vec<u8> {
    let count = u32::try_from(queries.len()).unwrap().to_be_bytes();
    let queries: Vec<u8> = queries.iter().flat_map(|query| string(query.as_bytes())).collect();
    [string(name.as_bytes()), count.to_vec(), queries].concat()
}

/// A request; the payload of a write is to follow.
pub(crate) fn request(flags: u16, code: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_u32(REQUEST_MAGIC);
    bytes.put_u16(flags);
    bytes.put_u16(code);
    bytes.put_u64(cookie);
    bytes.put_u64(offset);
    bytes.put_u32(len);
    bytes.to_vec()
}

/// What a server does with what a client sends after its flags.
pub(crate) fn negotiate(
    exports: &dyn Exports,
    options: &[Vec<u8>],
) -> (Result<Progress, HandshakeError>, Vec<OptionReply>) {
    let sent = [client_flags(CLIENT_FLAGS), options.concat()].concat();
    let (end, output) = run(&mut Handshake::new(), exports, &sent);
    (end, option_replies(output))
}

/// Feeds a handshake to its end or to the end of the bytes.
pub(crate) fn run(
    handshake: &mut Handshake,
    exports: &dyn Exports,
    sent: &[u8],
) -> (Result<Progress, HandshakeError>, Bytes) {
    let (mut input, mut output) = (BytesMut::from(sent), BytesMut::new());
    let mut all = BytesMut::new();
    loop {
        let end = handshake.receive(&mut input, exports, &mut output);
        all.unsplit(output.split());
        if end != Ok(Progress::SendOutput) {
            return (end, all.freeze());
        }
    }
}

/// The session a client enters with these options.
pub(crate) fn enter(exports: &dyn Exports, options: &[Vec<u8>]) -> Session {
    let sent = [client_flags(CLIENT_FLAGS), options.concat()].concat();
    match run(&mut Handshake::new(), exports, &sent).0 {
        Ok(Progress::Entered(session)) => session,
        other => panic!("the options do not enter a session: {other:?}"),
    }
}

pub(crate) fn option_replies(mut output: Bytes) -> Vec<OptionReply> {
    let mut replies = Vec::new();
    while output.has_remaining() {
        assert_eq!(output.get_u64(), OPTION_REPLY_MAGIC);
        let (option, reply, len) = (output.get_u32(), output.get_u32(), output.get_u32());
        let data = output.split_to(usize::try_from(len).unwrap());
        replies.push(OptionReply { option, reply, data });
    }
    replies
}

/// The codes of the replies alone.
pub(crate) fn codes(replies: &[OptionReply]) -> Vec<u32> {
    replies.iter().map(|reply| reply.reply).collect()
}
