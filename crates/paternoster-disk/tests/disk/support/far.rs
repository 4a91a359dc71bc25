//! Two threads between connections and an engine: what they send is held back in plugs, and arrives
//! late; so do its answers.

use std::collections::VecDeque;

use paternoster::{Batch, FlushReason, HandOver, Instant, IocId, Plug, PlugLimits, PlugRules};
use paternoster_disk::{Command, CommandOp, VolumeId, VolumePlace};

/// What a thread sends.
pub(crate) enum Message {
    Batch(Batch, Vec<Command>),
    Command(Command),
}

/// The threads. Connections 0 and 1 are of one, 2 and 3 of the other.
pub(crate) struct Far {
    rules: PlugRules,
    /// Whose commands they are.
    volume: VolumeId,
    place: VolumePlace,
    connections: Vec<Connection>,
    to_owner: [VecDeque<Message>; 2],
    /// Tags of commands that are done.
    answers: [VecDeque<u64>; 2],
}

struct Connection {
    ioc: IocId,
    plug: Plug<(), Left>,
    /// Those of the bios in its plug.
    commands: Vec<Command>,
}

/// Batches that have left a plug.
#[derive(Default)]
struct Left(Vec<Batch>);

impl HandOver<()> for Left {
    fn hand_over(&mut self, (): (), batch: Batch) {
        self.0.push(batch);
    }
}

impl Far {
    pub(crate) fn new(
        iocs: &[IocId],
        rules: PlugRules,
        (volume, place): (VolumeId, VolumePlace),
    ) -> Self {
        let connection = |&ioc: &IocId| Connection {
            ioc,
            plug: Plug::new(PlugLimits::default(), Left::default()),
            commands: Vec::new(),
        };
        Self {
            rules,
            volume,
            place,
            connections: iocs.iter().map(connection).collect(),
            to_owner: Default::default(),
            answers: Default::default(),
        }
    }

    /// A connection puts a command: into its plug, or else behind what is in that.
    pub(crate) fn submit(&mut self, connection: usize, tag: u64, op: CommandOp) {
        let of = &mut self.connections[connection];
        let command = Command { tag: tag.into(), volume: self.volume, ioc: of.ioc, op };
        if let Some(bio) = command.op.plug_bio(of.ioc, self.place, &self.rules.limits) {
            let name = of.commands.len() as u64;
            of.commands.push(command);
            of.plug.submit(Instant::START, (), bio.with_user_data(name), &self.rules);
            assert!(of.plug.receiver().0.is_empty(), "a plug holds more than is in flight");
        } else {
            self.visit_over(connection);
            self.to_owner[connection / 2].push_back(Message::Command(command));
        }
    }

    /// What the connection holds back goes on.
    pub(crate) fn visit_over(&mut self, connection: usize) {
        let of = &mut self.connections[connection];
        of.plug.flush(Instant::START, FlushReason::Yield);
        if let Some(batch) = of.plug.receiver().0.pop() {
            let commands = std::mem::take(&mut of.commands);
            self.to_owner[connection / 2].push_back(Message::Batch(batch, commands));
        }
    }

    /// What of a thread arrives next.
    pub(crate) fn take(&mut self, thread: usize) -> Option<Message> {
        self.to_owner[thread].pop_front()
    }

    /// A command of the connection is done.
    pub(crate) fn done(&mut self, connection: usize, tag: u64) {
        self.answers[connection / 2].push_back(tag);
    }

    /// What a thread answers next.
    pub(crate) fn answer(&mut self, thread: usize) -> Option<u64> {
        self.answers[thread].pop_front()
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.connections.iter().all(|of| of.commands.is_empty())
            && self.to_owner.iter().all(VecDeque::is_empty)
            && self.answers.iter().all(VecDeque::is_empty)
    }
}
