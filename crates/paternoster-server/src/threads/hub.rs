//! The owner's end of connection threads: their work for the disk.
//!
//! ```text
//!   threads ──▶ inbox ──┬─ work ──▶ rotation of tenants ──▶ engine ──▶ outcomes ──▶ threads
//!                       └─ who is gone, …
//! ```

use std::sync::Arc;
use std::time::Duration;

use paternoster::{Instant, Nanos, PlugRules};
use paternoster_crossing::Inbox;
use paternoster_disk::{Command, Outcome, Waker};
use slotmap::{Key, KeyData, SecondaryMap, SlotMap, new_key_type};

use super::thread::{PostToThread, RETRY, ThreadHandle};
use super::{NewCommand, Plugged, ToOwner, ToThread, Work, inbox};
use crate::clients::{
    ClientId, Clients, Gone, HeldBack, HeldConnection, Notices, Rotation, Site as _, TenantId,
    work_of,
};
use crate::config::AtStop;
use crate::connections::{ClientsOf, Door, End, OwnSite, Transport};
use crate::messages::NewConnection;
use crate::stat::ThreadsStat;

new_key_type! {
    /// Names a command of a thread; it is the engine's tag.
    struct FarCommandId;
}

/// A command that the disk works on.
#[derive(Debug)]
struct FarCommand {
    thread: usize,
    /// Its name on that thread.
    tag: u64,
    client: ClientId,
}

/// The threads that serve a disk's clients.
#[derive(Debug)]
pub(crate) struct Hub {
    inbox: Inbox<ToOwner>,
    threads: Vec<Far>,
    in_flight: SlotMap<FarCommandId, FarCommand>,
    /// What clients want of the disk, with the thread that it has come from.
    rotation: Rotation<TenantId, (usize, ClientId, Work)>,
    /// What threads were told of merging.
    rules: PlugRules,
    /// Whether the disk shuts down, or another server is to go on.
    is_stopping: bool,
    /// How often clients were to be held for another server.
    holds: u32,
    commands: u64,
    batches: u64,
}

/// One thread, as the owner sees it.
#[derive(Debug)]
struct Far {
    post: PostToThread,
    /// Clients that it serves.
    clients: usize,
    /// Outcomes of this round.
    done: Vec<Outcome>,
    /// What holds commands of tenants back on it.
    held_back: SecondaryMap<TenantId, HeldBack>,
    /// Whether nobody waits there for anything any more.
    is_drained: bool,
    /// What another server needs of its clients, if one is to go on.
    held: Option<Vec<HeldConnection>>,
}

impl Hub {
    /// Has the threads serve the clients of a disk, whose owner `waker` wakes.
    pub(crate) fn new(
        waker: &Waker,
        threads: &mut [ThreadHandle],
        notices: &Arc<Notices>,
        plugged: Plugged,
        stall_timeout: Nanos,
    ) -> Self {
        let inbox = inbox(waker);
        let far = |(number, thread): (usize, &mut ThreadHandle)| {
            let clients = Clients::new(Arc::clone(notices), number, stall_timeout);
            Far {
                post: thread.add(&inbox.door(), clients, plugged),
                clients: 0,
                done: Vec::new(),
                held_back: SecondaryMap::new(),
                is_drained: false,
                held: None,
            }
        };
        Self {
            threads: threads.iter_mut().enumerate().map(far).collect(),
            inbox,
            in_flight: SlotMap::with_key(),
            rotation: Rotation::default(),
            rules: plugged.rules,
            is_stopping: false,
            holds: 0,
            commands: 0,
            batches: 0,
        }
    }

