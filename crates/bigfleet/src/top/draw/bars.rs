//! The supply bars.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::output::Tone;

use super::super::page::Bar;
use super::palette::Palette;
use super::rows::{fit, pad};

/// The sign and tone of each part.
const SIGNS: [(&str, Tone); 5] =
    [("█", Tone::Good), ("▓", Tone::Warn), ("░", Tone::Plain), ("x", Tone::Bad), ("·", Tone::Dim)];

/// One line a bar: its name, the bar, the money and what it is made of.
pub(super) fn lines(bars: &[Bar], room: usize, palette: Palette) -> Vec<Line<'static>> {
    let widest = |text: fn(&Bar) -> &str| bars.iter().map(|bar| text(bar).width()).max().unwrap_or(0);
    let (label, figure, text) =
        (widest(|bar| &bar.label), widest(|bar| &bar.figure), widest(|bar| &bar.text));
    let length = room.saturating_sub(label + figure + text + 6).clamp(10, 60).min(room);
    let line = |bar: &Bar| {
        let mut spans = vec![Span::raw(pad(&bar.label, label, false)), Span::raw("  ")];
        for (cells, (sign, tone)) in shares(bar.parts, length).into_iter().zip(SIGNS) {
            spans.push(Span::styled(sign.repeat(cells), palette.style(tone)));
        }
        let used = shares(bar.parts, length).iter().sum::<usize>();
        spans.push(Span::raw(" ".repeat(length - used + 2)));
        spans.push(Span::styled(pad(&bar.figure, figure, true), palette.style(Tone::Head)));
        let rest = room.saturating_sub(label + length + figure + 6);
        spans.push(Span::raw("  "));
        spans.push(Span::raw(fit(&bar.text, rest)));
        Line::from(spans)
    };
    bars.iter().map(line).collect()
}

/// Deals `cells` out in proportion. Whatever is there at all gets a cell if there are enough: one broken machine among
/// ten thousand is worth seeing.
fn shares(parts: [u64; 5], cells: usize) -> [usize; 5] {
    let total: u128 = parts.iter().map(|part| u128::from(*part)).sum();
    if total == 0 {
        return [0; 5];
    }
    let mut shares = parts.map(|part| (u128::from(part) * cells as u128 / total) as usize);
    for (share, part) in shares.iter_mut().zip(parts) {
        if part > 0 {
            *share = (*share).max(1);
        }
    }
    // Rounding leaves too few or too many: the largest part bears it.
    while shares.iter().sum::<usize>() != cells {
        let largest = (0..5).max_by_key(|at| (shares[*at], parts[*at])).unwrap_or(0);
        if shares.iter().sum::<usize>() < cells {
            shares[largest] += 1;
        } else if shares[largest] > 0 {
            shares[largest] -= 1;
        } else {
            break;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_seen_and_the_bar_is_full() {
        assert_eq!(shares([0; 5], 10), [0; 5]);
        assert_eq!(shares([5, 0, 5, 0, 0], 10), [5, 0, 5, 0, 0]);
        assert_eq!(shares([10_000, 0, 0, 1, 0], 10), [9, 0, 0, 1, 0]);
        assert_eq!(shares([1, 1, 1, 0, 0], 10).iter().sum::<usize>(), 10);
        assert_eq!(shares([u64::MAX; 5], 10), [2; 5]);
        assert_eq!(shares([1, 1, 1, 1, 1], 3).iter().sum::<usize>(), 3);
        assert_eq!(shares([1, 1, 1, 1, 1], 0), [0; 5]);
    }
}
