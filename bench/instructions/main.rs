//! A program whose instructions are counted: what a request takes in each scheduler, and a command
//! in the engine of a disk.
//!
//! `--list` prints the configurations; `CONFIG REQUESTS` serves that many in the one function
//! that counts. `cargo xtask bench sched` runs it under callgrind.

mod engine;
#[path = "../../crates/paternoster/benches/load/mod.rs"]
mod load;

use engine::Served;
use load::{Config, Kind, Load, server_sink};
use paternoster::scheduler::Scheduler;
use paternoster::{
    AnyScheduler, Bfq, Cfq, Kyber, MqDeadline, NoScheduler, NoTrace, SchedulerKind, Wfq,
};

/// Requests before anything is counted.
const WARM_UP: u32 = 10_000;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["--list"] => {
            for config in Config::all() {
                println!("{config}");
            }
            for config in engine::Config::all() {
                println!("{config}");
            }
        }
        [name, requests] => {
            let requests = requests.parse().expect("a number of requests");
            if let Some(config) = engine::Config::all().find(|config| config.to_string() == name) {
                return count(Served::new(config), requests);
            }
            let config = Config::all().into_iter().find(|config| config.to_string() == name);
            run(config.expect("a configuration that --list names"), requests);
        }
        _ => println!("instructions: --list | CONFIG REQUESTS"),
    }
}

fn run(config: Config, requests: u32) {
    match config.kind {
        Kind::None => of(NoScheduler::new(NoTrace), config, requests),
        Kind::MqDeadline => of(MqDeadline::new(NoTrace), config, requests),
        Kind::Kyber => of(Kyber::new(NoTrace), config, requests),
        Kind::Cfq => of(Cfq::new(NoTrace), config, requests),
        Kind::Bfq | Kind::BfqMerging => of(Bfq::new(NoTrace), config, requests),
        Kind::Wfq => of(Wfq::new(NoTrace), config, requests),
        Kind::AnyCfq => of(AnyScheduler::new(SchedulerKind::Cfq, NoTrace), config, requests),
        Kind::ServedCfq | Kind::TracedCfq => {
            let sink = server_sink(matches!(config.kind, Kind::TracedCfq));
            let scheduler = AnyScheduler::new(SchedulerKind::Cfq, sink);
            of(scheduler, config, requests);
        }
    }
}

fn of<S: Scheduler>(scheduler: S, config: Config, requests: u32) {
    count(Load::new(scheduler, config), requests);
}

/// What serves requests.
trait Serve {
    fn serve(&mut self, requests: u32);
}

impl<S: Scheduler> Serve for Load<S> {
    fn serve(&mut self, requests: u32) {
        Self::serve(self, requests);
    }
}

impl Serve for Served {
    fn serve(&mut self, requests: u32) {
        Self::serve(self, requests);
    }
}

fn count(mut load: impl Serve, requests: u32) {
    load.serve(WARM_UP);
    measured(&mut load, requests);
}

/// Callgrind counts while this runs, and knows it by its name.
#[inline(never)]
fn measured(load: &mut impl Serve, requests: u32) {
    load.serve(requests);
}
