//! Tunables as `--set` of `sim` and `decide` takes them.

use anyhow::{Result, bail};

/// The name and the value of NAME=VALUE.
pub(crate) fn parse(text: &str) -> std::result::Result<(String, i64), String> {
    let parts = text.split_once('=');
    let (name, value) = parts.ok_or("NAME=VALUE is allowed, as slice_idle=0")?;
    let value = paternoster::parse_tunable(name, value).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), value))
}

/// Refuses a tunable that is set twice, in one unit or in two: only one value could hold.
pub(crate) fn check_once(tunables: &[(String, i64)]) -> Result<()> {
    for (index, (name, value)) in tunables.iter().enumerate() {
        let mut before = tunables[..index].iter();
        if let Some((first, old)) =
            before.find(|(other, _)| without_unit(other) == without_unit(name))
        {
            bail!("--set {name}={value} beside --set {first}={old}: one of them is allowed");
        }
    }
    Ok(())
}

/// `slice_idle` and `slice_idle_us` are one.
fn without_unit(name: &str) -> &str {
    name.strip_suffix("_us").unwrap_or(name)
}
