//! What the other side says, as it may stand in a message of ours.

use std::fmt;

/// The most characters that are shown, the marks around them not counted.
const MAX_SHOWN: usize = 200;

/// Bytes of the other side, in quotation marks: what cannot be printed is escaped, and what comes
/// behind 200 characters is left out.
pub(super) struct Quoted<'a>(pub(super) &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No character has more than four bytes, and one more shows that something is left out.
        let looked_at = &self.0[..self.0.len().min(4 * (MAX_SHOWN + 1))];
        let text = String::from_utf8_lossy(looked_at);
        let (mut shown, mut count) = (String::new(), 0);
        for character in text.chars() {
            let escaped = match character {
                // Between these marks it is no special one.
                '\'' => "'".to_owned(),
                _ => character.escape_debug().to_string(),
            };
            count += escaped.chars().count();
            if count > MAX_SHOWN {
                return write!(f, "\"{shown}…\"");
            }
            shown.push_str(&escaped);
        }
        write!(f, "\"{shown}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_printed_is_escaped() {
        let said = "'a' \"b\"\r\n\u{1b}[31m\u{202e}é".as_bytes();
        let shown = Quoted(said).to_string();
        assert_eq!(shown, r#""'a' \"b\"\r\n\u{1b}[31m\u{202e}é""#);
        assert_eq!(Quoted(b"\xff\0").to_string(), "\"\u{fffd}\\0\"");
    }

    #[test]
    fn no_more_than_two_hundred_characters_are_shown() {
        let of = |said: &str| Quoted(said.as_bytes()).to_string();
        assert_eq!(of(&"é".repeat(200)), format!("\"{}\"", "é".repeat(200)));
        assert_eq!(of(&"é".repeat(201)), format!("\"{}…\"", "é".repeat(200)));
        assert_eq!(of(&"\n".repeat(60_000)), format!("\"{}…\"", "\\n".repeat(100)));
        assert_eq!(of(&"'".repeat(201)), format!("\"{}…\"", "'".repeat(200)));
        let cut_within_a_character = format!("{}{}", "a", "𝄞".repeat(60_000));
        assert_eq!(of(&cut_within_a_character), format!("\"a{}…\"", "𝄞".repeat(199)));
    }
}
