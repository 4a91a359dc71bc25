//! The client's side: a handshake with a target, then a transmission.
//!
//! ```text
//!   ClientOptions ──▶ Handshake::receive ──Entered(session)──▶ Transmission ──▶ Reply
//!                          │                                    ▲   │ decode
//!                          └──▶ Described, Listed        encode │   ▼
//!                                                           Request  bytes
//! ```
//!
//! The server need not be trusted: every length is checked before anything is stored, and what a
//! reply may take up is bounded by what was asked for.

mod assembly;
mod error;
mod handshake;
mod quoted;
mod transmission;

pub use error::HandshakeError;
pub use handshake::{ClientOptions, Handshake, Listed, Progress, Replies, Target};
pub use transmission::{Answer, EncodeError, RemoteError, Reply, ReplyError, Transmission};
