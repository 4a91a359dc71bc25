//! A connection thread as a site: what clients want of a disk crosses to its owner.

use std::io;

use paternoster::{Batch, Bio, FlushReason, HandOver, Instant, IocId, Plug, PlugRules};
use paternoster_disk::{CommandOp, Extent, FrontToken, MonotonicClock, Ring};

use super::post::Post;
use super::thread::Token;
use super::{NewCommand, Plugged, ToOwner, Work};
use crate::clients::{ClientId, Export, Question, Site};

/// The way to the owner of one disk.
#[derive(Debug)]
pub(super) struct WayToOwner {
    pub(super) post: Post<ToOwner>,
    /// What the client that is visited has submitted. It is empty between visits, so that it holds
    /// bios of one I/O context alone.
    plug: Plug<(), Held>,
    pub(super) rules: PlugRules,
}

/// The commands of the bios in the plug, and what has left it.
#[derive(Debug, Default)]
struct Held {
    /// In the order in which they were submitted.
    commands: Vec<NewCommand>,
    /// How many have left before them. In the plug a bio is named by its place among all.
    left_before: u64,
    /// Batches that have left, each with the commands of its bios.
    left: Vec<(Batch, Vec<NewCommand>)>,
}

impl Held {
    /// Takes a command, and returns the name of its bio.
    fn hold(&mut self, command: NewCommand) -> u64 {
        self.commands.push(command);
        self.left_before + self.commands.len() as u64 - 1
    }
}

impl HandOver<()> for Held {
    fn hand_over(&mut self, (): (), mut batch: Batch) {
        let mut bios = 0;
        for chain in &mut batch.chains {
            bios += chain.bios().len();
            chain.rename(|name| (IocId::default(), name - self.left_before));
        }
        // The bio that has the others leave may not be among them.
        let later = self.commands.split_off(bios);
        self.left.push((batch, std::mem::replace(&mut self.commands, later)));
        self.left_before += bios as u64;
    }
}

impl WayToOwner {
    pub(super) fn new(post: Post<ToOwner>, Plugged { limits, rules }: Plugged) -> Self {
        Self { post, plug: Plug::new(limits, Held::default()), rules }
    }

    fn plug(&mut self, now: Instant, client: ClientId, bio: Bio, command: NewCommand) {
        let name = self.plug.receiver().hold(command);
        self.plug.submit(now, (), bio.with_user_data(name), &self.rules);
        self.send_batches(client);
    }

    fn flush(&mut self, now: Instant, client: ClientId, reason: FlushReason) {
        self.plug.flush(now, reason);
        self.send_batches(client);
    }

    fn send_batches(&mut self, client: ClientId) {
        for (batch, commands) in self.plug.receiver().left.drain(..) {
            self.post.send(ToOwner::Work(client, Work::Batch(batch, commands)));
        }
    }
}

/// A connection thread, as it serves clients of one disk.
pub(super) struct FarSite<'a> {
    pub(super) clock: MonotonicClock,
    pub(super) ring: &'a mut Ring<Token>,
    /// Which disk that is among those of the server.
    pub(super) disk: usize,
    pub(super) way: &'a mut WayToOwner,
}

impl Site for FarSite<'_> {
    type Token = Token;

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn ring(&mut self) -> &mut Ring<Token> {
        self.ring
    }

    fn token(&self, operation: FrontToken) -> Token {
        Token::Client(self.disk, operation)
    }

    fn submit(&mut self, client: ClientId, export: &Export, tag: u64, op: CommandOp) {
        let now = self.clock.now();
        let limits = &self.way.rules.limits;
        // The owner knows the client's I/O context; a plug has bios of one alone.
        if let Some(bio) = op.plug_bio(IocId::default(), export.place, limits) {
            return self.way.plug(now, client, bio, NewCommand { tag, op });
        }
        self.way.flush(now, client, FlushReason::Explicit);
        let command = Work::Command(NewCommand { tag, op });
        self.way.post.send(ToOwner::Work(client, command));
    }

    fn extents(&mut self, question: Question) -> Option<io::Result<Vec<Extent>>> {
        let client = question.client;
        self.way.flush(self.clock.now(), client, FlushReason::Explicit);
        self.way.post.send(ToOwner::Work(client, Work::Extents(question)));
        None
    }

    fn visit_over(&mut self, client: ClientId) {
        self.way.flush(self.clock.now(), client, FlushReason::Yield);
    }
}
