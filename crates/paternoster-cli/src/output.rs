//! Standard output: a reader may have had enough of it, and a terminal has a width.

use std::io::{self, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result};

/// Writes `text` to standard output. A reader that has gone, as `head` does, is no error.
pub fn print(text: &[u8]) -> Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// Cuts the lines of a table to the width of the terminal, if standard output is one.
pub fn fit(text: &str) -> String {
    let out = io::stdout();
    let size = out.is_terminal().then(|| rustix::termios::tcgetwinsize(&out).ok()).flatten();
    // A terminal that does not know its width says 0.
    match size.map(|size| usize::from(size.ws_col)).filter(|&width| width > 0) {
        Some(width) => cut(text, width),
        None => text.to_owned(),
    }
}

/// Cuts each line to so many characters; the last one says that there was more.
fn cut(text: &str, width: usize) -> String {
    let cut_line = |line: &str| match line.char_indices().nth(width) {
        None => line.to_owned(),
        Some(_) => line.chars().take(width - 1).chain(['…']).collect(),
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
}
