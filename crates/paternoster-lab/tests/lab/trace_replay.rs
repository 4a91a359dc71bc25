//! Replays of traces: under their own scheduler they come out again, and under another they are as
//! the clients that were recorded would have been.

#![allow(clippy::cast_precision_loss, reason = "counts and times are far below 2^53")]

use std::fs;
use std::path::Path;

use paternoster::{
    BioFlags, Instant, IoPrio, Nanos, NoTrace, Op, SchedulerKind, Sector, SectorCount, Weight,
};
use paternoster_intake::{
    ContextId, Converter, Options as TraceOptions, Replied, Request, Target, Trace,
};
use paternoster_lab::replay::{
    Arrivals, Context, Dependency, End, GotGroup, GroupFile, Nature, Options, Outcome, Predictor,
    Recording,
};
use paternoster_lab::sim::{
    Action, Ended, GroupSetup, Io, Moment, Setup, Simulation, TaskId, TaskSetup, Workload,
};
use paternoster_model::{Described, Draws, Kind, ServersParameters, Service, Spread, Who};

/// A client with a connection.
#[derive(Clone, Copy)]
struct Client {
    weight: u32,
    depth: u32,
    /// It asks for the next ones when all are answered.
    waits_for_all: bool,
}

const fn client(weight: u32, depth: u32) -> Client {
    Client { weight, depth, waits_for_all: false }
}

/// Weights of 4 : 2 : 1, with more outstanding where the weight is less.
const CLIENTS: [Client; 3] = [client(400, 8), client(200, 32), client(100, 32)];

/// The places of what clients have outstanding; each thinks between an answer and its next request.
struct Places {
    clients: Vec<Client>,
    /// Of each: its client, when it asks, and whether it is outstanding.
    list: Vec<(usize, Instant, bool)>,
    draws: Draws,
    until: Instant,
    submitted: Vec<Vec<Request>>,
    /// Requests of each client that are outstanding.
    outstanding: Vec<u32>,
}

impl Places {
    fn new(clients: &[Client], seed: u64, until: Nanos) -> Self {
        let of = |(index, client): (usize, &Client)| {
            vec![(index, Instant::START, false); client.depth as usize]
        };
        Self {
            clients: clients.to_vec(),
            list: clients.iter().enumerate().flat_map(of).collect(),
            draws: Draws::new(seed, Who::Tenants, 0),
            until: Instant::START + until,
            submitted: vec![Vec::new(); clients.len()],
            outstanding: vec![0; clients.len()],
        }
    }

    /// When a client asks next: 20 us later, and 60 to 150 of thought. No two clients ask at the
    /// same ns, as a trace does not have who came first.
    fn asks(&mut self, now: Instant, client: usize) -> Instant {
        let at = now.since_start().as_nanos() + 80_000 + self.draws.below(90_000);
        let clients = self.clients.len() as u64;
        Instant::START + Nanos::new(at - at % clients + client as u64)
    }
}

impl Workload for Places {
    fn tasks(&self) -> Vec<TaskSetup> {
        let of = |&(client, start, _): &(usize, Instant, bool)| TaskSetup {
            group: Some(client),
            io_prio: IoPrio::default(),
            start,
        };
        self.list.iter().map(of).collect()
    }

    fn context_of(&self, task: TaskId) -> TaskId {
        let client = self.list[task.index()].0;
        let first = self.list.iter().position(|place| place.0 == client).expect("its own");
        TaskId(u32::try_from(first).expect("there are few"))
    }

