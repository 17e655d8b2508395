// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hostile text made harmless, once for each output. Knows characters only.

/// Text without control characters and without characters that reorder their neighbours.
fn harmless(c: char) -> char {
    match c {
        '\t' | '\n' | '\r' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// For a terminal: one line, no escape sequences.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(harmless).collect()
}

/// For HTML and SVG, as content or as a quoted attribute. (Crates that escape leave control characters as they are.)
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        html_char(harmless(c), &mut out);
    }
    out
}

/// As [`html`], with line feeds kept: for preformatted text.
pub(crate) fn html_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        html_char(if c == '\n' { c } else { harmless(c) }, &mut out);
    }
    out
}

fn html_char(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        c => out.push(c),
    }
}

/// Words of a command line, quoted for a POSIX shell.
pub(crate) fn shell(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// `text` in lines of at most `width` characters, broken at spaces where possible. (The crate `textwrap` would bring
/// hyphens and the widths of all scripts for these few lines.)
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line: Vec<char> = Vec::new();
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        while word.len() > width {
            let rest = word.split_off(width);
            lines.push(word);
            word = rest;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.append(&mut word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines.into_iter().map(String::from_iter).collect()
}

/// `text` cut to at most `width` characters, with an ellipsis in place of what is missing.
pub(crate) fn elide(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// Names of at most `width` characters each, shortened where they do not differ: first the keys of settings go that
/// all names have, then the common beginning of all names, up to a word; then the middle of a name.
pub(crate) fn apart<'a>(names: impl Iterator<Item = &'a str>, width: usize) -> Vec<String> {
    let names: Vec<&str> = names.collect();
    let fit = |names: &[String]| names.iter().all(|name| name.chars().count() <= width);
    let whole: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    if fit(&whole) {
        return whole;
    }
    let valued = without_keys(&names);
    if fit(&valued) {
        return valued;
    }
    let names: Vec<Vec<char>> = valued.iter().map(|name| name.chars().collect()).collect();
    let alike = |at: usize| names.len() > 1 && names.iter().all(|name| name.get(at) == names[0].get(at));
    let common = (0..names[0].len()).take_while(|&at| alike(at)).count();
    let word = names[0][..common].iter().rposition(|c| !c.is_alphanumeric()).map_or(0, |at| at + 1);
    let short = |name: Vec<char>| {
        let rest = &name[word.min(name.len())..];
        let dots = if word > 0 { "…" } else { "" };
        let room = width.saturating_sub(dots.len().min(1));
        if rest.len() <= room {
            return dots.to_owned() + &String::from_iter(rest);
        }
        let (head, tail) = (room.saturating_sub(1).div_ceil(2), room.saturating_sub(1) / 2);
        format!("{dots}{}…{}", String::from_iter(&rest[..head]), String::from_iter(&rest[rest.len() - tail..]))
    };
    names.into_iter().map(short).collect()
}

/// Names of settings such as `HPB off, size_kib=64` without the keys that all of them have at the same place.
fn without_keys(names: &[&str]) -> Vec<String> {
    let parts: Vec<Vec<&str>> = names.iter().map(|name| name.split(", ").collect()).collect();
    let key = |parts: &[&str], at: usize| parts.get(at).and_then(|part| Some(part.split_once('=')?.0.to_owned()));
    let is_shared = |at: usize| parts.len() > 1 && parts.iter().all(|other| key(other, at) == key(&parts[0], at));
    let value = |(at, part): (usize, &&str)| match part.split_once('=') {
        Some((_, value)) if is_shared(at) => value.to_owned(),
        _ => (*part).to_owned(),
    };
    parts.iter().map(|parts| parts.iter().enumerate().map(value).collect::<Vec<_>>().join(", ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_differ_where_they_are_cut() {
        let named = |names: &[&str], width| apart(names.iter().copied(), width);
        assert_eq!(named(&["short", "a name"], 6), ["short", "a name"]);
        let caches = ["HPB off, map_cache.size_kib=64", "HPB off, map_cache.size_kib=1024"];
        assert_eq!(named(&caches, 20), ["HPB off, 64", "HPB off, 1024"]);
        assert_eq!(named(&caches, 8), ["…64", "…1024"]);
        let keys = ["a_long_key=1, b_long_key=22", "a_long_key=1, c_long_key=22"];
        assert_eq!(named(&keys, 20), ["1, b_long_key=22", "1, c_long_key=22"]);
        assert_eq!(named(&["one/abcdefghij-x", "two/abcdefghij-y"], 9), ["one/…ij-x", "two/…ij-y"]);
        assert_eq!(named(&["abcdefghijkl"], 5), ["ab…kl"]);
        assert_eq!(named(&["äbc äöüäöü", "äbc äö"], 6), ["…äö…öü", "…äö"]);
    }

    #[test]
    fn escapes() {
        assert_eq!(html("<b a='1' c=\"2\">&\u{1b}[31m\u{202e}"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;�[31m�");
        assert_eq!(html_lines("a\n\tb"), "a\n b");
        assert_eq!(plain("a\n\u{1b}[2J"), "a �[2J");
    }

    #[test]
    fn words_of_a_command_are_quoted_where_a_shell_would_split_them() {
        let words = ["readpath", "fio", "my job.fio", "--set", "it's=$1", "", "--hpb=off,dcm"].map(String::from);
        assert_eq!(shell(&words), "readpath fio 'my job.fio' --set 'it'\\''s=$1' '' --hpb=off,dcm");
    }

    #[test]
    fn wraps() {
        assert_eq!(wrap("random read throughput", 12), ["random read", "throughput"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("ab cdefgh", 4), ["ab", "cdef", "gh"]);
        assert_eq!(elide("abcdef", 4), "abc…");
        assert_eq!(elide("äöü", 3), "äöü");
    }
}
