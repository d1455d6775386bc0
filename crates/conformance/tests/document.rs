//! The page about the suite shows the catalogue as it is.

use std::path::Path;

const BEGIN: &str = "<!-- behaviours -->\n";
const END: &str = "<!-- end of behaviours -->\n";

#[test]
fn the_page_holds_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    let page = std::fs::read_to_string(&path).expect("docs/conformance.md can be read");
    let (head, rest) = page.split_once(BEGIN).expect("the mark before the tables");
    let (table, tail) = rest.split_once(END).expect("the mark after the tables");
    let expected = bigfleet_conformance::markdown();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{expected}{END}{tail}"))
            .expect("docs/conformance.md can be written");
        return;
    }
    assert_eq!(
        table, expected,
        "write the page anew: BLESS=1 cargo test -p bigfleet-conformance --test document"
    );
}