    fn next(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action {
        let (client, asks, is_outstanding) = self.list[task.index()];
        if is_outstanding {
            return Action::Wait;
        }
        if asks > moment.now {
            return Action::Sleep(asks);
        }
        self.list[task.index()].2 = true;
        self.outstanding[client] += 1;
        let sector = self.draws.below(1 << 20) * 8;
        let submitted = &mut self.submitted[client];
        let name = submitted.len() as u64;
        let arrived = moment.now.since_start().as_nanos();
        let context = ContextId(u32::try_from(client).expect("there are few"));
        submitted.push(Request::new(arrived, context, Op::Read, sector * 512, 4096));
        let (sector, sectors) = (Sector(sector), SectorCount(8));
        let flags = BioFlags::empty();
        Action::Submit(Io { name, op: Op::Read, flags, sector, sectors, io_prio: None })
    }

    fn completed(&mut self, moment: &mut Moment<'_>, ended: &Ended) {
        let client = self.list[ended.task.index()].0;
        let name = usize::try_from(ended.io.name).expect("an index");
        self.submitted[client][name].completed = Some(moment.now.since_start().as_nanos());
        self.outstanding[client] -= 1;
        if !self.clients[client].waits_for_all {
            let asks = self.asks(moment.now, client);
            let place = &mut self.list[ended.task.index()];
            (place.1, place.2) = (asks, false);
        } else if self.outstanding[client] == 0 {
            let asks = self.asks(moment.now, client);
            for (index, place) in self.list.iter_mut().enumerate() {
                if place.0 == client {
                    (place.1, place.2) = (asks, false);
                    moment.wake(TaskId(u32::try_from(index).expect("there are few")));
                }
            }
        }
    }

    fn has_ended(&self) -> bool {
        false
    }
}

/// Eight servers of 80 us, log-normal, which take eight commands.
fn device() -> Described {
    let service = Service::varying(Nanos::from_micros(80), Spread::LogNormal(0.5));
    Kind::Servers(ServersParameters::new(8, service).with_room(8, Sector(1 << 31))).into()
}

fn groups(clients: &[Client]) -> Vec<GroupSetup> {
    let of = |(index, client): (usize, &Client)| GroupSetup {
        path: format!("/{index}"),
        weights: Weight::new(client.weight).expect("a weight").into(),
    };
    clients.iter().enumerate().map(of).collect()
}

/// What clients do for so long, as a trace has it.
fn record(clients: &[Client], scheduler: SchedulerKind, seed: u64, span: Nanos) -> Recording {
    let setup = Setup { groups: groups(clients), ..Setup::new(scheduler) };
    let model = device().open(1).expect("a device");
    let places = Places::new(clients, seed, span);
    let until = places.until;
    let mut sim = Simulation::new(&setup, places, model, NoTrace).expect("it can be set up");
    while sim.next_at().expect("something happens") <= until {
        sim.step().expect("something happens");
    }
    let contexts = sim.into_workload().submitted.into_iter().enumerate();
    let contexts = contexts.map(|(index, requests)| Context {
        name: index.to_string(),
        group: Some(index),
        requests,
    });
    let end = span.as_nanos();
    Recording { contexts: contexts.collect(), groups: groups(clients), end }
}

fn options(scheduler: SchedulerKind) -> Options {
    Options::new(Setup::new(scheduler))
}

const SPAN: Nanos = Nanos::from_millis(1500);

/// All that came out came in at the same ns, and was answered then.
fn assert_same(recording: &Recording, outcome: &Outcome, what: &str) {
    let until = outcome.counted_ns();
    assert!(until > SPAN.as_nanos() * 9 / 10, "it is compared until {until}");
    for (context, found) in recording.contexts.iter().zip(&outcome.recording.contexts) {
        let of = |requests: &[Request]| -> Vec<_> {
            let arrived = requests.iter().filter(|request| request.arrived < until);
            let done = |request: &Request| request.completed.filter(|&at| at < until);
            arrived.map(|request| (request.arrived, request.offset, done(request))).collect()
        };
        let (wanted, found) = (of(&context.requests), of(&found.requests));
        let first = wanted.iter().zip(&found).position(|(one, other)| one != other);
        let differ = first.map(|at| (at, wanted[at], found[at]));
        assert_eq!(
            (differ, wanted.len()),
            (None, found.len()),
            "{} until {until} by {what}",
            context.name
        );
    }
}

#[test]
fn recording_comes_out_again_under_its_own_scheduler() {
    for scheduler in SchedulerKind::ALL {
        for clients in [&CLIENTS[..], &[client(100, 1), client(100, 8), client(100, 32)]] {
            let recording = record(clients, scheduler, 7, SPAN);
            assert!(recording.requests() > 10_000, "{scheduler}");
            let outcome = recording.replay(&device(), &options(scheduler)).expect("a replay");
            assert_same(&recording, &outcome, scheduler.name());
        }
    }
}

/// The parts by which throughput, the median and the 99th percentile differ at most.
fn differences(found: &[GotGroup], found_ns: u64, wanted: &[GotGroup], wanted_ns: u64) -> [f64; 3] {
    let mut most = [0.0_f64; 3];
    for (found, wanted) in found.iter().zip(wanted) {
        let rate = |got: &GotGroup, ns: u64| got.requests as f64 / ns as f64;
        let at = |got: &GotGroup, percent| {
            got.latencies.percentile(percent).map_or(0.0, |it| it.as_nanos() as f64)
        };
        let ratios = [
            rate(found, found_ns) / rate(wanted, wanted_ns),
            at(found, 50.0) / at(wanted, 50.0),
            at(found, 99.0) / at(wanted, 99.0),
        ];
        for (most, ratio) in most.iter_mut().zip(ratios) {
            *most = most.max((ratio - 1.0).abs());
        }
    }
    most
}

/// How far the replay of one scheduler's recording under another is from what the same clients do
/// there.
fn errors(clients: &[Client], one: SchedulerKind, other: SchedulerKind, by: &Options) -> [f64; 3] {
    let recording = record(clients, one, 7, SPAN);
    let by = Options { setup: Setup::new(other), ..by.clone() };
    let outcome = recording.replay(&device(), &by).expect("a replay");
    let until = outcome.counted_ns();
    let fresh = record(clients, other, 8, SPAN);
    differences(&outcome.recording.got(0..until + 1), until, &fresh.got(0..until + 1), until)
}

/// How far fresh clients are from one another there.
fn spread(clients: &[Client], scheduler: SchedulerKind) -> [f64; 3] {
    let got = |seed| record(clients, scheduler, seed, SPAN).got(0..SPAN.as_nanos());
    let runs: Vec<_> = (8..12).map(got).collect();
    let pairs = runs.windows(2).map(|pair| differences(&pair[0], 1, &pair[1], 1));
    pairs.reduce(|most, found| [0, 1, 2].map(|it| f64::max(most[it], found[it]))).expect("some")
}

fn assert_within(found: [f64; 3], allowed: [f64; 3], what: &str) {
    let is_within = found.iter().zip(allowed).all(|(found, allowed)| *found <= allowed);
    assert!(is_within, "{what}: {found:?}");
}

const PAIRS: [(SchedulerKind, SchedulerKind); 4] = [
    (SchedulerKind::None, SchedulerKind::Wfq),
    (SchedulerKind::Wfq, SchedulerKind::None),
    (SchedulerKind::Bfq, SchedulerKind::Wfq),
    (SchedulerKind::MqDeadline, SchedulerKind::Bfq),
];

#[test]
fn replay_under_another_scheduler_is_as_fresh_clients_would_be() {
    for (one, other) in PAIRS {
        let found = errors(&CLIENTS, one, other, &options(one));
        assert_within(found, [0.01, 0.02, 0.04], &format!("{one} to {other}"));
    }
}

/// Under bfq the medians of fresh clients differ by up to 24 % among themselves, as whom it idles
/// for depends on when batches end: no replay is nearer to one of them than they are.
#[test]
fn bursts_and_batches_are_kept() {
    let batch = |weight, depth| Client { waits_for_all: true, ..client(weight, depth) };
    let clients = [batch(400, 8), client(200, 32), batch(100, 32)];
    for (one, other) in PAIRS {
        let found = errors(&clients, one, other, &options(one));
        let mut allowed = [0.03, 0.05, 0.10];
        if other == SchedulerKind::Bfq {
            let spread = spread(&clients, other);
            assert!(spread[1] > 0.05, "the bar would do: {spread:?}");
            allowed = [0, 1, 2].map(|it| f64::max(allowed[it], spread[it]));
        }
        assert_within(found, allowed, &format!("{one} to {other}"));
    }
}

/// What other rules get wrong, as they were tried before this one.
#[test]
fn open_loop_is_wrong() {
    let open = Options { arrivals: Arrivals::Open, ..options(SchedulerKind::None) };
    for (one, other) in PAIRS.into_iter().take(2) {
        let [throughput, _, p99] = errors(&CLIENTS, one, other, &open);
        assert!(throughput > 0.2 || p99 > 0.2, "{one} to {other}: {throughput} {p99}");
    }
}

/// A request that takes so long from its arrival.
fn request(context: u32, arrived: u64, took: u64) -> Request {
    let offset = arrived / 1000 % 1000 * 4096;
    Request {
        completed: Some(arrived + took),
        ..Request::new(arrived, ContextId(context), Op::Read, offset, 4096)
    }
}

fn recording(contexts: Vec<Vec<Request>>) -> Recording {
    let end = contexts.iter().flatten().filter_map(|request| request.completed).max();
    let contexts = contexts.into_iter().enumerate().map(|(index, requests)| Context {
        name: format!("c{index}"),
        group: None,
        requests,
    });
    Recording { contexts: contexts.collect(), groups: Vec::new(), end: end.expect("some") }
}

/// One after the other, each takes so long.
fn constant(nanos: u64) -> Described {
    Kind::Servers(ServersParameters::new(1, Service::constant(Nanos::new(nanos)))).into()
}

/// One at a time, and most of the time is thought.
#[test]
fn chain_of_reads_takes_its_thought_and_half_the_service_on_a_device_twice_as_fast() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../paternoster-intake/tests/data/nvme-readahead.blktrace.1.zst");
    let options = TraceOptions { size: Some(1 << 41), ..TraceOptions::default() };
    let trace = Trace::open(&path, &options).expect("it is a trace");
    let (recording, _) = Recording::read(trace).expect("it is sound");
    let [context] = &recording.contexts[..] else { panic!("one") };
    let of = |request: &Request| request.completed.expect("all complete");
    let service =
        context.requests.iter().map(|it| of(it) - it.dispatched.expect("all")).sum::<u64>();
    let pairs = context.requests.windows(2);
    let thought: u64 = pairs.map(|pair| pair[1].arrived - of(&pair[0])).sum();
    let room = ServersParameters::new(1, Service::constant(Nanos::new(service / 963 / 2)))
        .with_room(1, Sector(1 << 32));
    let by = self::options(SchedulerKind::None);
    let outcome = recording.replay(&Kind::Servers(room).into(), &by).expect("a replay");
    let requests = &outcome.recording.contexts[0].requests;
    assert_eq!(requests.len(), 963);
    let (found, wanted) = (outcome.recording.end as f64, (thought + service / 2) as f64);
    assert!((found / wanted - 1.0).abs() < 0.01, "{found} ns, of {wanted}");
}

