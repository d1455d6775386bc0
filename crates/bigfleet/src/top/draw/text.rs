//! Screens of text: paragraphs and tables one after the other, scrolled together.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::output::Tone;

use super::super::page::{Body, Page, Said};
use super::bars;
use super::palette::{Palette, SELECTED};
use super::panes::{first_visible, rule};
use super::rows::{fit, pad, row, titles, widths};

/// Columns of the labels.
const LABEL: usize = 13;

/// Draws the part around the cursor.
pub(super) fn draw(frame: &mut Frame, area: Rect, page: &Page, cursor: Option<usize>, palette: Palette) {
    let (lines, at) = lines(page, usize::from(area.width), cursor, palette);
    let visible = usize::from(area.height);
    // The beginning belongs together: it is left only when the cursor leaves the first screenful.
    let from = if at + 1 < visible { 0 } else { first_visible(at, visible, lines.len()) };
    for (y, line) in lines.into_iter().skip(from).take(visible).enumerate() {
        frame.render_widget(line, Rect { y: area.y + y as u16, height: 1, ..area });
    }
}

/// All lines, and which of them has the cursor.
fn lines(page: &Page, room: usize, cursor: Option<usize>, palette: Palette) -> (Vec<Line<'static>>, usize) {
    let (mut lines, mut at, mut stop) = (Vec::new(), 0, 0);
    for (number, pane) in page.panes.iter().enumerate() {
        if number > 0 {
            lines.push(Line::default());
        }
        if !pane.title.is_empty() {
            lines.push(rule(&pane.title, room, palette));
        }
        match &pane.body {
            Body::Bars(held) => lines.extend(bars::lines(held, room, palette)),
            Body::Said(paragraphs) => {
                let indent = indent(paragraphs, room);
                for paragraph in paragraphs {
                    let chosen = cursor == Some(stop);
                    if chosen {
                        at = lines.len();
                    }
                    lines.extend(said(paragraph, indent, room, chosen, palette));
                    stop += 1;
                }
            }
            Body::Table(table) if table.rows.is_empty() => {
                lines.push(Line::from(Span::styled(fit(table.empty, room), palette.style(Tone::Dim))));
            }
            Body::Table(table) => {
                let widths = widths(table, room);
                lines.push(titles(table.columns, &widths, palette));
                for held in &table.rows {
                    let chosen = cursor == Some(stop);
                    if chosen {
                        at = lines.len();
                    }
                    lines.push(row(table, held, &widths, room, chosen, palette));
                    stop += 1;
                }
            }
        }
    }
    (lines, at)
}

/// The columns before the paragraphs: none if there are no labels.
pub(super) fn indent(said: &[Said], room: usize) -> usize {
    if said.iter().all(|said| said.label.is_empty()) { 0 } else { LABEL.min(room / 2) }
}

/// How many lines paragraphs take; colours do not matter for that.
pub(super) fn height(paragraphs: &[Said], room: usize) -> usize {
    let (indent, palette) = (indent(paragraphs, room), Palette { coloured: false });
    paragraphs.iter().map(|paragraph| said(paragraph, indent, room, false, palette).len()).sum()
}

/// A labelled paragraph, broken at blanks. One that opens something says so by an arrow.
pub(super) fn said(
    said: &Said,
    indent: usize,
    room: usize,
    chosen: bool,
    palette: Palette,
) -> Vec<Line<'static>> {
    let arrow = if said.opens.is_some() { " →" } else { "" };
    let wrapped = wrap(&format!("{}{arrow}", said.text), room.saturating_sub(indent).max(1));
    let style = if chosen { SELECTED } else { palette.style(said.tone) };
    let line = |(number, text): (usize, String)| {
        let label = pad(if number == 0 { said.label } else { "" }, indent, false);
        Line::from(vec![Span::styled(label, palette.style(Tone::Dim)), Span::styled(text, style)])
    };
    wrapped.into_iter().enumerate().map(line).collect()
}

/// Breaks at blanks; a word that is too long for a line is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.width() + 1 + word.width() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.iter().map(|line| fit(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_broken_at_blanks() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a\nb", 7), ["a", "b"]);
        assert_eq!(wrap("incomprehensible", 6), ["incom…"]);
        assert_eq!(wrap("", 1), [""]);
    }
}
