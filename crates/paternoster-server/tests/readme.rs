//! The configurations that README.md shows are ones that the server takes.

use std::fs::{self, File};
use std::path::Path;

use paternoster_server::config::Config;

/// README.md, with the disk image that it has one make.
struct Readme {
    text: String,
    dir: tempfile::TempDir,
}

impl Readme {
    fn new() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
        let text = fs::read_to_string(path).expect("the repository has a README.md");
        let dir = tempfile::tempdir().expect("a temporary directory");
        // truncate -s 2G disk0.img
        let image = File::create(dir.path().join("disk0.img"));
        image.and_then(|image| image.set_len(2 << 30)).expect("a file with holes");
        Self { text, dir }
    }

    /// What stands between each `begin` and the `end` that follows it.
    fn between(&self, begin: &str, end: &str) -> Vec<&str> {
        let after = self.text.split(begin).skip(1);
        after.map(|rest| rest.split_once(end).expect("it ends").0).collect()
    }

    fn read(&self, toml: &str) -> Result<Config, String> {
        let image = self.dir.path().join("disk0.img");
        let toml = toml.replace("disk0.img", image.to_str().expect("UTF-8"));
        Config::from_toml(&toml, Path::new("README.md")).map_err(|error| error.to_string())
    }
}

/// The block of nested groups had exports that overlapped with those of the block before.
#[test]
fn each_block_of_toml_works_when_pasted_under_those_before_it() {
    let readme = Readme::new();
    let blocks = readme.between("```toml\n", "\n```");
    assert!(blocks.len() >= 2, "a configuration, and nested groups");
    for count in 1..=blocks.len() {
        let config = readme.read(&blocks[..count].join("\n"));
        config.unwrap_or_else(|error| panic!("the first {count} blocks: {error}"));
    }
}

#[test]
fn configurations_that_a_command_writes_work() {
    let readme = Readme::new();
    let written = readme.between(".toml <<'END'\n", "\nEND\n");
    assert!(!written.is_empty(), "one shows how CFQ is tuned");
    for toml in written {
        readme.read(toml).unwrap_or_else(|error| panic!("{error}:\n{toml}"));
    }
}
