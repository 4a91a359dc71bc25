//! A program whose instructions are counted: what a request takes in each scheduler.
//!
//! `--list` prints the configurations; `CONFIG REQUESTS` serves that many in the one function
//! that counts. `cargo xtask bench sched` runs it under callgrind.

#[path = "../crates/paternoster/benches/load/mod.rs"]
mod load;

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
        }
        [name, requests] => {
            let config = Config::all().into_iter().find(|config| config.to_string() == name);
            let config = config.expect("a configuration that --list names");
            run(config, requests.parse().expect("a number of requests"));
        }
        _ => println!("instructions: --list | CONFIG REQUESTS"),
    }
}

fn run(config: Config, requests: u32) {
    match config.kind {
        Kind::None => count(NoScheduler::new(NoTrace), config, requests),
        Kind::MqDeadline => count(MqDeadline::new(NoTrace), config, requests),
        Kind::Kyber => count(Kyber::new(NoTrace), config, requests),
        Kind::Cfq => count(Cfq::new(NoTrace), config, requests),
        Kind::Bfq | Kind::BfqMerging => count(Bfq::new(NoTrace), config, requests),
        Kind::Wfq => count(Wfq::new(NoTrace), config, requests),
        Kind::AnyCfq => count(AnyScheduler::new(SchedulerKind::Cfq, NoTrace), config, requests),
        Kind::ServedCfq | Kind::TracedCfq => {
            let sink = server_sink(matches!(config.kind, Kind::TracedCfq));
            let scheduler = AnyScheduler::new(SchedulerKind::Cfq, sink);
            count(scheduler, config, requests);
        }
    }
}

fn count<S: Scheduler>(scheduler: S, config: Config, requests: u32) {
    let mut load = Load::new(scheduler, config);
    load.serve(WARM_UP);
    measured(&mut load, requests);
}

/// Callgrind counts while this runs, and knows it by its name.
#[inline(never)]
fn measured<S: Scheduler>(load: &mut Load<S>, requests: u32) {
    load.serve(requests);
}