    fn take_messages(&mut self, site: &mut OwnSite<'_>) -> Vec<Gone> {
        let Self { inbox, threads, rotation, holds, .. } = self;
        let mut gone = Vec::new();
        inbox.take(|submitter, message| {
            // They have come in in their order, before anything was sent.
            let thread = usize::try_from(submitter.0).expect("there are few threads");
            match message {
                ToOwner::Work(client, work) => {
                    rotation.add(site.export(client).tenant, (thread, client, work));
                }
                ToOwner::Gone(client) => {
                    threads[thread].clients -= 1;
                    gone.push(client);
                }
                ToOwner::HeldBack(tenant, held_back) => {
                    threads[thread].held_back.insert(tenant, held_back);
                    let on_all = threads.iter().filter_map(|far| far.held_back.get(tenant));
                    site.note_outside(
                        tenant,
                        Door::Nbd,
                        on_all.copied().fold(HeldBack::default(), HeldBack::or),
                    );
                }
                ToOwner::Drained => threads[thread].is_drained = true,
                ToOwner::Held(order, held) if order == *holds => {
                    threads[thread].held = Some(held);
                }
                // Nobody waits for it any more.
                ToOwner::Held(..) => {}
            }
        });
        gone
    }

    /// Puts work of a client to the disk. Returns the units of work that it took.
    fn put(&mut self, site: &mut OwnSite<'_>, thread: usize, client: ClientId, work: Work) -> i32 {
        match work {
            Work::Extents(question) => {
                let answer = site.extents(question).expect("the owner answers at once");
                let units = work_of(&answer);
                self.send(thread, ToThread::Extents(question.tag, answer));
                units
            }
            Work::Batch(_, commands) if self.is_stopping => self.cancel(thread, commands),
            Work::Command(command) if self.is_stopping => self.cancel(thread, vec![command]),
            Work::Batch(batch, commands) => {
                self.batches += 1;
                let units = i32::try_from(commands.len()).unwrap_or(i32::MAX);
                let named = commands.into_iter().map(|new| self.name(site, thread, client, new));
                let named: Vec<_> = named.collect();
                site.owner.submit_batch(batch, named);
                units
            }
            Work::Command(new) => {
                self.batches += 1;
                let command = self.name(site, thread, client, new);
                site.owner.submit(command);
                1
            }
        }
    }

    /// The command under a name of its own, from the client's I/O context.
    fn name(
        &mut self,
        site: &mut OwnSite<'_>,
        thread: usize,
        client: ClientId,
        new: NewCommand,
    ) -> Command {
        self.commands += 1;
        let NewCommand { tag, op } = new;
        let id = self.in_flight.insert(FarCommand { thread, tag, client });
        let ioc = site.io_context(client);
        let volume = site.export(client).volume;
        let command = Command { tag: Door::Nbd.tag(id.data().as_ffi()), volume, ioc, op };
        site.note_arrival(&command);
        command
    }

    /// Cancels commands that have come after the end began. Returns the units of work.
    fn cancel(&mut self, thread: usize, commands: Vec<NewCommand>) -> i32 {
        let cancelled = |NewCommand { tag, op }| Outcome::cancelled(Door::Nbd.tag(tag), op);
        self.threads[thread].done.extend(commands.into_iter().map(cancelled));
        1
    }

    fn send(&mut self, thread: usize, message: ToThread) {
        self.threads[thread].post.send(message);
    }

    fn send_all(&mut self, message: impl Fn() -> ToThread) {
        for far in &mut self.threads {
            far.post.send(message());
        }
    }
}

impl Transport for Hub {
    /// The thread with the fewest clients of the disk serves one more.
    fn connect(&mut self, _: Instant, client: ClientId, new: NewConnection) {
        let busy = |&thread: &usize| {
            let far = &self.threads[thread];
            (far.post.post.is_gone(), far.clients)
        };
        let fewest = (0..self.threads.len()).min_by_key(busy);
        let thread = fewest.expect("there are threads");
        self.threads[thread].clients += 1;
        self.send(thread, ToThread::Connect(client, Box::new(new)));
    }

