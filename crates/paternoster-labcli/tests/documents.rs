//! What docs/ tells people to type runs, and what is packaged is valid.
//!
//! Every `sh` block of a page runs, in the order of the page, in one shell and an empty folder. A
//! block that needs more has a line `<!-- needs: WHAT -->` right above it, and is only parsed.
//! Every `toml` block is a file that `serve` accepts.
//!
//! The shell stops at the first command that fails; in `a && b` only `b` counts, so pages have one
//! command a line.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_paternoster-lab");

/// Where images and sockets of a service are, in the documents.
const FOLDERS: [&str; 2] = ["/var/lib/paternoster/", "/run/paternoster/"];

/// A fenced block.
#[derive(Debug, Default)]
struct Block {
    /// The line of its first line, from 1.
    line: usize,
    /// What stands behind the opening fence.
    language: String,
    text: String,
    /// What it needs beside an empty folder.
    needs: Option<String>,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages of docs/, each by its name and its blocks.
fn pages() -> Vec<(String, Vec<Block>)> {
    let entries = fs::read_dir(repository().join("docs")).expect("docs/");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let pages = paths.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let read = pages.map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, blocks(&fs::read_to_string(&path).expect("a page")))
    });
    read.collect()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                let needs = before.strip_prefix("<!-- needs: ");
                let needs = needs.map(|needs| needs.trim_end_matches(" -->").to_owned());
                let language = language.to_owned();
                open = Some(Block { line: index + 2, language, text: String::new(), needs });
            }
            (Some(block), None) => writeln!(block.text, "{line}").expect("a string takes it"),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, None) => {}
        }
        before = line;
    }
    assert!(open.is_none(), "a block has no end: {open:?}");
    blocks
}

/// Runs a script by bash in `dir`, for two minutes at most, with the program in its `PATH`.
fn bash(dir: &Path, script: &str) -> Output {
    let bin = Path::new(BINARY).parent().expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", "120", "bash", "-c", script]).current_dir(dir);
    // Root's default place is that of a server which may run here.
    command.env("PATERNOSTER_CTL", dir.join("ctl.sock"));
    command.env("PATH", path).output().expect("timeout and bash, which Debian always has, run")
}

#[test]
fn blocks_of_the_pages_run_in_their_order() {
    for (page, blocks) in pages() {
        let shell = blocks.iter().filter(|block| block.language == "sh");
        let runnable: Vec<_> = shell.filter(|block| block.needs.is_none()).collect();
        if runnable.is_empty() {
            continue;
        }
        // Whatever a failure leaves running ends with the script.
        let mut script = "set -eu; trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n".to_owned();
        for block in &runnable {
            writeln!(script, "echo docs/{page}:{} >&2\n{}", block.line, block.text)
                .expect("a string takes it");
        }
        script.push_str("echo all of them ran >&2\n");
        let dir = TempDir::new().expect("a directory");
        let output = bash(dir.path(), &script);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}; the last place is where:\n{said}", output.status);
        assert!(said.ends_with("all of them ran\n"), "{said}");
    }
}

/// Without fuse3, `nbdfuse` ended at once, and the block that had started it waited for its file
/// for ever; likewise for the URIs of a server that did not start.
#[test]
fn loop_that_waits_for_a_program_ends_with_it() {
    let mut loops = 0;
    for (page, blocks) in pages() {
        for block in blocks.iter().filter(|block| block.language == "sh") {
            for line in block.text.lines().filter(|line| line.starts_with("until ")) {
                let ends = line.contains(" || ! kill -0 $");
                assert!(ends, "docs/{page}:{} waits for ever: {line}", block.line);
                loops += 1;
            }
        }
    }
    assert!(loops >= 5, "{loops} loops were found");
}

