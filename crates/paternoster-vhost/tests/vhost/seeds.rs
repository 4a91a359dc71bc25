//! The fuzz targets with seeds and with what chance makes of them.

use paternoster_vhost::proto::request;

use crate::driver::encoded;
use crate::fuzz_targets::{recovered, vhost_chain, vhost_inflight, vhost_session};

const ROUNDS: usize = 3000;

/// Changes a few bytes of the seed, often to such as mean something.
fn changed(rng: &mut fastrand::Rng, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..rng.usize(0..6) {
        let at = rng.usize(0..bytes.len());
        let any = rng.u8(..);
        bytes[at] = [0, 1, 2, 4, 8, 16, 0x7f, 0xff, any][rng.usize(0..9)];
    }
    if rng.u8(..) < 16 {
        bytes.truncate(rng.usize(..=bytes.len()));
    }
    bytes
}

fn fuzz(seed: &[u8], target: impl Fn(&[u8])) {
    let mut rng = fastrand::Rng::with_seed(37);
    target(seed);
    for _ in 0..ROUNDS {
        target(&changed(&mut rng, seed));
    }
}

fn message(request: u32, body: &[u64]) -> Vec<u8> {
    let size = u32::try_from(8 * body.len()).expect("short");
    let mut bytes = [request, 1 | 1 << 3, size].map(u32::to_ne_bytes).concat();
    bytes.extend(body.iter().flat_map(|long| long.to_ne_bytes()));
    bytes
}

#[test]
fn session_of_any_messages() {
    let messages = [
        message(request::SET_PROTOCOL_FEATURES, &[0xb22b]),
        message(request::SET_FEATURES, &[1 << 32 | 1 << 30]),
        message(request::SET_MEM_TABLE, &[2, 0, 4096, 0, 0, 8192, 4096, 8192, 0]),
        message(request::SET_VRING_NUM, &[8 << 32]),
        message(request::SET_VRING_ADDR, &[0, 0, 0x1000, 0x2000, 0]),
        message(request::SET_VRING_KICK, &[0]),
        message(request::SET_VRING_ENABLE, &[1 << 32]),
        message(request::GET_INFLIGHT_FD, &[0, 0]),
        message(request::GET_CONFIG, &[60 << 32, 0]),
        message(request::GET_VRING_BASE, &[0]),
        message(request::RESET_DEVICE, &[]),
    ];
    fuzz(&[vec![2], messages.concat()].concat(), vhost_session);
}

#[test]
fn ring_of_any_bytes() {
    // A read and a write by descriptors of the ring, a flush by a table at 0x400.
    let mut image: Vec<u8> = [
        (0x300, 16, 1, 1),
        (0x800, 512, 3, 2),
        (0x700, 1, 2, 0),
        (0x310, 16, 1, 4),
        (0x800, 512, 1, 5),
        (0x701, 1, 2, 0),
        (0x400, 32, 4, 0),
        (0, 0, 0, 0),
    ]
    .into_iter()
    .flat_map(encoded)
    .collect();
    image.extend([0u16, 3, 0, 3, 6].map(u16::to_le_bytes).concat());
    image.resize(0x300, 0);
    let header = |kind: u32| [kind.to_le_bytes().to_vec(), vec![0; 12]].concat();
    image.extend([header(0), header(1), header(4)].concat());
    image.resize(0x400, 0);
    image.extend([encoded((0x320, 16, 1, 1)), encoded((0x702, 1, 2, 0))].concat());
    image.resize(0x820, 0);
    fuzz(&[vec![3], image].concat(), vhost_chain);
}

#[test]
fn memory_in_flight_of_any_bytes() {
    let mut image = vec![2, 0];
    image.extend([0u16, 0, 0, 0, 1, 8, 3, 1].map(u16::to_ne_bytes).concat());
    for head in 0..8u16 {
        image.extend([u8::from(head % 2 == 0), 0, 0, 0, 0, 0]);
        image.extend(5u16.to_ne_bytes());
        image.extend(u64::from(head * 7 % 5).to_ne_bytes());
    }
    fuzz(&image, vhost_inflight);
    // The seed itself is what a server leaves: 2 chains are told of, of which head 3 was the last.
    assert_eq!(recovered(&image), Some(4));
}
