//! What a TOML file that describes a disk may say, and what is said of one that does not.

use std::path::Path;

use paternoster_model::disk::{Disk, Parameters, SeekCurve, read_trace, validate};
use paternoster_model::parameter_file::{Mark, notes};
use proptest::prelude::*;
use proptest::sample::Index;

const REFERENCE: &str = include_str!("../devices/hdd-7200.toml");

fn refused(text: &str) -> String {
    Parameters::from_toml(Path::new("a.toml"), text).expect_err("it is wrong").to_string()
}

/// The reference disk's file with one piece of it replaced.
fn reference_with(from: &str, to: &str) -> String {
    assert_eq!(REFERENCE.matches(from).count(), 1, "{from}");
    REFERENCE.replace(from, to)
}

fn line_of(text: &str, piece: &str) -> usize {
    1 + text[..text.find(piece).expect(piece)].matches('\n').count()
}

#[test]
fn disk_that_comes_with_the_laboratory_has_its_name_and_can_be_built() {
    let parameters = Parameters::named("hdd-7200").expect("it is there");
    assert_eq!(parameters.name, "hdd-7200");
    assert!(Disk::new(parameters).is_ok());
    assert!(Parameters::named("hdd").is_none());
}

#[test]
fn value_keeps_what_is_known_of_it() {
    let notes = notes(include_str!("../devices/hdd-7200.toml"));
    let note =
        |key: &str| notes.iter().find(|note| note.key == key).unwrap_or_else(|| panic!("{key}"));
    assert_eq!(note("mechanics.rpm").mark, Some(Mark::Stated));
    assert_eq!(note("mechanics.rpm").bounds, Some((5400.0, 7200.0)));
    assert_eq!(note("mechanics.seek.scale").bounds, Some((0.7, 1.8)));
    assert_eq!(note("buffer.write_back.runs").mark, Some(Mark::Guess));
    let source = note("layout.surfaces").source.as_deref();
    assert_eq!(source, Some("DiskSim, G4_LBA_64bit_4T.model"));
}

#[test]
fn reference_disks_seeks_are_those_of_its_formula() {
    let SeekCurve::Formula(formula) = Parameters::named("hdd-7200").unwrap().mechanics.seek else {
        panic!("it has a formula")
    };
    // 1.46 + 11.52 √x below x = 0.2, 4.51 + 11.09 x above, of 310,194 cylinders.
    let per_root = formula.root.1.0 * 310_194_f64.sqrt();
    let per_line = formula.line.1.0 * 310_194.0;
    for (found, expected) in [
        (formula.root.0.0, 1.46),
        (per_root, 11.52),
        (formula.line.0.0, 4.51),
        (per_line, 11.09),
        (formula.knee, 62_038.8),
    ] {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn wrong_value_is_refused_with_its_place_and_what_may_be() {
    let text = reference_with("depth = { value = 31,", "depth = { value = 0,");
    let line = line_of(&text, "depth = {");
    let expected = format!(
        "a.toml:{line}:19: `queue.depth` is 0, which must be a whole number from 1 to 65536"
    );
    let message = refused(&text.replace("bounds = [1, 32]", "bounds = [0, 32]"));
    assert_eq!(message, expected);
}

#[test]
fn value_beyond_its_bounds_is_refused() {
    let text = reference_with("value = 7200\n", "value = 7201\n");
    let line = line_of(&text, "value = 7201");
    let expected = format!(
        "a.toml:{line}:9: `mechanics.rpm.value` is 7201, which must be within its bounds, \
         5400 to 7200"
    );
    assert_eq!(refused(&text), expected);
}

#[test]
fn word_that_is_none_of_those_is_refused() {
    let message = refused(&reference_with("value = \"sorted\"", "value = \"sort\""));
    let expected = "`buffer.write_back.mode` is \"sort\", which must be one of \"off\", \
                    \"appending\", \"one-run\", \"sorted\"";
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn unknown_key_is_refused_with_those_that_there_are() {
    let text = reference_with("order = \"forward\"", "order = \"forward\"\ncolour = 1");
    let message = refused(&text);
    let place = format!("a.toml:{}:1: ", line_of(&text, "colour"));
    assert!(message.starts_with(&place), "{message}");
    assert!(message.contains("unknown key `layout.colour`; there are `surfaces`"), "{message}");
}

#[test]
fn missing_key_is_refused_at_its_table() {
    let text = reference_with("[layout]\norder = \"forward\"", "[layout]");
    let message = refused(&text);
    let expected = "`layout.order` is missing; it is one of \"forward\", \"serpentine\"";
    assert!(message.ends_with(expected), "{message}");
    assert!(message.starts_with(&format!("a.toml:{}:", line_of(&text, "[layout]"))), "{message}");
}

#[test]
fn zones_that_do_not_rise_are_refused() {
    let message = refused(&reference_with("[38773, 3056]", "[19386, 3056]"));
    assert!(message.contains("zone 1 has cylinders 19387 to 19386"), "{message}");
}

#[test]
fn what_is_no_toml_is_refused_at_its_place() {
    assert!(refused("name = \"a\"\nabout =\n").starts_with("a.toml:2:8: "));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_toml_never_panics(
        changes in prop::collection::vec((any::<Index>(), 0_u8..3, any::<char>()), 1..8)
    ) {
        let mut text: Vec<char> = REFERENCE.chars().collect();
        for (at, kind, c) in changes {
            let at = at.index(text.len());
            match kind {
                0 => text[at] = c,
                1 => text.insert(at, char::from_digit(c as u32 % 10, 10).unwrap_or(c)),
                _ => drop(text.remove(at)),
            }
        }
        if let Ok(parameters) = text.into_iter().collect::<String>().parse::<Parameters>() {
            let trace = "R Hit 1000 8 1 100000\nW Hit 5 2000 1 1\nR Hit 9 7 1 1";
            let _ = validate(&read_trace(trace).expect(trace), &parameters);
        }
    }
}
