//! The fuzz targets on what real clients sent, and on ten thousand distortions of it.
//!
//! A failure prints the seed; `NBD_FUZZ_SEED=<seed> cargo test -p paternoster-nbd --test
//! recorded_clients` repeats that one distortion.

#[path = "common/fuzz_targets.rs"]
mod fuzz_targets;

use std::fs;
use std::panic;
use std::path::Path;

use bytes::BytesMut;
use fastrand::Rng;
use fuzz_targets::{
    client_options, client_requests, client_session, disk, server_session, server_starttls,
    server_transmission,
};
use paternoster_nbd::server::{Handshake, Progress, Transmission};
use paternoster_nbd::{Command, Extent, ExtentFlags, NbdError, client};

const DISTORTIONS: u64 = 10_000;

/// Numbers at which lengths and offsets go wrong.
const EDGES: [u64; 8] = [0, 1, 4096, 4097, 65_536, 0x0200_0001, 0xffff_ffff, u64::MAX];

fn recorded() -> Vec<(String, Vec<u8>)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files = fs::read_dir(corpus).expect("the corpus is part of the crate");
    let mut recorded: Vec<_> = files
        .map(|file| file.expect("the corpus is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "client"))
        .map(|path| (path.display().to_string(), fs::read(&path).expect("it is readable")))
        .collect();
    recorded.sort();
    assert!(recorded.len() >= 10, "the corpus holds {} recordings only", recorded.len());
    recorded
}

/// What a client sent after the handshake, if it came so far.
fn requests_of(stream: &[u8]) -> Option<BytesMut> {
    let (mut input, mut output) = (BytesMut::from(stream), BytesMut::new());
    match Handshake::new().receive(&mut input, &disk(), &mut output) {
        Ok(Progress::Entered(_)) => Some(input),
        _ => None,
    }
}

/// What our server sends to the client of the fuzz target, after the byte that says its options.
fn served(kind: u8) -> Vec<u8> {
    let mut asking = client::Handshake::new(client_options(kind));
    let mut answering = Handshake::new();
    let (mut to_client, mut to_server) = (BytesMut::new(), BytesMut::new());
    let mut all = vec![kind];
    to_client.extend_from_slice(&Handshake::greeting());
    loop {
        all.extend_from_slice(&to_client);
        let end = asking.receive(&mut to_client, &mut to_server).expect("our server is legal");
        let answer = answering.receive(&mut to_server, &disk(), &mut to_client);
        match (end, answer) {
            (client::Progress::NeedMore, Ok(Progress::NeedMore)) => {}
            (client::Progress::NeedMore, Ok(Progress::Entered(session))) => {
                all.extend_from_slice(&to_client);
                all.extend_from_slice(&replies(&Transmission::new(session)));
                return all;
            }
            _ => return all,
        }
    }
}

/// Replies to the requests of the fuzz target's client, the last one first.
fn replies(server: &Transmission) -> BytesMut {
    let mut output = BytesMut::new();
    let requests: Vec<(u64, Command)> = (0..).zip(client_requests()).collect();
    for (cookie, command) in requests.into_iter().rev() {
        match command {
            Command::Read { len: 0, .. } => {
                server.reply_error(cookie, NbdError::Io, "no", &mut output);
            }
            Command::Read { offset, len, df: false } if cookie == 0 => {
                server.reply_zeroes(cookie, offset, len, &mut output);
            }
            Command::Read { offset, len, .. } => {
                server.read_header(cookie, offset, len, &mut output);
                output.resize(output.len() + len as usize, b'd');
            }
            Command::BlockStatus(query) => {
                if server.session().allocation_context.is_some() {
                    let extents = [ExtentFlags::empty(), ExtentFlags::all()]
                        .map(|flags| Extent { len: 4096, flags });
                    server.reply_block_status(cookie, query, &extents, &mut output);
                }
            }
            _ => server.reply_ok(cookie, &mut output),
        }
    }
    output
}

#[test]
fn recorded_clients_break_no_invariant_of_the_fuzz_targets() {
    for (name, stream) in recorded() {
        println!("{name}");
        server_session(&stream);
        for cut in 0..=u16::try_from(stream.len().min(1000)).expect("a short one") {
            server_starttls(&[&cut.to_be_bytes(), &stream[..]].concat());
        }
        if let Some(requests) = requests_of(&stream) {
            for kind in 0..32 {
                server_transmission(&[&[kind], &requests[..]].concat());
            }
        }
    }
}

#[test]
fn every_byte_of_recorded_clients_is_understood() {
    let mut requests = 0;
    for (name, stream) in recorded() {
        let (mut input, mut output) = (BytesMut::from(&stream[..]), BytesMut::new());
        let Ok(Progress::Entered(session)) =
            Handshake::new().receive(&mut input, &disk(), &mut output)
        else {
            continue;
        };
        let mut server = Transmission::new(session);
        while server.decode(&mut input, &mut output).expect(&name).is_some() {
            requests += 1;
        }
        assert!(input.is_empty(), "{name}");
    }
    assert!(requests > 50, "only {requests} requests");
}

#[test]
fn served_client_breaks_no_invariant_of_the_fuzz_targets() {
    for kind in 0..16 {
        client_session(&served(kind));
    }
}

#[test]
fn distorted_streams_break_no_invariant_of_the_fuzz_targets() {
    let recorded = recorded();
    let requests: Vec<_> = recorded.iter().filter_map(|(_, stream)| requests_of(stream)).collect();
    let served: Vec<_> = (0..16).map(served).collect();
    let distort_one = |seed: u64| {
        let mut rng = Rng::with_seed(seed);
        let choose = |rng: &mut Rng, len: usize| rng.usize(..len);
        match rng.u8(..4) {
            3 => {
                let place = choose(&mut rng, recorded.len());
                let cut = rng.u16(..200).to_be_bytes();
                server_starttls(&[&cut, &distort(&mut rng, &recorded[place].1)[..]].concat());
            }
            0 => {
                let place = choose(&mut rng, recorded.len());
                server_session(&distort(&mut rng, &recorded[place].1));
            }
            1 => {
                let place = choose(&mut rng, requests.len());
                let kind = rng.u8(..32);
                let stream = distort(&mut rng, &requests[place]);
                server_transmission(&[&[kind], &stream[..]].concat());
            }
            _ => {
                let place = choose(&mut rng, served.len());
                client_session(&distort(&mut rng, &served[place]));
            }
        }
    };
    if let Ok(seed) = std::env::var("NBD_FUZZ_SEED") {
        return distort_one(seed.parse().expect("NBD_FUZZ_SEED is a number"));
    }
    for seed in 0..DISTORTIONS {
        if let Err(failure) = panic::catch_unwind(|| distort_one(seed)) {
            eprintln!("repeat with NBD_FUZZ_SEED={seed}");
            panic::resume_unwind(failure);
        }
    }
}

/// Spoils a stream in one to four places.
fn distort(rng: &mut Rng, stream: &[u8]) -> Vec<u8> {
    let mut stream = stream.to_vec();
    for _ in 0..rng.usize(1..=4) {
        if stream.is_empty() {
            break;
        }
        // Half of the places near the start, where the headers are.
        let bound = if rng.bool() { stream.len() } else { stream.len().min(400) };
        let place = rng.usize(..bound);
        match rng.u8(..6) {
            0 => stream[place] ^= 1 << rng.u8(..8),
            1 => stream[place] = rng.u8(..),
            2 => stream.truncate(place),
            3 => {
                let end = stream.len().min(place + rng.usize(..64));
                stream.drain(place..end);
            }
            4 => {
                let end = stream.len().min(place + rng.usize(..64));
                let again = stream[place..end].to_vec();
                stream.splice(place..place, again);
            }
            _ => {
                let edge = EDGES[rng.usize(..EDGES.len())].to_be_bytes();
                let width = [2, 4, 8][rng.usize(..3)];
                for (byte, new) in stream[place..].iter_mut().zip(&edge[8 - width..]) {
                    *byte = *new;
                }
            }
        }
    }
    stream
}
