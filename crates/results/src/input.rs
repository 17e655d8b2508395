// SPDX-License-Identifier: MIT OR Apache-2.0
//! The inputs of a document, so that a reader can check that he has the same: files by size and digest, job files with
//! their text. Opens no file.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The file, as it was named.
    pub file: String,
    /// Its size, as it lies on the disk.
    pub bytes: u64,
    /// SHA-256 of those bytes (FIPS 180-4), in hexadecimal digits.
    pub sha256: String,
    /// Its text, where that is short: job files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Input {
    /// A text file whose text is kept.
    pub fn of_text(file: impl Into<String>, text: &str) -> Self {
        let mut digest = InputDigest::default();
        digest.update(text.as_bytes());
        Input { text: Some(text.to_owned()), ..digest.input(file) }
    }
}

/// The digest of a file that is being read.
#[derive(Clone, Debug, Default)]
pub struct InputDigest {
    bytes: u64,
    hash: Sha256,
}

impl InputDigest {
    /// Adds the next bytes of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hash.update(bytes);
    }

    /// Ends the digest: all bytes of the file were added.
    pub fn input(self, file: impl Into<String>) -> Input {
        let sha256 = self.hash.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing to memory cannot fail.
            write!(text, "{byte:02x}").ok();
            text
        });
        Input { file: file.into(), bytes: self.bytes, sha256, text: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of FIPS 180-2, appendix B.1, in one piece and in two.
    #[test]
    fn a_digest_is_that_of_the_standard() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let text = Input::of_text("job", "abc");
        assert_eq!((text.sha256.as_str(), text.bytes, text.text.as_deref()), (expected, 3, Some("abc")));
        let mut digest = InputDigest::default();
        digest.update(b"a");
        digest.update(b"bc");
        let input = digest.input("trace");
        assert_eq!((input.sha256.as_str(), input.bytes, input.text), (expected, 3, None));
    }
}
