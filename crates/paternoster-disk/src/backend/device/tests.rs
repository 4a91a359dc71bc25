use std::os::unix::fs::symlink;

use rustix::fs::makedev;

use super::*;

/// A made-up sysfs: disks, with what their queues say of rotation, and what stands on them.
struct Made {
    dir: tempfile::TempDir,
    sysfs: Sysfs,
}

impl Made {
    /// The disks `sda` (8:0, with the partitions 8:1 and 8:2), `vdb` (254:16), and a device without
    /// a queue, 7:0.
    fn new(sda: &str, vdb: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let [devices, names, mounts] =
            ["dev/block", "block", "mountinfo"].map(|path| dir.path().join(path));
        for directory in [&devices, &names] {
            fs::create_dir_all(directory).expect("a directory");
        }
        let made = Self { dir, sysfs: Sysfs { devices, names, mounts } };
        made.device("8:0", "sda", &[("queue/rotational", sda)]);
        made.device("8:1", "sda/sda1", &[("partition", "1\n")]);
        made.device("8:2", "sda/sda2", &[("partition", "2\n")]);
        made.device("254:16", "vdb", &[("queue/rotational", vdb)]);
        made.device("7:0", "loop0", &[]);
        made
    }

    fn rotational(&self, path: &Path, seen: &Metadata) -> Rotational {
        self.sysfs.says_of(&self.sysfs.directory(path, seen))
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn device(&self, number: &str, path: &str, files: &[(&str, &str)]) {
        let device = self.path("devices").join(path);
        fs::create_dir_all(&device).expect("a directory");
        for (name, said) in files {
            let file = device.join(name);
            fs::create_dir_all(file.parent().expect("it has one")).expect("a directory");
            fs::write(file, said).expect("a file");
        }
        symlink(device, self.sysfs.devices.join(number)).expect("a link");
    }

    /// A device that stands on others.
    fn above(&self, number: &str, name: &str, below: &[&str]) {
        self.device(number, name, &[]);
        let slaves = self.path("devices").join(name).join("slaves");
        fs::create_dir(&slaves).expect("a directory");
        for below in below {
            let device = self.path("devices").join(below);
            let link = device.file_name().expect("it has a name");
            symlink(&device, slaves.join(link)).expect("a link");
        }
    }

    fn queue(&self, (major, minor): (u32, u32)) -> Option<(PathBuf, String)> {
        read_queue_file(&self.sysfs.numbered(makedev(major, minor)), "rotational")
    }

    fn rotates(&self, device: (u32, u32)) -> bool {
        self.queue(device).is_some_and(|(_, said)| said == "1")
    }

    fn whole(&self, (major, minor): (u32, u32)) -> Vec<String> {
        let directory = self.sysfs.numbered(makedev(major, minor));
        self.sysfs.whole_devices(&directory, MOST_LAYERS).into_iter().collect()
    }
}

#[test]
fn disk_is_what_its_queue_says_and_a_partition_is_what_its_disk_is() {
    let made = Made::new("1\n", "0\n");
    assert!(made.rotates((8, 0)) && made.rotates((8, 1)) && !made.rotates((254, 16)));
    assert!(!Made::new("0\n", "1\n").rotates((8, 1)));
}

#[test]
fn device_of_which_nothing_is_known_is_non_rotational() {
    let made = Made::new("1\n", "perhaps\n");
    for device in [(0, 42), (7, 0), (254, 16)] {
        assert!(!made.rotates(device), "{device:?}");
    }
}

#[test]
fn the_file_that_said_so_is_named_and_so_is_the_one_that_is_missing() {
    let made = Made::new("1\n", "0\n");
    let at = made.sysfs.devices.display().to_string();
    let (file, said) = made.queue((8, 1)).expect("its disk says it");
    let named = format!("{at}/8:1/../queue/rotational");
    assert_eq!((file.display().to_string(), said.as_str()), (named, "1"));
    // procfs is on no device, and nothing is mounted in this made-up world.
    let path = Path::new("/proc/self/status");
    let seen = fs::metadata(path).expect("procfs is mounted");
    let number = format!("{}:{}", major(seen.dev()), minor(seen.dev()));
    let expected = format!("unknown: there is no {at}/{number}/queue/rotational");
    let unknown = Rotational { yes: false, because: expected, disbelieved: None };
    assert_eq!(made.rotational(path, &seen), unknown);
    assert_eq!(made.sysfs.devices_of(path, MOST_LAYERS), BTreeSet::new());
}

#[test]
fn device_below_virtio_is_one_of_virtio() {
    for (device, is) in [
        ("/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda", true),
        ("/sys/devices/pci0000:00/0000:00:05.0/virtio2/host0/target0:0:0/0:0:0:0/block/sda", true),
        ("/sys/devices/pci0000:00/0000:00:1d.0/0000:3b:00.0/nvme/nvme0/nvme0n1", false),
        ("/sys/devices/virtual/block/virtiolike", false),
    ] {
        assert_eq!(is_below_virtio(Path::new(device)), is, "{device}");
    }
}

/// A file on virtio, and one on a mirror of virtio and a disk.
#[test]
fn virtio_that_says_that_it_rotates_is_not_believed() {
    let made = Made::new("1\n", "1\n");
    let virtual_one = made.path("devices/virtio1/block/vdc");
    fs::create_dir_all(&virtual_one).expect("a directory");
    symlink(&virtual_one, made.sysfs.names.join("vdc")).expect("a link");
    made.device("254:32", "virtio1/block/vdc", &[("queue/rotational", "1\n")]);
    let file = made.path("file");
    fs::write(&file, "").expect("a file");
    let seen = fs::metadata(&file).expect("it is there");
    let number = format!("{}:{}", major(seen.dev()), minor(seen.dev()));
    made.above(&number, "dm-0", &["virtio1/block/vdc"]);
    let queue = made.path("devices/dm-0/queue");
    fs::create_dir(&queue).expect("a directory");
    fs::write(queue.join("rotational"), "1\n").expect("a file");
    let found = made.rotational(&file, &seen);
    assert_eq!((found.yes, found.disbelieved.as_deref()), (false, Some("vdc")));
    assert!(found.because.ends_with(" says \"1\", as virtio says of most disks"), "{found:?}");

    symlink(made.path("devices/sda"), made.path("devices/dm-0/slaves/sda")).expect("a link");
    let found = made.rotational(&file, &seen);
    assert_eq!((found.yes, found.disbelieved), (true, None), "the other disk says it, too");
}

#[test]
fn partitions_of_one_disk_are_on_one_device() {
    let made = Made::new("0\n", "0\n");
    assert_eq!(made.whole((8, 0)), ["sda"]);
    assert_eq!(made.whole((8, 1)), ["sda"]);
    assert_eq!(made.whole((8, 2)), ["sda"]);
    assert_eq!(made.whole((254, 16)), ["vdb"]);
    assert_eq!(made.whole((0, 42)), [""; 0], "it is not known");
}

/// A logical volume on an encrypted partition, and a mirror of two disks.
#[test]
fn what_stands_on_others_is_on_their_devices() {
    let made = Made::new("0\n", "0\n");
    made.above("253:0", "dm-0", &["sda/sda2"]);
    made.above("253:1", "dm-1", &["dm-0"]);
    made.above("9:0", "md0", &["sda/sda1", "vdb"]);
    assert_eq!(made.whole((253, 1)), ["sda"]);
    assert_eq!(made.whole((9, 0)), ["sda", "vdb"]);
}

#[test]
fn loop_device_is_where_its_file_is() {
    let made = Made::new("0\n", "0\n");
    let image = made.path("image");
    fs::write(&image, "").expect("a file");
    let device = fs::metadata(&image).expect("it is there").dev();
    let number = format!("{}:{}", major(device), minor(device));
    made.device(&number, "nvme0n1", &[]);
    let backing = format!("{}\n", image.display());
    made.device("7:1", "loop1", &[("loop/backing_file", &backing)]);
    made.device("7:2", "loop2", &[("loop/backing_file", "/gone (deleted)\n")]);
    assert_eq!(made.whole((7, 1)), ["nvme0n1"]);
    assert_eq!(made.whole((7, 2)), [""; 0]);
}

#[test]
fn layers_without_end_end() {
    let made = Made::new("0\n", "0\n");
    made.above("253:0", "dm-0", &["sda"]);
    let own = made.path("devices/dm-0/slaves");
    symlink(made.path("devices/dm-0"), own.join("dm-0")).expect("a link");
    assert_eq!(made.whole((253, 0)), ["sda"]);
}

#[test]
fn file_is_on_the_nearest_mount_above_it_and_of_several_there_the_last() {
    let made = Made::new("0\n", "0\n");
    let here = made.path("").canonicalize().expect("it is there");
    let file = here.join("a b/image");
    fs::create_dir(here.join("a b")).expect("a directory");
    fs::write(&file, "").expect("a file");
    let point = here.display();
    let lines = format!(
        "1 0 0:1 / / rw - overlay overlay rw\n\
         2 1 0:2 / {point} rw shared:1 - btrfs /dev/first rw\n\
         3 1 0:3 / {point}/a\\040b rw - btrfs /dev/hidden rw\n\
         4 1 0:4 / {point}/a\\040b rw master:2 shared:3 - btrfs /dev/with\\040space rw,subvol=/\n\
         5 1 0:5 / {point}/a\\040bc rw - btrfs /dev/other rw\n\
         a line that says nothing\n"
    );
    fs::write(&made.sysfs.mounts, lines).expect("a file");
    let source = |path: &Path| made.sysfs.mount_source(path);
    assert_eq!(source(&file), Some("/dev/with space".into()));
    assert_eq!(source(&made.sysfs.mounts), Some("/dev/first".into()));
    assert_eq!(source(Path::new("/proc")), Some("overlay".into()));
    assert_eq!(source(Path::new("/gone")), None);
}
