//! A client's connection to the server in the guest.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bytes::{Buf as _, BytesMut};
use paternoster_nbd::Request;
use paternoster_nbd::client::{
    ClientOptions, Handshake, Progress, Replies, Reply, Target, Transmission,
};

/// The only export of the server in the guest.
const EXPORT: &str = "disk";

/// A connection that has entered the export, and never blocks.
pub(super) struct Connection {
    stream: UnixStream,
    transmission: Transmission,
    /// What has come and is not decoded.
    input: BytesMut,
    /// What is to be sent.
    output: BytesMut,
}

impl Connection {
    /// Connects to the server's socket and enters the export.
    pub(super) fn enter(socket: &Path) -> Result<Self> {
        let mut stream = UnixStream::connect(socket)
            .with_context(|| format!("cannot connect to {}", socket.display()))?;
        let target = Target::Go(EXPORT.to_owned());
        let mut handshake = Handshake::new(ClientOptions { target, replies: Replies::Simple });
        let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
        let session = loop {
            let progress = handshake.receive(&mut input, &mut output)?;
            stream.write_all(&output.split())?;
            match progress {
                Progress::Entered(session) => break session,
                Progress::NeedMore => receive(&mut stream, &mut input)?,
                other => bail!("the handshake ended by {other:?}"),
            }
        };
        stream.set_nonblocking(true)?;
        Ok(Self { stream, transmission: Transmission::new(session), input, output })
    }

    /// Bytes of the export.
    pub(super) fn size(&self) -> u64 {
        self.transmission.session().export.size
    }

    /// Requests without an answer.
    pub(super) fn in_flight(&self) -> usize {
        self.transmission.in_flight()
    }

    /// Puts a request behind what is to be sent.
    pub(super) fn ask(&mut self, request: &Request) -> Result<()> {
        Ok(self.transmission.encode(request, &mut self.output)?)
    }

    /// Sends what the socket takes.
    pub(super) fn send(&mut self) -> Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(sent) => self.output.advance(sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("sending a request"),
            }
        }
        Ok(())
    }

    /// Whether there is something to send.
    pub(super) fn wants_to_send(&self) -> bool {
        !self.output.is_empty()
    }

    /// Receives what has come.
    pub(super) fn receive(&mut self) -> Result<()> {
        receive(&mut self.stream, &mut self.input)
    }

    /// The next answer of those that have come.
    pub(super) fn answer(&mut self) -> Result<Option<Reply>> {
        Ok(self.transmission.decode(&mut self.input)?)
    }

    /// The socket, behind the handshake, for somebody else to go on with.
    pub(super) fn into_socket(self) -> Result<OwnedFd> {
        self.stream.set_nonblocking(false)?;
        Ok(self.stream.into())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Receives once, behind what is there.
fn receive(stream: &mut UnixStream, input: &mut BytesMut) -> Result<()> {
    let mut chunk = [0; 4096];
    match stream.read(&mut chunk) {
        Ok(0) => bail!("the server closed a connection"),
        Ok(received) => input.extend_from_slice(&chunk[..received]),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Err(error) => return Err(error).context("receiving"),
    }
    Ok(())
}
