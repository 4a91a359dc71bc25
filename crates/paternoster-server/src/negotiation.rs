//! One client in the option phase, within TLS where its socket requires that.
//!
//! ```text
//!   clear: flags, STARTTLS ──▶ keys are agreed on ──▶ within: options ──▶ entered
//! ```
//!
//! Nothing is done here but what the client's bytes ask for: the acceptor moves them.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use paternoster_disk::Fd;
use paternoster_nbd::Session;
use paternoster_nbd::server::{Handshake, Progress};
use paternoster_nbd::tls::{Opened, Tls};

use crate::config::{Identity, ListenTls};
use crate::export_table::{Asked, ExportTable, Visitor};
use crate::messages::NewConnection;
use crate::peer::Peer;
use crate::tls::{self, Loaded};

/// Room for what a negotiating client sends at once.
const RECEIVE_ROOM: usize = 4096;

/// Why clients are refused, as sentences of the log.
const TURNED_AWAY: &str = "a client was turned away";
const REFUSED_TLS: &str = "a client was refused TLS";
pub(crate) const REFUSED_EXPORT: &str = "a client was refused an export";

/// What a client is told of that asks for TLS.
const NO_TLS: &str = "it asked for TLS, as for nbds://, which its socket does not have: nbd:// is \
                      allowed, or tls = \"require\" under [[listen]]";

/// Why a client has to begin anew that others have let in than do now.
const FILES_CHANGED: &str = "a reload has changed the files of TLS since it began";

/// One client in the option phase.
#[derive(Debug)]
pub(crate) struct Negotiation {
    pub(crate) socket: Fd,
    pub(crate) peer: Peer,
    handshake: Handshake,
    /// What its socket offers, and to whom it is.
    exports: Arc<ExportTable>,
    visitor: Visitor,
    tls: Option<Box<Tls>>,
    /// The files with which that was begun.
    begun_with: Option<Arc<Loaded>>,
    input: BytesMut,
    /// What is to be sent, as it goes over the socket.
    output: BytesMut,
    /// What to do once the output is sent.
    then: Then,
}

#[derive(Debug)]
enum Then {
    Receive,
    AskAgain,
    StartTls,
    Agree,
    Close,
    Enter(Session),
}

/// What the acceptor is to do for a client.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send this.
    Send(Bytes),
    /// Receive behind this.
    Receive(BytesMut),
    /// Have it agree on keys, when there is time.
    Agree,
    /// Let it go on at once.
    Again,
    Close,
    /// Let it enter.
    Enter(Session),
}

