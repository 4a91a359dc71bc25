//! Rust text with its comments and literals blanked, so that words can be looked for in code only.

/// `text` with every character of a comment or a string or character literal made a space.
///
/// Newlines stay, so lines keep their numbers.
pub(crate) fn code_of(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let len = blank_len(&chars, at);
        if len == 0 {
            code.push(chars[at]);
            at += 1;
            continue;
        }
        let end = chars.len().min(at + len);
        code.extend(chars[at..end].iter().map(|&c| if c == '\n' { c } else { ' ' }));
        at = end;
    }
    code
}

/// The words of `line` of code: identifiers, keywords, numbers.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

/// Whether `c` may stand in an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the comment or literal that starts at `at`; 0 where none does.
fn blank_len(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => line_len(&chars[at..]),
        '/' if next == Some('*') => block_comment_len(&chars[at..]),
        '"' => string_len(&chars[at..]),
        '\'' => char_len(&chars[at..]),
        'r' if !starts_inside_word(chars, at) => raw_string_len(&chars[at..]),
        _ => 0,
    }
}

/// Whether the character before `at` belongs to the same word; the `b` of a `br"…"` does not count.
fn starts_inside_word(chars: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|index| chars[index]);
    match before(1) {
        Some('b' | 'c') => before(2).is_some_and(is_word),
        Some(c) => is_word(c),
        None => false,
    }
}

/// Up to the end of the line.
fn line_len(chars: &[char]) -> usize {
    chars.iter().position(|&c| c == '\n').unwrap_or(chars.len())
}

/// Up to the end of a block comment, which may hold others.
fn block_comment_len(chars: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at + 1 < chars.len() {
        match (chars[at], chars[at + 1]) {
            ('/', '*') => (depth, at) = (depth + 1, at + 2),
            ('*', '/') => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    chars.len()
}

/// Up to the closing quote of a string.
fn string_len(chars: &[char]) -> usize {
    let mut at = 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// Up to the closing quote of a character; 0 for the quote of a lifetime.
fn char_len(chars: &[char]) -> usize {
    match chars {
        ['\'', '\\', _, rest @ ..] => {
            rest.iter().position(|&c| c == '\'').map_or(chars.len(), |end| end + 4)
        }
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

/// Up to the end of a raw string; 0 where `r` starts no such thing.
fn raw_string_len(chars: &[char]) -> usize {
    let hashes = chars[1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let start = 2 + hashes;
    let is_end = |at: &usize| {
        chars[*at] == '"' && chars[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes
    };
    (start..chars.len()).find(is_end).map_or(chars.len(), |at| at + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(text: &str) -> Vec<String> {
        words(&code_of(text)).map(str::to_owned).collect()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(words_of("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(words_of(r#"a "b \" c" d 'e' '\'' f '\u{1F}' g"#), ["a", "d", "f", "g"]);
        assert_eq!(words_of(r##"a r"b\" c r#"d " e"# f br"g" h"##), ["a", "c", "f", "b", "h"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(words_of("fn f<'a>(x: &'a str, 'b')"), ["fn", "f", "a", "x", "a", "str"]);
        assert_eq!(words_of("r#type for \"x\""), ["r", "type", "for"]);
    }

    #[test]
    fn lines_keep_their_numbers() {
        let text = "\"a\nb\" c /*\n\n*/ d\n";
        assert_eq!(code_of(text).matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn text_that_ends_in_a_literal_is_blank_to_its_end() {
        for text in ["\"a\\", "/* b", "r#\"c\"", "'\\", "// d"] {
            assert_eq!(code_of(text).trim_matches(['\'', '\\', ' ']), "", "{text}");
        }
    }
}
