//! The limits as people read them are the limits as the code has them.

use bigfleet_model::limits;

const DOCUMENT: &str = include_str!("../../../docs/security.md");

#[test]
fn every_limit_stands_in_the_document_with_its_value() {
    let (_, table) = DOCUMENT.split_once("<!-- limits -->\n").expect("the table begins with a mark");
    let (table, _) = table.split_once("<!-- /limits -->").expect("the table ends with a mark");
    let row = |limit: &limits::Limit| {
        format!("| `{}` | {} | {} |", limit.name, grouped(limit.most), limit.what.trim())
    };
    let wanted: Vec<String> = limits::ALL.iter().map(row).collect();
    let head = ["| limit | most | of what |", "|---|---:|---|"].map(String::from);
    let wanted = [&head[..], &wanted].concat().join("\n");
    assert_eq!(table.trim(), wanted, "docs/security.md must say:\n{wanted}\n");
}

/// Digits in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|g| str::from_utf8(g).unwrap()).collect();
    groups.join(",")
}
