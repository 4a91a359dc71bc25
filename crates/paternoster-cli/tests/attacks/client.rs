//! A client that does as it likes, and takes errors as they come: an attacked server may close.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::Place;
pub(crate) use crate::support::request;

/// How long one waits for the server where it has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Codes of the protocol's options, and of the one reply that ends them well.
const EXPORT_NAME: u32 = 1;
pub(crate) const LIST: u32 = 3;
const GO: u32 = 7;
const STRUCTURED_REPLY: u32 = 8;
const SET_META_CONTEXT: u32 = 10;
const ACK: u32 = 1;

/// Where the server is.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) unix: PathBuf,
    pub(crate) tcp: String,
}

/// A socket of either kind.
pub(crate) trait Socket: Read + Write + Send {
    fn do_not_block(&self) -> io::Result<()>;
}

impl Socket for UnixStream {
    fn do_not_block(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Socket for TcpStream {
    fn do_not_block(&self) -> io::Result<()> {
        self.set_nonblocking(true)
    }
}

impl Target {
    /// Connects, and says nothing.
    pub(crate) fn connect(&self, place: Place) -> io::Result<Box<dyn Socket>> {
        Ok(match place {
            Place::Unix => {
                let stream = UnixStream::connect(&self.unix)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
            Place::Tcp => {
                let stream = TcpStream::connect(&self.tcp)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Box::new(stream)
            }
        })
    }

    /// Enters an export with simple replies.
    pub(crate) fn enter(&self, place: Place, export: &str) -> io::Result<Box<dyn Socket>> {
        let mut socket = self.connect(place)?;
        socket.write_all(&[greeting(), option(EXPORT_NAME, export.as_bytes())].concat())?;
        // The server's greeting; size and flags of the export.
        socket.read_exact(&mut [0; 18 + 10])?;
        Ok(socket)
    }

    /// Enters an export with structured replies and what is allocated.
    pub(crate) fn enter_allocation(
        &self,
        place: Place,
        export: &str,
    ) -> io::Result<Box<dyn Socket>> {
        let mut socket = self.connect(place)?;
        let context = "base:allocation";
        let wish = [&1u32.to_be_bytes()[..], &text(context)].concat();
        let options = [
            greeting(),
            option(STRUCTURED_REPLY, &[]),
            option(SET_META_CONTEXT, &[text(export), wish].concat()),
            option(GO, &[text(export), vec![0, 0]].concat()),
        ];
        socket.write_all(&options.concat())?;
        socket.read_exact(&mut [0; 18])?;
        loop {
            let mut header = [0; 20];
            socket.read_exact(&mut header)?;
            let [of, reply, len] =
                [8, 12, 16].map(|at| u32::from_be_bytes(header[at..at + 4].try_into().expect("4")));
            io::copy(&mut (&mut *socket).take(len.into()), &mut io::sink())?;
            if (of, reply) == (GO, ACK) {
                return Ok(socket);
            }
        }
    }
}

/// What a client says first.
pub(crate) fn greeting() -> Vec<u8> {
    3u32.to_be_bytes().to_vec()
}

/// An option with its data.
pub(crate) fn option(code: u32, data: &[u8]) -> Vec<u8> {
    let len = u32::try_from(data.len()).expect("short");
    [b"IHAVEOPT", &code.to_be_bytes()[..], &len.to_be_bytes(), data].concat()
}

/// A text behind its length.
fn text(text: &str) -> Vec<u8> {
    let len = u32::try_from(text.len()).expect("short");
    [&len.to_be_bytes()[..], text.as_bytes()].concat()
}

/// Codes of commands.
pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const CACHE: u16 = 5;
pub(crate) const WRITE_ZEROES: u16 = 6;
pub(crate) const BLOCK_STATUS: u16 = 7;
/// One that there is not.
pub(crate) const ILLEGAL: u16 = 99;

/// Flags of commands.
pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;

/// A write with its data.
pub(crate) fn write(offset: u64, len: u32) -> Vec<u8> {
    [request(0, WRITE, 1, offset, len), vec![7; len as usize]].concat()
}
