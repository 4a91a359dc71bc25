//! What two servers say to each other, a JSON object a message, and the socket on which they do.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use paternoster_disk::Fd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::rights;

/// What a server writes that hands over; this version reads no other.
pub(super) const FORMAT: u32 = 1;

/// The longest message.
const MESSAGE: usize = 4096;

/// How long a message may take to be sent.
const SENT: Duration = Duration::from_secs(2);

/// A message of the server that takes over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToPredecessor {
    /// The first one.
    Hello { formats: Vec<u32>, version: String },
    /// So many descriptors have come: there is room for others.
    Taken { descriptors: usize },
    /// All that is needed to serve is there but clients.
    Prepared,
    /// So are these, as soon as they may be served.
    Ready,
    /// It was only tried.
    Leave,
}

/// A message of the server that hands over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToSuccessor {
    /// What there is. An [`Offer`](super::state::Offer) comes with it, in a file.
    Offer { format: u32, version: String, descriptors: usize },
    /// There is no hand-over now.
    Refuse { why: String },
    /// Sockets that listen, and files.
    Descriptors,
    /// The sockets of clients, in the order of the state.
    Clients,
    /// The [`State`](super::state::State), in a file.
    State,
    /// The hand-over is given up.
    Abandoned { why: String },
    /// From here on the other one serves.
    Go,
}

/// One end of the socket.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

impl Channel {
    /// On a connected socket that keeps messages apart.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        set_socket_timeout(&socket, Timeout::Send, Some(SENT))?;
        Ok(Self(socket))
    }

    /// Sends a message with descriptors, [`rights::MOST`] at most.
    pub(super) fn send(&self, message: &impl Serialize, with: &[Fd]) -> io::Result<()> {
        let bytes = serde_json::to_vec(message)?;
        let with: Vec<_> = with.iter().map(|fd| fd.as_fd()).collect();
        rights::send(&self.0, &bytes, &with, SendFlags::empty())?;
        Ok(())
    }

    /// Receives a message with its descriptors, for which it waits that long, or for ever.
    pub(super) fn receive<M: DeserializeOwned>(
        &self,
        within: Option<Duration>,
    ) -> io::Result<(M, Vec<OwnedFd>)> {
        set_socket_timeout(&self.0, Timeout::Recv, within)?;
        let mut room = [0; MESSAGE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(rights::MOST))];
        match rights::receive(&self.0, &mut room, &mut space, RecvFlags::empty())? {
            (0, _) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has gone")),
            (len, descriptors) => {
                let message = serde_json::from_slice(&room[..len]).map_err(|error| {
                    let said = String::from_utf8_lossy(&room[..len]);
                    io::Error::other(format!("it says {said:?}, which means nothing: {error}"))
                })?;
                Ok((message, descriptors))
            }
        }
    }
}