/// A client that was refused something: the sentence of the log, and why.
pub(crate) type Refused = (&'static str, String);

impl Negotiation {
    pub(crate) fn new(socket: Fd, peer: Peer, exports: Arc<ExportTable>) -> Self {
        let handshake = match exports.tls {
            ListenTls::Off => Handshake::new(),
            ListenTls::Require => Handshake::requiring_tls(),
        };
        Self {
            socket,
            peer,
            handshake,
            exports,
            visitor: Visitor::Anyone,
            tls: None,
            begun_with: None,
            input: BytesMut::new(),
            output: BytesMut::from(&Handshake::greeting()[..]),
            then: Then::Receive,
        }
    }

    /// Takes note that so much of the output has gone.
    pub(crate) fn sent(&mut self, bytes: usize) {
        let _ = self.output.split_to(bytes);
    }

    /// Takes what has been received, behind what it gave.
    pub(crate) fn received(&mut self, received: BytesMut) {
        self.then = match &mut self.tls {
            None => {
                self.input = received;
                Then::AskAgain
            }
            Some(tls) => {
                *tls.sealed() = received;
                if tls.is_handshaking() { Then::Agree } else { Then::Receive }
            }
        };
    }

    /// Does what can be done before the socket is needed.
    pub(crate) fn next(&mut self, refused: &mut Vec<Refused>) -> Next {
        if !self.output.is_empty() {
            return Next::Send(self.output.clone().freeze());
        }
        match std::mem::replace(&mut self.then, Then::Receive) {
            Then::Receive => self.receive(refused),
            Then::AskAgain => {
                self.ask(refused);
                Next::Again
            }
            Then::StartTls => {
                self.start_tls(refused);
                Next::Again
            }
            Then::Agree => Next::Agree,
            Then::Close => Next::Close,
            Then::Enter(session) => Next::Enter(session),
        }
    }

    /// Has it go on with agreeing on keys by what has been received.
    pub(crate) fn agree(&mut self, refused: &mut Vec<Refused>) {
        let Some(tls) = &mut self.tls else { return };
        let room = self.handshake.wanted().max(RECEIVE_ROOM);
        self.then = match tls.open(&mut self.input, room) {
            Err(error) => {
                refused.push((REFUSED_TLS, tls::why(&error)));
                Then::Close
            }
            Ok(_) if !tls.is_handshaking() => {
                let shown = tls.peer_certificate().map(Identity::all_of);
                self.visitor = shown.map_or(Visitor::Anyone, |all| Visitor::Known(all.into()));
                Then::AskAgain
            }
            Ok(Opened::Data(_)) => Then::Agree,
            Ok(Opened::Missing) => Then::Receive,
            Ok(Opened::Ended) => Then::Close,
        };
        self.output.extend_from_slice(&tls.say());
    }

    /// Takes what TLS has already, else has more be received.
    fn receive(&mut self, refused: &mut Vec<Refused>) -> Next {
        let wanted = self.handshake.wanted().max(RECEIVE_ROOM);
        let Some(tls) = &mut self.tls else {
            let mut input = std::mem::take(&mut self.input);
            input.reserve(wanted);
            return Next::Receive(input);
        };
        if !tls.is_handshaking() {
            match tls.open(&mut self.input, wanted) {
                Ok(Opened::Ended) => return Next::Close,
                Ok(Opened::Missing) => {}
                Ok(Opened::Data(_)) => {
                    self.then = Then::AskAgain;
                    return Next::Again;
                }
                Err(error) => {
                    refused.push((TURNED_AWAY, tls::why(&error)));
                    self.output.extend_from_slice(&tls.say());
                    self.then = Then::Close;
                    return Next::Again;
                }
            }
        }
        let wanted = tls.wanted().max(RECEIVE_ROOM);
        let mut sealed = std::mem::take(tls.sealed());
        sealed.reserve(wanted);
        Next::Receive(sealed)
    }

    /// Returns whether who may enter is decided by the files that hold now.
    fn is_by_files_in_force(&self) -> bool {
        let now = self.exports.tls_in_force();
        let is_same = |begun: &Arc<Loaded>| now.is_some_and(|now| Arc::ptr_eq(begun, &now));
        self.begun_with.as_ref().is_none_or(is_same)
    }

    /// Has the machine look at the input.
    fn ask(&mut self, refused: &mut Vec<Refused>) {
        if !self.is_by_files_in_force() {
            refused.push((REFUSED_TLS, FILES_CHANGED.to_owned()));
            self.then = Then::Close;
            return;
        }
        let Self { handshake, exports, visitor, input, tls, .. } = self;
        let (asked, mut output) = (Asked::of(exports, visitor), BytesMut::new());
        let progress = handshake.receive(input, &asked, &mut output);
        match &progress {
            Err(error) => refused.push((TURNED_AWAY, error.to_string())),
            Ok(_) => refused.extend(asked.refusal().map(|why| (REFUSED_EXPORT, why))),
        }
        if handshake.take_refused_tls() {
            refused.push((REFUSED_TLS, NO_TLS.to_owned()));
        }
        self.then = match progress {
            Ok(Progress::NeedMore) => Then::Receive,
            Ok(Progress::SendOutput) => Then::AskAgain,
            Ok(Progress::StartTls) => Then::StartTls,
            Ok(Progress::Entered(session)) => Then::Enter(session),
            Ok(Progress::Aborted) | Err(_) => Then::Close,
        };
        match tls {
            Some(tls) => {
                // As much as it may ask before it enters fits into a few records.
                self.output.extend_from_slice(&tls.seal(&[&output[..]]).unwrap_or_default());
                if matches!(self.then, Then::Close) {
                    tls.end();
                    self.output.extend_from_slice(&tls.say());
                }
            }
            None => self.output.extend_from_slice(&output),
        }
    }

    /// Begins TLS; what has come in the clear is over.
    fn start_tls(&mut self, refused: &mut Vec<Refused>) {
        self.begun_with = self.exports.tls_in_force();
        let begun = self.begun_with.as_ref().map(|tls| Tls::server(Arc::clone(&tls.config)));
        match begun {
            Some(Ok(tls)) => self.tls = Some(Box::new(tls)),
            Some(Err(error)) => refused.push((REFUSED_TLS, error.to_string())),
            None => refused.push((REFUSED_TLS, "there are no files of TLS any more".to_owned())),
        }
        if self.tls.is_none() {
            self.then = Then::Close;
        }
    }

    /// Has the client enter what it has asked for, or says why it cannot.
    pub(crate) fn enter(self, session: Session) -> Result<(), (Peer, String)> {
        if !self.is_by_files_in_force() {
            return Err((self.peer, FILES_CHANGED.to_owned()));
        }
        let Self { socket, exports, visitor, tls, input, peer, .. } = self;
        // It may have gone since the client was answered that it may enter.
        let entry = exports.entry(&session.export.name, &visitor);
        let entry = entry.filter(|entry| !entry.is_leaving && entry.is_as_told(&session.export));
        let gone = || (peer, "it was removed or changed meanwhile".to_owned());
        let entry = entry.ok_or_else(gone)?;
        // Others may have entered.
        let admitted = entry.room.admit().map_err(|no_room| (peer, no_room.to_string()))?;
        let identity = match &visitor {
            Visitor::Known(identities) => exports.identity_in(&entry, identities),
            Visitor::Anyone => None,
        };
        let (export, resumed) = (Arc::clone(&entry.export), None);
        entry.owner.connect(NewConnection {
            socket,
            tls,
            identity,
            session,
            input,
            export,
            peer,
            admitted,
            resumed,
        });
        Ok(())
    }
}
