// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bytes as text: base64 (RFC 4648, section 4). It knows no meaning of the bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Value of each character; 64 for those that are no digits.
const VALUES: [u8; 256] = {
    let mut values = [64; 256];
    let mut i = 0;
    while i < 64 {
        values[DIGITS[i] as usize] = i as u8;
        i += 1;
    }
    values
};

/// Appends the text of `bytes`.
pub(crate) fn encode(bytes: &[u8], text: &mut String) {
    for part in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=part.len()].copy_from_slice(part);
        let word = u32::from_be_bytes(word);
        for i in 0..4 {
            let digit = char::from(DIGITS[(word >> (18 - 6 * i) & 63) as usize]);
            text.push(if i <= part.len() { digit } else { '=' });
        }
    }
}

/// Appends the bytes of `text`; `None` if it is no base64.
pub(crate) fn decode(text: &str, bytes: &mut Vec<u8>) -> Option<()> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    for part in digits.as_bytes().chunks(4) {
        let mut word = 0;
        for &digit in part {
            let value = VALUES[usize::from(digit)];
            if value == 64 {
                return None;
            }
            word = word << 6 | u32::from(value);
        }
        let word = (word << (8 + 6 * (4 - part.len()))).to_be_bytes();
        bytes.extend(&word[..part.len() * 3 / 4]);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4648, section 10.
    #[test]
    fn text_stands_for_bytes() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            let (mut encoded, mut decoded) = (String::new(), Vec::new());
            encode(bytes.as_bytes(), &mut encoded);
            assert_eq!((&*encoded, decode(text, &mut decoded)), (text, Some(())));
            assert_eq!(decoded, bytes.as_bytes());
        }
        let (mut encoded, mut decoded) = (String::new(), Vec::new());
        let all: Vec<u8> = (0..=255).collect();
        encode(&all, &mut encoded);
        assert_eq!((decode(&encoded, &mut decoded), decoded), (Some(()), all));
        for text in ["A", "AA", "A===", "====", "AA*=", "Zg==Zg=="] {
            assert_eq!(decode(text, &mut Vec::new()), None, "{text}");
        }
    }
}
