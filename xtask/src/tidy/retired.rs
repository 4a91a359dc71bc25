//! Words that are no longer used, by retired.toml.
//!
//! A word is found whatever its spelling: `elder brother`, `elder_brother`, `ElderBrother`, and
//! where it is broken at the end of a line of comment or prose. Parts of a longer word are not it:
//! `listed` is not in `enlisted`, but in `is_listed`.

use super::{File, Finding};
use crate::source::code_of;
use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The list.
const PATH: &str = "xtask/src/tidy/retired.toml";

/// What retired.toml says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Retired {
    #[serde(default, rename = "word")]
    words: Vec<Word>,
    #[serde(default, rename = "exception")]
    exceptions: Vec<Exception>,
}

/// A word that is no longer used.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    /// Every form of it, in small letters.
    words: Vec<String>,
    /// What to say instead.
    say: String,
    #[serde(default = "everywhere", rename = "in")]
    places: Vec<Where>,
}

/// A place where a word stays.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    words: Vec<String>,
    /// A file, or a folder with a `/` at its end.
    path: String,
    /// What the line has in it; any line, if nothing is said.
    line: Option<String>,
    reason: String,
}

/// Where a word is no longer used.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Where {
    /// Identifiers in Rust.
    Names,
    /// Comments and literals in Rust.
    Texts,
    /// Markdown.
    Documents,
}

/// A part of a word, and what is between it and the part before.
#[derive(Debug)]
struct Part {
    text: String,
    /// The index of its line.
    line: usize,
    /// Whether it may belong to one word, or phrase, with the part before.
    is_joined: bool,
}

fn everywhere() -> Vec<Where> {
    vec![Where::Names, Where::Texts, Where::Documents]
}

/// The findings in all files.
pub(super) fn check_all(files: &[File]) -> Result<Vec<Finding>> {
    let list = files.iter().find(|file| file.path == PATH);
    let list = list.with_context(|| format!("{PATH} is not among git's files"))?;
    Ok(Retired::parse(&list.text)?.check(files))
}

impl Retired {
    /// Reads the list.
    fn parse(text: &str) -> Result<Self> {
        let retired: Self = toml::from_str(text).context("reading retired.toml")?;
        for word in &retired.words {
            if word.words.is_empty() || word.say.trim().is_empty() {
                bail!("retired.toml: {:?} has no word or nothing to say instead", word.words);
            }
        }
        for exception in &retired.exceptions {
            let is_listed = |word| retired.words.iter().any(|entry| entry.words.contains(word));
            if let Some(word) = exception.words.iter().find(|word| !is_listed(word)) {
                bail!("retired.toml: an exception for {word:?}, which is not retired");
            }
            if exception.reason.trim().is_empty() {
                bail!("retired.toml: {} is excepted without a reason", exception.path);
            }
        }
        Ok(retired)
    }

    /// The words that are used, and the exceptions that are not needed.
    fn check(&self, files: &[File]) -> Vec<Finding> {
        let mut findings = vec![];
        let mut needed = vec![false; self.exceptions.len()];
        for file in files {
            let lines: Vec<_> = file.text.lines().collect();
            for (place, text) in views(file) {
                let parts = parts(&text, place);
                for (word, form, index) in self.used(&parts, place) {
                    let excepts = |exception: &Exception| {
                        exception.words.contains(form) && exception.holds(file, lines[index])
                    };
                    if let Some(at) = self.exceptions.iter().position(excepts) {
                        needed[at] = true;
                    } else {
                        let what = format!("\"{form}\" is retired: say {}", word.say);
                        findings.push(Finding::at(file, index, what));
                    }
                }
            }
        }
        let unneeded = self.exceptions.iter().zip(needed).filter(|(_, needed)| !needed);
        findings.extend(unneeded.map(|(exception, _)| {
            let what =
                format!("retired.toml excepts {:?} here, which is not used", exception.words);
            Finding { path: exception.path.clone(), line: 1, what }
        }));
        findings
    }

    /// The words of the list among `parts`: the entry, the form, the index of the line.
    fn used<'a>(&'a self, parts: &[Part], place: Where) -> Vec<(&'a Word, &'a String, usize)> {
        let mut used = vec![];
        for word in self.words.iter().filter(|word| word.places.contains(&place)) {
            for form in &word.words {
                let split: Vec<_> = form.split([' ', '-', '_']).collect();
                let hits = parts.windows(split.len()).filter(|window| is_form(window, &split));
                used.extend(hits.map(|window| (word, form, window[0].line)));
            }
        }
        used.sort_by_key(|(_, _, line)| *line);
        used
    }
}

impl Exception {
    /// Whether it means this line of this file.
    fn holds(&self, file: &File, line: &str) -> bool {
        let is_here = if self.path.ends_with('/') {
            file.path.starts_with(&self.path)
        } else {
            file.path == self.path
        };
        is_here && self.line.as_ref().is_none_or(|text| line.contains(text.as_str()))
    }
}

fn is_form(window: &[Part], split: &[&str]) -> bool {
    window.iter().zip(split).all(|(part, word)| part.text == *word)
        && window[1..].iter().all(|part| part.is_joined)
}

