// SPDX-License-Identifier: MIT OR Apache-2.0
//! Marks on paper: text, lines, markers, hatches. Knows classes and coordinates, no charts and no colours.

use std::fmt::Write;

use readpath_results::SeriesStyle;

use crate::text;

/// Number of colours; a further series starts over with another dash and marker.
pub(super) const COLOURS: usize = 12;

/// A coordinate in as few characters as a tenth of a pixel takes.
pub(super) struct Px(pub f64);

impl std::fmt::Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths % 10 == 0 { write!(f, "{}", tenths / 10) } else { write!(f, "{:.1}", tenths as f64 / 10.0) }
    }
}

/// Estimated width of `text` in a wide sans-serif face of the given size.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 't' | 'f' | 'r' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.32,
            'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.9,
            'A'..='Z' => 0.7,
            '0'..='9' => 0.58,
            c if c.is_ascii() => 0.56,
            '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.4,
            '\u{2000}'..='\u{2e7f}' | '\u{a0}'..='\u{1fff}' => 0.64,
            _ => 1.05,
        })
        .sum();
    em * size * 1.08
}

/// What a browser shows where the pointer rests on an element.
fn title(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", text::html(tip)) }
}

/// SVG elements, collected.
#[derive(Default)]
pub(super) struct Paint {
    pub out: String,
}

impl Paint {
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (Px(from.0), Px(from.1), Px(to.0), Px(to.1));
        let _ = writeln!(self.out, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    /// `anchor` is `start`, `middle` or `end`; `size` in pixels of the figure.
    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: &str, size: f64, content: &str) {
        let (x, y, size) = (Px(at.0), Px(at.1), Px(size));
        let content = text::html(content);
        let _ = writeln!(
            self.out,
            r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{content}</text>"#
        );
    }

    pub(super) fn rotated_text(&mut self, class: &str, at: (f64, f64), degrees: i32, size: f64, content: &str) {
        let (x, y, size) = (Px(at.0), Px(at.1), Px(size));
        let content = text::html(content);
        let _ = writeln!(
            self.out,
            r#"<text class="{class}" transform="translate({x} {y}) rotate({degrees})" text-anchor="end" font-size="{size}">{content}</text>"#
        );
    }

    pub(super) fn rect(&mut self, look: &Look, x: f64, y: f64, width: f64, height: f64, tip: &str) {
        let class = look.class("bar");
        let fill = if look.style == SeriesStyle::Published {
            format!(r#" style="fill:url(#{})""#, look.hatch)
        } else {
            String::new()
        };
        let (x, y, width, height) = (Px(x), Px(y), Px(width), Px(height));
        let title = title(tip);
        let _ = writeln!(
            self.out,
            r#"<rect class="{class}"{fill} x="{x}" y="{y}" width="{width}" height="{height}">{title}</rect>"#
        );
    }

    /// A cell of a heat map in one of its colours.
    pub(super) fn cell(&mut self, step: usize, at: (f64, f64), size: (f64, f64), tip: &str) {
        let (x, y, width, height) = (Px(at.0), Px(at.1), Px(size.0), Px(size.1));
        let title = title(tip);
        let _ = writeln!(
            self.out,
            r#"<rect class="cell h{step}" x="{x}" y="{y}" width="{width}" height="{height}">{title}</rect>"#
        );
    }

    pub(super) fn frame(&mut self, at: (f64, f64), size: (f64, f64)) {
        let (x, y, width, height) = (Px(at.0), Px(at.1), Px(size.0), Px(size.1));
        let _ = writeln!(self.out, r#"<rect class="frame" x="{x}" y="{y}" width="{width}" height="{height}"/>"#);
    }

    /// An error bar at `x` from `low` to `high`, with caps of `cap` to each side. A wider stroke in the colour of the
    /// paper keeps it visible on its own bar.
    pub(super) fn error_bar(&mut self, x: f64, low: f64, high: f64, cap: f64) {
        let (x, low, high, left, right) = (Px(x), Px(low), Px(high), Px(x - cap), Px(x + cap));
        let data = format!("M{left} {low}H{right}M{x} {low}V{high}M{left} {high}H{right}");
        let _ = writeln!(self.out, r#"<path class="error under" d="{data}"/><path class="error" d="{data}"/>"#);
    }

    /// A curve, whose tip is the same all along it; none through single points.
    pub(super) fn path(&mut self, look: &Look, data: &str, tip: &str) {
        if data.is_empty() || look.style == SeriesStyle::Points {
            return;
        }
        let class = look.class("curve");
        let dash = match look.dash() {
            "" => String::new(),
            dash => format!(r#" stroke-dasharray="{dash}""#),
        };
        let title = title(tip);
        let _ = writeln!(self.out, r#"<path class="{class}"{dash} d="{data}">{title}</path>"#);
    }

    /// A place of a curve without markers that says its value.
    pub(super) fn tip(&mut self, x: f64, y: f64, tip: &str) {
        let _ =
            writeln!(self.out, r#"<circle class="tip" cx="{}" cy="{}" r="5">{}</circle>"#, Px(x), Px(y), title(tip));
    }

    pub(super) fn marker(&mut self, look: &Look, x: f64, y: f64, tip: &str) {
        let class = look.class("dot");
        let title = title(tip);
        let p = |dx: f64, dy: f64| format!("{} {}", Px(x + dx), Px(y + dy));
        let shape = match look.place % 4 {
            0 => {
                let _ = writeln!(
                    self.out,
                    r#"<circle class="{class}" cx="{}" cy="{}" r="3.8">{title}</circle>"#,
                    Px(x),
                    Px(y)
                );
                return;
            }
            1 => format!("M{} H{} V{} H{}Z", p(-3.4, -3.4), Px(x + 3.4), Px(y + 3.4), Px(x - 3.4)),
            2 => format!("M{}L{}L{}Z", p(0.0, -4.6), p(4.3, 3.2), p(-4.3, 3.2)),
            _ => format!("M{}L{}L{}L{}Z", p(0.0, -4.9), p(4.9, 0.0), p(0.0, 4.9), p(-4.9, 0.0)),
        };
        let _ = writeln!(self.out, r#"<path class="{class}" d="{shape}">{title}</path>"#);
    }

    /// The hatch that fills bars of published values in the colour of `look`.
    pub(super) fn hatch(&mut self, look: &Look) {
        let (id, colour) = (&look.hatch, look.place % COLOURS);
        let _ = writeln!(
            self.out,
            r#"<pattern id="{id}" class="k{colour}" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="paper" width="5" height="5"/><rect class="ink" width="1.7" height="5"/></pattern>"#
        );
    }
}

/// What distinguishes a series: colour, and hatch, dash and marker for readers without colour.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Index of its colour; a published and a simulated series may share one.
    pub place: usize,
    pub style: SeriesStyle,
    /// Id of the hatch pattern.
    pub hatch: String,
    /// Both published and plain or simulated curves exist, so the dash means "published".
    pub dash_is_style: bool,
}

impl Look {
    fn class(&self, what: &str) -> String {
        let style = match self.style {
            SeriesStyle::Published => " published",
            SeriesStyle::Simulated | SeriesStyle::Plain | SeriesStyle::Points => "",
        };
        format!("{what} k{}{style}", self.place % COLOURS)
    }

    fn dash(&self) -> &'static str {
        match (self.style, self.dash_is_style) {
            (SeriesStyle::Published, _) => "6 4",
            (_, true) => "",
            _ => ["", "9 3", "2.5 2.5", "10 3 2.5 3"][(self.place + self.place / COLOURS) % 4],
        }
    }
}
