//! A server, a victim, attackers, and what has to hold of them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use paternoster_load::Load;
use paternoster_scene::Tenant;
use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};

use crate::client::{READ, Target, request};
use crate::support::{Place, Served, paternoster, temp_dir};
use crate::verdict::{Entitled, Verdict, Window};

pub(crate) const MIB: u64 = 1 << 20;

/// What the server may hold beside its tenants and its disks, in MiB: the program with its rings,
/// which is 8 without attackers, what is in the disk, up to 16 pieces of 1.25 MiB, and rounding.
pub(crate) const PROGRAM: u64 = 8 + 20 + 4;

/// How long the victim is measured.
const WINDOW: Duration = Duration::from_millis(800);

/// How often it is measured under attack, at most: until it has kept what it had. What works does
/// so in each window, and the machine has other things to do in some.
const WINDOWS: usize = 3;

/// How long it goes on before it is measured.
const WARM_UP: Duration = Duration::from_millis(400);

/// How long a newcomer, and who asks `ctl`, may wait.
const PROMPT: Duration = Duration::from_secs(5);

/// How long the server may take to its exit.
const EXIT: Duration = Duration::from_secs(10);

/// The nice value of attackers.
const NICE: i32 = 19;

/// How long the attackers go on after SIGTERM. Then they rest, connected, so that the next attack
/// can be measured while the server gives up on them.
const AFTER_SIGTERM: Duration = Duration::from_millis(500);

/// Acts against a server as long as it is told to.
pub(crate) type Attacker = Box<dyn FnOnce(&Target, &Orders) + Send>;

/// What attackers are to do.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    rest: AtomicBool,
    stop: AtomicBool,
}

impl Orders {
    /// Waits for the end of a rest: whether they go on.
    pub(crate) fn go_on(&self) -> bool {
        while self.rest.load(Ordering::Relaxed) && !self.stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        !self.stop.load(Ordering::Relaxed)
    }
}

/// An attack, and what it may do.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    /// The configuration without where it listens: a disk `d` with the exports `victim`, `evil`.
    pub(crate) config: String,
    pub(crate) attackers: Vec<Attacker>,
    /// What the victim is entitled to.
    pub(crate) entitled: Entitled,
    /// Peak of the server's memory, in MiB.
    pub(crate) ceiling: u64,
}

/// The disk of 20,000 requests a second, of which `size` MiB are for attackers.
pub(crate) fn modelled(size: u64) -> String {
    disk(&format!(
        "backend = \"modelled\"\nsize = \"{}M\"\nservers = 4\nservice_us = 200",
        size + 16
    ))
}

/// A disk of that kind, with the exports of the victim and of one tenant of attackers.
pub(crate) fn disk(lines: &str) -> String {
    format!(
        "[disks.d]\n{lines}\n[exports.victim]\ndisk = \"d\"\nsize = \"16M\"\n\
         [exports.evil]\ndisk = \"d\"\noffset = \"16M\"\n"
    )
}

/// The modelled disk with a second tenant of attackers.
pub(crate) fn two_tenants() -> String {
    let disk = modelled(64).replace("offset = \"16M\"\n", "offset = \"16M\"\nsize = \"32M\"\n");
    disk + "[exports.worse]\ndisk = \"d\"\noffset = \"48M\"\n"
}

/// One attack at a time: they are measured.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ARENA: Mutex<()> = Mutex::new(());
    // One that failed says so itself.
    ARENA.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Attack {
    /// Carries it out.
    pub(crate) fn run(self) {
        self.run_in(|_| {});
    }

    /// The same with files beside the configuration, made by `prepare`.
    pub(crate) fn run_in(self, prepare: impl FnOnce(&Path)) {
        let Self { name, config, attackers, entitled, ceiling } = self;
        let alone = alone();
        let (mut served, target) = serve(&config, prepare);
        let before = match entitled {
            Entitled::AsBesideEqual => {
                let mut both = connect(&target, &["victim", "evil"]);
                let before = measure(&served, &mut both);
                both.finish().expect("both are answered to the last");
                Some(before)
            }
            Entitled::Part(_) | Entitled::Rate(_) => None,
        };
        let mut victim = connect(&target, &["victim"]);
        let before = before.unwrap_or_else(|| measure(&served, &mut victim));
        let crowd = Crowd::set_upon(&target, attackers);
        let mut windows = (0..WINDOWS).map(|_| {
            let during = measure(&served, &mut victim);
            Verdict::new(before, during, entitled)
        });
        let verdict = Verdict::of_best(&mut windows);
        let newcomer = prompt(|| read_as_newcomer(&target));
        let asked = prompt(|| ask(&served));
        // Or the end would wait for it, as it reads no more.
        victim.finish().expect("it is answered to the last");
        let peak = peak(&served) / MIB;
        let begin = Instant::now();
        served.terminate();
        while begin.elapsed() < AFTER_SIGTERM && served.is_running() {
            thread::sleep(Duration::from_millis(1));
        }
        crowd.rest();
        drop(alone);
        let (status, _) = served.wait(Duration::from_secs(30));
        let exit = begin.elapsed();
        crowd.disperse();

        println!(
            "{name}: {verdict}\n    newcomer {newcomer:.1?}, ctl {asked:.1?}, peak {peak} of \
             {ceiling} MiB, exit {exit:.1?}"
        );
        assert!(status.success(), "{status}:\n{}", served.log());
        assert!(exit < EXIT, "SIGTERM: {exit:?}");
        assert!(peak < ceiling, "{peak} MiB are held");
        assert!(newcomer < PROMPT, "a newcomer waits {newcomer:?}");
        assert!(asked < PROMPT, "ctl waits {asked:?}");
        if verdict.is_judged() {
            assert!(verdict.is_good(), "the victim is attacked: {verdict}");
        } else if !verdict.is_good() {
            println!("    not run: the check of the rate, as cores were short");
        }
    }
}

