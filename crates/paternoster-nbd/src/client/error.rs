//! Why a client's handshake fails.

use thiserror::Error;

use super::quoted::Quoted;
use crate::proto::rep;

/// The error of a handshake: send the output, if any, then close.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// This is no NBD server.
    #[error("it is no NBD server: it says {} where {} belongs", word(*found), word(*wanted))]
    BadMagic {
        /// The eight bytes in the magic's place.
        found: u64,
        /// The magic.
        wanted: u64,
    },
    /// A server of the old handshake, in which there are neither names nor options.
    #[error(
        "the server speaks the old handshake of NBD, in which exports have no names; a server of \
         the new one (\"newstyle\") is needed"
    )]
    OldHandshake,
    /// A reply to another option than the one sent.
    #[error("a reply to option {found}, though option {sent} was sent")]
    WrongOption {
        /// What the reply names.
        found: u32,
        /// What was asked.
        sent: u32,
    },
    /// More than a client need keep.
    #[error("option {option} is answered with more than {limit} {unit}")]
    TooMuch {
        /// What was asked.
        option: u32,
        /// How much is allowed.
        limit: usize,
        /// Of what.
        unit: &'static str,
    },
    /// A reply that means nothing, or not here.
    #[error("option {option} is answered with reply {reply:#x} of {len} bytes: {why}")]
    BadReply {
        /// What was asked.
        option: u32,
        /// The reply's code.
        reply: u32,
        /// Bytes of its data.
        len: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The server understands and says no.
    #[error(
        "{} (option {option} is answered with {reply:#x}{})",
        refusal(*reply),
        words(message)
    )]
    Refused {
        /// What was asked.
        option: u32,
        /// One of the `rep::ERR_` codes.
        reply: u32,
        /// The server's words.
        message: String,
    },
    /// More came in the clear behind the answer to `STARTTLS`, which may be anybody's.
    #[error("{len} bytes in the clear follow the answer to STARTTLS, before TLS begins")]
    BehindStartTls {
        /// How many.
        len: usize,
    },
    /// The server is too old to list or describe its exports, or for TLS.
    #[error("the server knows no options but EXPORT_NAME")]
    NoOptions,
    /// The machine was asked to go on after its end.
    #[error("the handshake is over")]
    Over,
}

/// Eight bytes as text, or as a number where they are none.
fn word(word: u64) -> String {
    let bytes = word.to_be_bytes();
    if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        Quoted(&bytes).to_string()
    } else {
        format!("{word:#018x}")
    }
}

/// The server's words, where it has any.
fn words(message: &str) -> String {
    match message {
        "" => String::new(),
        _ => format!(": {}", Quoted(message.as_bytes())),
    }
}

/// What a refusal with this code means.
fn refusal(reply: u32) -> &'static str {
    match reply {
        rep::ERR_UNKNOWN => "the server has no such export",
        rep::ERR_TLS_REQD => "the server wants TLS",
        rep::ERR_POLICY => "the server does not let this client in",
        rep::ERR_SHUTDOWN => "the server is shutting down",
        rep::ERR_BLOCK_SIZE_REQD => "the server wants blocks to be negotiated otherwise",
        rep::ERR_UNSUP => "the server does not know what it is asked for",
        _ => "the server refuses",
    }
}
