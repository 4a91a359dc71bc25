//! The output of `ctl reload`: a line for each value that the file has and the server had not.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use paternoster_server::ctl::{self, ReloadAnswer, ReloadMode};

use paternoster_cli::output::print;

/// Has the server read its file again. That something has failed is exit status 1.
pub(super) fn run(socket: &Path, dry_run: bool) -> anyhow::Result<ExitCode> {
    let mode = if dry_run { ReloadMode::DryRun } else { ReloadMode::Apply };
    let answer = ctl::reload(socket, mode)?;
    print(show(&answer).as_bytes())?;
    Ok(if answer.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What has changed or would, what goes on and what has failed, then what needs a restart.
fn show(answer: &ReloadAnswer) -> String {
    let done = if answer.dry_run { "would change" } else { "changed" };
    let mut text = String::new();
    for change in &answer.changed {
        let _ = writeln!(text, "{done}: {change}");
    }
    if answer.changed.is_empty() {
        let _ = writeln!(text, "nothing {done}");
    }
    for note in &answer.under_way {
        let _ = writeln!(text, "under way: {note}");
    }
    for note in &answer.failed {
        let _ = writeln!(text, "failed: {note}");
    }
    for change in &answer.needs_restart {
        let _ = writeln!(text, "needs a restart: {change}");
    }
    text
}

#[cfg(test)]
mod tests {
    use paternoster_server::ctl::Change;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_value_is_a_line_that_says_whether_it_is_in_force() {
        let (place, what) = ("disk \"d\"".to_owned(), "depth".to_owned());
        let depth =
            || Change { place: place.clone(), what: what.clone(), from: json!(8), to: json!(4) };
        let tcp = || Change { what: "tcp".to_owned(), to: json!("[::1]:9"), ..Change::default() };
        let shown = |mode, changed| show(&ReloadAnswer::new(mode, changed, vec![tcp()]));
        assert_eq!(
            shown(ReloadMode::Apply, vec![depth()]),
            "changed: disk \"d\": depth 8 -> 4\nneeds a restart: tcp none -> \"[::1]:9\"\n"
        );
        assert_eq!(
            shown(ReloadMode::DryRun, vec![depth()]),
            "would change: disk \"d\": depth 8 -> 4\nneeds a restart: tcp none -> \"[::1]:9\"\n"
        );
        let restart = "needs a restart: tcp none -> \"[::1]:9\"\n";
        assert_eq!(shown(ReloadMode::Apply, vec![]), format!("nothing changed\n{restart}"));
        assert_eq!(shown(ReloadMode::DryRun, vec![]), format!("nothing would change\n{restart}"));
    }
}
