//! The configurations that README.md and the pages of docs/ show are ones that the server takes.

use std::fs::{self, File};
use std::path::Path;

use paternoster_server::config::Config;

/// A page, with the disk image that it has one make.
struct Page {
    name: &'static str,
    text: String,
    dir: tempfile::TempDir,
}

impl Page {
    fn new(name: &'static str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        let text = fs::read_to_string(path).expect("the repository has the page");
        let dir = tempfile::tempdir().expect("a temporary directory");
        // truncate -s 2G disk0.img
        let image = File::create(dir.path().join("disk0.img"));
        image.and_then(|image| image.set_len(2 << 30)).expect("a file with holes");
        Self { name, text, dir }
    }

    /// What stands between each `begin` and the `end` that follows it.
    fn between(&self, begin: &str, end: &str) -> Vec<&str> {
        let after = self.text.split(begin).skip(1);
        after.map(|rest| rest.split_once(end).expect("it ends").0).collect()
    }

    fn read(&self, toml: &str) -> Result<Config, String> {
        let image = self.dir.path().join("disk0.img");
        let toml = toml.replace("disk0.img", image.to_str().expect("UTF-8"));
        // Sockets are looked for in the directory of the file: here, the current one.
        let name = self.name.replace('/', "-");
        Config::from_toml(&toml, Path::new(&name)).map_err(|error| error.to_string())
    }
}

/// The block of nested groups had exports that overlapped with those of the block before.
#[test]
fn each_block_of_toml_works_when_pasted_under_those_before_it() {
    let page = Page::new("docs/serving.md");
    let mut blocks = page.between(".toml <<'END'\n", "\nEND\n");
    blocks.extend(page.between("```toml\n", "\n```"));
    assert!(blocks.len() >= 2, "a configuration that a command writes, and nested groups");
    for count in 1..=blocks.len() {
        let config = page.read(&blocks[..count].join("\n"));
        config.unwrap_or_else(|error| panic!("the first {count} blocks: {error}"));
    }
}

#[test]
fn configurations_that_a_command_writes_work() {
    for name in ["docs/serving.md", "docs/tuning.md"] {
        let page = Page::new(name);
        let written = page.between(".toml <<'END'\n", "\nEND\n");
        assert!(!written.is_empty(), "{name} has a command that writes one");
        for toml in written {
            page.read(toml).unwrap_or_else(|error| panic!("{name}: {error}:\n{toml}"));
        }
    }
}
