//! What a request says of a group: the body of a `PUT`, and of a `PATCH` what it makes of one.

use serde_json::{Map, Value};

use super::error::Place;
use super::group::check_group_path;
use super::keys::written::Written;
use super::keys::{At, GroupKeys, Key, Keys as _, Object, ROOT, RequestKeys, caps, unknown_key};
use super::mistakes::Mistakes;
use super::reference::object;

/// The key that has all limits of a group, as a volume has.
const LIMITS: &str = "limits";

/// The keys of a group that a request has as a file has them. Weights of one disk are set of a
/// group that is there.
fn of_file() -> impl Iterator<Item = &'static Key<GroupKeys>> {
    let is_of_disks = |key: &Key<GroupKeys>| key.name.ends_with("_device");
    GroupKeys::KEYS.iter().filter(move |key| key.part.is_none() && !is_of_disks(key))
}

fn limits() -> &'static Key<RequestKeys> {
    RequestKeys::key(LIMITS).expect("it is a row")
}

/// Returns what is wrong with the path of a group that is asked for.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    if path == ROOT {
        return Err(format!("{ROOT:?} is the root, which is there; it takes caps: {}", caps()));
    }
    let path = At { value: path.to_owned(), place: Place::Body };
    check_group_path(&path).map_err(|mistake| mistake.problem.to_string())
}

/// Reads a body, or returns all that is wrong with it.
pub(crate) fn read(path: &str, body: &Value) -> Result<GroupKeys, String> {
    let Value::Object(body) = body else {
        return Err(format!("{body}: an object of keys and values is allowed"));
    };
    let mut mistakes = Mistakes::default();
    let at = || At { value: path.to_owned(), place: Place::Body };
    let mut keys = Object::<GroupKeys>::new(at());
    let mut more = Object::<RequestKeys>::new(at());
    for (key, value) in body {
        let written = Written::json(value);
        let set = match () {
            () if key == LIMITS => more.set(key, &written, &mut mistakes),
            () if of_file().any(|known| known.name == key) => {
                keys.set(key, &written, &mut mistakes)
            }
            () => None,
        };
        if set.is_none() {
            let all = of_file().map(|key| key.name).chain([LIMITS]);
            mistakes.add(&Place::Body, unknown_key(key, all));
        }
    }
    mistakes.problems()?;
    Ok(GroupKeys { limits: more.keys.limits, ..keys.keys })
}

/// What a group would be read from.
pub(crate) fn body(keys: &GroupKeys) -> Map<String, Value> {
    let more = RequestKeys { limits: keys.limits, ..RequestKeys::default() };
    let all = of_file().map(|key| (key.name, (key.show)(keys)));
    let all = all.chain([(LIMITS, (limits().show)(&more))]);
    let all = all.filter(|one| !one.1.is_null() && one.1 != Value::Array(Vec::new()));
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the JSON Schemas of a group that is asked for, and of a merge patch of one.
pub(crate) fn schemas() -> [Value; 2] {
    let keys: Vec<_> = of_file().map(Key::info).chain([limits().info()]).collect();
    let new = object(&keys);
    let patch = super::wanted::patch_of(&new);
    [new, patch]
}

/// Applies a merge patch to what a group is, or returns all that is wrong then.
pub(crate) fn patched(path: &str, keys: &GroupKeys, changes: &Value) -> Result<GroupKeys, String> {
    read(path, &super::wanted::merged(body(keys), changes)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn body_is_read_shown_and_patched() {
        let asked = json!({"weight": 300, "limits": {"riops": 5}, "capacity": "1G", "volumes": 3});
        let keys = read("/gold", &asked).expect("it is right");
        assert_eq!(read("/gold", &json!(body(&keys))), Ok(keys.clone()));
        let patch = json!({"limits": {"riops": null, "wbps": "1M"}, "volumes": null});
        let patched = patched("/gold", &keys, &patch).expect("it is right");
        assert_eq!(body(&patched)["limits"], json!({"wbps": 1 << 20}));
        assert_eq!((patched.volumes, patched.capacity), (None, Some(1 << 30)));
        let wrong = json!({"weight": 0, "riops": 5, "weight_device": {}});
        let said = read("/gold", &wrong).expect_err("it is wrong");
        assert!(
            said.contains("weight = 0: 1 to 1000")
                && said.contains("key `riops`; there are: `weight`"),
            "{said}"
        );
        assert!(said.contains("key `weight_device`"), "{said}");
        assert!(check_path("gold").is_err() && check_path("/").is_err());
        assert_eq!(check_path("/gold/db"), Ok(()));
    }
}
