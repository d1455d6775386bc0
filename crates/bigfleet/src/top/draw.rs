//! The model on a terminal of any size.
//!
//! Nothing here sets a background or names black or white, so that dark and light terminals both work; what colour
//! says is said by words or signs too, so that none is needed.

mod bars;
mod frame;
mod palette;
mod panes;
mod rows;
mod text;

use bigfleet_model::text::is_hidden;
use ratatui::Frame;
use ratatui::layout::Rect;

use super::model::Model;
use super::page::Form;
use super::pages::page;

use palette::Palette;

/// Draws everything.
pub(crate) fn draw(frame: &mut Frame, model: &Model) {
    paint(frame, model);
    // Whatever way a text took here: a terminal gets nothing that it would obey instead of show.
    for cell in frame.buffer_mut().content.iter_mut().filter(|cell| cell.symbol().contains(is_hidden)) {
        cell.set_symbol("\u{fffd}");
    }
}

fn paint(frame: &mut Frame, model: &Model) {
    let area = frame.area();
    let palette = Palette { coloured: model.look.coloured };
    let page = page(model);
    let stops = page.stops();
    let cursor = (!stops.is_empty()).then(|| model.cursor(&stops));
    let line = |y: u16| Rect { y: area.y + y, height: 1, ..area };
    let height = area.height;
    if height > 0 {
        frame::header(frame, line(0), model, palette);
    }
    if height > 2 {
        frame::footer(frame, line(height - 1), model, palette);
    }
    // Where there is hardly any room, the content needs it more than the way to it.
    let above = if height > 5 { 2 } else { 1 };
    if above == 2 {
        frame::path(frame, line(1), model, palette);
    }
    let below = u16::from(height > 2);
    let body = Rect { y: area.y + above.min(height), height: height.saturating_sub(above + below), ..area };
    if body.height == 0 || body.width == 0 {
        return;
    }
    match page.form {
        Form::Panes => panes::draw(frame, body, &page, cursor, palette),
        Form::Text => text::draw(frame, body, &page, cursor, palette),
    }
}
