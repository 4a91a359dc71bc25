//! Which contexts of a trace are of which group, as a file says it.
//!
//! ```text
//!   # context   group   weight
//!   21279       /db     300
//!   usr.*       /usr                 a * stands for any characters; 100 where there is no weight
//! ```
//!
//! The first line that names a context counts; a context that no line names is of the root.

use paternoster::Weight;
use thiserror::Error;

use super::recording::Recording;
use crate::group_path::{DEEPEST_GROUP, depth, parent_path};
use crate::sim::GroupSetup;

/// What is wrong with such a file.
#[derive(Debug, Error)]
#[error("line {line}: {what}")]
pub struct GroupFileError {
    line: usize,
    what: String,
}

/// Such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFile {
    rules: Vec<(String, String)>,
    groups: Vec<NamedGroup>,
}

/// A group, with its weight if one was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedGroup {
    path: String,
    weight: Option<Weight>,
}

impl NamedGroup {
    /// As it is simulated: of the weight 100 where none was said.
    pub(super) fn setup(&self) -> GroupSetup {
        let weights = self.weight.unwrap_or_default().into();
        GroupSetup { path: self.path.clone(), weights }
    }
}

impl GroupFile {
    /// Reads the text of one.
    pub fn parse(text: &str) -> Result<Self, GroupFileError> {
        let mut file = Self { rules: Vec::new(), groups: Vec::new() };
        for (line, text) in (1..).zip(text.lines()) {
            // A # within a word is of a name: connections are called gold#3.
            let words = text.split_whitespace().take_while(|word| !word.starts_with('#'));
            let words: Vec<_> = words.collect();
            if !words.is_empty() {
                file.add(&words).map_err(|what| GroupFileError { line, what })?;
            }
        }
        Ok(file)
    }

    fn add(&mut self, words: &[&str]) -> Result<(), String> {
        let (pattern, path, weight) = match *words {
            [pattern, path] => (pattern, path, None),
            [pattern, path, weight] => (pattern, path, Some(weight)),
            _ => return Err(format!("{} words: CONTEXT GROUP [WEIGHT] is allowed", words.len())),
        };
        let number = weight.and_then(|weight| weight.parse().ok()).map(Weight::new);
        let weight = match (weight, number) {
            (None, _) => None,
            (_, Some(Ok(number))) => Some(number),
            (Some(weight), _) => {
                return Err(format!("{weight:?}: a weight of 1 to 1000 is allowed"));
            }
        };
        add_group(&mut self.groups, path, weight)?;
        self.rules.push((pattern.to_owned(), path.to_owned()));
        Ok(())
    }

    /// Gives the contexts of a recording their groups. Returns the patterns that name none.
    pub fn apply(&self, recording: &mut Recording) -> Vec<&str> {
        recording.groups = self.groups.iter().map(NamedGroup::setup).collect();
        let mut used = vec![false; self.rules.len()];
        for context in &mut recording.contexts {
            let rule = self.rules.iter().position(|(pattern, _)| is_like(pattern, &context.name));
            context.group = rule.and_then(|rule| {
                used[rule] = true;
                self.groups.iter().position(|group| group.path == self.rules[rule].1)
            });
        }
        let unused = self.rules.iter().zip(used).filter(|(_, used)| !used);
        unused.map(|((pattern, _), _)| pattern.as_str()).collect()
    }
}

/// Adds a group, after those that it is in.
pub(super) fn add_group(
    groups: &mut Vec<NamedGroup>,
    path: &str,
    weight: Option<Weight>,
) -> Result<(), String> {
    if !path.starts_with('/') || path.ends_with('/') || path.contains("//") {
        return Err(format!("{path:?}: the path of a group is expected, such as /db"));
    }
    let depth = depth(path);
    if depth > DEEPEST_GROUP {
        return Err(format!("a group {depth} deep: 1 to {DEEPEST_GROUP} is allowed"));
    }
    if let Some(known) = groups.iter_mut().find(|group| group.path == path) {
        return match (known.weight, weight) {
            (Some(known), Some(weight)) if weight != known => {
                Err(format!("{path} has the weight {} already", known.value()))
            }
            (known_weight, weight) => {
                known.weight = known_weight.or(weight);
                Ok(())
            }
        };
    }
    let parent = parent_path(path);
    if parent != "/" {
        add_group(groups, parent, None)?;
    }
    groups.push(NamedGroup { path: path.to_owned(), weight });
    Ok(())
}

/// Whether the name is like the pattern: it begins with what is before the first *, ends with what
/// is behind the last, and has what is between them in this order.
fn is_like(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(begin) else { return false };
    let (between, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut name) = name.strip_suffix(end) else { return false };
    for part in between.split('*') {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn star_stands_for_any_characters() {
        for (pattern, name, is) in [
            ("21279", "21279", true),
            ("21279", "2127", false),
            ("usr.*", "usr.0", true),
            ("usr.*", "usr.", true),
            ("*.0", "usr.0", true),
            ("*.0", "usr.01", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("*ab*", "xaby", true),
            ("gold#*", "gold#3", true),
        ] {
            assert_eq!(is_like(pattern, name), is, "{pattern} {name}");
        }
    }

    #[test]
    fn line_that_is_wrong_is_told() {
        let error = |text: &str| GroupFile::parse(text).expect_err("it is wrong").to_string();
        assert_eq!(error("\na\n"), "line 2: 1 words: CONTEXT GROUP [WEIGHT] is allowed");
        assert_eq!(error("a db"), "line 1: \"db\": the path of a group is expected, such as /db");
        assert_eq!(error("a /db 0"), "line 1: \"0\": a weight of 1 to 1000 is allowed");
        assert_eq!(error("a /db 7\nb /db 8"), "line 2: /db has the weight 7 already");
        let deep = format!("a {}", "/x".repeat(100_000));
        assert_eq!(error(&deep), "line 1: a group 100000 deep: 1 to 256 is allowed");
    }

    #[test]
    fn groups_come_after_those_that_they_are_in() {
        let text = "a /x/y 300 # a comment\ngold#3 /x 200\nb /x/y\n# another\n";
        let file = GroupFile::parse(text).expect("it is right");
        let groups = file.groups.iter().map(|it| (it.path.as_str(), it.weight.map(Weight::value)));
        assert_eq!(groups.collect::<Vec<_>>(), [("/x", Some(200)), ("/x/y", Some(300))]);
        assert_eq!(file.rules[1].0, "gold#3");
    }
}
