//! The table of options: all of fio's are in it, and `docs/fio-jobs.md` is made of it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use paternoster_lab::fio::{OptionInfo, Support, options};

fn names() -> impl Iterator<Item = &'static str> {
    options().flat_map(|info| [info.name].into_iter().chain(info.aliases.iter().copied()))
}

#[test]
fn every_option_of_fio_is_known() {
    let known: BTreeSet<_> = names().collect();
    let fios = include_str!("../../data/fio-3.33/options.txt");
    let fios = fios.lines().filter(|line| !line.starts_with('#'));
    let unknown: Vec<_> = fios.filter(|name| !known.contains(name)).collect();
    assert_eq!(unknown, Vec::<&str>::new());
}

#[test]
fn names_are_there_once() {
    let mut met = BTreeSet::new();
    let twice: Vec<_> = names().filter(|name| !met.insert(*name)).collect();
    assert_eq!(twice, Vec::<&str>::new());
}

#[test]
fn docs_are_sentences() {
    for info in options() {
        let starts = info.doc.starts_with(|c: char| c.is_uppercase());
        assert!(starts && info.doc.ends_with('.'), "{}: {:?}", info.name, info.doc);
        assert_eq!(info.value.is_empty(), info.support != Support::Simulated, "{}", info.name);
    }
}

/// Prints the table that it wants if there is another: put that into the document.
#[test]
fn document_has_the_table_of_options() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fio-jobs.md");
    let document = std::fs::read_to_string(path).expect("the document is there");
    for (name, table) in tables() {
        let start = format!("<!-- options: {name} -->\n\n");
        let (_, behind) = document.split_once(&start).expect("the table has its mark");
        let (found, _) = behind.split_once("\n<!-- end -->").expect("the table has an end");
        assert!(found == table, "docs/fio-jobs.md should have, as options {name}:\n\n{table}");
    }
}

fn doc_of(name: &str) -> &'static str {
    options().find(|info| info.name == name).expect("an option").doc
}

/// A limit that a table tells is the one that holds.
#[test]
fn limits_are_those_of_the_table() {
    let limits = [
        ("bs", 1, 1 << 30),
        ("nrfiles", 1, 65_536),
        ("iodepth", 1, 65_536),
        ("numjobs", 1, 4096),
        ("cgroup_weight", 100, 1000),
    ];
    for (name, least, most) in limits {
        let said = format!("{least} to {most}");
        let doc = doc_of(name).replace(" (the default)", "");
        assert!(doc.contains(&said), "{name}: {doc}");
        let takes = |value: u64| {
            let job = format!("[j]\nfilename=f\nsize=1g\ncgroup=a\n{name}={value}\n");
            crate::fio::read(&job).is_ok()
        };
        for (value, is_allowed) in
            [(least - 1, false), (least, true), (most, true), (most + 1, false)]
        {
            assert_eq!(takes(value), is_allowed, "{name}={value}");
        }
    }
}

/// The error names the engines that there are, and the table those of the error.
#[test]
fn engines_are_those_of_the_table() {
    let error = crate::fio::read("[j]\nsize=1m\nioengine=libaoi\n").expect_err("none").to_string();
    let (_, names) = error.split_once("allowed is ").expect("what is allowed");
    for name in names.split(", ") {
        assert!(doc_of("ioengine").contains(name), "{name}");
        assert!(crate::fio::read(&format!("[j]\nsize=1m\nioengine={name}\n")).is_ok(), "{name}");
    }
    assert_eq!(names.split(", ").count(), 9);
}

/// fio 3.33 has these as its defaults, by `--cmdhelp`.
#[test]
fn option_with_its_default_is_accepted() {
    for option in ["do_verify=1", "verify_fatal=0", "verify_dump=0", "verify_async=0", "verify=0"] {
        assert!(crate::fio::read(&format!("[j]\nsize=1m\n{option}\n")).is_ok(), "{option}");
    }
}

/// What fio 3.33 takes too, and reads as it is meant.
#[test]
fn what_fio_reads_as_it_is_written_is_accepted() {
    for options in [
        "threads=1",
        "bssplit = 4k/50:8k",
        "loops= 2",
        "number_ios =\t20",
        "rwmixread= 10",
        "rw=read:-8k",
        "rw=trim\nbs=2g\nsize=8g",
        "filename=/dev/a\nsize=100%%",
        "rw=randread\nrandom_distribution=zoned:60/10:40",
        "rw=randread\nrandom_distribution=zoned:60/10:40/",
        "rw=randread\nrandom_distribution=zoned:50:50",
        "rw=randread\nrandom_distribution=zoned:90/10:10/0",
    ] {
        let read = crate::fio::read(&format!("[j]\nsize=1m\n{options}\n"));
        assert!(read.is_ok(), "{options}: {read:?}");
    }
}

/// What fio 3.33 reads as something else, or refuses.
#[test]
fn what_fio_reads_as_something_else_is_refused() {
    for options in [
        "bs= 8k",
        "rw= read",
        "bsrange= 4k-8k",
        "bssplit=4k/50: 8k/50",
        "rw=randread:-8k",
        "rw=read\nbs=2g\nsize=8g",
        "rw=trimwrite\nbs=2g\nsize=8g",
        "filename=/dev/a\nsize=50%x",
        "rw=randread\nrandom_distribution=zoned:50/10",
        "rw=randread\nrandom_distribution=zoned:60/50:40/60",
        "rw=randread\nrandom_distribution=zoned_abs:60/4m:40",
    ] {
        assert!(crate::fio::read(&format!("[j]\nsize=1m\n{options}\n")).is_err(), "{options}");
    }
}

fn tables() -> [(&'static str, String); 3] {
    let names = |info: &OptionInfo| {
        let names = [info.name].into_iter().chain(info.aliases.iter().copied());
        names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let mut simulated = String::from("| option | value | what it does |\n|---|---|---|\n");
    let mut without =
        String::from("| option | what it does under fio | why nothing here |\n|---|---|---|\n");
    let mut refused: Vec<(String, String)> = vec![];
    // Options that differ in their names alone share a row.
    let mut refuse =
        |names: String, rest: String| match refused.iter_mut().find(|row| row.1 == rest) {
            Some(row) => row.0.extend([", ", &names]),
            None => refused.push((names, rest)),
        };
    for info in options() {
        let (name, doc) = (names(info), info.doc);
        let off: Vec<_> = info.off.iter().map(|value| format!("`{value}`")).collect();
        let off = off.join(", ");
        let _ = match info.support {
            Support::Simulated => {
                writeln!(simulated, "| {name} | `{}` | {doc} |", info.value.replace('|', "\\|"))
            }
            Support::NoEffect(why) => writeln!(without, "| {name} | {doc} | {why} |"),
            Support::NotYet => {
                refuse(name, format!("{off} | {doc} | not simulated yet"));
                Ok(())
            }
            Support::Never(why) => {
                refuse(name, format!("{off} | {doc} | {why}"));
                Ok(())
            }
        };
    }
    let head =
        "| option | accepted | what it does under fio | why it is refused |\n|---|---|---|---|\n";
    let rows = refused.iter().map(|(names, rest)| format!("| {names} | {rest} |\n"));
    let refused = head.to_owned() + &rows.collect::<String>();
    [("simulated", simulated), ("without effect", without), ("refused", refused)]
}
