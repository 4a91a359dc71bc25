//! TLS between a connection and a session, of the server or the client: bytes in, bytes out.
//!
//! ```text
//!   connection ──▶ sealed ──open──▶ plain ──▶ Handshake, Transmission
//!   connection ◀────────── seal ◀── output ◀─────────┘
//! ```
//!
//! The protocol is rustls'. What is here gives it one whole record at a time. So a connection holds
//! what has been received and is not opened, the last record, of which data may be left, and parts
//! of a message of rustls' own that has not all come: 64 KiB of it at most.

use std::io::{BufRead as _, IoSlice, Write as _};
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivateSec1KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Connection, Error, ServerConfig, ServerConnection};

/// Bytes of a record's header, of which the last two are the length of what follows.
const RECORD_HEADER: usize = 5;

/// The longest record in bytes, with its header: 16 KiB of data and what a cipher may add.
const MAX_RECORD: usize = RECORD_HEADER + (16 << 10) + 2048;

/// Records that are opened before the caller looks at the data: small ones cost as much as larger
/// ones.
const RECORDS: usize = 32;

/// What a record that is sealed takes beyond its data, at most, and at least.
const OVERHEAD: usize = 64;
const LEAST_OVERHEAD: usize = RECORD_HEADER + 16;

/// The most data of one record that is sealed.
const FRAGMENT: usize = 16 << 10;

/// One end of TLS.
#[derive(Debug)]
pub struct Tls {
    connection: Connection,
    /// What has been received and is not opened.
    sealed: BytesMut,
    /// Bytes that the connection has opened, and that were not taken.
    opened: usize,
    /// Whether the peer has said that nothing more comes.
    has_ended: bool,
    /// Records that were opened.
    records: u64,
    /// Why nothing more is opened, once what came before has been taken.
    failed: Option<Error>,
}

/// What has come of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// So many bytes, which may be none; there may be more.
    Data(usize),
    /// Nothing, before more is received.
    Missing,
    /// Nothing, and nothing more comes.
    Ended,
}

impl Tls {
    /// Makes the server's end.
    pub fn server(config: Arc<ServerConfig>) -> Result<Self, Error> {
        ServerConnection::new(config).map(|connection| Self::of(connection.into()))
    }

    /// Makes the client's end; the server has to show a certificate of that name.
    pub fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        ClientConnection::new(config, name).map(|connection| Self::of(connection.into()))
    }

    fn of(mut connection: Connection) -> Self {
        // The caller bounds what it seals, and takes all of it.
        connection.set_buffer_limit(None);
        Self {
            connection,
            sealed: BytesMut::new(),
            opened: 0,
            has_ended: false,
            records: 0,
            failed: None,
        }
    }

    /// Returns the buffer to which what is received is to be appended.
    pub fn sealed(&mut self) -> &mut BytesMut {
        &mut self.sealed
    }

    /// Returns how many bytes have to be received, at least, before another record is whole.
    pub fn wanted(&self) -> usize {
        let whole = record_len(&self.sealed).unwrap_or(RECORD_HEADER).min(MAX_RECORD);
        whole.saturating_sub(self.sealed.len()).max(1)
    }

    /// Opens what has been received and appends the data to `plain`, at most `room` bytes.
    ///
    /// After an error [`seal`](Self::seal) gives the alert that tells the peer why.
    pub fn open(&mut self, plain: &mut BytesMut, room: usize) -> Result<Opened, Error> {
        let mut taken = self.take_opened(plain, room);
        if taken == 0
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        for _ in 0..RECORDS {
            let whole = record_len(&self.sealed);
            let is_too_long = whole.is_some_and(|len| len > MAX_RECORD);
            match whole.filter(|&len| len <= self.sealed.len()) {
                _ if taken == room => break,
                _ if self.has_ended && taken == 0 => return Ok(Opened::Ended),
                _ if self.has_ended => break,
                // By its header alone rustls says so, and makes the alert.
                _ if is_too_long => self.process(RECORD_HEADER),
                Some(len) => self.process(len),
                None if taken == 0 => return Ok(Opened::Missing),
                None => break,
            }
            .or_else(|error| {
                if taken == 0 {
                    return Err(error);
                }
                // What came before counts.
                self.failed = Some(error);
                Ok(())
            })?;
            if self.failed.is_some() {
                break;
            }
            taken += self.take_opened(plain, room - taken);
        }
        Ok(Opened::Data(taken))
    }

    /// Has so many bytes be processed: a record, or a beginning that is wrong.
    fn process(&mut self, len: usize) -> Result<(), Error> {
        let Self { connection, sealed, .. } = self;
        let mut record = &sealed[..len];
        while !record.is_empty() {
            let read = connection.read_tls(&mut record);
            read.map_err(|error| Error::General(error.to_string()))?;
        }
        sealed.advance(len);
        self.records += 1;
        let state = connection.process_new_packets()?;
        (self.opened, self.has_ended) = (state.plaintext_bytes_to_read(), state.peer_has_closed());
        Ok(())
    }

    fn take_opened(&mut self, plain: &mut BytesMut, room: usize) -> usize {
        let mut left = room.min(self.opened);
        let taken = left;
        self.opened -= taken;
        let mut reader = self.connection.reader();
        while left > 0 {
            let opened = reader.fill_buf().expect("so much is there");
            let part = opened.len().min(left);
            plain.extend_from_slice(&opened[..part]);
            reader.consume(part);
            left -= part;
        }
        taken
    }

    /// Returns these data as records to be sent, behind what the protocol itself has to say. Keys
    /// must have been agreed on where there are data.
    ///
    /// An error where the keys have sealed as much as they may: new ones are agreed on by TLS 1.3
    /// alone, and with AES in TLS 1.2 that is 2²⁴ records.
    pub fn seal(&mut self, data: &[&[u8]]) -> Result<Bytes, Error> {
        let len: usize = data.iter().map(|part| part.len()).sum();
        let mut sealed = Vec::with_capacity(len + (len / FRAGMENT + 2) * OVERHEAD);
        if len > 0 {
            let slices: Vec<_> = data.iter().map(|part| IoSlice::new(part)).collect();
            // It takes any amount, unless the session has failed.
            let taken = self.connection.writer().write_vectored(&slices);
            taken.map_err(|_| Error::EncryptError)?;
        }
        while self.connection.wants_write() {
            self.connection.write_tls(&mut sealed).expect("a vector can be written to");
        }
        // What it may not seal it drops.
        let is_dropped = len > 0 && sealed.len() < len + LEAST_OVERHEAD;
        if is_dropped { Err(Error::EncryptError) } else { Ok(sealed.into()) }
    }

    /// Returns what the protocol itself has to say, which is nothing mostly.
    pub fn say(&mut self) -> Bytes {
        self.seal(&[]).expect("there are no data to seal")
    }

    /// Returns whether the protocol itself has something to say.
    pub fn has_to_say(&self) -> bool {
        self.connection.wants_write()
    }

    /// Returns whether the keys are yet to be agreed on.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Returns whether the peer has said that nothing more comes.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns how many records have been opened so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Tells the peer, by what is [said](Self::say) next, that nothing more comes. Nothing may be
    /// sealed afterwards.
    pub fn end(&mut self) {
        self.connection.send_close_notify();
    }

    /// Returns the certificate that the peer has shown.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.connection.peer_certificates()?.first()
    }

    /// Uses new keys from here on, with what is sealed next; TLS 1.3 alone can do that.
    pub fn refresh_keys(&mut self) -> Result<(), Error> {
        self.connection.refresh_traffic_keys()
    }
}

