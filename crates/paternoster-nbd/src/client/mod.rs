//! The client's side: a handshake with a goal, then a transmission.
//!
//! ```text
//!   Wishes ──▶ Handshake::receive ──Entered(session)──▶ Transmission ──▶ Reply
//!                    │                                    ▲   │ decode
//!                    └──▶ Described, Listed        encode │   ▼
//!                                                     Request  bytes
//! ```
//!
//! The server need not be trusted: every length is checked before anything is stored, and what a
//! reply may take up is bounded by what was asked for.

mod assembly;
mod handshake;
mod transmission;

pub use handshake::{Goal, Handshake, HandshakeError, Listed, Progress, Wishes};
pub use transmission::{Answer, EncodeError, RemoteError, Reply, ReplyError, Transmission};
