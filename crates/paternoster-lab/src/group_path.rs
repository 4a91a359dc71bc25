//! Paths of groups, such as `/a/b`.

/// How deep groups may be nested. cgroups have no limit of their own; the schedulers walk a group's
/// ancestors one inside the other, and memory for that is limited.
pub(crate) const DEEPEST_GROUP: usize = 256;

/// How deep the group of that path is; those below the root are 1 deep.
pub(crate) fn depth(path: &str) -> usize {
    path.split('/').filter(|part| !part.is_empty()).count()
}

/// The path of the group above.
pub(crate) fn parent_path(path: &str) -> &str {
    match path.rsplit_once('/') {
        None | Some(("", _)) => "/",
        Some((parent, _)) => parent,
    }
}
