//! The words and signs of a DiskSim parameter file. A `#` begins a comment, to the end of the line.

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    /// A word, or one of the signs `{ } [ ] , =`.
    pub(super) text: &'t str,
    /// Its first byte.
    pub(super) at: usize,
}

impl Token<'_> {
    /// Whether it is a sign.
    pub(super) fn is_sign(&self) -> bool {
        self.text.len() == 1 && self.text.chars().all(is_sign)
    }
}

fn is_sign(c: char) -> bool {
    matches!(c, '{' | '}' | '[' | ']' | ',' | '=')
}

/// The tokens of `text`.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if c == '#' {
            while rest.next_if(|&(_, c)| c != '\n').is_some() {}
        } else if is_sign(c) {
            tokens.push(Token { text: &text[at..=at], at });
        } else if !c.is_whitespace() {
            let ends = |c: char| c.is_whitespace() || c == '#' || is_sign(c);
            while rest.next_if(|&(_, c)| !ends(c)).is_some() {}
            let end = rest.peek().map_or(text.len(), |&(end, _)| end);
            tokens.push(Token { text: &text[at..end], at });
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_signs_are_apart_and_comments_are_gone() {
        let texts: Vec<_> =
            tokens("a{b c=1.5, # no } here\n[é]}#").iter().map(|t| t.text).collect();
        assert_eq!(texts, ["a", "{", "b", "c", "=", "1.5", ",", "[", "é", "]", "}"]);
    }

    #[test]
    fn token_is_where_it_says() {
        let text = "x = [ word ]";
        assert!(tokens(text).iter().all(|t| text[t.at..].starts_with(t.text)));
    }
}
