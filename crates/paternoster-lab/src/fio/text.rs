//! A piece of a job file that knows where it stands, so that a mistake in it can be pointed at.

use std::sync::Arc;

use super::error::{Mistake, Place};

/// A piece of a line.
#[derive(Clone, Debug)]
pub(super) struct Text {
    said: String,
    place: Place,
    /// A variable was replaced in it, so that no place in it is a place in the file.
    is_expanded: bool,
    /// The variables in it that are not set.
    unset: Vec<String>,
}

impl Text {
    /// A whole line.
    pub(super) fn line(file: &Arc<str>, line: u32, text: &str) -> Self {
        Self::at(Place { file: Arc::clone(file), line, column: 1, argument: None }, text)
    }

    /// A whole argument of a command line, of that number.
    pub(super) fn argument(number: u32, text: &str) -> Self {
        let (file, argument) = (Arc::from("the command line"), Some(Arc::from(text)));
        Self::at(Place { file, line: number, column: 1, argument }, text)
    }

    fn at(place: Place, text: &str) -> Self {
        Self { said: text.to_owned(), place, is_expanded: false, unset: vec![] }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.said
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(super) fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// A mistake that this piece is.
    pub(super) fn mistake(&self, what: impl Into<String>) -> Mistake {
        Mistake { place: self.place.clone(), what: what.into() }
    }

    /// The piece from byte `start` to byte `end`, both at the border of a character.
    pub(super) fn part(&self, start: usize, end: usize) -> Self {
        let mut place = self.place.clone();
        if !self.is_expanded {
            let skipped = self.said[..start].chars().count();
            place.column = place.column.saturating_add(u32::try_from(skipped).unwrap_or(u32::MAX));
        }
        Self {
            said: self.said[start..end].to_owned(),
            place,
            is_expanded: self.is_expanded,
            unset: self.unset.clone(),
        }
    }

    /// The piece from byte `start` on.
    pub(super) fn from(&self, start: usize) -> Self {
        self.part(start, self.said.len())
    }

    /// It without white space at both ends.
    pub(super) fn trim(&self) -> Self {
        let start = self.said.len() - self.said.trim_start().len();
        self.part(start, start + self.said[start..].trim_end().len())
    }

    /// What stands before and behind the first `separator`.
    pub(super) fn split_once(&self, separator: impl Fn(char) -> bool) -> Option<(Self, Self)> {
        let (at, found) = self.said.char_indices().find(|&(_, c)| separator(c))?;
        Some((self.part(0, at), self.from(at + found.len_utf8())))
    }

    /// The pieces between the `separator`s: one more than there are of those.
    pub(super) fn split(&self, separator: char) -> Vec<Self> {
        let mut pieces = vec![];
        let mut rest = self.clone();
        while let Some((piece, behind)) = rest.split_once(|c| c == separator) {
            pieces.push(piece);
            rest = behind;
        }
        pieces.push(rest);
        pieces
    }

    /// The words between white space.
    pub(super) fn words(&self) -> Vec<Self> {
        let mut words = vec![];
        let mut rest = self.trim();
        while let Some((word, behind)) = rest.split_once(char::is_whitespace) {
            words.push(word);
            rest = behind.trim();
        }
        if !rest.is_empty() {
            words.push(rest);
        }
        words
    }

    /// It with each `${NAME}` replaced by what `variable` knows of it, or by nothing.
    pub(super) fn expand(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Mistake> {
        let mut expanded = String::new();
        let mut unset = vec![];
        let mut rest = self.clone();
        while let Some(start) = rest.said.find("${") {
            let name = rest.from(start + 2);
            let Some((name, behind)) = name.split_once(|c| c == '}') else {
                return Err(rest.from(start).mistake("\"${\" without the \"}\" that ends a name"));
            };
            expanded += &rest.said[..start];
            match variable(name.as_str()) {
                Some(value) => expanded += &value,
                None => unset.push(name.as_str().to_owned()),
            }
            rest = behind;
        }
        expanded += &rest.said;
        let is_expanded = self.is_expanded || expanded != self.said;
        Ok(Self { said: expanded, place: self.place.clone(), is_expanded, unset })
    }

    /// The variables in it that are not set, so that nothing stands for them.
    pub(super) fn unset(&self) -> &[String] {
        &self.unset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Text {
        Text::line(&Arc::from("a.fio"), 3, text)
    }

    #[test]
    fn part_knows_its_column_in_characters() {
        let pieces = text("é=ü/4k:8k").split(':');
        let told: Vec<_> = pieces.iter().map(|p| (p.as_str(), p.place().column)).collect();
        assert_eq!(told, [("é=ü/4k", 1), ("8k", 8)]);
        let words: Vec<_> = text("  a  é b ").words();
        let told: Vec<_> = words.iter().map(|p| (p.as_str(), p.place().column)).collect();
        assert_eq!(told, [("a", 3), ("é", 6), ("b", 8)]);
    }

    #[test]
    fn part_of_an_expanded_text_points_at_the_text() {
        let expanded = text("${A}k:${B}").expand(&|name| (name == "A").then(|| "16".to_owned()));
        let pieces = expanded.expect("both names end").split(':');
        let told: Vec<_> = pieces.iter().map(|p| (p.as_str(), p.place().column)).collect();
        assert_eq!(told, [("16k", 1), ("", 1)]);
    }

    #[test]
    fn variable_that_does_not_end_is_pointed_at() {
        let mistake = text("4k:${A").expand(&|_| None).expect_err("it does not end");
        assert_eq!(mistake.place.to_string(), "a.fio:3:4");
    }
}
