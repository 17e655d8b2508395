// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints names from flash, which may hold any bytes. Text escapes them as messages do; JSON has them as text, with the
//! bytes in a second field if they are not UTF-8.

use crate::output::json_escaped;
use serde_json::Value;

/// A document as text, with a line end.
pub fn json_text(value: &Value) -> String {
    json_escaped(format!("{value:#}\n"))
}

/// Puts a name into an object: as text, and under `KEY_hex` its bytes if they are no UTF-8.
pub fn put(value: &mut Value, key: &str, name: &[u8]) {
    value[key] = String::from_utf8_lossy(name).into();
    if std::str::from_utf8(name).is_err() {
        value[format!("{key}_hex")] = hex(name).into();
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_has_no_control_characters_and_keeps_its_meaning() {
        let value = json!({ "name": "a\u{1b}[2J\u{7f}\u{9b}1m\n\u{e9}" });
        let text = json_text(&value);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
