//! The command line of this process, as a report tells it.

/// The command as it was given, for a shell.
pub(crate) fn given() -> String {
    let quoted = std::env::args().skip(1).map(|argument| quoted(&argument));
    std::iter::once("paternoster-lab".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+%@".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_is_quoted_where_a_shell_would_read_more_in_it() {
        assert_eq!(quoted("--set=a/b.fio"), "--set=a/b.fio");
        assert_eq!(quoted("it's <b> $x"), r"'it'\''s <b> $x'");
        assert_eq!(quoted(""), "''");
    }
}
