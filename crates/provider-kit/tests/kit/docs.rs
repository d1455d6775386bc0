//! The example in the documentation is the one that compiles, and it is short.

const EXAMPLE: &str = include_str!("../../examples/minimal.rs");
const PAGE: &str = include_str!("../../../../docs/providers.md");

#[test]
fn a_whole_provider_takes_less_than_a_hundred_lines() {
    assert!(EXAMPLE.lines().count() < 100, "{} lines", EXAMPLE.lines().count());
}

#[test]
fn the_page_shows_the_example_as_it_is() {
    assert!(
        PAGE.contains(&format!("```rust\n{EXAMPLE}```\n")),
        "copy examples/minimal.rs into docs/providers.md"
    );
}
