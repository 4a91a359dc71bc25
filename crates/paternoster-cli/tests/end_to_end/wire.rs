//! Clients older than any that is installed, written out in bytes.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub(crate) use crate::support::request;
use crate::support::{Place, Served, noise};

const MIB: u64 = 1 << 20;

/// A socket of either kind.
pub(crate) trait Socket: Read + Write + Send {}

impl Socket for UnixStream {}
impl Socket for TcpStream {}

/// A connection on which nothing is done but what the test says.
pub(crate) struct Wire(Box<dyn Socket>);

/// The address and port of a URI of TCP.
pub(crate) fn address(uri: &str) -> &str {
    uri.trim_start_matches("nbd://").split('/').next().expect("an address")
}

impl Wire {
    /// Connects to where `served` is.
    pub(crate) fn connect(served: &Served, place: Place) -> Self {
        let patience = Some(Duration::from_secs(20));
        match place {
            Place::Unix => {
                let stream = UnixStream::connect(served.path("nbd.sock")).expect("a connection");
                stream.set_read_timeout(patience).expect("a timeout");
                Self(Box::new(stream))
            }
            Place::Tcp => {
                let stream = TcpStream::connect(address(served.uri())).expect("a connection");
                stream.set_read_timeout(patience).expect("a timeout");
                Self(Box::new(stream))
            }
        }
    }

    /// Over a socket that is connected.
    pub(crate) fn over(socket: impl Socket + 'static) -> Self {
        Self(Box::new(socket))
    }

    /// Enters the export `disk` with simple replies.
    pub(crate) fn enter(served: &Served, place: Place) -> Self {
        let mut wire = Self::connect(served, place);
        wire.enter_by_name(3, "disk");
        wire
    }

    /// Enters an export of that name at a unix socket, with simple replies.
    pub(crate) fn enter_at(socket: &std::path::Path, export: &str) -> Self {
        let stream = UnixStream::connect(socket).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let mut wire = Self(Box::new(stream));
        wire.enter_by_name(3, export);
        wire
    }

    /// Writes a block that nobody else has, by FUA, and finds it again; `number` is of the block,
    /// and of what is in it.
    pub(crate) fn write_and_read_back(&mut self, number: u64) {
        self.begin_to_write(number);
        self.take_written_and_read_back(number);
    }

    /// The first half of it.
    pub(crate) fn begin_to_write(&mut self, number: u64) {
        let (at, data) = (number * 4096, noise(4096, number));
        self.send(&[&request(1, 1, number, at, 4096)[..], &data].concat());
    }

    /// The second half of it.
    pub(crate) fn take_written_and_read_back(&mut self, number: u64) {
        assert_eq!(self.take::<16>()[4..8], [0; 4], "it is written");
        self.send(&request(0, 0, number, number * 4096, 4096));
        assert_eq!(self.take::<16>()[4..8], [0; 4], "it is read");
        assert!(self.take::<4096>()[..] == noise(4096, number), "it is what was written");
    }

    /// Returns whether the server has closed the connection.
    pub(crate) fn has_ended(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("the server takes it");
    }

    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).expect("the server answers");
        bytes
    }

    /// Returns whether the server still takes it.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// The next bytes; none once the server has closed.
    pub(crate) fn try_take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Takes so many bytes, whatever they are.
    pub(crate) fn skip(&mut self, len: u32) {
        let taken = io::copy(&mut (&mut self.0).take(len.into()), &mut io::sink());
        assert_eq!(taken.expect("the server answers"), u64::from(len));
    }

    /// What comes until the server closes, however it does.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("{error}"),
            _ => rest,
        }
    }

    /// Greets, and enters `name` by the option that has no reply.
    pub(crate) fn enter_by_name(&mut self, client_flags: u32, name: &str) -> (u64, u16) {
        let greeting: [u8; 18] = self.take();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        assert_eq!(greeting[16..], [0, 3]);
        self.send(&client_flags.to_be_bytes());
        self.send(b"IHAVEOPT");
        self.send(&1u32.to_be_bytes());
        self.send(&u32::try_from(name.len()).expect("a short name").to_be_bytes());
        self.send(name.as_bytes());
        let size = u64::from_be_bytes(self.take());
        let flags = u16::from_be_bytes(self.take());
        if client_flags & 2 == 0 {
            let padding: [u8; 124] = self.take();
            assert_eq!(padding, [0; 124]);
        }
        (size, flags)
    }

    /// Takes a simple reply to `cookie`: its error.
    pub(crate) fn simple_reply(&mut self, cookie: u64) -> u32 {
        let reply: [u8; 16] = self.take();
        assert_eq!(reply[..4], [0x67, 0x44, 0x66, 0x98], "a simple reply");
        assert_eq!(reply[8..], cookie.to_be_bytes());
        u32::from_be_bytes([reply[4], reply[5], reply[6], reply[7]])
    }
}

#[test]
fn client_that_enters_by_name_and_knows_simple_replies_is_served() {
    // With NO_ZEROES, without, and without even the fixed newstyle.
    for (place, client_flags) in [(Place::Unix, 3), (Place::Tcp, 1), (Place::Unix, 0)] {
        let served = Served::empty_file(place, MIB, &[]);
        let mut wire = Wire::connect(&served, place);
        let (size, flags) = wire.enter_by_name(client_flags, "disk");
        assert_eq!(size, MIB);
        assert_eq!(flags & 0b1000_0111, 0b0000_0101, "flags, flush, no DF, not read-only");

        let data = noise(9000, 7);
        wire.send(&[request(0, 1, 11, 12345, 9000), data.clone()].concat());
        assert_eq!(wire.simple_reply(11), 0);
        wire.send(&request(0, 3, 12, 0, 0));
        assert_eq!(wire.simple_reply(12), 0);
        wire.send(&request(0, 0, 13, 12345, 9000));
        assert_eq!(wire.simple_reply(13), 0);
        assert!(wire.take::<9000>() == data[..], "what was written is read");
        wire.send(&request(0, 0, 14, MIB, 1));
        assert_eq!(wire.simple_reply(14), 22, "past the end");
        wire.send(&request(0, 2, 15, 0, 0));
        assert_eq!(wire.rest(), [0; 0], "a farewell has no answer");
        served.end();
    }
}

#[test]
fn name_that_there_is_not_closes_the_connection_of_a_client_that_enters_by_name() {
    let served = Served::empty_file(Place::Unix, MIB, &[]);
    let mut wire = Wire::connect(&served, Place::Unix);
    let _greeting: [u8; 18] = wire.take();
    wire.send(&[&3u32.to_be_bytes()[..], b"IHAVEOPT\0\0\0\x01\0\0\0\x04nope"].concat());
    assert_eq!(wire.rest(), [0; 0]);
    served.end();
}
