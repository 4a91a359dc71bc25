//! The model of dbench, against rates worked out by hand.

use paternoster::{IoPrio, Nanos, NoTrace, SchedulerKind, Sector, SectorCount};
use paternoster_lab::JournalPlace;
use paternoster_lab::dbench::{Dbench, DbenchParameters, Flush, Places};
use paternoster_lab::sim::{Setup, Simulation};
use paternoster_model::{Room, Servers};

/// A client that does 10 operations of 44,800 bytes and 0.1 ms each, and flushes two blocks.
fn load() -> DbenchParameters {
    DbenchParameters {
        clients: 1,
        flushes: vec![Flush { operations: 10, file: 0, blocks: 2 }],
        operation: Nanos::from_micros(100),
        operation_bytes: 44_800.0,
        places: Places { cores: 2, chunk_blocks: 512, large_blocks: 16, ..Places::default() },
        journal: JournalPlace { start: Sector(1 << 20), sectors: SectorCount(8000) },
        commit_blocks: 4,
        client_blocks: 2,
        journal_prio: IoPrio::be(3).expect("a level"),
        from: Nanos::from_millis(100),
        until: Nanos::from_millis(1100),
        ..DbenchParameters::default()
    }
}

/// MB/s over one server of 100 us, for which a flush is nothing.
fn mb_per_s(load: DbenchParameters) -> f64 {
    let device = Servers::constant(
        1,
        Room { depth: 32, end: Sector(1 << 30) },
        Nanos::from_micros(100),
        Nanos::ZERO,
    );
    let setup = Setup::new(SchedulerKind::None);
    let mut sim = Simulation::new(&setup, Dbench::new(load), device, NoTrace).expect("a setup");
    sim.run().expect("it ends");
    sim.workload().bytes_per_s() / 1e6
}

/// 1 ms of work, the data, the journal's blocks and its commit: 1.3 ms for 448 kB.
#[test]
fn client_waits_for_its_data_and_then_for_the_commit() {
    let rate = mb_per_s(load());
    assert!((rate / (448.0 / 1.3) - 1.0).abs() < 0.01, "{rate} MB/s");
}

/// The second flush comes without work before it: 1.6 ms for 448 kB.
#[test]
fn load_file_is_repeated_flush_by_flush() {
    let second = Flush { operations: 0, file: 1, blocks: 1 };
    let flushes = vec![load().flushes[0], second];
    let rate = mb_per_s(DbenchParameters { flushes, ..load() });
    assert!((rate / (448.0 / 1.6) - 1.0).abs() < 0.01, "{rate} MB/s");
}

/// The journal's two writes are 0.2 ms, in which all who wait are committed at once. Ten clients
/// with little work have 10 requests of data and wait for a commit or two: the server is busy all
/// the time, and commits of one client each, 0.3 ms a flush, would make 149 MB/s at most.
#[test]
fn commit_takes_in_all_clients_that_wait() {
    let flushes = vec![Flush { operations: 1, file: 0, blocks: 2 }];
    let operation = Nanos::from_micros(10);
    let rate = mb_per_s(DbenchParameters { clients: 10, flushes, operation, ..load() });
    assert!((44.8 / 0.2..44.8 / 0.1).contains(&rate), "{rate} MB/s");
}

#[test]
fn same_seed_gives_the_same_rate() {
    let load = DbenchParameters { clients: 3, varies_percent: 50, ..load() };
    assert_eq!(mb_per_s(load.clone()).to_bits(), mb_per_s(load).to_bits());
}
