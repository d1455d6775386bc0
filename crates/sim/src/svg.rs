//! The picture of a run: supply, demand, cost and events over time.

use std::fmt::Write;

use crate::run::Outcome;
use crate::world::Point;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const PANEL: f64 = 150.0;
const GAP: f64 = 46.0;
const TOP: f64 = 50.0;

/// One line of a panel: its name, colour and value at a point.
type Curve = (&'static str, &'static str, fn(&Point) -> f64);

const PANELS: [(&str, &[Curve]); 3] = [
    (
        "machines",
        &[("bound", "#2b6cb0", |p| p.configured as f64), ("hardware", "#a0aec0", |p| p.hardware as f64)],
    ),
    ("pods", &[("wanted", "#2f855a", |p| p.wanted as f64), ("waiting", "#c53030", |p| p.waiting as f64)]),
    ("dollars an hour", &[("cost", "#6b46c1", |p| p.usd_per_hour)]),
];

/// Draws a run that lasted so many nanoseconds.
pub fn draw(name: &str, lasts: i64, outcome: &Outcome) -> String {
    let height = TOP + PANELS.len() as f64 * (PANEL + GAP) + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"26\" font-size=\"17\">{}</text>\n",
        escape(name)
    );
    let span = (lasts.max(1)) as f64;
    let x = |at: i64| LEFT + at as f64 / span * (WIDTH - LEFT - RIGHT);
    for (index, (title, curves)) in PANELS.iter().enumerate() {
        let top = TOP + index as f64 * (PANEL + GAP);
        panel(&mut svg, title, curves, &outcome.points, top, &x);
    }
    let bottom = TOP + PANELS.len() as f64 * (PANEL + GAP) - GAP;
    for (at, text) in &outcome.marks {
        let x = x(*at);
        writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#dd6b20\" stroke-dasharray=\"3 3\"><title>{}</title></line>",
            escape(text)
        )
        .expect("memory");
    }
    for tick in 0..=6 {
        let at = lasts / 6 * tick;
        let label = bigfleet_provider_sim::Span::from_nanos(at / 1_000_000_000 * 1_000_000_000);
        let (x, y) = (x(at), bottom + 18.0);
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#4a5568\">{label}</text>")
            .expect("memory");
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(
    svg: &mut String,
    title: &str,
    curves: &[Curve],
    points: &[Point],
    top: f64,
    x: &impl Fn(i64) -> f64,
) {
    let values = || points.iter().flat_map(|point| curves.iter().map(move |(_, _, value)| value(point)));
    let most = values().fold(1e-9, f64::max) * 1.08;
    let y = |value: f64| top + PANEL - value / most * PANEL;
    let right = WIDTH - RIGHT;
    for share in [0.0, 0.5, 1.0] {
        let (at, label) = (y(most * share), number(most * share));
        writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e2e8f0\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#4a5568\">{label}</text>",
            LEFT - 6.0,
            at + 4.0
        )
        .expect("memory");
    }
    writeln!(svg, "<text x=\"{LEFT}\" y=\"{:.1}\" font-weight=\"bold\">{title}</text>", top - 8.0)
        .expect("memory");
    for (index, (name, colour, value)) in curves.iter().enumerate() {
        let line: Vec<String> =
            points.iter().map(|point| format!("{:.1},{:.1}", x(point.at), y(value(point)))).collect();
        writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{name}</text>",
            line.join(" "),
            LEFT + 140.0 + 90.0 * index as f64,
            top - 8.0
        )
        .expect("memory");
    }
}

fn number(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
