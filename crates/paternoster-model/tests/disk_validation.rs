//! Disks with measured service times: the model, with the parameters of DiskSim's files and nothing
//! fitted, is at most twice as far from the disk as DiskSim itself.

use std::fmt::Write;
use std::fs::File;
use std::path::Path;

use paternoster_model::disk::{disksim, read_trace, validate};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/disksim.tar.zst");

/// The disks, with the rms distance of DiskSim's service times from the measured ones, in ms.
const DISKS: [(&str, f64); 5] = [
    ("atlas10k", 0.268),
    ("barracuda", 0.349),
    ("cheetah9LP", 0.107),
    ("hp_c2490a", 0.254),
    ("hp_c3323a", 0.306),
];

fn unpack(folder: &Path) {
    let archive = zstd::Decoder::new(File::open(DATA).expect("the data")).expect("compressed");
    tar::Archive::new(archive).unpack(folder).expect("an archive");
}

#[test]
fn service_times_are_at_most_twice_as_far_from_measured_ones_as_disksims() {
    let folder = tempfile::tempdir().expect("a folder");
    unpack(folder.path());
    let mut table = String::new();
    let mut all = true;
    for (name, disksim_ms) in DISKS {
        let file = folder.path().join(format!("{name}.parv"));
        let parameters = disksim::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let trace = std::fs::read_to_string(file.with_extension("trace")).expect("a trace");
        let trace = read_trace(&trace).unwrap_or_else(|error| panic!("{name}: {error}"));
        let validation = validate(&trace, &parameters).unwrap_or_else(|error| panic!("{error}"));
        all &= validation.rms_ms <= 2.0 * disksim_ms;
        let _ = writeln!(
            table,
            "{name:12} rms {:.3} ms, DiskSim's {disksim_ms} ms; mean {:.3} ms, measured {:.3} ms",
            validation.rms_ms, validation.mean_ms, validation.measured_mean_ms
        );
    }
    println!("{table}");
    assert!(all, "{table}");
}