#[test]
fn timer_is_told_from_waiting_by_what_latency_does_to_it() {
    let mut draws = Draws::new(1, Who::Tenants, 0);
    let mut took = || 20_000 + draws.below(60_000);
    let timer = (0..1000).map(|at| request(0, 100_000 * at, took())).collect();
    let mut at = 0;
    let waits = (0..1000).map(|_| {
        let request = request(1, at, took());
        at = request.completed.expect("it has one") + 30_000;
        request
    });
    let waits: Vec<_> = waits.collect();
    let few = waits[..100].to_vec();
    let recording = recording(vec![timer, waits, few]);
    assert_eq!(recording.natures(), [Nature::Open, Nature::Closed, Nature::Closed]);
    // A device that takes ten times as long does not stop the timer.
    let slow = recording.replay(&constant(95_000), &options(SchedulerKind::None)).expect("it");
    let [timer, waits, _] = &slow.recording.contexts[..] else { panic!("three") };
    let is_kept = |it: &Request| it.arrived.is_multiple_of(100_000);
    assert!(timer.requests.iter().all(is_kept) && timer.requests.len() == 1000);
    assert!(!waits.requests.iter().all(|it| it.arrived < 110_000_000));
}

/// Two contexts that wait for each other, as a log and its data.
#[test]
fn contexts_that_wait_for_each_other_are_one_stream_by_group() {
    let mut contexts = vec![vec![], vec![]];
    for turn in 0..400 {
        let (context, at) = (turn % 2, u64::from(turn) * 130_000);
        contexts[context as usize].push(request(context, at, 100_000));
    }
    let mut recording = recording(contexts);
    let file = GroupFile::parse("c* /db 300").expect("it is right");
    assert_eq!(file.apply(&mut recording), Vec::<&str>::new());
    let end = |dependency| {
        let options = Options { dependency, ..options(SchedulerKind::None) };
        let outcome = recording.replay(&constant(50_000), &options).expect("a replay");
        let contexts = &outcome.recording.contexts;
        contexts.iter().flat_map(|it| &it.requests).map(|it| it.arrived).max().expect("some")
    };
    assert_eq!(end(Dependency::Export), 399 * 80_000);
    // Each thinks while the other is served: that it would be served sooner is not known.
    assert!(end(Dependency::Connection) > 399 * 100_000);
}

