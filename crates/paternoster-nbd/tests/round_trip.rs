//! Any requests, sent in any pieces, arrive as they were sent, and so do the replies.

mod common;
#[path = "common/fuzz_targets.rs"]
mod fuzz_targets;

use bytes::{Bytes, BytesMut};
use common::disk;
use paternoster_nbd::client::{self, Answer, RemoteError, Reply};
use paternoster_nbd::{
    Command, Extent, ExtentFlags, NbdError, Request, Session, StatusQuery, server,
};
use proptest::collection::vec;
use proptest::prelude::*;

const SIZE: u64 = 1 << 40;

/// A request, and how the server answers it.
#[derive(Debug, Clone)]
struct Exchange {
    command: Command,
    response: Response,
}

#[derive(Debug, Clone)]
enum Response {
    Success,
    /// A read's data is zeroes.
    Zeroes,
    Error(NbdError),
}

fn command() -> impl Strategy<Value = Command> {
    let offset = 0..SIZE - (1 << 32);
    let len = 1..=u32::MAX;
    let short = 1..5000u32;
    let flag = any::<bool>;
    prop_oneof![
        (offset.clone(), short.clone(), flag()).prop_map(|(offset, len, df)| Command::Read {
            offset,
            len,
            df
        }),
        (offset.clone(), vec(any::<u8>(), 1..5000), flag()).prop_map(|(offset, data, fua)| {
            Command::Write { offset, data: Bytes::from(data), fua }
        }),
        Just(Command::Flush),
        (offset.clone(), len.clone(), flag()).prop_map(|(offset, len, fua)| Command::Trim {
            offset,
            len,
            fua
        }),
        (offset.clone(), len.clone()).prop_map(|(offset, len)| Command::Cache { offset, len }),
        (offset.clone(), len.clone(), flag(), flag(), flag()).prop_map(
            |(offset, len, fua, no_hole, fast)| Command::WriteZeroes {
                offset,
                len,
                fua,
                no_hole,
                fast
            }
        ),
        (offset, len, flag()).prop_map(|(offset, len, one)| {
            Command::BlockStatus(StatusQuery { offset, len, one })
        }),
    ]
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let error = (0..NbdError::ALL.len()).prop_map(|place| Response::Error(NbdError::ALL[place]));
    let response =
        prop_oneof![3 => Just(Response::Success), 1 => Just(Response::Zeroes), 1 => error];
    (command(), response).prop_map(|(command, response)| Exchange { command, response })
}

/// Two extents, of which the second may pass the end of the range.
fn extents(query: StatusQuery) -> [Extent; 2] {
    [
        Extent { len: query.len / 2 + 1, flags: ExtentFlags::ZERO },
        Extent { len: query.len, flags: ExtentFlags::HOLE },
    ]
}

/// What the server sends for an exchange.
fn respond(server: &server::Transmission, cookie: u64, exchange: &Exchange, out: &mut BytesMut) {
    match (&exchange.response, &exchange.command) {
        (Response::Error(error), _) => server.reply_error(cookie, *error, "a reason", out),
        (Response::Zeroes, Command::Read { offset, len, .. }) => {
            server.reply_zeroes(cookie, *offset, *len, out);
        }
        (_, Command::Read { offset, len, .. }) => {
            server.read_header(cookie, *offset, *len, out);
            out.resize(out.len() + *len as usize, b'd');
        }
        (_, Command::BlockStatus(query)) => {
            server.reply_block_status(cookie, *query, &extents(*query), out);
        }
        _ => server.reply_ok(cookie, out),
    }
}

/// What the client must make of it.
fn expected(exchange: &Exchange, structured: bool) -> Result<Answer, RemoteError> {
    match (&exchange.response, &exchange.command) {
        (Response::Error(error), _) => {
            let message = if structured { "a reason" } else { "" };
            Err(RemoteError { error: *error, message: message.to_owned() })
        }
        (Response::Zeroes, Command::Read { len, .. }) => {
            Ok(Answer::Data(vec![0; *len as usize].into()))
        }
        (_, Command::Read { len, .. }) => Ok(Answer::Data(vec![b'd'; *len as usize].into())),
        (_, Command::BlockStatus(query)) => {
            let [mut first, mut second] = extents(*query);
            first.len = first.len.min(query.len);
            second.len = query.len - first.len;
            let one = query.one || second.len == 0;
            Ok(Answer::Extents(if one { vec![first] } else { vec![first, second] }))
        }
        _ => Ok(Answer::Done),
    }
}

/// `stream` cut into pieces of these lengths, over and over.
fn pieces<'a>(mut stream: &'a [u8], lens: &'a [usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for len in lens.iter().cycle() {
        if stream.is_empty() {
            break;
        }
        let (piece, rest) = stream.split_at(stream.len().min(*len));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_arrives_and_whatever_is_answered_comes_back(
        mut exchanges in vec(exchange(), 1..20),
        structured in any::<bool>(),
        lens in vec(1..300usize, 1..8),
    ) {
        if !structured {
            exchanges.retain(|it| !matches!(
                it.command,
                Command::BlockStatus(_) | Command::Read { df: true, .. }
            ));
        }
        let mut export = disk("disk", SIZE);
        export.flags.set(paternoster_nbd::TransmissionFlags::SEND_DF, structured);
        let allocation_context = structured.then_some(1);
        let session = Session { export, structured_replies: structured, allocation_context };
        let mut client = client::Transmission::new(session.clone());
        let mut server = server::Transmission::new(session);

        let mut sent = BytesMut::new();
        let requests: Vec<Request> = (0..)
            .zip(&exchanges)
            .map(|(cookie, exchange)| Request { cookie, command: exchange.command.clone() })
            .collect();
        for request in &requests {
            client.encode(request, &mut sent).unwrap();
        }
        let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
        let mut arrived = Vec::new();
        for piece in pieces(&sent, &lens) {
            input.extend_from_slice(piece);
            while let Some(request) = server.decode(&mut input, &mut output).unwrap() {
                arrived.push(request);
            }
        }
        prop_assert_eq!(arrived, requests);
        prop_assert!(output.is_empty());

        // The last request is answered first.
        let mut replies = Vec::new();
        for (cookie, exchange) in exchanges.iter().enumerate().rev() {
            let cookie = cookie as u64;
            respond(&server, cookie, exchange, &mut output);
            replies.push(Reply { cookie, result: expected(exchange, structured) });
        }
        let mut input = BytesMut::new();
        let mut came = Vec::new();
        for piece in pieces(&output, &lens) {
            input.extend_from_slice(piece);
            while let Some(reply) = client.decode(&mut input).unwrap() {
                came.push(reply);
            }
        }
        prop_assert_eq!(came, replies);
        prop_assert_eq!(client.in_flight(), 0);
    }

    #[test]
    fn no_bytes_break_a_promise(data in vec(any::<u8>(), 0..400)) {
        fuzz_targets::server_session(&data);
        fuzz_targets::server_transmission(&data);
        fuzz_targets::client_session(&data);
    }
}