/// Serves it on a unix socket, TCP and `ctl`.
pub(crate) fn serve(config: &str, prepare: impl FnOnce(&Path)) -> (Served, Target) {
    let dir = temp_dir();
    let of_attackers = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: of_attackers.maximum, ..of_attackers };
    setrlimit(Resource::Nofile, raised).expect("a soft limit may be raised");
    let tcp = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let tcp = tcp.expect("a port").to_string();
    let listen = format!("unix = \"nbd.sock\"\nctl = \"ctl.sock\"\ntcp = \"{tcp}\"\n");
    fs::write(dir.path().join("c.toml"), listen + config).expect("a file");
    prepare(dir.path());
    // The soft limit of descriptors that most systems give.
    let soft = "ulimit -Sn 1024 && exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", soft, env!("CARGO_BIN_EXE_paternoster"), "serve", "c.toml"]);
    command.current_dir(dir.path()).env("RUST_LOG", "info");
    let served = Served::spawn(dir, command, config.matches("[exports.").count());
    let unix = served.path("nbd.sock");
    (served, Target { unix, tcp })
}

/// A polite client of each of these exports, at work.
fn connect(target: &Target, exports: &[&str]) -> Load {
    let polite: Vec<_> =
        exports.iter().map(|export| Tenant::reads(100, 1, 64).named(*export)).collect();
    let mut clients = Load::connect(&target.unix, &polite, 7).expect("polite clients connect");
    clients.start().expect("they ask");
    clients
}

/// Measures the first of the polite clients, the victim, after a while.
fn measure(served: &Served, victim: &mut Load) -> Window {
    let mut go_on = |span| {
        if let Err(error) = victim.run_for(span) {
            panic!("the victim: {error:#}; the server says:\n{}", served.log());
        }
        victim.take_measured()[0].replies
    };
    go_on(WARM_UP);
    Window::of(served, || go_on(WINDOW))
}

/// Attackers at work.
struct Crowd {
    orders: Arc<Orders>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn set_upon(target: &Target, attackers: Vec<Attacker>) -> Self {
        let orders = Arc::new(Orders::default());
        let begin = |attacker: Attacker| {
            let (target, orders) = (target.clone(), orders.clone());
            thread::spawn(move || {
                // On Linux it is the calling thread's.
                setpriority_process(None, NICE).expect("anybody may be nicer");
                attacker(&target, &orders);
            })
        };
        let threads = attackers.into_iter().map(begin).collect();
        Self { orders, threads }
    }

    fn rest(&self) {
        self.orders.rest.store(true, Ordering::Relaxed);
    }

    fn disperse(self) {
        self.orders.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("an attacker takes errors as they come");
        }
    }
}

/// How long it took.
fn prompt(what: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    what();
    begin.elapsed()
}

/// Another client of the victim's tenant gets in, and is served.
fn read_as_newcomer(target: &Target) {
    let mut socket = target.enter(Place::Unix, "victim").expect("a newcomer gets in");
    socket.write_all(&request(0, READ, 1, 0, 4096)).expect("it is listened to");
    socket.read_exact(&mut [0; 16 + 4096]).expect("it is answered");
}

fn ask(served: &Served) {
    let mut command = paternoster(served.dir.path());
    let output = command.args(["ctl", "--ctl", "ctl.sock", "stat", "--json"]).output();
    let output = output.expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ctl: {said}");
}

/// The most memory that the server has had, in bytes.
fn peak(served: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
