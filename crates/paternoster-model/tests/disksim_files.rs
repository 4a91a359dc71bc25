//! DiskSim's files as they are, and what is said of ones that are wrong.

#![expect(clippy::float_cmp, reason = "numbers are as they stand in the files")]

use std::fs::File;
use std::path::PathBuf;

use paternoster_model::disk::{SeekCurve, Sparing, disksim, read_trace, validate};
use proptest::prelude::*;
use proptest::sample::Index;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/disksim.tar.zst");

/// DiskSim's files, unpacked into a folder of their own.
struct DiskSim {
    folder: tempfile::TempDir,
}

impl DiskSim {
    fn new() -> Self {
        let archive = zstd::Decoder::new(File::open(DATA).expect("the data")).expect("compressed");
        let folder = tempfile::tempdir().expect("a folder");
        tar::Archive::new(archive).unpack(folder.path()).expect("an archive");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect(name)
    }

    fn write(&self, name: &str, text: &[u8]) {
        std::fs::write(self.path(name), text).expect(name);
    }

    /// What is said of cheetah9LP with one piece of one of its files replaced, without the folder.
    fn refused(&self, name: &str, from: &str, to: &str) -> String {
        let text = self.text(name);
        assert!(text.contains(from), "{from}");
        self.write(name, text.replacen(from, to, 1).as_bytes());
        let error = disksim::read(&self.path("cheetah9LP.parv")).expect_err("it is wrong");
        self.write(name, text.as_bytes());
        let folder = format!("{}/", self.folder.path().display());
        error.to_string().replace(&folder, "")
    }
}

