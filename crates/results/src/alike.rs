// SPDX-License-Identifier: MIT OR Apache-2.0
//! Objects of a configuration that are nearly equal, such as the devices of many variants: the first in full, of the
//! others what differs. Knows JSON, not what the keys mean.

use serde_json::{Map, Value};

/// The key that names the object from which another one differs.
const SAME_AS: &str = "same as";

/// `value`, in which objects beside each other that share most of their leaves are not repeated.
pub(crate) fn once(value: &Value) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    let mut first: Option<(&str, &Map<String, Value>)> = None;
    let mut short = Map::new();
    for (name, child) in map {
        let Value::Object(object) = child else {
            short.insert(name.clone(), child.clone());
            continue;
        };
        let changed = first.and_then(|(of, known)| {
            let mut changed = differences(known, object);
            changed.insert(SAME_AS.to_owned(), of.into());
            (2 * leaves(&changed) < object.values().map(size).sum()).then_some(changed)
        });
        first = first.or(Some((name, object)));
        short.insert(name.clone(), changed.map_or_else(|| once(child), Value::Object));
    }
    Value::Object(short)
}

/// What `object` has otherwise than `known`; null for what it lacks.
fn differences(known: &Map<String, Value>, object: &Map<String, Value>) -> Map<String, Value> {
    let lacks = known.keys().filter(|key| !object.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let differs = object.iter().filter(|(key, value)| known.get(*key) != Some(value));
    let differs = differs.map(|(key, value)| match (known.get(key), value) {
        (Some(Value::Object(known)), Value::Object(object)) => (key.clone(), differences(known, object).into()),
        _ => (key.clone(), value.clone()),
    });
    lacks.chain(differs).collect()
}

fn leaves(map: &Map<String, Value>) -> usize {
    map.values().map(size).sum()
}

fn size(value: &Value) -> usize {
    match value {
        Value::Object(map) => leaves(map),
        Value::Array(list) => list.iter().map(size).sum(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_alike_stands_once() {
        let device =
            |cache: u32| json!({ "name": "d", "map_cache": { "size_kib": cache, "ways": 4 }, "dies": 8, "lanes": 2 });
        let configuration = json!({ "seed": 1, "devices": { "a": device(1), "b": device(2), "c": device(1) } });
        assert_eq!(
            once(&configuration),
            json!({ "seed": 1, "devices": {
                "a": device(1),
                "b": { "same as": "a", "map_cache": { "size_kib": 2 } },
                "c": { "same as": "a" },
            } })
        );
        // What differs for the most part is not compared, and what is missing is null.
        let other = json!({ "a": { "x": 1, "y": 2, "z": 3 }, "b": { "x": 2, "y": 3, "z": 3 } });
        assert_eq!(once(&other), other);
        let many = |more: Value| {
            let mut all = json!({ "p": 0, "q": 0, "r": 0, "s": 0, "t": 0, "u": 0 });
            more.as_object().expect("keys").iter().for_each(|(key, value)| all[key] = value.clone());
            all
        };
        let less = json!({ "a": many(json!({ "x": 1 })), "b": many(json!({ "y": 2 })) });
        assert_eq!(once(&less)["b"], json!({ "same as": "a", "x": null, "y": 2 }));
    }
}
