//! How good decisions are in money: beside a bound nobody can beat, and what protection costs.

use bigfleet_view::v1::CostJudgement;

use crate::story::Story;
use crate::words::{count, usd_words};

/// Adds what was judged.
pub fn judged(story: &mut Story, judged: &CostJudgement) {
    if judged.method.starts_with("none") {
        story.say("bound", format!("no lower bound could be worked out ({})", judged.method));
    } else {
        let (paid, least) = (judged.paid_usd_per_hour, judged.bound_usd_per_hour);
        let ratio = if least > 0.0 { format!(", {:.2} x the bound", paid / least) } else { String::new() };
        let coarse = if judged.method == "exact" { "" } else { ", a coarse one" };
        story.say(
            "bound",
            format!(
                "rented machines that needs hold cost {}/h with their risk; no choice covers the same demand for less \
                 than {}/h{coarse}{ratio}",
                usd_words(paid),
                usd_words(least)
            ),
        );
        if judged.uncovered_needs > 0 {
            let left = count(judged.uncovered_needs.into(), "need");
            story.say(
                "bound",
                format!(
                    "without {left} that {} short",
                    if judged.uncovered_needs == 1 { "is" } else { "are" }
                ),
            );
        }
        // Two sums of the same prices in another order: less than a hundredth of a cent is nothing.
        let constraints = least - judged.unconstrained_usd_per_hour;
        let constraints = if constraints < 1e-4 { 0.0 } else { constraints };
        story.say(
            "constraints",
            format!("{}/h of that bound is for what needs require of machines", usd_words(constraints)),
        );
    }
    let (with, without) = (judged.protected_usd_per_hour, judged.unprotected_usd_per_hour);
    let (rare, often) = (judged.protected_interruptions_per_hour, judged.unprotected_interruptions_per_hour);
    story.say(
        "protection",
        format!(
            "penalties cost {}/h: bought afresh the demand rents for {}/h, without them for {}/h; they avoid {:.2} of {:.2} \
             interruptions a day",
            usd_words((with - without).max(0.0)),
            usd_words(with),
            usd_words(without),
            24.0 * (often - rare).max(0.0),
            24.0 * often
        ),
    );
}
