//! The server's side: a handshake, then a transmission.
//!
//! ```text
//!   bytes ──▶ Handshake::receive ──Entered(session)──▶ Transmission::decode ──▶ Request
//!                 │ output                                │ output: refusals
//!                 ▼                                       ▼
//!               bytes       reply_ok, reply_error, read_header, … ──▶ bytes
//! ```
//!
//! Both take what arrived from the front of the caller's buffer, leave what is not complete, and
//! append what is to be sent to the caller's output. What follows the handshake in the buffer is
//! the transmission's: clients need not wait.

mod check;
mod error;
mod handshake;
mod options;
mod reply;
mod transmission;

pub use error::HandshakeError;
pub use handshake::{Handshake, Progress};
pub use transmission::{Fatal, RefusedWrite, Transmission, Unfinished};
