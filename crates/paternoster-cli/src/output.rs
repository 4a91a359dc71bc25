//! Standard output: a reader may have had enough of it; a terminal has a width, and maybe colours.

use std::io::{self, IsTerminal as _, Write as _};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context as _, Result};
use clap::builder::styling::AnsiColor;

/// Writes `text` to standard output. A reader that has gone, as `head` does, is no error.
pub fn print(text: &[u8]) -> Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Gives the colour of what needs attention to a text that passes through [`fit`].
pub fn alarming(text: &str) -> String {
    let colour = AnsiColor::Red.on_default();
    format!("{colour}{text}{colour:#}")
}

/// Cuts the lines of a table to the width of the terminal, if standard output is one. Takes the
/// colours away if it is none, or if `NO_COLOR` or `TERM` says that there are none.
pub fn fit(text: &str) -> String {
    let out = io::stdout();
    let text = if out.is_terminal() && AutoStream::choice(&out) != ColorChoice::Never {
        text.to_owned()
    } else {
        strip_str(text).to_string()
    };
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok()).flatten();
    // A terminal that does not know its width says 0.
    match size.map(|size| usize::from(size.ws_col)).filter(|&width| width > 0) {
        Some(width) => cut(&text, width),
        None => text,
    }
}

/// Cuts each line to so many characters; the last one says that there was more. Colours take no
/// room and stay.
fn cut(text: &str, width: usize) -> String {
    let cut_line = |line: &str| {
        if strip_str(line).to_string().chars().count() <= width {
            return line.to_owned();
        }
        let (mut place, mut is_colour) = (0, false);
        let kept = line.chars().filter_map(|c| {
            let is_inside = is_colour;
            is_colour = if is_inside { c != 'm' } else { c == '\x1b' };
            if is_inside || is_colour {
                return Some(c);
            }
            place += 1;
            match place {
                _ if place < width => Some(c),
                _ if place == width => Some('…'),
                _ => None,
            }
        });
        kept.collect()
    };
    let lines = text.split('\n').map(cut_line);
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_width_and_say_so() {
        let text = "disk µ: none\n12345\n\n123456\n";
        assert_eq!(cut(text, 5), "disk…\n12345\n\n1234…\n");
        assert_eq!(cut(text, 12), text);
        assert_eq!(cut("µµ", 1), "…");
    }

    #[test]
    fn colours_take_no_room_and_end_where_a_line_is_cut() {
        let line = alarming("12345");
        assert_eq!(line, "\x1b[31m12345\x1b[0m");
        assert_eq!(cut(&line, 5), line);
        assert_eq!(cut(&line, 4), "\x1b[31m123…\x1b[0m");
    }
}
