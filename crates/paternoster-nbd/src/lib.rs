//! The NBD protocol as state machines: bytes in, events out, no I/O.
//!
//! Nothing here reads a socket, a clock or a disk. The caller moves bytes between a connection and
//! two buffers, and learns what they mean. A server's session:
//!
//! ```text
//!        server::Handshake                      server::Transmission
//!   ┌───────────────────────────┐          ┌──────────────────────────────┐
//!   │ greeting                  │ Entered  │ decode ──▶ Request ──▶ caller│
//!   │ receive ⟲ options, replies├─────────▶│    │ refusals           │    │──▶ Disconnect
//!   │         asks dyn Exports  │ Session  │    ▼                    ▼    │
//!   └─────┬──────────┬──────────┘          │  output ◀── reply_ok, read_header, …
//!         │ Aborted  │ HandshakeError      └────┬─────────────────────────┘
//!         ▼          ▼                          ▼ Fatal
//!       close      close                      close
//! ```
//!
//! and a client's is its mirror image, in [`client`].
//!
//! - What is spoken: fixed newstyle with `NO_ZEROES`; the options `EXPORT_NAME`, `ABORT`, `LIST`,
//!   `INFO`, `GO`, `STRUCTURED_REPLY`, `LIST_META_CONTEXT`, `SET_META_CONTEXT` (for
//!   `base:allocation`) and, on the server's side, `STARTTLS`; all commands and their flags; simple
//!   and structured replies. 64-bit lengths are answered as an unknown option.
//! - With the feature `tls`, `tls::Tls` is between a connection and either side of it.
//! - Payloads are not copied: the data of a write is split off the input buffer, that of a read is
//!   sent by the caller after a header.
//! - The other side need not be trusted: lengths are checked before anything is stored, nothing it
//!   sends can panic, and what it can make us keep is bounded. Time is the caller's to bound.
//!
//! # A whole dialogue
//!
//! Both sides in one thread, with two buffers for wires:
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use paternoster_nbd::{BlockSize, Command, ExportInfo, Request, TransmissionFlags};
//! use paternoster_nbd::client::{self, Answer, ClientOptions, Replies, Target};
//! use paternoster_nbd::server;
//!
//! let exports = ExportInfo {
//!     name: "disk".into(),
//!     description: None,
//!     size: 1 << 20,
//!     flags: TransmissionFlags::SEND_FLUSH | TransmissionFlags::SEND_FUA,
//!     block_size: BlockSize::default(),
//! };
//! let (mut to_client, mut to_server) = (BytesMut::new(), BytesMut::new());
//!
//! // The option phase, until both have entered the transmission phase.
//! let target = Target::Go("disk".into());
//! let options = ClientOptions { target, replies: Replies::Structured };
//! let mut asking = client::Handshake::new(options);
//! let mut answering = server::Handshake::new();
//! to_client.extend_from_slice(&server::Handshake::greeting());
//! let (mut client, mut server) = loop {
//!     let asked = asking.receive(&mut to_client, &mut to_server)?;
//!     assert_eq!(asked, client::Progress::NeedMore);
//!     let answered = answering.receive(&mut to_server, &exports, &mut to_client)?;
//!     if let server::Progress::Entered(session) = answered {
//!         let server = server::Transmission::new(session);
//!         match asking.receive(&mut to_client, &mut to_server)? {
//!             client::Progress::Entered(session) => {
//!                 break (client::Transmission::new(session), server);
//!             }
//!             other => panic!("the server has entered, the client says {other:?}"),
//!         }
//!     }
//! };
//!
//! // A write and a read, answered in the other order.
//! let write = Command::Write { offset: 512, data: Bytes::from_static(b"hello"), fua: true };
//! let read = Command::Read { offset: 0, len: 4, df: false };
//! client.encode(&Request { cookie: 1, command: write }, &mut to_server)?;
//! client.encode(&Request { cookie: 2, command: read }, &mut to_server)?;
//!
//! let write = server.decode(&mut to_server, &mut to_client)?.expect("the write");
//! let read = server.decode(&mut to_server, &mut to_client)?.expect("the read");
//! assert_eq!(server.decode(&mut to_server, &mut to_client)?, None);
//! server.read_header(read.cookie, 0, 4, &mut to_client);
//! to_client.extend_from_slice(b"data");
//! server.reply_ok(write.cookie, &mut to_client);
//!
//! let first = client.decode(&mut to_client)?.expect("the reply to the read");
//! assert_eq!(first.result, Ok(Answer::Data(Bytes::from_static(b"data"))));
//! let second = client.decode(&mut to_client)?.expect("the reply to the write");
//! assert_eq!((second.cookie, second.result), (1, Ok(Answer::Done)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod client;
mod command;
mod export;
mod header;
pub mod proto;
pub mod server;
#[cfg(feature = "tls")]
pub mod tls;

pub use command::{Command, Extent, Request, Session, StatusQuery};
pub use export::{BlockSize, ExportInfo, Exports};
pub use proto::{CommandFlags, ExtentFlags, NbdError, TransmissionFlags};

/// The examples of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
