//! Weights changed while real clients are served.

use std::time::Duration;

use paternoster_load::{Load, LocalServer, judges_figures};
use paternoster_scene::Tenant;
use paternoster_server::ctl::{Control as _, GroupChange, GroupError, GroupInForce};
use paternoster_server::stat::Detail;
use serde_json::{Value, json};

use crate::support::{Share, two_tenants};

const TOLERANCE: f64 = 0.05;
/// How long a change may take until shares follow.
const SETTLE: Duration = Duration::from_secs(1);

/// For how long shares are looked at then.
fn span() -> Duration {
    Duration::from_secs(if judges_figures() { 2 } else { 1 })
}

/// A disk of 20,000 requests a second under that scheduler; on `e`, `/b` has a weight of its own.
fn start(scheduler: &str) -> LocalServer {
    let d = format!("service_us = 200\nscheduler = \"{scheduler}\"");
    let text = two_tenants(&d, "", "[groups.\"/b\"]\nweight_device.e = 7");
    LocalServer::from_toml(&text).expect("a server")
}

fn change(group: &str, weight: impl Into<Value>) -> GroupChange {
    GroupChange::one(group, "weight", weight)
}

fn leaf(leaf: Value, mut change: GroupChange) -> GroupChange {
    change.set.insert("leaf_weight".to_owned(), leaf);
    change
}

fn on(disk: &str, change: GroupChange) -> GroupChange {
    GroupChange { disk: Some(disk.to_owned()), ..change }
}

/// Changes weights; what is in force then on each disk, in words.
fn set(rig: &LocalServer, change: &GroupChange) -> Vec<String> {
    let answer = rig.control().set_group(change).expect("it is allowed");
    let own = |is: bool| if is { "!" } else { "" };
    let line = |disk: &GroupInForce| {
        let (weight, leaf) = (&disk.settings["weight"], &disk.settings["leaf_weight"]);
        let (of_disk, leaf_of_disk) = (own(disk.weight_of_disk), own(disk.leaf_weight_of_disk));
        format!("{} {weight}{of_disk} {leaf}{leaf_of_disk}", disk.disk)
    };
    answer.disks.iter().map(line).collect()
}

/// What the first of two tenants gets of both in the next while.
fn share(load: &mut Load, entitled: f64) -> Share {
    load.run_for(SETTLE).expect("the server serves");
    load.take_measured();
    load.run_for(span()).expect("the server serves");
    let replies: Vec<_> = load.take_measured().iter().map(|tenant| tenant.replies).collect();
    #[allow(clippy::cast_precision_loss)] // some thousands
    let got = replies[0] as f64 / (replies[0] + replies[1]) as f64;
    Share { entitled, got }
}

#[test]
fn shares_follow_a_changed_weight_within_a_second() {
    for scheduler in ["cfq", "bfq"] {
        check_shares_follow(scheduler);
    }
}

fn check_shares_follow(scheduler: &str) {
    let rig = start(scheduler);
    let tenants = ["a", "b"].map(|name| Tenant::reads(100, 2, 32).named(name));
    let mut load = rig.connect(&tenants, 1).expect("clients");
    load.start().expect("they ask");
    let mut check = |when: &str, entitled: f64| {
        let share = share(&mut load, entitled);
        println!("{scheduler}, {when}: {share}");
        assert!(share.holds(TOLERANCE), "{scheduler}, {when}: {share}");
    };
    check("1 to 1", 0.5);
    set(&rig, &change("/b", 300));
    check("1 to 3", 0.25);
    set(&rig, &on("d", change("/a", 900)));
    check("3 to 1, by a weight of the disk's", 0.75);
    set(&rig, &on("d", change("/a", "default")));
    check("1 to 3 again", 0.25);
    load.finish().expect("clients end well");
    rig.end().expect("the server ends well");
}

#[test]
fn weights_change_on_every_disk_of_the_group_that_has_none_of_its_own() {
    let rig = start("cfq");
    assert_eq!(set(&rig, &change("/b", 300)), ["d 300 100", "e 7! 100"]);
    assert_eq!(set(&rig, &on("e", change("/b", 9))), ["e 9! 100"]);
    assert_eq!(set(&rig, &leaf(json!(5), change("/b", 200))), ["d 200 5", "e 9! 5"]);
    assert_eq!(set(&rig, &on("e", leaf(json!(6), change("/b", "default")))), ["e 200 6!"]);
    assert_eq!(set(&rig, &on("e", leaf(json!("default"), change("/b", 1)))), ["e 1! 5"]);
    assert_eq!(set(&rig, &change("/b/c", 1000)), ["e 1000 100"]);

    let stat = rig.control().stat(Detail::Groups).expect("every disk answers");
    let groups = stat.disks.iter().flat_map(|disk| &disk.groups);
    let told: Vec<_> =
        groups.map(|group| (group.path.as_str(), group.weight, group.leaf_weight)).collect();
    let expected = [("/b", 200, 5), ("/a", 100, 100), ("/b", 1, 5), ("/b/c", 1000, 100)];
    assert_eq!(told, expected);

    // Without a disk that is what the configuration says, which sets a disk's own alone.
    assert_eq!(set(&rig, &change("/b", "default")), ["d 100 5", "e 1! 5"]);
    set(&rig, &change("/b", 300));
    assert_eq!(set(&rig, &leaf(json!("default"), change("/b", 2))), ["d 2 100", "e 1! 100"]);
    rig.end().expect("the server ends well");
}

#[test]
fn changes_that_cannot_be_are_refused_and_change_nothing() {
    let rig = start("cfq");
    let leaf = leaf(json!(0), change("/a", 5));
    for (change, words) in [
        (change("/x", 5), "there is no group \"/x\"; there are: \"/\", \"/a\", \"/b\", \"/b/c\""),
        (on("x", change("/a", 5)), "there is no disk \"x\"; there are: \"d\", \"e\""),
        (on("e", change("/a", 5)), "group \"/a\" is not on disk \"e\"; it is on: \"d\""),
        (change("/a", 0), "weight = 0: 1 to 1000 is allowed"),
        (leaf, "leaf_weight = 0: 1 to 1000 is allowed"),
        (change("/a", "file"), "weight = \"file\": a whole number is allowed, or \"default\""),
    ] {
        let refused: GroupError = rig.control().set_group(&change).expect_err(words);
        assert!(refused.to_string().starts_with(words), "not {words}\n{refused}");
    }
    let stat = rig.control().stat(Detail::Groups).expect("every disk answers");
    for group in &stat.disks[0].groups {
        assert_eq!((group.weight, group.leaf_weight), (100, 100), "{}", group.path);
    }
    rig.end().expect("the server ends well");
}
