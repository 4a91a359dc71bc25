//! Nested groups end to end: organisations of equal weight share a disk, whatever is below them.
//!
//! ```text
//!   /a ── /a/1              1/2 of the disk
//!   /b ─┬ /b/1              1/8
//!       ├ /b/2              1/8
//!       ├ /b/3              1/8
//!       └ /b/4              1/8
//! ```

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use paternoster_load::{LocalServer, judges_figures, least_part};
use paternoster_scene::{Outcome, Tenant, TenantOutcome};
use paternoster_server::ctl::{Control as _, DiskChange};
use serde_json::json;

use crate::support::{DEMAND, Share, replies};

/// Windows that are tried, as other work on the machine may spoil one.
const TRIES: u32 = 3;
/// How long shares may take to follow a change.
const SETTLE: Duration = Duration::from_millis(500);
const TOLERANCE: f64 = 0.03;
/// How much of what the disk did for all it must do for some.
const KEPT: f64 = 0.95;

/// 10,000 IOPS. Exports are large enough that requests seldom merge.
const DISK: &str = "[disks.d]\nbackend = \"modelled\"\nsize = \"320M\"\nservers = 1\n\
                    service_us = 100\n";

/// Under BFQ, where leaf weights mean nothing, only groups that have no export of their own above
/// others are looked at.
const SCHEDULERS: [&str; 2] = ["cfq", "bfq"];

/// For how long shares are looked at: that nobody is starved shows soon.
fn span() -> Duration {
    Duration::from_secs(if judges_figures() { 4 } else { 1 })
}

/// One test at a time: what they measure is how long things take.
static ALONE: Mutex<()> = Mutex::new(());

/// A server of that disk with these groups, and an export of 64 MiB in each of the `paths`, whose
/// name is the path's.
fn start(scheduler: &str, groups: &str, paths: &[&str]) -> LocalServer {
    let export = |(index, path): (usize, &&str)| {
        let offset = 64 * index;
        format!(
            "[exports.\"{path}\"]\ndisk = \"d\"\noffset = \"{offset}M\"\nsize = \"64M\"\n\
             group = \"{path}\"\n"
        )
    };
    let exports: String = paths.iter().enumerate().map(export).collect();
    let text = format!("{DISK}scheduler = \"{scheduler}\"\n{groups}{exports}");
    LocalServer::from_toml(&text).expect("a server")
}

/// As much for everyone: reads, 64 outstanding on 2 connections.
fn tenants(paths: &[&str]) -> Vec<Tenant> {
    paths.iter().map(|path| Tenant::reads(100, 2, 32).named(*path)).collect()
}

/// What the exports in these groups get while all of them ask.
fn measure(rig: &LocalServer, paths: &[&str], seed: u64) -> Outcome {
    try_until_all_ask(paths, || rig.measure(&tenants(paths), seed, span()))
}

/// A window in which the machine kept clients from asking shows no figures, and another is tried.
fn try_until_all_ask(
    paths: &[&str],
    mut window: impl FnMut() -> anyhow::Result<Outcome>,
) -> Outcome {
    for _ in 0..TRIES {
        let window = window().expect("the server serves");
        if !judges_figures() {
            return window;
        }
        let slow = paths.iter().zip(&window.tenants).find(|(_, got)| got.backlogged < DEMAND);
        let Some((path, got)) = slow else { return window };
        println!("{path} had a request waiting for {:.3} of the time only", got.backlogged);
    }
    panic!("this machine is too slow to say anything: not once in {TRIES} windows did all ask");
}

/// Asserts what the `tenants` got of what `all` did.
fn assert_share(who: &str, tenants: &[TenantOutcome], all: &[TenantOutcome], entitled: f64) {
    let share = Share { entitled, got: replies(tenants) / replies(all) };
    println!("{who}: {share}");
    assert!(
        share.holds(TOLERANCE),
        "{who}: {share}; to repeat: cargo test -p paternoster-server --test nested"
    );
}

/// Asserts that each of these got as much as each other.
fn assert_equal(who: &str, tenants: &[TenantOutcome]) {
    for (index, tenant) in tenants.chunks(1).enumerate() {
        assert_share(&format!("{who}, number {}", index + 1), tenant, tenants, 0.25);
    }
}

fn iops(window: &Outcome) -> f64 {
    replies(&window.tenants) / window.seconds
}