/// The length of the record that begins there, if that much of it is known.
fn record_len(sealed: &[u8]) -> Option<usize> {
    let &[_, _, _, high, low] = sealed.first_chunk::<RECORD_HEADER>()?;
    Some(RECORD_HEADER + usize::from(u16::from_be_bytes([high, low])))
}

/// Returns a key as all others write it. GnuTLS writes the number of an elliptic key with a zero
/// before it where its first bit is set, as for a number with a sign: half of the keys of certtool,
/// and rustls takes none of those. By RFC 5915 it has as many bytes as the curve.
pub fn without_sign(key: PrivateKeyDer<'static>) -> PrivateKeyDer<'static> {
    let PrivateKeyDer::Sec1(sec1) = &key else { return key };
    // A sequence: version 1, then the number in that many bytes.
    let (head, len, rest) = match sec1.secret_sec1_der() {
        [0x30, len @ 1..=0x7f, rest @ ..] => (&[0x30][..], *len, rest),
        [0x30, 0x81, len @ 0x81..=0xff, rest @ ..] => (&[0x30, 0x81][..], *len, rest),
        _ => return key,
    };
    let [2, 1, 1, 4, number @ (0x21 | 0x31), 0, rest @ ..] = rest else { return key };
    let mut der = head.to_vec();
    der.extend([len - 1, 2, 1, 1, 4, number - 1]);
    der.extend(rest);
    PrivateSec1KeyDer::from(der).into()
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring::sign::any_supported_type;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    /// By certtool 3.7.9, `--generate-privkey --key-type=ecdsa --curve=secp256r1`: the number has
    /// 33 bytes, the first of them 0.
    const WITH_SIGN: &str = "-----BEGIN EC PRIVATE KEY-----
MHgCAQEEIQChT7GkOHjGBcANoxaXKXx8TV5HTMNvt+7fcIokZMF3HKAKBggqhkjO
PQMBB6FEA0IABM78mymcKQLHemTcSTOB8C0zNgQnpdEifaCfBZslpewFLwk2EetE
Zs3pu3YV1X1htO6cFhez1KmVNU00XQaO8j0=
-----END EC PRIVATE KEY-----
";

    #[test]
    fn key_that_gnutls_writes_with_a_sign_is_taken() {
        let key = PrivateKeyDer::from_pem_slice(WITH_SIGN.as_bytes()).expect("a key");
        assert!(any_supported_type(&key).is_err(), "rustls takes it as it is now");
        let mended = without_sign(key);
        any_supported_type(&mended).expect("it is a key");
        // What is right stays as it is.
        assert_eq!(without_sign(mended.clone_key()), mended);
    }
}
