//! Tunables as `--set` of `sim` and `decide` takes them.

/// The name and the value of NAME=VALUE.
pub(crate) fn parse(text: &str) -> Result<(String, i64), String> {
    let parts = text.split_once('=');
    let (name, value) = parts.ok_or("NAME=VALUE is allowed, as slice_idle=0")?;
    let value = value.parse().map_err(|_| format!("{value:?}: a whole number is allowed"))?;
    Ok((name.to_owned(), value))
}
