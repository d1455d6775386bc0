//! The cases the fuzzer saved, and mutations of them: the engine and the oracle must agree on all.

mod check;

use std::path::Path;

use bigfleet_scenario::seed::Seed;

/// The saved cases, in the order of their names.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/cycle");
    let mut paths: Vec<_> =
        folder.read_dir().expect("the corpus is there").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a readable file")).collect()
}

#[test]
fn the_saved_corpus_obeys_the_laws() {
    let corpus = corpus();
    assert!(corpus.len() >= 40, "only {} saved cases", corpus.len());
    let files = corpus.iter().filter(|bytes| bytes.first() == Some(&b'{')).count();
    assert!((10..corpus.len() - 10).contains(&files), "{files} of {} are files", corpus.len());
    let checked = corpus.iter().filter(|bytes| check::check(bytes)).count();
    assert!((30..corpus.len() - 4).contains(&checked), "{checked} of {} were cases", corpus.len());
}

/// A small fuzzer without coverage: the same cases on every machine and in every run.
#[test]
fn mutations_of_the_saved_corpus_obey_the_laws() {
    const ROUNDS: usize = 1_500;
    let corpus = corpus();
    let mut seed = Seed::new(3);
    let mut checked = 0;
    for _ in 0..ROUNDS {
        let mut bytes = seed.pick(&corpus).clone();
        for _ in 0..=seed.below(4) {
            let at = seed.below(bytes.len() as u64 + 1) as usize;
            match seed.below(4) {
                0 => bytes.insert(at, seed.below(256) as u8),
                1 if at < bytes.len() => bytes[at] = seed.below(256) as u8,
                2 if at < bytes.len() => {
                    bytes.remove(at);
                }
                3 if bytes.first() != Some(&b'{') => bytes.extend_from_slice(seed.pick::<Vec<u8>>(&corpus)),
                _ => {}
            }
        }
        checked += usize::from(check::check(&bytes));
    }
    assert!(checked > ROUNDS / 4, "only {checked} of {ROUNDS} mutations were cases");
}
