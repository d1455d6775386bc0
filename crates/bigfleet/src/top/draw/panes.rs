//! Screens of panes: each has a part of the height and scrolls by itself.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::output::Tone;

use super::super::page::{Body, Form, Page, Pane, Table};
use super::palette::Palette;
use super::rows::{fit, row, titles, widths};
use super::{bars, text};

/// Draws the panes one below the other.
pub(super) fn draw(frame: &mut Frame, area: Rect, page: &Page, cursor: Option<usize>, palette: Palette) {
    let held = cursor.and_then(|cursor| holder(page, cursor));
    let heights = heights(&page.panes, held, usize::from(area.height), usize::from(area.width));
    let mut y = area.y;
    for (number, (pane, height)) in page.panes.iter().zip(heights).enumerate() {
        let height = height as u16;
        if height == 0 {
            continue;
        }
        let part = Rect { y, height, ..area };
        y += height;
        let before = page.stops_before(number);
        let chosen = cursor.and_then(|cursor| cursor.checked_sub(before)).filter(|_| held == Some(number));
        for (at, line) in lines(pane, part, chosen, palette).into_iter().take(usize::from(height)).enumerate()
        {
            frame.render_widget(line, Rect { y: part.y + at as u16, height: 1, ..part });
        }
    }
}

/// The pane with the cursor.
fn holder(page: &Page, cursor: usize) -> Option<usize> {
    (0..page.panes.len()).find(|number| {
        let before = page.stops_before(*number);
        (before..before + page.panes[*number].stops(Form::Panes)).contains(&cursor)
    })
}

/// What a pane would like: a title, the titles of columns, and all it holds.
fn wanted(pane: &Pane, room: usize) -> usize {
    match &pane.body {
        Body::Table(table) if table.rows.is_empty() => 2,
        Body::Table(table) => table.rows.len() + 2,
        Body::Said(said) => text::height(said, room) + 1,
        Body::Bars(bars) => bars.len() + 1,
    }
}

/// Deals out the height. The pane with the cursor is served first, so that it can be seen; then each gets the least
/// that makes sense, in order; what is left goes round by lines, and at last to the bottom.
fn heights(panes: &[Pane], held: Option<usize>, height: usize, room: usize) -> Vec<usize> {
    let mut heights = vec![0; panes.len()];
    let mut left = height;
    let least = |pane: &Pane| match &pane.body {
        Body::Table(_) => wanted(pane, room).min(4),
        Body::Said(_) | Body::Bars(_) => wanted(pane, room),
    };
    let others = (0..panes.len()).filter(|number| Some(*number) != held);
    for number in held.into_iter().chain(others) {
        let given = least(&panes[number]).min(left);
        // Half a pane of text says nothing.
        if given == least(&panes[number]) || heights.iter().all(|height| *height == 0) {
            heights[number] = given;
            left -= given;
        }
    }
    while left > 0 {
        let hungry: Vec<usize> = (0..panes.len())
            .filter(|at| heights[*at] > 0 && heights[*at] < wanted(&panes[*at], room))
            .collect();
        if hungry.is_empty() {
            break;
        }
        for at in hungry.into_iter().take(left) {
            heights[at] += 1;
            left -= 1;
        }
    }
    heights
}

fn lines(pane: &Pane, area: Rect, chosen: Option<usize>, palette: Palette) -> Vec<Line<'static>> {
    let room = usize::from(area.width);
    let mut lines = vec![rule(&pane.title, room, palette)];
    match &pane.body {
        Body::Bars(held) => lines.extend(bars::lines(held, room, palette)),
        Body::Said(said) => {
            let indent = text::indent(said, room);
            lines.extend(said.iter().flat_map(|said| text::said(said, indent, room, false, palette)));
        }
        Body::Table(table) => {
            // Without room for more, the row that is chosen matters most.
            let height = usize::from(area.height);
            if height == 1 && chosen.is_some() {
                lines.clear();
            }
            let columns = height > 2;
            let visible = height.saturating_sub(lines.len() + usize::from(columns));
            lines.extend(rows(table, room, visible, columns, chosen, palette));
        }
    }
    lines
}

/// The part of a table that fits, around the chosen row.
fn rows(
    table: &Table,
    room: usize,
    visible: usize,
    columns: bool,
    chosen: Option<usize>,
    palette: Palette,
) -> Vec<Line<'static>> {
    if table.rows.is_empty() {
        return vec![Line::from(Span::styled(fit(table.empty, room), palette.style(Tone::Dim)))];
    }
    let widths = widths(table, room);
    let mut lines = Vec::new();
    if columns {
        lines.push(titles(table.columns, &widths, palette));
    }
    let from = first_visible(chosen.unwrap_or(0), visible, table.rows.len());
    for (at, held) in table.rows.iter().enumerate().skip(from).take(visible) {
        lines.push(row(table, held, &widths, room, chosen == Some(at), palette));
    }
    lines
}

/// Where to begin so that the chosen line is in the middle, or as near to it as the ends allow.
pub(super) fn first_visible(chosen: usize, visible: usize, all: usize) -> usize {
    chosen.saturating_sub(visible / 2).min(all.saturating_sub(visible))
}

/// A title with a line behind it.
pub(super) fn rule(title: &str, room: usize, palette: Palette) -> Line<'static> {
    let title = if title.is_empty() { String::new() } else { format!("{title} ") };
    let title = fit(&title, room);
    let rest = room.saturating_sub(title.width());
    Line::from(vec![
        Span::styled(title, palette.style(Tone::Head)),
        Span::styled("─".repeat(rest), palette.style(Tone::Dim)),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::super::page::{Cell, Column, Row, Said};
    use super::*;

    fn table(rows: usize) -> Pane {
        const COLUMNS: &[Column] = &[Column::left("A", 1)];
        let row = |number: usize| Row { key: number.to_string(), opens: None, cells: vec![Cell::from("x")] };
        Pane::new("t", Body::Table(Table { columns: COLUMNS, rows: (0..rows).map(row).collect(), empty: "" }))
    }

    #[test]
    fn the_pane_with_the_cursor_is_seen_and_no_line_is_lost() {
        let panes = [table(3), table(100), table(100)];
        assert_eq!(heights(&panes, None, 40, 80), [5, 18, 17]);
        assert_eq!(heights(&panes, Some(2), 4, 80), [0, 0, 4]);
        assert_eq!(heights(&panes, Some(2), 9, 80), [5, 0, 4]);
        assert_eq!(heights(&panes, Some(1), 2, 80), [0, 2, 0]);
        let notes = Pane::new("n", Body::Said(vec![Said::new("", "one two three"), Said::new("", "four")]));
        assert_eq!(heights(std::slice::from_ref(&notes), None, 10, 80), [3]);
        assert_eq!(heights(&[notes], None, 10, 8), [4], "a broken line takes two");
        assert_eq!(heights(&[table(0)], None, 10, 80), [2]);
    }

    #[test]
    fn the_chosen_line_stays_in_sight() {
        for (chosen, from) in [(0, 0), (3, 0), (50, 45), (99, 90)] {
            assert_eq!(first_visible(chosen, 10, 100), from);
        }
        assert_eq!((first_visible(5, 0, 10), first_visible(2, 10, 3)), (5, 0));
    }
}
