//! `bigfleet context`, the environment, and the file a running `bigfleet up` leaves.

use std::fs;

use crate::fake::Server;
use crate::run::{Said, User};

#[test]
fn contexts_are_made_chosen_used_and_forgotten() {
    let (server, user) = (Server::start(), User::new());
    let none = user.run(&["context", "list"]);
    assert!(none.out.is_empty() && none.err.contains("no contexts"), "{none:?}");
    user.run(&["context", "set", "lab", "--server", &server.url]).fine();
    user.run(&["context", "set", "far", "--server", "127.0.0.1:1"]).fine();
    let list = user.run(&["context", "list"]).fine();
    let list: Vec<serde_json::Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(list[0]["name"], "far");
    assert_eq!(list[1]["current"], true, "the first one made is the current one");
    assert_eq!(
        user.run(&["get", "sessions", "-o", "name"]).fine(),
        "batch\nml\nshop\n",
        "by the current context"
    );
    assert_eq!(user.run(&["get", "sessions", "--context", "far"]).code, 3);
    user.run(&["context", "use", "far"]).fine();
    let shown: serde_json::Value = serde_json::from_str(&user.run(&["context", "show"]).fine()).unwrap();
    assert_eq!(shown["source"], "from context far");
    user.run(&["context", "rm", "far"]).fine();
    let shown: serde_json::Value = serde_json::from_str(&user.run(&["context", "show"]).fine()).unwrap();
    assert_eq!(
        (&shown["server"], &shown["source"]),
        (&"http://127.0.0.1:7780".into(), &"the default".into())
    );
    let wrong = user.run(&["context", "use", "lba"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("did you mean lab?"), "{}", wrong.err);
    let wrong = user.run(&["context", "set", "new"]);
    assert!(wrong.err.contains("needs a server"), "{}", wrong.err);
}

#[test]
fn what_people_wrote_around_it_stays() {
    let user = User::new();
    let path = user.home.path().join(".config/bigfleet/config.toml");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "# mine\ncurrent = \"a\"\n[contexts.a] # the old one\nserver = \"h:1\"\n").unwrap();
    user.run(&["context", "set", "b", "--server", "h:2", "--tls-ca", "ca.pem", "--use"]).fine();
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("# mine") && text.contains("# the old one") && text.contains("current = \"b\""),
        "{text}"
    );
    assert!(text.contains("/ca.pem\""), "files are kept by their whole path: {text}");
    user.run(&["context", "set", "b", "--tls-ca", ""]).fine();
    assert!(!fs::read_to_string(&path).unwrap().contains("ca.pem"));
}

#[test]
fn a_bad_config_file_is_refused_with_its_line() {
    let user = User::new();
    let path = user.home.path().join("bad.toml");
    for (text, part) in [
        ("current = \"a\"\ncurent = \"b\"\n", "curent"), // typos: ignore
        ("[contexts.a]\nserver = 5\n", "line 2"),
        ("[contexts.a]\n", "server"),
        ("nonsense", "line 1"),
    ] {
        fs::write(&path, text).unwrap();
        let said = Said::of(user.command(&["get", "needs"]).env("BIGFLEET_CONFIG", &path).output().unwrap());
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains("bad.toml") && said.err.contains(part), "{text}: {}", said.err);
    }
}

#[test]
fn the_environment_and_a_running_up_are_asked_in_turn() {
    let (server, user) = (Server::start(), User::new());
    let sessions = |variables: &[(&str, &str)]| {
        let mut command = user.command(&["get", "sessions", "-o", "name"]);
        Said::of(command.envs(variables.iter().copied()).output().unwrap())
    };
    assert_eq!(sessions(&[("BIGFLEET_SERVER", &server.url)]).fine(), "batch\nml\nshop\n");
    let path = user.home.path().join(".local/state/bigfleet/up.json");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{{\"server\":\"{}\"}}", server.url)).unwrap();
    assert_eq!(sessions(&[]).fine(), "batch\nml\nshop\n");
    fs::write(&path, "{\"server\":\"http://127.0.0.1:1\"}").unwrap();
    let gone = sessions(&[]);
    assert_eq!(gone.code, 3);
    assert!(
        gone.err.contains("has ended without clearing up") && gone.err.contains("up.json"),
        "{}",
        gone.err
    );
}
