//! `scheduler = "auto"` of a running server: what `ctl` and `stat` say of it, and what a reload
//! does.

use std::fs;

use crate::settings::ctl;
use crate::stat::stat;
use crate::support::{Served, temp_dir};

/// A disk that does not rotate, with these lines.
fn file(lines: &str) -> String {
    format!(
        "unix = \"nbd.sock\"\nctl = \"ctl.sock\"\n[disks.d]\nbackend = \"modelled\"\n\
         size = \"64K\"\nservers = 4\nservice_us = 200\n{lines}\n[exports.a]\ndisk = \"d\"\n"
    )
}

fn serve(lines: &str) -> Served {
    let dir = temp_dir();
    fs::write(dir.path().join("c.toml"), file(lines)).expect("a file");
    Served::start(dir, &["c.toml"], 1)
}

fn write(served: &Served, lines: &str) {
    fs::write(served.path("c.toml"), file(lines)).expect("a file");
}

/// Whether `stat` says for people and for programs that this is in force.
fn is_told(served: &Served, scheduler: &str, auto: bool) -> bool {
    let told = &stat(served)["disks"][0];
    let shown = ctl(served, &["stat"]).expect("it answers");
    let by = if auto { " (auto)" } else { "" };
    told["scheduler"] == scheduler
        && told["scheduler_auto"] == auto
        && shown.starts_with(&format!("disk d: {scheduler}{by} over modelled"))
}

#[test]
fn what_auto_has_taken_is_shown_by_its_name_and_as_autos_choice() {
    let served = serve("");
    assert!(served.log().contains("chosen=\"auto: wfq, as the disk does not rotate\""));
    assert!(is_told(&served, "wfq", true));
    let shown = ctl(&served, &["get", "d"]).expect("a disk");
    assert!(shown.starts_with("scheduler=wfq\nscheduler_auto=1\ndepth=learned\n"), "{shown}");
    assert_eq!(ctl(&served, &["get", "d", "scheduler"]).as_deref(), Ok("wfq\n"));
    // To be named is another choice of the same; other settings are none.
    ctl(&served, &["set", "d", "keep_slots=7"]).expect("allowed");
    assert!(is_told(&served, "wfq", true));
    ctl(&served, &["set", "d", "scheduler=wfq"]).expect("allowed");
    assert!(is_told(&served, "wfq", false));
    let none = ctl(&served, &["get", "d", "scheduler_auto"]).expect_err("it was named");
    assert!(none.contains("has no \"scheduler_auto\" under wfq"), "{none}");
    let shown = ctl(&served, &["set", "d", "scheduler=bfq"]).expect("allowed");
    assert!(shown.starts_with("scheduler=bfq\ndepth=8\n"), "{shown}");
    let shown = ctl(&served, &["set", "d", "scheduler=auto"]).expect("allowed");
    assert!(shown.starts_with("scheduler=wfq\nscheduler_auto=1\ndepth=learned\n"), "{shown}");
    served.end();
}

/// Its device does not: what is set is asked when `auto` chooses again, too.
#[test]
fn disk_that_is_set_to_rotate_gets_cfq_at_start_and_when_auto_chooses_again() {
    let served = serve("rotational = true");
    assert!(served.log().contains("chosen=\"auto: cfq, as the disk rotates\""));
    assert_eq!(stat(&served)["disks"][0]["rotational"], true);
    ctl(&served, &["set", "d", "scheduler=bfq"]).expect("allowed");
    assert!(is_told(&served, "bfq", false));
    ctl(&served, &["set", "d", "scheduler=auto"]).expect("allowed");
    assert!(is_told(&served, "cfq", true));
    served.end();
}

#[test]
fn depth_is_fixed_and_learned_again_and_what_get_says_is_what_set_takes() {
    let served = serve("");
    let depth = |settings: &[&str]| {
        let set = [&["set", "d"], settings].concat();
        ctl(&served, &set).expect("allowed");
        ctl(&served, &["get", "d", "depth"]).expect("a depth")
    };
    assert_eq!(depth(&["depth=learned"]), "learned\n", "as it is");
    assert!(stat(&served)["disks"][0]["learned_depth"].is_object());
    assert_eq!(depth(&["depth=1024"]), "1024\n", "as many as might be learned");
    assert!(stat(&served)["disks"][0]["learned_depth"].is_null());
    assert_eq!(depth(&["scheduler=bfq"]), "1024\n", "it was set");
    let refused = ctl(&served, &["set", "d", "depth=learned"]).expect_err("bfq learns none");
    assert!(
        refused.contains("depth = \"learned\": bfq learns none; 1 to 1024 requests is allowed"),
        "{refused}"
    );
    assert_eq!(depth(&["scheduler=auto"]), "1024\n", "likewise");
    let dry = ctl(&served, &["reload", "--dry-run"]).expect("a valid file");
    assert!(dry.contains("disk \"d\": depth 1024 -> \"learned\""), "{dry}");
    assert_eq!(depth(&["depth=learned"]), "learned\n");
    let dry = ctl(&served, &["reload", "--dry-run"]).expect("a valid file");
    assert!(!dry.contains("depth"), "{dry}");
    assert_eq!(depth(&["scheduler=bfq"]), "8\n", "two for each server");
    served.end();
}

