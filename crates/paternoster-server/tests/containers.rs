//! An image of another format than raw is served, with a notice. The marks are those of the
//! formats' specifications.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use paternoster_server::config::Config;

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
