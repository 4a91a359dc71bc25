//! Other people's clients, each over a unix socket and over TCP, against a file; and against
//! memory and other people's servers, where that is cheap.

use std::fs::File;
use std::ops::Deref;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::Value;

use crate::far::{Far, Program, in_front};
use crate::fuse::Mounted;
use crate::support::{Place, Served, fio_verify, noise, run, temp_dir};

const MIB: u64 = 1 << 20;

const PLACES: [Place; 2] = [Place::Unix, Place::Tcp];

/// Size of the disks: not a multiple of what qemu likes to align to.
const SIZE: u64 = 32 * MIB;

/// An image with data at both ends and a hole between.
fn write_image(path: &Path) {
    let image = File::create(path).expect("an image");
    image.set_len(SIZE).expect("room");
    image.write_all_at(&noise(3 << 20, 1), 0).expect("written");
    image.write_all_at(&noise(1 << 20, 2), SIZE - MIB).expect("written");
}

fn nbdinfo(served: &Served, args: &[&str]) -> String {
    let args = [args, &[served.uri()]].concat();
    run("libnbd-bin", "nbdinfo", &args, served.dir.path())
}

/// A server of each kind on each kind of socket, one after the other; also in front of other
/// people's servers, each of which is ended with ours.
fn each_server() -> impl Iterator<Item = Running> {
    let file = |place| Running { served: Served::empty_file(place, SIZE, &[]), far: None };
    let memory = |place| Running { served: Served::memory(place, SIZE), far: None };
    let far = |program| {
        let (far, served) = in_front(program, "unix = \"nbd.sock\"", SIZE, "");
        Running { served, far: Some(far) }
    };
    let alone = PLACES.into_iter().map(file).chain(PLACES.into_iter().map(memory));
    alone.chain(Program::ALL.into_iter().map(far))
}

/// A server, and the one behind it.
struct Running {
    served: Served,
    far: Option<Far>,
}

impl Running {
    fn end(self) {
        self.served.end();
        drop(self.far);
    }
}

impl Deref for Running {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

#[test]
fn nbdinfo_finds_the_export_and_all_that_it_can() {
    for served in each_server() {
        let plain = nbdinfo(&served, &[]);
        for line in ["protocol: newstyle-fixed", "export-size: 33554432 (32M)"] {
            assert!(plain.contains(line), "{plain}");
        }
        assert_eq!(nbdinfo(&served, &["--size"]), format!("{SIZE}\n"));
        let text = nbdinfo(&served, &["--json"]);
        let json: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["structured"], true, "{text}");
        let export = &json["exports"][0];
        assert_eq!(export["export-size"], SIZE, "{text}");
        assert_eq!(export["is_read_only"], false, "{text}");
        assert_eq!(export["block_size_minimum"], 1, "{text}");
        assert_eq!(export["block_size_maximum"], 32 * MIB, "{text}");
        assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]), "{text}");
        for can in ["cache", "df", "fast-zero", "flush", "fua", "multi-conn", "trim", "write"] {
            nbdinfo(&served, &["--can", can]);
        }
        nbdinfo(&served, &["--can", "zero"]);
        let listed = nbdinfo(&served, &["--list"]);
        assert!(listed.contains("export=\"disk\""), "{listed}");
        served.end();
    }
}

#[test]
fn nbdinfo_maps_data_and_holes() {
    for place in PLACES {
        let dir = temp_dir();
        write_image(&dir.path().join("disk.img"));
        let served = Served::file(dir, place, &[]);
        let map = nbdinfo(&served, &["--map"]);
        let rows: Vec<Vec<&str>> = map.lines().map(|l| l.split_whitespace().collect()).collect();
        let hole = (28 * MIB).to_string();
        let expected: [&[&str]; 3] = [
            &["0", "3145728", "0", "data"],
            &["3145728", &hole, "3", "hole,zero"],
            &["32505856", "1048576", "0", "data"],
        ];
        assert_eq!(rows, expected);
        let totals = nbdinfo(&served, &["--map", "--totals"]);
        let rows: Vec<Vec<&str>> = totals.lines().map(|l| l.split_whitespace().collect()).collect();
        let expected: [&[&str]; 2] =
            [&["4194304", "12.5%", "0", "data"], &[&hole, "87.5%", "3", "hole,zero"]];
        assert_eq!(rows, expected);
        served.end();
    }
}