#[test]
fn replay_ends_where_a_context_has_none_left_or_begins_again() {
    let mut at = 0;
    let waits = (0..500).map(|_| {
        let request = request(0, at, 100_000);
        at += 110_000;
        request
    });
    let recording = recording(vec![waits.collect()]);
    let replay = |by: &Options| recording.replay(&constant(40_000), by).expect("a replay");
    let by = options(SchedulerKind::None);
    let End::RanOut { context: 0, at } = replay(&by).end else { panic!("it has none left") };
    assert_eq!(at.as_nanos(), 499 * 50_000 + 40_000);
    let outcome = replay(&Options { repeats: true, ..by });
    let End::Repeated { at } = outcome.end else { panic!("it begins again") };
    assert_eq!(at.as_nanos(), recording.end);
    // The first request of a pass is not thought of.
    assert_eq!(outcome.recording.requests() as u64, recording.end.div_ceil(50_000) + 1);
}

#[test]
fn open_replay_that_the_device_cannot_follow_ends_with_its_backlog() {
    let timer = (0..5000).map(|at| request(0, 10_000 * at, 5_000)).collect();
    let recording = recording(vec![timer]);
    let by = Options { arrivals: Arrivals::Open, backlog: 1000, ..options(SchedulerKind::None) };
    let outcome = recording.replay(&constant(20_000), &by).expect("a replay");
    let End::Backlog { waiting: 1001, at } = outcome.end else { panic!("{:?}", outcome.end) };
    let twenty_ms = 19_900_000..20_100_000;
    assert!(twenty_ms.contains(&at.as_nanos()), "a thousand more come than go in 20 ms: {at:?}");
}