#[test]
fn blocks_that_cannot_run_here_say_what_they_need_and_parse() {
    let dir = TempDir::new().expect("a directory");
    let mut parsed = 0;
    for (page, blocks) in pages() {
        for block in blocks.iter().filter(|block| block.language == "sh") {
            let Some(needs) = &block.needs else { continue };
            let place = format!("docs/{page}:{}", block.line);
            assert!(!needs.trim().is_empty(), "{place} does not say what it needs");
            fs::write(dir.path().join("block"), &block.text).expect("a file");
            let output = bash(dir.path(), "bash -n block");
            assert!(output.status.success(), "{place}: {output:?}");
            parsed += 1;
        }
    }
    assert!(parsed >= 5, "{parsed} blocks were found");
}

/// Makes the images of a configuration: those of disks, and in the directory of its pool those of
/// volumes.
fn make_images(dir: &Path, configuration: &str) {
    let make = |path: &Path| {
        let image = File::create(path).expect("an image");
        image.set_len(64 << 30).expect("room for it, as a hole");
    };
    let (mut table, mut pool) = ("", dir.to_owned());
    for line in configuration.lines() {
        let path = line.strip_prefix("path = \"").and_then(|path| path.split('"').next());
        match path {
            Some(path) if table.starts_with("[pools.") => {
                pool = dir.join(path);
                fs::create_dir(&pool).expect("a directory");
            }
            Some(path) => make(&pool.join(path)),
            None if line.starts_with('[') => table = line,
            None => {}
        }
        if let Some((volume, _)) = line.strip_prefix("[volumes.").and_then(|at| at.split_once(']'))
        {
            make(&pool.join(format!("{volume}.img")));
        }
    }
}

#[test]
fn configurations_of_the_pages_are_valid() {
    let mut checked = 0;
    for (page, blocks) in pages() {
        for block in blocks.iter().filter(|block| block.language == "toml") {
            let dir = TempDir::new().expect("a directory");
            let here = format!("{}/", dir.path().display());
            let text = FOLDERS.iter().fold(block.text.clone(), |text, at| text.replace(at, &here));
            make_images(dir.path(), &text);
            fs::write(dir.path().join("c.toml"), &text).expect("a file");
            // Of the server, or of a device.
            let is_device = block.text.starts_with("kind = ");
            let sim = "paternoster-lab sim --device c.toml -- --name=j --rw=read --size=4k";
            let check = if is_device { sim } else { "paternoster serve --check c.toml" };
            let output = bash(dir.path(), check);
            assert!(output.status.success(), "docs/{page}:{}: {output:?}", block.line);
            checked += 1;
        }
    }
    assert!(checked >= 1, "{checked} files were found");
}

/// The unit in a folder of its own, with this program, which verification looks for.
fn unit() -> TempDir {
    let unit = repository().join("packaging/systemd/paternoster.service");
    let unit = fs::read_to_string(unit).expect("the unit");
    assert!(unit.contains("ExecStart=/usr/local/bin/paternoster serve"), "{unit}");
    let dir = TempDir::new().expect("a directory");
    let unit = unit.replace("/usr/local/bin/paternoster", BINARY);
    fs::write(dir.path().join("paternoster.service"), unit).expect("a file");
    dir
}

/// What systemd-analyze has against the unit; nothing is good.
fn analyze(dir: &TempDir, arguments: &str) -> (bool, String) {
    let output = bash(dir.path(), &format!("systemd-analyze {arguments} ./paternoster.service"));
    let found = output.status.code() != Some(127);
    assert!(found, "systemd-analyze does not start: install the Debian package systemd");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn unit_of_systemd_is_verified() {
    let dir = unit();
    assert_eq!(analyze(&dir, "verify --man=no"), (true, String::new()));
    // It only warns of a key that it does not know.
    let path = dir.path().join("paternoster.service");
    let text = fs::read_to_string(&path).expect("the unit");
    fs::write(&path, text.replace("NoNewPrivileges", "NoNewPriviledges")).expect("a file");
    let (_, said) = analyze(&dir, "verify --man=no");
    assert!(said.contains("NoNewPriviledges"), "a wrong key is not noticed: {said}");
}

#[test]
fn unit_of_systemd_leaves_the_server_little_to_do_harm_with() {
    // Exposure from 0 to 100; a unit without any of it has 96.
    let (is_below, said) = analyze(&unit(), "security --offline=true --threshold=15 --no-pager");
    assert!(is_below, "{said}");
}