/// However many groups it has below it, however often its clients go and come.
#[test]
fn each_organisation_gets_half_and_all_while_the_other_is_idle() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for scheduler in SCHEDULERS {
        check_organisations(scheduler);
    }
}

fn check_organisations(scheduler: &str) {
    println!("{scheduler}");
    let paths = ["/a/1", "/b/1", "/b/2", "/b/3", "/b/4"];
    let (a, b) = paths.split_at(1);
    let rig = start(scheduler, "", &paths);

    let both = measure(&rig, &paths, 1);
    assert_share("a beside b", &both.tenants[..1], &both.tenants, 0.5);
    assert_equal("b beside a", &both.tenants[1..]);

    let silent = rig.connect(&tenants(a), 2).expect("clients that never ask");
    let kept = (0..TRIES).find_map(|_| {
        let alone = measure(&rig, b, 3);
        assert_equal("b alone", &alone.tenants);
        let kept = iops(&alone) / iops(&both);
        println!("b alone: {kept:.3} of what both got");
        (kept >= least_part(KEPT)).then_some(kept)
    });
    assert!(kept.is_some(), "b alone did not once keep {} of what both got", least_part(KEPT));
    drop(silent);

    let again = measure(&rig, &paths, 4);
    assert_share("a come back", &again.tenants[..1], &again.tenants, 0.5);
    assert_equal("b with a come back", &again.tenants[1..]);
    rig.end().expect("the server ends well");
}

#[test]
fn own_exports_of_a_group_share_with_those_below_by_leaf_weight_under_cfq() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let groups = "[groups.\"/a\"]\nleaf_weight = 50\n[groups.\"/a/1\"]\nweight = 150\n";
    let paths = ["/a", "/a/1", "/b"];
    let rig = start("cfq", groups, &paths);
    let all = measure(&rig, &paths, 5).tenants;
    for (index, (path, entitled)) in paths.into_iter().zip([0.125, 0.375, 0.5]).enumerate() {
        assert_share(path, &all[index..=index], &all, entitled);
    }
    rig.end().expect("the server ends well");
}

/// Two organisations of weight 400, of which one has a group of weight 600 below it. A connection
/// of `"be/4"` has 484 where it is an entity:
///
/// ```text
///                            leaf-weight      flat        entities
///   /a     2 connections     1/2 × 200/800    400/1400    1/2 × 968/1568
///   /a/1   weight 600        1/2 × 600/800    600/1400    1/2 × 600/1568
///   /b     weight 400        1/2              400/1400    1/2
/// ```
///
/// All ask all the time, and the hierarchy is set while they do.
#[test]
fn shares_of_organisations_follow_the_hierarchy_that_is_set_while_all_ask() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let groups = "[groups.\"/a\"]\nweight = 400\nleaf_weight = 200\n\
                  [groups.\"/a/1\"]\nweight = 600\n[groups.\"/b\"]\nweight = 400\n";
    let paths = ["/a", "/a/1", "/b"];
    let leaf_weight = [0.125, 0.375, 0.5];
    let flat = [400.0 / 1400.0, 600.0 / 1400.0, 400.0 / 1400.0];
    let entities = [968.0 / 3136.0, 600.0 / 3136.0, 0.5];

    let rig = start("cfq", groups, &paths);
    // More than a slice of 10 ms takes. A queue that runs empty forgets what it was charged.
    let deep = tenants(&paths).into_iter().map(|tenant| Tenant { depth: 128, ..tenant });
    let mut load = rig.connect(&deep.collect::<Vec<_>>(), 6).expect("clients");
    load.start().expect("they ask");
    for (set, entitled) in [
        (json!({"hierarchy": "leaf-weight"}), leaf_weight),
        (json!({"use_hierarchy": 0}), flat),
        (json!({"use_hierarchy": 1}), entities),
        (json!({"hierarchy": "leaf-weight"}), leaf_weight),
    ] {
        println!("{set}");
        let set = serde_json::from_value(set).expect("names and values");
        let change = DiskChange { disk: "d".to_owned(), set };
        rig.control().change_settings(&change).expect("it is allowed");
        let all = try_until_all_ask(&paths, || {
            load.run_for(SETTLE)?;
            load.count(&rig.control(), span(), |_| {})
        });
        let all = all.tenants;
        for (index, (path, entitled)) in paths.into_iter().zip(entitled).enumerate() {
            assert_share(path, &all[index..=index], &all, entitled);
        }
    }
    load.finish().expect("clients end well");
    rig.end().expect("the server ends well");
}
