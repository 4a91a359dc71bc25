//! What is said of images that are served all the same: one of another format than raw, and two on
//! one device. The marks are those of the formats' specifications.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use paternoster_disk::devices_of;
use paternoster_server::Server;
use paternoster_server::config::Config;
use paternoster_server::ctl::Control as _;
use paternoster_server::stat::Detail;

/// The notices about a disk whose image has these bytes at `offset`, and else only zeroes.
fn notices(dir: &Path, bytes: &[u8], offset: u64) -> Vec<String> {
    let file = File::create(dir.join("disk.img")).expect("an image");
    file.set_len(1 << 20).and_then(|()| file.write_all_at(bytes, offset)).expect("it is written");
    let toml = "[disks.d]\npath = \"disk.img\"\n[exports.a]\ndisk = \"d\"\n";
    Config::from_toml(toml, &dir.join("test.toml")).expect("it is allowed").notices()
}

#[test]
fn notice_names_the_disk_the_image_the_format_and_the_remedy() {
    let dir = tempfile::tempdir().expect("a directory");
    let expected = format!(
        "disk \"d\": {} is served byte for byte, as a raw image, but has the mark of a qcow2 image \
         at byte 0: if that is a mistake, `qemu-img convert -O raw FROM TO` makes a raw image \
         of it",
        dir.path().join("disk.img").display()
    );
    assert_eq!(notices(dir.path(), b"QFI\xfb\0\0\0\x03", 0), [expected]);
}

#[test]
fn every_container_is_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    let vdi = 0xbeda_107f_u32.to_le_bytes();
    let marks: [(&str, &[u8], u64); 8] = [
        ("VMDK image", b"KDMV", 0),
        ("VMDK descriptor", b"# Disk DescriptorFile\nversion=1\n", 0),
        ("VDI image", &vdi, 64),
        ("VHDX image", b"vhdxfile", 0),
        ("VHD image", b"conectix", 0),
        ("file of gzip", b"\x1f\x8b\x08", 0),
        ("file of xz", b"\xfd7zXZ\0", 0),
        ("file of zstd", &0xfd2f_b528_u32.to_le_bytes(), 0),
    ];
    for (name, mark, offset) in marks {
        let notices = notices(dir.path(), mark, offset).concat();
        assert!(notices.contains(&format!("the mark of a {name} at byte {offset}: ")), "{notices}");
    }
}

/// Nothing, a boot sector, LUKS, with which a client may encrypt its disk, and a mark elsewhere.
#[test]
fn what_clients_write_to_their_disks_is_not_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    let raw: [(&[u8], u64); 4] =
        [(b"", 0), (b"\x55\xaa", 510), (b"LUKS\xba\xbe", 0), (b"QFI\xfb", 512)];
    for (bytes, offset) in raw {
        assert_eq!(notices(dir.path(), bytes, offset), [""; 0], "{bytes:?}");
    }
}

/// Both are in one directory, so on one device, whichever that is. On a file system that is on none
/// nothing is said.
#[test]
fn two_images_on_one_device_are_told_with_it_at_the_start_and_in_stat() {
    let dir = tempfile::tempdir().expect("a directory");
    let image = |name: &str| {
        let file = File::create(dir.path().join(name)).expect("an image");
        file.set_len(1 << 20).expect("room for it");
        dir.path().join(name)
    };
    let [path, _] = ["a.img", "b.img"].map(image);
    let toml = "unix = \"nbd.sock\"\n[disks.a]\npath = \"a.img\"\n[disks.b]\npath = \"b.img\"\n\
                [disks.m]\nbackend = \"memory\"\nsize = \"1M\"\n\
                [exports.a]\ndisk = \"a\"\n[exports.b]\ndisk = \"b\"\n[exports.m]\ndisk = \"m\"\n";
    let config = Config::from_toml(toml, &dir.path().join("test.toml")).expect("it is allowed");
    let devices: Vec<_> = devices_of(&path).into_iter().collect();
    let expected = match &devices[..] {
        [] => None,
        on => Some(format!(
            "disks \"a\" and \"b\" are on the same device ({}): a weight holds on each for \
             itself",
            on.join(" and ")
        )),
    };
    let says = |said: &[String]| match &expected {
        None => said.is_empty(),
        Some(start) => said.len() == 1 && said[0].starts_with(start),
    };
    let notices = config.notices();
    assert!(says(&notices), "{notices:?}");
    let server = Server::start(&config).expect("it starts");
    let stat = server.control().stat(Detail::Groups).expect("every disk answers");
    let [a, b, m] = &stat.disks[..] else { panic!("{stat:?}") };
    for disk in [a, b] {
        let shared = disk.warnings.iter().filter(|said| said.starts_with("disks "));
        assert!(says(&shared.cloned().collect::<Vec<_>>()), "{:?}", disk.warnings);
        assert_eq!(disk.devices, Some(devices.iter().cloned().collect()));
    }
    assert_eq!((&m.devices, m.warnings.len()), (&None, 0));
    server.shut_down().expect("it ends well");
}
