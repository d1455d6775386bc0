//! What is written reads back as it was.

use bigfleet_model::resource::ResourceVec;
use bigfleet_scenario::{Answer, input, vectors};

#[test]
fn every_vector_survives_being_written_and_read() {
    let vectors = vectors::all().expect("the vectors are in the checkout");
    assert!(vectors.len() >= 351, "only {} vectors", vectors.len());
    for vector in vectors {
        let mut page = Vec::new();
        input::write(&mut page, &vector.scenario).expect("writing to memory");
        assert_eq!(input::read(&page).expect(&vector.name), vector.scenario, "{}", vector.name);

        let mut file = Vec::new();
        input::write_vector(&mut file, &vector.name, &vector.what, &vector.scenario, &vector.expect)
            .expect("writing to memory");
        let copy = input::read_vector(&file).expect(&vector.name);
        assert_eq!((&copy.name, &copy.what), (&vector.name, &vector.what));
        assert_eq!(copy.scenario, vector.scenario, "{}", vector.name);
        assert_eq!(copy.expect, vector.expect, "{}", vector.name);
        // A vector file is understood where a bare input is expected.
        assert_eq!(input::read(&file).expect(&vector.name), vector.scenario, "{}", vector.name);
    }
}

#[test]
fn every_record_read_from_a_vector_is_one_a_provider_could_send() {
    for vector in vectors::all().expect("the vectors are in the checkout") {
        for machine in &vector.scenario.machines {
            machine.check().expect(&vector.name);
        }
    }
}

#[test]
fn lines_hold_a_scenario_each() {
    let vectors = vectors::all().expect("the vectors are in the checkout");
    let mut text = Vec::new();
    for vector in &vectors {
        input::write_line(&mut text, &vector.name, &vector.scenario).expect("writing to memory");
        text.extend_from_slice(b"\n");
    }
    let lines: Vec<_> = input::lines(&*text).collect::<Result<_, _>>().expect("all lines are good");
    assert_eq!(lines.len(), vectors.len());
    for (line, vector) in lines.iter().zip(&vectors) {
        assert_eq!((&line.name, &line.scenario), (&vector.name, &vector.scenario));
    }
}

#[test]
fn a_bad_line_is_named_and_the_next_is_read() {
    let text = b"{\"needs\": []}\n\n{\"needs\": 1}\n{\"name\": \"last\", \"input\": {}}\n";
    let read: Vec<_> = input::lines(&text[..]).collect();
    assert_eq!(read.len(), 3);
    assert!(read[0].is_ok());
    assert!(read[1].as_ref().unwrap_err().to_string().starts_with("line 3: "));
    assert_eq!(read[2].as_ref().unwrap().name, "last");
}

#[test]
fn numbers_keep_every_bit() {
    for text in ["0.30000000000000004", "5e-324", "1.7976931348623157e308", "0.1", "9007199254740993"] {
        let json = format!(r#"{{"machines": [{{"id": "m", "state": "Idle", "price": {text}}}]}}"#);
        let scenario = input::read(json.as_bytes()).unwrap();
        let price: f64 = text.parse().unwrap();
        assert_eq!(scenario.machines[0].price_usd_per_hour.to_bits(), price.to_bits(), "{text}");
        let mut copy = Vec::new();
        input::write(&mut copy, &scenario).unwrap();
        let copy = input::read(&copy).unwrap();
        assert_eq!(copy.machines[0].price_usd_per_hour.to_bits(), price.to_bits(), "{text}");
    }
}

#[test]
fn a_negative_zero_is_stored_as_zero() {
    let json =
        br#"{"machines": [{"id": "m", "state": "Idle", "price": -0.0, "interruption_probability": -0.0,
        "assigned_interruption_penalty": -0.0, "assigned_reclamation_penalty": -0.0}]}"#;
    let machine = &input::read(json).unwrap().machines[0];
    for number in [
        machine.price_usd_per_hour,
        machine.interruption_probability,
        machine.assigned.interruption_penalty_usd,
        machine.assigned.reclamation_penalty_usd,
    ] {
        assert_eq!(number.to_bits(), 0);
    }
}

#[test]
fn rows_of_one_identity_are_one_need() {
    let json = br#"{"machines": [
        {"id": "a", "state": "Configured", "cluster": "c1", "assigned_need": 2},
        {"id": "b", "state": "Draining", "cluster": "c1", "draining_for": {"need": 3}}], "needs": [
        {"cluster": "c1", "aggregate": {"cpu": "9223372036854775"}, "min_unit": {"cpu": "1", "memory": "4"}, "arrival_unix_nanos": 7},
        {"cluster": "c2", "aggregate": {"cpu": "1"}, "arrival_unix_nanos": 9},
        {"cluster": "c1", "aggregate": {"cpu": "5", "memory": "8"}, "min_unit": {"cpu": "2"}, "arrival_unix_nanos": 0},
        {"cluster": "c1", "priority": 3, "requirements": [{"key": "rack", "op": "Same"}], "group": "g", "parked": true},
        {"cluster": "c1", "priority": 3, "requirements": [{"key": "rack", "op": "Same"}], "group": "g"}]}"#;
    let scenario = input::read(json).unwrap();
    let vector = |amounts: &[(&str, &str)]| ResourceVec::parse(amounts.iter().copied()).unwrap();
    assert_eq!(scenario.needs.len(), 3);
    let merged = &scenario.needs[0];
    // The sum stops at the largest amount there is, each dimension of the piece is the largest, and 0 is an
    // instant like any other.
    assert_eq!(merged.aggregate, vector(&[("cpu", "9223372036854775807m"), ("memory", "8")]));
    assert_eq!(merged.min_unit, vector(&[("cpu", "2"), ("memory", "4")]));
    assert_eq!(merged.first_seen_unix_nanos, 0);
    assert_eq!(scenario.needs[1].first_seen_unix_nanos, 9);
    assert!(!scenario.needs[2].parked, "one of its rows is not parked");
    // Pointers are by row, whatever became of the rows before it.
    assert_eq!(scenario.machines[0].assigned.fingerprint, merged.key().fingerprint);
    assert_eq!(scenario.machines[1].draining_for, Some(scenario.needs[2].key()));
}

#[test]
fn equal_answers_have_equal_text() {
    for vector in vectors::all().expect("the vectors are in the checkout") {
        let text = serde_json::to_string(&vector.expect).unwrap();
        let again: Answer = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }
}
