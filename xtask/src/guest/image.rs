//! The guest's file system in memory: programs with their libraries, modules and scripts, as an
//! archive of cpio's format "newc", which the kernel unpacks.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A regular file that anybody may run.
const PROGRAM: u32 = 0o100_755;
/// A directory.
const DIRECTORY: u32 = 0o040_755;

/// An archive that grows.
pub(super) struct Image {
    bytes: Vec<u8>,
    /// What is in it.
    paths: BTreeSet<PathBuf>,
}

impl Image {
    /// Nothing is in it.
    pub(super) fn new() -> Self {
        Self { bytes: Vec::new(), paths: BTreeSet::new() }
    }

    /// Adds a file and the directories above it, unless it is there.
    pub(super) fn add(&mut self, path: &str, content: &[u8]) {
        self.add_entry(Path::new(path), PROGRAM, content);
    }

    /// Adds an empty directory.
    pub(super) fn add_directory(&mut self, path: &str) {
        self.add_entry(Path::new(path), DIRECTORY, &[]);
    }

    /// Adds a program of this machine as `/bin/NAME`, without what only debuggers read, and the
    /// libraries that it loads.
    pub(super) fn add_program(&mut self, name: &str, program: &Path) -> Result<()> {
        let ldd = Command::new("ldd").arg(program).output().context("ldd does not start")?;
        for library in libraries(&String::from_utf8_lossy(&ldd.stdout)) {
            let content = fs::read(library).with_context(|| library.to_owned())?;
            self.add(library, &content);
        }
        let stripped = tempfile::NamedTempFile::new().context("a temporary file")?;
        let mut strip = Command::new("strip");
        let strip = strip.arg("-o").arg(stripped.path()).arg(program).status();
        ensure!(strip.context("strip does not start")?.success(), "strip {}", program.display());
        self.add(&format!("/bin/{name}"), &fs::read(stripped.path())?);
        Ok(())
    }

    /// The archive with its end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.put("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn add_entry(&mut self, path: &Path, mode: u32, content: &[u8]) {
        if !self.paths.insert(path.to_owned()) {
            return;
        }
        let above = path.parent().filter(|above| above.parent().is_some());
        if let Some(above) = above {
            self.add_entry(above, DIRECTORY, &[]);
        }
        let path = path.display().to_string();
        self.put(path.trim_start_matches('/'), mode, content);
    }

    /// Appends an entry: thirteen numbers of eight hexadecimal digits, the name, the content; name
    /// and content are filled up to four bytes.
    fn put(&mut self, name: &str, mode: u32, content: &[u8]) {
        let number = self.paths.len();
        let (len, name_len) = (content.len(), name.len() + 1);
        let header = format!(
            "070701{number:08x}{mode:08x}{:08x}{:08x}{:08x}{:08x}{len:08x}{:08x}{:08x}{:08x}{:08x}\
             {name_len:08x}{:08x}",
            0, 0, 1, 0, 0, 0, 0, 0, 0
        );
        self.bytes.extend(header.bytes());
        self.bytes.extend(name.bytes().chain([0]));
        self.fill();
        self.bytes.extend(content);
        self.fill();
    }

    fn fill(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// The paths in what ldd says: `NAME => PATH (ADDRESS)` or `PATH (ADDRESS)`.
fn libraries(ldd: &str) -> impl Iterator<Item = &str> {
    ldd.split_whitespace().filter(|word| word.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_has_each_file_once_below_its_directories() {
        let mut image = Image::new();
        image.add("/a/b/c", b"hello");
        image.add("/a/b/c", b"again");
        image.add_directory("/a/d");
        let archive = image.finish();
        assert_eq!(archive.len() % 4, 0);
        let text = String::from_utf8_lossy(&archive);
        let names = text.split("070701").skip(1).map(|entry| {
            let name = &entry[104..];
            &name[..name.find('\0').expect("a name ends")]
        });
        assert_eq!(names.collect::<Vec<_>>(), ["a", "a/b", "a/b/c", "a/d", "TRAILER!!!"]);
        assert!(text.contains("hello") && !text.contains("again"));
    }

    #[test]
    fn libraries_are_the_paths_that_ldd_names() {
        let ldd =
            "\tlinux-vdso.so.1 (0x7)\n\tlibc.so.6 => /lib/libc.so.6 (0x7)\n\t/lib64/ld.so (0x7)";
        assert_eq!(libraries(ldd).collect::<Vec<_>>(), ["/lib/libc.so.6", "/lib64/ld.so"]);
        assert_eq!(libraries("\tnot a dynamic executable").count(), 0);
    }
}
