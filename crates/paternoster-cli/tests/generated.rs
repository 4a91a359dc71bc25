//! Manual pages and completions say all that `--help` does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A subcommand, and the options that its help lists.
#[derive(Debug)]
struct Told {
    /// Its words after `paternoster`.
    path: Vec<String>,
    options: BTreeSet<String>,
}

fn run(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster"));
    let output = command.args(args).output().expect("the binary runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What `--help` tells of the program and of every subcommand below.
fn told() -> Vec<Told> {
    let mut all = Vec::new();
    let mut left = vec![Vec::new()];
    while let Some(path) = left.pop() {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = run(&args);
        for name in subcommands(&help) {
            left.push(path.iter().cloned().chain([name.to_owned()]).collect());
        }
        all.push(Told { path, options: options(&help) });
    }
    all
}

/// The names under "Commands:", but for `help`.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let section = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let section = section.take_while(|line| line.starts_with("  "));
    let named = section.filter(|line| !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
}

/// The long options at the head of a line.
fn options(help: &str) -> BTreeSet<String> {
    let heads = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = heads.flat_map(|line| line.split([' ', ',', '=', '[']).take(3));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn help_lists_what_the_other_tests_look_for() {
    let all = told();
    let has = |path: &[&str], option: &str| {
        let found = all.iter().find(|told| told.path == path);
        found.is_some_and(|told| told.options.contains(option))
    };
    assert!(has(&[], "--version"), "{all:?}");
    assert!(has(&["serve"], "--export") && has(&["serve"], "--check"), "{all:?}");
    assert!(has(&["ctl", "weight"], "--leaf") && has(&["ctl", "stat"], "--blkio"), "{all:?}");
}

#[test]
fn manual_has_a_page_for_every_subcommand_with_every_option() {
    let dir = tempfile::tempdir().expect("a directory");
    let pages = dir.path().join("man1");
    run(&["man", pages.to_str().expect("UTF-8")]);
    let all = told();
    for Told { path, options } in &all {
        let name = [&["paternoster".to_owned()], &path[..]].concat().join("-");
        let page = page(&pages, &name);
        let title = format!(".TH {name} 1");
        assert!(page.contains(&title), "{name}: no line {title:?}");
        for option in options {
            assert!(page.contains(option.as_str()), "{name}: nothing of {option}:\n{page}");
        }
    }
    let written = fs::read_dir(&pages).expect("the folder").count();
    assert_eq!(written, all.len(), "pages, of which each is a subcommand's");
}

/// A page, as a reader sees its words.
fn page(dir: &Path, name: &str) -> String {
    let path = dir.join(format!("{name}.1"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}.1: {error}"));
    text.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "").replace("\\fI", "")
}

#[test]
fn completions_know_every_subcommand_and_option() {
    let all = told();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completions", shell]);
        for Told { path, options } in &all {
            for name in path {
                assert!(script.contains(name.as_str()), "{shell}: nothing of {name}");
            }
            // Clap makes two levels for fish, as `completions --help` says.
            let is_too_deep = shell == "fish" && path.len() > 2;
            for option in options.iter().filter(|_| !is_too_deep) {
                // Fish has the name without its dashes.
                let spelled = match shell {
                    "fish" => format!("-l {}", option.trim_start_matches('-')),
                    _ => option.clone(),
                };
                assert!(script.contains(&spelled), "{shell}: nothing of {spelled} of {path:?}");
            }
        }
    }
}

#[test]
fn completions_of_bash_complete() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("completions"), run(&["completions", "bash"])).expect("a file");
    let script = "set -e; . ./completions; COMP_WORDS=(paternoster serve --che); COMP_CWORD=2; \
                  _paternoster paternoster --che serve; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", script]).current_dir(dir.path()).output();
    let output = output.expect("bash, which Debian always has, runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--check\n", "{output:?}");
}