    fn take_in(&mut self, site: &mut OwnSite<'_>) -> Vec<Gone> {
        let gone = self.take_messages(site);
        self.rotation.begin_round();
        while let Some((thread, client, work)) = self.rotation.next() {
            let tenant = site.export(client).tenant;
            let units = self.put(site, thread, client, work);
            self.rotation.charge(tenant, units);
        }
        gone
    }

    fn command_done(&mut self, outcome: Outcome) {
        let id = FarCommandId::from(KeyData::from_ffi(outcome.tag.key));
        let FarCommand { thread, tag, .. } =
            self.in_flight.remove(id).expect("a command is done once");
        self.threads[thread].done.push(Outcome { tag: Door::Nbd.tag(tag), ..outcome });
    }

    fn round_over(&mut self, site: &mut OwnSite<'_>) {
        let rules = site.plug_rules();
        if self.rules != rules {
            self.rules = rules;
            self.send_all(|| ToThread::Rules(rules));
        }
        for far in &mut self.threads {
            if !far.done.is_empty() {
                far.post.send(ToThread::Done(std::mem::take(&mut far.done)));
            }
            far.post.post.send_kept();
        }
    }

    fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        if self.rotation.has_more() {
            return Some(now);
        }
        let has_kept = self.threads.iter().any(|far| far.post.post.has_kept());
        has_kept.then(|| now + RETRY)
    }

    fn end_clients(&mut self, of: &ClientsOf, how: End) {
        self.send_all(|| ToThread::EndClients(of.clone(), how));
    }

    fn begin_shutdown(&mut self, at_stop: AtStop) {
        self.is_stopping = true;
        self.send_all(|| ToThread::Stop(at_stop));
    }

    fn hold(&mut self) {
        self.is_stopping = true;
        self.holds += 1;
        let order = self.holds;
        self.send_all(|| ToThread::Hold(order));
    }

    fn are_held(&self) -> bool {
        self.threads.iter().all(|far| far.held.is_some() || far.post.post.is_gone())
    }

    fn held(&mut self) -> Vec<HeldConnection> {
        self.threads.iter_mut().flat_map(|far| far.held.take().unwrap_or_default()).collect()
    }

    fn go_on(&mut self) {
        self.is_stopping = false;
        // What comes of this order from now on nobody wants.
        self.holds += 1;
        self.threads.iter_mut().for_each(|far| far.held = None);
        self.send_all(|| ToThread::GoOn);
    }

    fn is_drained(&self) -> bool {
        self.threads.iter().all(|far| far.is_drained || far.post.post.is_gone())
    }

    fn client_of(&self, tag: u64) -> Option<ClientId> {
        let id = FarCommandId::from(KeyData::from_ffi(tag));
        self.in_flight.get(id).map(|command| command.client)
    }

    fn stats(&self) -> Option<ThreadsStat> {
        Some(ThreadsStat {
            threads: u32::try_from(self.threads.len()).unwrap_or(u32::MAX),
            commands: self.commands,
            batches: self.batches,
            owner_woken: self.inbox.woken(),
            threads_woken: self.threads.iter().map(|far| far.post.post.woke()).sum(),
        })
    }

    fn has_arrived(&self) -> bool {
        self.inbox.has_mail()
    }

    fn falls_asleep(&mut self) -> bool {
        self.inbox.fall_asleep()
    }

    fn awake(&mut self) {
        self.inbox.awake();
    }
}

impl Drop for Hub {
    /// Says so even to a thread whose ring is full: it would keep its clients for ever.
    fn drop(&mut self) {
        self.send_all(|| ToThread::End);
        let begun = std::time::Instant::now();
        while self.threads.iter().any(|far| far.post.post.has_kept()) && begun.elapsed() < LAST {
            std::thread::yield_now();
            self.threads.iter_mut().for_each(|far| far.post.post.send_kept());
        }
    }
}

/// How long the end of a disk waits for threads to take what they were sent.
const LAST: Duration = Duration::from_secs(1);
