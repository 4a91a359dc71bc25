//! The NBD protocol as state machines: bytes in, events out, no I/O.

mod command;
mod export;
pub mod proto;
pub mod server;

pub use command::{Command, Extent, Request, Session, StatusQuery};
pub use export::{BlockSize, ExportInfo, Exports};
pub use proto::{ExtentFlags, NbdError, TransmissionFlags};