/// Written as the server writes it and read again, it is the same run.
#[test]
fn recording_that_was_written_is_replayed_as_it_was() {
    let mut recording = record(&CLIENTS[1..], SchedulerKind::Wfq, 7, Nanos::from_millis(100));
    for context in &mut recording.contexts {
        let mut replies: Vec<_> = context.requests.iter().filter_map(|it| it.completed).collect();
        replies.sort_unstable();
        for request in &mut context.requests {
            let after = replies.partition_point(|at| *at <= request.arrived);
            let after = u32::try_from(after).expect("there are few");
            request.replied = request.completed.map(|at| Replied { at, after: Some(after) });
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.blktrace.0");
    let mut sidecar = Vec::new();
    let out = fs::File::create(&path).expect("a file");
    let converter = Converter::new(Target::Blktrace, out).expect("a file");
    let mut converter = converter.with_sidecar(&mut sidecar).expect("memory");
    let mut all: Vec<_> = recording.contexts.iter().flat_map(|it| &it.requests).collect();
    all.sort_by_key(|request| request.arrived);
    for request in &all {
        converter.add(request, &format!("client-{}", request.context.0)).expect("a file");
    }
    drop(converter.finish().expect("a file"));
    fs::write(folder.path().join("run.pater"), &sidecar).expect("a file");
    let trace = Trace::open(&path, &TraceOptions::default()).expect("it is a trace");
    let (mut read, findings) = Recording::read(trace).expect("it is sound");
    assert_eq!(findings.warnings(), []);
    let file = GroupFile::parse("client-0 /0 200\nclient-1 /1 100").expect("it is right");
    file.apply(&mut read);
    let run = |recording: &Recording| {
        let outcome = recording.replay(&device(), &options(SchedulerKind::Bfq)).expect("it");
        let contexts = outcome.recording.contexts.into_iter();
        (outcome.end, contexts.map(|context| context.requests).collect::<Vec<_>>())
    };
    let (found, wanted) = (run(&read), run(&recording));
    assert_eq!(found.0, wanted.0);
    assert_eq!(found.1, wanted.1);
}

/// One after the other, with so much thought between.
fn chain(context: u32, from: u64, count: u64, took: u64, thought: u64) -> Vec<Request> {
    (0..count).map(|at| request(context, from + at * (took + thought), took)).collect()
}

/// What comes late and what ends early does not end the counting; who asks slowly counts, too.
#[test]
fn counting_ends_with_those_who_would_have_gone_on() {
    let contexts = vec![
        chain(0, 0, 1000, 80_000, 20_000),
        chain(1, 55_000_000, 1, 80_000, 0),
        chain(2, 0, 50, 80_000, 20_000),
    ];
    let recording = recording(contexts);
    let wide = Kind::Servers(ServersParameters::new(64, Service::constant(Nanos::new(80_000))));
    let by = options(SchedulerKind::None);
    let outcome = recording.replay(&wide.clone().into(), &by).expect("a replay");
    assert!(matches!(outcome.end, End::RanOut { context: 0, .. }), "{:?}", outcome.end);
    let until = outcome.counted_ns();
    assert_eq!((until, recording.got(0..until + 1)[0].requests), (99_980_000, 1051));
    // Only that one begins again.
    let by = Options { repeats: true, ..by };
    let fast = Kind::Servers(ServersParameters::new(64, Service::constant(Nanos::new(30_000))));
    let outcome = recording.replay(&fast.into(), &by).expect("a replay");
    let counts: Vec<_> = outcome.recording.contexts.iter().map(|it| it.requests.len()).collect();
    assert_eq!(counts[1..], [1, 50]);
    assert!(counts[0] > 1900, "{counts:?}");
}

/// Whose completion the trace lacks has a reply in the replay, which is nobody's.
#[test]
fn lost_completions_do_not_add_to_what_is_outstanding() {
    let mut requests = chain(0, 0, 2000, 100_000, 20_000);
    for lost in requests.iter_mut().step_by(100) {
        lost.completed = None;
    }
    let recording = recording(vec![requests]);
    let outcome = recording.replay(&constant(100_000), &options(SchedulerKind::None)).expect("it");
    let found = &outcome.recording.contexts[0].requests;
    let is_alone = |pair: &[Request]| pair[0].completed.is_some_and(|at| at <= pair[1].arrived);
    assert!(found.len() == 2000 && found.windows(2).all(is_alone));
}

#[test]
fn error_of_a_model_is_known_where_completions_were_recorded() {
    let own = options(SchedulerKind::None);
    let mut requests = chain(0, 0, 1000, 100_000, 20_000);
    let device = constant(90_000);
    let prediction = |requests: &[Request]| {
        let predictor = Predictor::new(recording(vec![requests.to_vec()]), &device, &own);
        predictor.expect("it can be").itself(&own).expect("a replay")
    };
    let found = prediction(&requests);
    let error = found.self_errors.as_ref().expect("it is known")[0];
    let throughput = error.throughput.expect("it has some");
    assert!((throughput - (120.0 / 110.0 - 1.0)).abs() < 0.005, "{throughput}");
    assert_eq!((found.fits(), found.inferred), (Some(true), false));
    requests.iter_mut().skip(1).step_by(2).for_each(|request| request.completed = None);
    requests[0].completed = None;
    let found = prediction(&requests);
    assert_eq!((found.self_errors.is_none(), found.fits(), found.inferred), (true, None, true));
    assert!((found.recorded[0].iops - found.itself.figures[0].iops).abs() < 1.0);
}

/// Flushes have no sectors, whatever a trace says of them.
#[test]
fn operations_of_every_kind_are_replayed() {
    let mut requests = chain(0, 0, 8, 100_000, 20_000);
    let ops = [Op::Flush, Op::Discard, Op::WriteZeroes, Op::Write];
    for (request, op) in requests.iter_mut().zip(ops) {
        (request.op, request.offset) = (op, 700);
    }
    requests[3].flags = BioFlags::FUA | BioFlags::PREFLUSH;
    let recording = recording(vec![requests]);
    for scheduler in SchedulerKind::ALL {
        let outcome = recording.replay(&constant(50_000), &options(scheduler)).expect("a replay");
        let done = |context: &Context| context.requests.iter().all(|it| it.completed.is_some());
        assert!(outcome.recording.contexts.iter().all(done), "{scheduler}");
    }
}
