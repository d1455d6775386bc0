//! Walks are as short as the page says, and strangers find what they look for where it says.

use bigfleet_house::expect_none;
use bigfleet_house::walks::{defines, questions, walks, wrong_walks};
use bigfleet_house::workspace::{files, read, root};

#[test]
fn every_walk_is_as_short_as_it_says() {
    let walks = walks(&read(&root().join("ARCHITECTURE.md")));
    assert_eq!(walks.len(), 4, "{walks:?}");
    expect_none(&wrong_walks(&walks, |file| root().join(file).is_file()));
}

#[test]
fn every_question_leads_to_its_room() {
    let questions = questions(&read(&root().join("ARCHITECTURE.md")));
    assert!(questions.len() >= 10, "{questions:?}");
    let lost = questions.iter().filter(|question| {
        let sources = files(&root().join(&question.folder), "rs");
        !sources.iter().any(|path| defines(&read(path), &question.item))
    });
    let lost: Vec<String> = lost
        .map(|question| format!("{:?}: {} is not in {}", question.asked, question.item, question.folder))
        .collect();
    expect_none(&lost);
}