#[test]
fn what_nbdcopy_writes_over_four_connections_it_reads_back() {
    for served in each_server() {
        write_image(&served.path("src.img"));
        let (uri, dir) = (served.uri(), served.dir.path());
        let many = ["--connections=4", "--requests=64"];
        run("libnbd-bin", "nbdcopy", &[&many[..], &["src.img", uri]].concat(), dir);
        run("libnbd-bin", "nbdcopy", &[&many[..], &[uri, "back.img"]].concat(), dir);
        run("diffutils", "cmp", &["src.img", "back.img"], dir);
        if served.path("disk.img").exists() {
            run("diffutils", "cmp", &["src.img", "disk.img"], dir);
        }
        served.end();
    }
}

#[test]
fn what_qemu_img_converts_it_finds_identical() {
    for served in each_server() {
        write_image(&served.path("src.img"));
        let (uri, dir) = (served.uri(), served.dir.path());
        let qemu_img = |args: &[&str]| run("qemu-utils", "qemu-img", args, dir);
        qemu_img(&["convert", "-n", "-f", "raw", "-O", "raw", "src.img", uri]);
        let compared = qemu_img(&["compare", "-f", "raw", "-F", "raw", "src.img", uri]);
        assert_eq!(compared, "Images are identical.\n");
        let map = qemu_img(&["map", "-f", "raw", "--output=json", uri]);
        let map: Vec<Value> = serde_json::from_str(&map).expect("JSON");
        let lengths: Vec<u64> = map.iter().filter_map(|part| part["length"].as_u64()).collect();
        assert_eq!(lengths.iter().sum::<u64>(), SIZE, "{map:?}");
        if served.path("disk.img").exists() {
            run("diffutils", "cmp", &["src.img", "disk.img"], dir);
            assert!(map.iter().any(|part| part["data"] == false), "{map:?}");
        }
        served.end();
    }
}

#[test]
fn qemu_io_reads_the_patterns_that_it_wrote() {
    let commands = [
        "write -P 0x55 0 1M",
        "write -z 64k 64k",
        "discard 256k 64k",
        "flush",
        "read -P 0 64k 64k",
        "read -P 0x55 0 64k",
        "read -P 0x55 128k 128k",
        "read -P 0x55 320k 704k",
        "write -f -P 0xaa 1M 4k",
        "read -P 0xaa 1M 4k",
        "write -P 0x11 1234567 891",
        "read -P 0x11 1234567 891",
    ];
    for served in each_server() {
        let mut args = vec!["-f", "raw"];
        args.extend(commands.iter().flat_map(|command| ["-c", command]));
        args.push(served.uri());
        let said = run("qemu-utils", "qemu-io", &args, served.dir.path());
        assert!(!said.contains("Pattern verification failed"), "{said}");
        assert!(!said.to_lowercase().contains("error"), "{said}");
        served.end();
    }
}

#[test]
fn fio_verifies_random_writes_of_all_sizes() {
    for place in PLACES {
        let served = Served::empty_file(place, 64 * MIB, &[]);
        let said = fio_verify(served.uri(), &["--bsrange=512-256k"], served.dir.path());
        assert!(said.contains("err= 0"), "{said}");
        served.end();
    }
}

#[test]
fn file_system_made_through_nbdfuse_is_clean() {
    for place in PLACES {
        let served = Served::empty_file(place, SIZE, &[]);
        let mounted = Mounted::new(&[served.uri()]);
        let (file, dir) = (mounted.file(), served.dir.path());
        let file = file.to_str().expect("UTF-8");
        run("e2fsprogs", "mkfs.ext4", &["-q", "-F", file], dir);
        run("e2fsprogs", "fsck.ext4", &["-fn", file], dir);
        mounted.unmount();
        run("e2fsprogs", "fsck.ext4", &["-fn", "disk.img"], dir);
        served.end();
    }
}

#[test]
fn nbd_client_lists_the_exports() {
    let args = ["--disk", "disk.img", "--export", "one,size=1M", "--export", "two,offset=1M"];
    for place in PLACES {
        let dir = temp_dir();
        write_image(&dir.path().join("disk.img"));
        let listen = match place {
            Place::Unix => ["--unix", "nbd.sock"],
            Place::Tcp => ["--tcp", "127.0.0.1:0"],
        };
        let served = Served::start(dir, &[&args[..], &listen].concat(), 2);
        let port = served.uri().trim_end_matches("/one").rsplit(':').next().unwrap_or_default();
        let ask = match place {
            Place::Unix => vec!["-l", "-unix", "nbd.sock"],
            Place::Tcp => vec!["-l", "127.0.0.1", port],
        };
        let said = run("nbd-client", "nbd-client", &ask, served.dir.path());
        let names: Vec<&str> = said.lines().map(str::trim).collect();
        assert!(names.contains(&"one") && names.contains(&"two"), "{said}");
        served.end();
    }
}
