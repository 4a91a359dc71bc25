//! The front-end's end of the socket: messages, and their answers.

use std::io::{IoSlice, IoSliceMut, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use paternoster_vhost::proto::HEADER_LEN;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

const VERSION: u32 = 1;
const NEED_REPLY: u32 = 1 << 3;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A front-end that is connected.
#[derive(Debug)]
pub struct FrontEnd {
    /// Its socket.
    pub socket: UnixStream,
}

impl FrontEnd {
    /// Connects to the socket of an export.
    pub fn connect(path: &Path) -> Result<Self> {
        let socket = UnixStream::connect(path)
            .with_context(|| format!("cannot connect to {}", path.display()))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { socket })
    }

    /// Sends a message of which nothing comes back.
    pub fn ask_nothing(&mut self, request: u32, body: &[u8]) -> Result<()> {
        self.send(request, 0, body, &[])
    }

    /// Sends a message, with files, and asks whether it is obeyed.
    pub fn tell(&mut self, request: u32, body: &[u8], files: &[&OwnedFd]) -> Result<()> {
        self.send(request, NEED_REPLY, body, files)?;
        let code = self.reply(request)?.0;
        ensure!(code == [0; 8], "message {request} was refused");
        Ok(())
    }

    /// Sends a message and returns the body of its reply.
    pub fn ask(&mut self, request: u32, body: &[u8]) -> Result<Vec<u8>> {
        Ok(self.ask_for_file(request, body)?.0)
    }

    /// The same, with the file that comes with the reply.
    pub fn ask_for_file(
        &mut self,
        request: u32,
        body: &[u8],
    ) -> Result<(Vec<u8>, Option<OwnedFd>)> {
        self.send(request, 0, body, &[])?;
        self.reply(request)
    }

    /// Sends a message as it is.
    pub fn send(
        &mut self,
        request: u32,
        flags: u32,
        body: &[u8],
        files: &[&OwnedFd],
    ) -> Result<()> {
        let len = u32::try_from(body.len()).context("a long body")?;
        let header = [request, flags | VERSION, len].map(u32::to_ne_bytes).concat();
        self.send_bytes(&[header, body.to_vec()].concat(), files)
    }

    /// Sends any bytes, with files.
    pub fn send_bytes(&mut self, bytes: &[u8], files: &[&OwnedFd]) -> Result<()> {
        let files: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            ensure!(control.push(SendAncillaryMessage::ScmRights(&files)), "too many files");
        }
        let flags = SendFlags::NOSIGNAL;
        let bytes_of = [IoSlice::new(bytes)];
        let sent = retry_on_intr(|| sendmsg(&self.socket, &bytes_of, &mut control, flags))?;
        ensure!(sent == bytes.len(), "the socket is full");
        Ok(())
    }

    fn reply(&mut self, request: u32) -> Result<(Vec<u8>, Option<OwnedFd>)> {
        let mut header = [0; HEADER_LEN];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut room = [IoSliceMut::new(&mut header)];
        // A socket with a timeout is not read again by itself where something else comes.
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message = retry_on_intr(|| recvmsg(&self.socket, &mut room, &mut control, flags))?;
        ensure!(message.bytes == HEADER_LEN, "the server has hung up");
        let mut files = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                files.extend(rights);
            }
        }
        let (words, _) = header.as_chunks();
        let [of, _flags, len] = words else { bail!("a header has three words") };
        let [of, len] = [of, len].map(|word| u32::from_ne_bytes(*word));
        ensure!(of == request, "message {request} was answered as {of}");
        let mut body = vec![0; len as usize];
        self.socket.read_exact(&mut body).context("the reply is cut off")?;
        Ok((body, files.pop()))
    }
}
