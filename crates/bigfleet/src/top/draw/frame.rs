//! What is around every screen: the header, the way to the screen, and the line of keys.

use bigfleet_view::v1::Mode;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::output::Tone;
use crate::{sentence, words};

use super::super::model::{Link, Model, Typed};
use super::super::question::problem;
use super::super::screen::{Screen, TABS};
use super::palette::{Palette, SELECTED};
use super::rows::fit;

/// Shard, cycle, time, money and what is unmet; at the right what must never be overlooked.
pub(super) fn header(frame: &mut Frame, area: Rect, model: &Model, palette: Palette) {
    let mut right: Vec<(String, Tone)> = Vec::new();
    if let Some(summary) = &model.summary {
        if model.as_of().is_some_and(|as_of| as_of.simulated) {
            right.push(("SIMULATED".into(), Tone::Warn));
        }
        if summary.dry_run {
            right.push(("DRY RUN".into(), Tone::Warn));
        }
        if !matches!(summary.mode(), Mode::Auto | Mode::Unspecified) {
            right.push((sentence::mode(summary.mode, false).to_uppercase(), Tone::Warn));
        }
        if summary.proposals > 0 {
            right.push((words::count(summary.proposals.into(), "proposal").to_uppercase(), Tone::Warn));
        }
        if summary.pauses > 0 {
            right.push((words::count(summary.pauses.into(), "pause").to_uppercase(), Tone::Warn));
        }
    }
    right.push(match (model.stale_nanos(), &model.link) {
        (Some(silent), _) => (format!("STALE {}", words::short_span(silent)), Tone::Bad),
        (None, Link::Lost { .. }) => ("NO ANSWER".into(), Tone::Bad),
        (None, Link::Connecting) => ("connecting".into(), Tone::Dim),
        (None, Link::Live) => ("live".into(), Tone::Good),
    });
    let mut left = vec![("BigFleet".to_owned(), Tone::Head)];
    if let (Some(summary), Some(as_of)) = (&model.summary, model.as_of()) {
        let unmet = if summary.unmet > 0 { Tone::Bad } else { Tone::Good };
        left.extend([
            (as_of.shard_id.clone(), Tone::Plain),
            (format!("cycle {}", words::thousands(as_of.cycle)), Tone::Plain),
            (model.clock(as_of.now_unix_nanos), Tone::Plain),
            (words::hourly(summary.usd_per_hour), Tone::Head),
            (format!("{} unmet", words::thousands(summary.unmet.into())), unmet),
        ]);
    } else {
        left.push((model.look.server.clone(), Tone::Dim));
    }
    let right = spans(&right, "  ", palette);
    let room = usize::from(area.width).saturating_sub(Line::from(right.clone()).width() + 2);
    // The figures at the end are read more often than the names before them.
    while left.len() > 1 && Line::from(spans(&left, "  ", palette)).width() > room {
        left.remove(0);
    }
    both_ends(frame, area, &spans(&left, "  ", palette), &right);
}

/// The numbered screens, and what was opened from the present one.
pub(super) fn path(frame: &mut Frame, area: Rect, model: &Model, palette: Palette) {
    let mut left: Vec<(String, Tone)> = Vec::new();
    // What was opened matters more than the other screens, and both may not fit.
    for (number, screen) in TABS.iter().enumerate() {
        let here = number == model.tab;
        if here || model.opened.is_empty() {
            left.push((
                format!("{} {}", number + 1, screen.title()),
                if here { Tone::Head } else { Tone::Dim },
            ));
        }
    }
    left.extend(model.opened.iter().map(|place| (format!("› {}", place.screen.title()), Tone::Head)));
    let place = model.place();
    let mut right = Vec::new();
    if !place.filter.is_empty() {
        right.push((format!("/{}", place.filter), Tone::Warn));
    }
    if let Some(sort) = place.screen.sorts().get(place.sort).filter(|_| place.sort > 0 || place.reversed) {
        right.push((format!("by {sort}{}", if place.reversed { ", reversed" } else { "" }), Tone::Dim));
    }
    both_ends(frame, area, &spans(&left, "  ", palette), &spans(&right, "  ", palette));
}

/// What can be done, or what is wrong.
pub(super) fn footer(frame: &mut Frame, area: Rect, model: &Model, palette: Palette) {
    if let Some(typing) = &model.typing {
        // The end of a long text is what is being typed.
        let wrong = model.told.as_ref().and_then(|told| told.as_ref().err());
        let wrong = wrong.map(|wrong| format!("  {wrong}")).unwrap_or_default();
        let room = usize::from(area.width).saturating_sub(2);
        let mut shown = typing.text.as_str();
        while shown.width() > room {
            shown = shown.char_indices().nth(1).map_or("", |(at, _)| &shown[at..]);
        }
        let sign = match typing.what {
            Typed::Filter => "/",
            Typed::Command => ":",
        };
        let wrong = fit(&wrong, room.saturating_sub(shown.width()));
        let line = Line::from(vec![
            Span::raw(sign),
            Span::raw(shown.to_owned()),
            Span::styled(" ", SELECTED),
            Span::styled(wrong, palette.style(Tone::Bad)),
        ]);
        frame.render_widget(line, area);
        return;
    }
    if let Some(told) = &model.told {
        let (text, tone) = match told {
            Ok(text) => (text, Tone::Good),
            Err(text) => (text, Tone::Bad),
        };
        let text = fit(&text.replace('\n', " "), usize::from(area.width));
        frame.render_widget(Line::from(Span::styled(text, palette.style(tone))), area);
        return;
    }
    let wrong = problem(model.place()).or_else(|| match &model.link {
        Link::Lost { why } => Some(why.clone()),
        _ => model.held_here().and_then(|held| held.refused.clone()),
    });
    if let Some(wrong) = wrong {
        let wrong = wrong.replace('\n', " ");
        let text = fit(&wrong, usize::from(area.width));
        frame.render_widget(Line::from(Span::styled(text, palette.style(Tone::Bad))), area);
        return;
    }
    let place = model.place();
    let mut keys = vec!["↑↓ move", "Enter open"];
    if !model.opened.is_empty() {
        keys.push("Esc back");
    }
    if place.screen.filters() {
        keys.extend(["/ filter", "s sort"]);
    }
    if matches!(place.screen, Screen::Fleet | Screen::Cluster(_)) {
        keys.push("p pause");
    }
    keys.extend(["1-4 screens", "? help", "q quit"]);
    let keys: Vec<(String, Tone)> = keys.into_iter().map(|key| (key.to_owned(), Tone::Dim)).collect();
    frame.render_widget(Line::from(spans(&keys, "  ", palette)), area);
}

fn spans(parts: &[(String, Tone)], between: &'static str, palette: Palette) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (text, tone) in parts {
        if !spans.is_empty() {
            spans.push(Span::raw(between));
        }
        spans.push(Span::styled(text.clone(), palette.style(*tone)));
    }
    spans
}

/// The right end first: what stands there must be seen.
fn both_ends(frame: &mut Frame, area: Rect, left: &[Span<'static>], right: &[Span<'static>]) {
    let right = Line::from(right.to_vec());
    let width = (right.width() as u16).min(area.width);
    let gap = if width > 0 { 2 } else { 0 };
    let rest = area.width.saturating_sub(width + gap);
    frame.render_widget(Line::from(left.to_vec()), Rect { width: rest, ..area });
    frame.render_widget(right, Rect { x: area.x + area.width - width, width, ..area });
}
