//! A client that waits for each reply before it asks again.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bytes::BytesMut;
use paternoster_nbd::client::{ClientOptions, Handshake, Progress, Replies, Target, Transmission};
use paternoster_nbd::{Command, Request, Session};

use crate::ask::zeroes;

/// The client.
pub struct OneByOne {
    stream: UnixStream,
    transmission: Transmission,
    input: BytesMut,
    asked: u64,
}

impl OneByOne {
    /// Connects to an export over the unix socket.
    pub fn connect(socket: &Path, export: &str) -> Result<Self> {
        let (stream, session) = enter(socket, export)?;
        let transmission = Transmission::new(session);
        Ok(Self { stream, transmission, input: BytesMut::new(), asked: 0 })
    }

    /// Reads the first bytes.
    pub fn read(&mut self, len: u32) -> Result<()> {
        self.ask(Command::Read { offset: 0, len, df: false })
    }

    /// Writes zeroes over the first bytes.
    pub fn write(&mut self, len: u32) -> Result<()> {
        self.ask(Command::Write { offset: 0, data: zeroes(len), fua: false })
    }

    /// Flushes.
    pub fn flush(&mut self) -> Result<()> {
        self.ask(Command::Flush)
    }

    /// Asks for something, and returns when that is done.
    fn ask(&mut self, command: Command) -> Result<()> {
        self.send(command)?;
        loop {
            if let Some(reply) = self.transmission.decode(&mut self.input)? {
                return reply.result.map(drop).context("the server refuses a request");
            }
            receive_more(&mut self.stream, &mut self.input)?;
        }
    }

    /// Disconnects.
    pub fn end(mut self) -> Result<()> {
        self.send(Command::Disconnect)
    }

    fn send(&mut self, command: Command) -> Result<()> {
        self.asked += 1;
        let mut output = BytesMut::new();
        self.transmission.encode(&Request { cookie: self.asked, command }, &mut output)?;
        Ok(self.stream.write_all(&output)?)
    }
}

/// Connects to an export over the unix socket, reads its first 4 KiB, and disconnects.
pub fn read_once(socket: &Path, export: &str) -> Result<()> {
    let mut client = OneByOne::connect(socket, export)?;
    client.read(4096)?;
    client.end()
}

/// Connects to an export over the unix socket.
pub(crate) fn enter(socket: &Path, export: &str) -> Result<(UnixStream, Session)> {
    let mut stream = UnixStream::connect(socket)
        .with_context(|| format!("cannot connect to {}", socket.display()))?;
    let target = Target::Go(export.to_owned());
    let options = ClientOptions { target, replies: Replies::Simple };
    let mut handshake = Handshake::new(options);
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    loop {
        let progress = handshake.receive(&mut input, &mut output)?;
        stream.write_all(&output.split())?;
        match progress {
            Progress::Entered(session) => return Ok((stream, session)),
            Progress::NeedMore => receive_more(&mut stream, &mut input)?,
            _ => bail!("the server ended the handshake without an export"),
        }
    }
}

fn receive_more(stream: &mut UnixStream, input: &mut BytesMut) -> Result<()> {
    let mut chunk = [0; 4096];
    let received = stream.read(&mut chunk)?;
    if received == 0 {
        bail!("the server closed the connection");
    }
    input.extend_from_slice(&chunk[..received]);
    Ok(())
}