/// The text of the file by what it is; lines keep their numbers.
fn views(file: &File) -> Vec<(Where, String)> {
    if file.has_extension("md") {
        return vec![(Where::Documents, file.text.clone())];
    }
    if !file.has_extension("rs") {
        return vec![];
    }
    let code = code_of(&file.text);
    // What is code is no text, and keeps the words on its two sides apart.
    let text = file.text.chars().zip(code.chars()).map(|(own, code)| {
        let is_code = code != ' ' && code != '\n';
        if is_code { '\u{1}' } else { own }
    });
    let text = text.collect();
    vec![(Where::Names, code), (Where::Texts, text)]
}

/// The parts of all words, in small letters: `isListed_now` has three.
fn parts(text: &str, place: Where) -> Vec<Part> {
    let chars: Vec<char> = text.chars().collect();
    let mut parts: Vec<Part> = vec![];
    let mut gap = String::from("\u{1}");
    let mut line = 0;
    for (at, &c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            gap.push(c);
            line += usize::from(c == '\n');
            continue;
        }
        let before = at.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(at + 1);
        let is_hump = c.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase())
            });
        match parts.last_mut() {
            Some(part) if gap.is_empty() && !is_hump => part.text.extend(c.to_lowercase()),
            _ => {
                let is_joined = joins(&gap, place);
                parts.push(Part { text: c.to_lowercase().collect(), line, is_joined });
            }
        }
        gap.clear();
    }
    parts
}

/// Whether parts with this between them may be one word or phrase.
fn joins(gap: &str, place: Where) -> bool {
    if ["", "_"].contains(&gap) {
        return true;
    }
    let is_line_end = || gap.contains('\n') && gap.trim_matches(['\n', ' ', '/', '!']).is_empty();
    place != Where::Names && ([" ", "-"].contains(&gap) || is_line_end())
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    const WORDS: &str = "[[word]]\nwords = ['elder brother', 'elder brothers']\nsay = 'candidate'\n\
                         [[word]]\nwords = ['listed']\nsay = 'busy'\nin = ['names']\n";

    fn findings(list: &str, files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| File::new(path, text)).collect();
        told(&Retired::parse(list).expect("the list is valid").check(&files))
    }

    #[test]
    fn list_of_this_project_is_valid() {
        Retired::parse(include_str!("retired.toml")).expect("the list is valid");
    }

    #[test]
    fn retired_word_is_found_in_every_spelling() {
        let text = "/// An elder\n/// brother.\nstruct ElderBrother;\nfn is_elder_brother() {}\n\
                    const ELDER_BROTHERS: &str = \"elder-brother\";\n";
        let found = findings(WORDS, &[("a.rs", text), ("a.md", "The elder brother\n")]);
        let lines: Vec<_> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(lines, ["3", "4", "5", "1", "5", "1"], "{found:?}");
        assert_eq!(found[0], "3: \"elder brother\" is retired: say candidate");
    }

    #[test]
    fn other_words_are_not_found() {
        let text = "fn enlisted() { elder(brother) } // the elder. Brother, elder (brother)\n\
                    let elder = 1; brother();\n";
        assert_eq!(findings(WORDS, &[("a.rs", text), ("a.md", "| elder | brother |")]), [""; 0]);
    }

    #[test]
    fn word_is_refused_only_where_the_list_says() {
        let text = "// It is listed.\nfn is_listed() {}\n";
        let found = findings(WORDS, &[("a.rs", text), ("a.md", "As listed.")]);
        assert_eq!(found, ["2: \"listed\" is retired: say busy"]);
    }

    #[test]
    fn exception_holds_for_its_place_alone_and_has_to_be_needed() {
        let except = |rest: &str| {
            format!("{WORDS}[[exception]]\nwords = ['listed']\nreason = 'a name in JSON'\n{rest}")
        };
        let files = [("a/b.rs", "fn listed() {}\nlet listed = 1;\n"), ("a/c.rs", "let x = 1;")];
        assert_eq!(findings(WORDS, &files).len(), 2);
        assert_eq!(findings(&except("path = 'a/b.rs'"), &files), [""; 0]);
        assert_eq!(findings(&except("path = 'a/'"), &files), [""; 0]);
        let one = findings(&except("path = 'a/b.rs'\nline = 'let '"), &files);
        assert_eq!(one, ["1: \"listed\" is retired: say busy"]);
        let other = findings(&except("path = 'a/c.rs'"), &files);
        assert_eq!(other.len(), 3, "both, and an exception that is not needed: {other:?}");
    }

    #[test]
    fn list_that_says_too_little_is_refused() {
        for list in [
            "[[word]]\nwords = []\nsay = 'a'",
            "[[word]]\nwords = ['a']\nsay = ' '",
            "[[word]]\nwords = ['a']\nsay = 'b'\nin = ['nowhere']",
            "[[exception]]\nwords = ['a']\npath = 'b'\nreason = 'c'",
            "[[word]]\nwords = ['a']\nsay = 'b'\n\
             [[exception]]\nwords = ['a']\npath = 'b'\nreason = ''",
        ] {
            assert!(Retired::parse(list).is_err(), "{list}");
        }
    }
}