#[test]
fn setting_that_the_scheduler_of_auto_does_not_have_is_refused_and_nothing_is_done() {
    let served = serve("scheduler = \"cfq\"");
    for (setting, said) in [
        ("slice_idle=4", "\"slice_idle\" cannot be set under wfq; what can be set is: scheduler, "),
        ("hierarchy=flat", "wfq has no hierarchy to choose; cfq has: "),
    ] {
        let refused = ctl(&served, &["set", "d", "scheduler=auto", setting]).expect_err(setting);
        assert!(refused.contains(said), "{refused}");
        let why = "takes this one (auto: wfq, as the disk does not rotate)";
        assert!(refused.trim_end().ends_with(why), "{refused}");
    }
    let refused = ctl(&served, &["set", "d", "scheduler_auto=1"]).expect_err("it is only shown");
    assert!(refused.contains("\"scheduler_auto\" cannot be set under cfq; what can"), "{refused}");
    let refused = ctl(&served, &["set", "d", "scheduler=automatic"]).expect_err("no such");
    assert!(refused.contains("scheduler = \"automatic\": \"auto\", \"none\", "), "{refused}");
    assert!(is_told(&served, "cfq", false));
    served.end();
}

#[test]
fn reload_makes_it_autos_choice_and_takes_that_back() {
    let served = serve("scheduler = \"cfq\"");
    let reload = || ctl(&served, &["reload"]);
    write(&served, "");
    let to_auto = "changed: disk \"d\": scheduler \"cfq\" -> \"wfq\"\n\
                   changed: disk \"d\": scheduler_auto false -> true\n\
                   changed: disk \"d\": depth 8 -> \"learned\"\n";
    assert_eq!(reload().as_deref(), Ok(to_auto));
    assert!(is_told(&served, "wfq", true));
    write(&served, "scheduler = \"auto\"");
    assert_eq!(reload().as_deref(), Ok("nothing changed\n"), "it is the default");
    write(&served, "scheduler = \"wfq\"");
    let named = "changed: disk \"d\": scheduler_auto true -> false\n";
    assert_eq!(reload().as_deref(), Ok(named));
    assert!(is_told(&served, "wfq", false));
    // What `ctl` has chosen goes back to what auto takes.
    write(&served, "");
    reload().expect("a valid file");
    ctl(&served, &["set", "d", "scheduler=cfq"]).expect("allowed");
    assert_eq!(reload().as_deref(), Ok(to_auto));
    write(&served, "tunables = { slice_idle = 4 }");
    let refused = reload().expect_err("cfq's");
    assert!(refused.contains("wfq has no tunable \"slice_idle\"; "), "{refused}");
    assert!(refused.contains("takes this one (auto: wfq, as the disk does not "), "{refused}");
    assert!(is_told(&served, "wfq", true));
    served.end();
}

#[test]
fn reload_to_another_way_to_wait_names_what_differs() {
    let served = serve("scheduler = \"cfq\"");
    write(&served, "scheduler = \"cfq\"\npoll = \"hybrid\"\nio_poll_delay = 7");
    let changed = "changed: disk \"d\": poll \"auto\" -> \"hybrid\"\n\
                   changed: disk \"d\": io_poll_delay 0 -> 7\n";
    assert_eq!(ctl(&served, &["reload"]).as_deref(), Ok(changed));
    served.end();
}

/// `slice_idle` in milliseconds and `slice_idle_us` are one tunable.
#[test]
fn tunable_that_is_set_last_counts_whichever_of_its_names_it_has() {
    let served = serve("scheduler = \"cfq\"");
    let again = "slice_idle=8";
    for (setting, micros) in [(again, 8000), ("slice_idle_us=500", 500), (again, 8000)] {
        ctl(&served, &["set", "d", setting]).expect("allowed");
        let shown = ctl(&served, &["get", "d", "slice_idle_us"]);
        assert_eq!(shown, Ok(format!("{micros}\n")), "{setting}");
    }
    served.end();
}