#[test]
fn disks_of_disksims_files_hold_what_they_say() {
    let files = DiskSim::new();
    // Exact where the spares are whole tracks: the zones hold what `Block count` says.
    for (name, sectors) in [("hp_c2490a", 4165272), ("hp_c3323a", 2056008)] {
        let mut disk = disksim::read(&files.path(&format!("{name}.parv"))).expect(name);
        assert_eq!(disk.layout.sparing, Sparing::TracksPerZone);
        assert_eq!(disk.layout.end.map(|end| end.0), Some(sectors));
        disk.layout.end = None;
        let trace = format!("R Hit {} 1 1 1", sectors - 1);
        assert!(validate(&read_trace(&trace).unwrap(), &disk).is_ok(), "{name}");
        let trace = format!("R Hit {sectors} 1 1 1");
        let refused = validate(&read_trace(&trace).unwrap(), &disk).expect_err("beyond the end");
        let expected = format!("request 1 ends at sector {}, the disk at {sectors}", sectors + 1);
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn bus_is_that_of_the_system_with_the_disk() {
    let files = DiskSim::new();
    let bus = |name: &str| disksim::read(&files.path(name)).expect(name).link.read_sector.0;
    assert_eq!(bus("hp_c3323a.parv"), 0.1455);
    // The disk's own file has none: it is found in the system's file, which sources this one.
    assert_eq!(bus("hp_c3323a_validate.diskspecs"), 0.1455);
    assert_eq!(bus("hp_c3323a.diskspecs"), 0.0);
    assert_eq!(bus("barracuda.parv"), 0.134);
}

#[test]
fn wrong_disksim_file_is_refused_with_place_and_what_may_be() {
    let files = DiskSim::new();
    for (name, from, to, expected) in [
        (
            "cheetah9LP.diskspecs",
            "Fast write level = 2",
            "Fast write level = 3",
            "cheetah9LP.diskspecs:49:23: `Fast write level` is `3`, which must be a whole number \
             from 0 to 2",
        ),
        (
            "cheetah9LP.diskspecs",
            "Number of buffer segments = 3,",
            "",
            "cheetah9LP.diskspecs:1:1: `Number of buffer segments` of disksim_disk \
             SEAGATE_ST39102LW_validate is missing; it is a whole number from 1 to 1000000",
        ),
        (
            "cheetah9LP.diskspecs",
            "Model = source cheetah9LP.model,",
            "Model = source no.model,",
            "cheetah9LP.diskspecs:2:12: `Model` is `no.model`, which must be a file beside this \
             one, which cannot be read: No such file or directory (os error 2)",
        ),
        (
            "cheetah9LP.model",
            "Seek type = extracted",
            "Seek type = guessed",
            "`Seek type` is `guessed`, which must be linear, curve, constant, hpl, hplplus10 or \
             extracted",
        ),
        (
            "cheetah9LP.model",
            "Number of cylinders = 6962,",
            "Number of cylinders 6962,",
            "cheetah9LP.model:3:28: `,` stands where `=` must be",
        ),
        (
            "cheetah9LP.seek",
            "1,\t0.83100",
            "1 0.83100",
            "cheetah9LP.seek:2:1: `a line` is `1 0.83100`, which must be a distance in cylinders \
             from 1, a comma, and a time in ms up to 1e5",
        ),
        (
            "cheetah9LP.seek",
            "measured: 106",
            "measured: 107",
            "distance 107 of 107 is missing; it is a line with a distance, a comma, and a time",
        ),
        (
            "cheetah9LP.parv",
            "source cheetah9LP.diskspecs",
            "",
            "cheetah9LP.parv: the disk is nothing, which must be one block `disksim_disk NAME { … \
             }`, or one that is instantiated",
        ),
    ] {
        let message = files.refused(name, from, to);
        assert!(message.ends_with(expected), "{message}\n{expected}");
    }
}

#[test]
fn files_that_source_each_other_are_refused() {
    let files = DiskSim::new();
    files.write("round.parv", b"source round.parv\n");
    let error = disksim::read(&files.path("round.parv")).expect_err("endless");
    assert!(error.to_string().contains("one of at most 64 files"), "{error}");
}

#[test]
fn every_type_of_seek_is_read() {
    let files = DiskSim::new();
    let hpl = "Seek type = hpl, HPL seek equation values = [ 300, 3.75, 0.33, 7.69, 0.0059, -1 ]";
    let first = "First ten seek times = [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ]";
    let model = files.text("hp_c3323a_validate.model");
    for text in [
        "Seek type = linear".to_owned(),
        "Seek type = constant, Average seek time = 8".to_owned(),
        "Seek type = curve, Average seek time = 8".to_owned(),
        hpl.to_owned(),
        format!("{}, {first}", hpl.replace("= hpl,", "= hplplus10,")),
    ] {
        files.write(
            "hp_c3323a_validate.model",
            model.replace("Seek type = extracted", &text).as_bytes(),
        );
        let disk = disksim::read(&files.path("hp_c3323a.parv")).expect(&text);
        match disk.mechanics.seek {
            SeekCurve::Formula(formula) => {
                assert_eq!((formula.knee, formula.line.1.0), (300.0, 0.0059));
                assert_eq!(formula.short.len(), if text.contains("First") { 10 } else { 0 });
            }
            SeekCurve::Points(_) | SeekCurve::Lee(_) => assert!(!text.contains("hpl")),
        }
    }
}

/// Signs and digits change more than any byte does.
const LIKELY: &[u8] = b"{}[],=#0123456789.-e \n";

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever bytes of the files are changed, they are read or refused, and what is read can be
    /// run.
    #[test]
    fn changed_disksim_file_never_panics(
        file in 0_usize..4,
        changes in prop::collection::vec((any::<Index>(), 0_u8..3, any::<u8>()), 1..8)
    ) {
        let files = DiskSim::new();
        let name = ["parv", "diskspecs", "model", "seek"][file];
        let name = format!("atlas10k.{name}");
        let mut bytes = files.text(&name).into_bytes();
        for (at, kind, byte) in changes {
            let at = at.index(bytes.len());
            let byte = if byte < 128 { LIKELY[usize::from(byte) % LIKELY.len()] } else { byte };
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        files.write(&name, &bytes);
        if let Ok(parameters) = disksim::read(&files.path("atlas10k.parv")) {
            let trace = read_trace(&files.text("atlas10k.trace")).expect("it is whole");
            let _ = validate(&trace[..200], &parameters);
        }
    }
}
