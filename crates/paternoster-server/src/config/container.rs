//! Images that seem to be containers: files of another format, with a disk inside.
//!
//! A server of raw images serves such a file byte for byte, which nobody wants but by mistake. It
//! is no error: a client may have written the same bytes to its disk. Formats that a client writes
//! for good reasons, as LUKS, are not among these.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A format by the bytes with which its files begin, as its specification has them.
struct Container {
    name: &'static str,
    /// Where the bytes are.
    offset: usize,
    magic: &'static [u8],
    /// How a raw image is made of the file `FROM`.
    remedy: &'static str,
}

impl Container {
    const fn image(name: &'static str, offset: usize, magic: &'static [u8]) -> Self {
        Self { name, offset, magic, remedy: "qemu-img convert -O raw FROM TO" }
    }

    const fn compressed(name: &'static str, magic: &'static [u8], remedy: &'static str) -> Self {
        Self { name, offset: 0, magic, remedy }
    }

    fn matches(&self, head: &[u8]) -> bool {
        head.get(self.offset..).is_some_and(|rest| rest.starts_with(self.magic))
    }
}

const CONTAINERS: [Container; 9] = [
    Container::image("a qcow2 image", 0, b"QFI\xfb"),
    Container::image("a VMDK image", 0, b"KDMV"),
    Container::image("a VMDK descriptor", 0, b"# Disk DescriptorFile"),
    Container::image("a VDI image", 64, b"\x7f\x10\xda\xbe"),
    Container::image("a VHDX image", 0, b"vhdxfile"),
    Container::image("a VHD image", 0, b"conectix"),
    Container::compressed("a file of gzip", b"\x1f\x8b\x08", "gzip -dc FROM > TO"),
    Container::compressed("a file of xz", b"\xfd7zXZ\0", "xz -dc FROM > TO"),
    Container::compressed("a file of zstd", b"\x28\xb5\x2f\xfd", "zstd -dc FROM > TO"),
];

/// The bytes that are looked at.
const HEAD: usize = 128;

/// Returns a notice if the image at `path` begins like a container. What cannot be read is not
/// judged here.
pub(super) fn notice(what: &str, disk: &str, path: &Path) -> Option<String> {
    let mut head = [0; HEAD];
    let read = File::open(path).and_then(|file| file.read_at(&mut head, 0)).ok()?;
    let Container { name, offset, remedy, .. } =
        CONTAINERS.iter().find(|container| container.matches(&head[..read]))?;
    Some(format!(
        "{what} {disk:?}: {} is served byte for byte, as a raw image, but has the mark of {name} \
         at byte {offset}: if that is a mistake, `{remedy}` makes a raw image of it",
        path.display()
    ))
}
