//! What templates give, and what is refused where.

use bigfleet_model::requirement::Operator;
use proptest::prelude::*;

use super::*;

fn render(template: &str, requirements: &[Requirement]) -> String {
    let template = Template::parse(template).unwrap();
    template.render(Fill { cluster_id: "shop", requirements, join_token: "abc.def" }).unwrap()
}

fn two() -> Vec<Requirement> {
    vec![
        Requirement::is_in("zone", ["a", "b"]),
        Requirement::new("gpu", Operator::Exists, Vec::<String>::new()),
    ]
}

#[test]
fn every_form_of_the_subset() {
    for (template, expected) in [
        ("plain {text} }", "plain {text} }"),
        ("join {{ .ClusterID }}!", "join shop!"),
        ("{{.ClusterID}}{{/* a note */}}{{.JoinToken}}", "shopabc.def"),
        ("a  {{- .ClusterID -}} \n b", "ashopb"),
        ("a {{- /* note */ -}} b", "ab"),
        ("{{range .Requirements}}{{.Key}} {{.Operator}} {{.Values}};{{end}}", "zone In [a b];gpu Exists [];"),
        (
            "{{range .Requirements}}{{range .Values}}{{.}},{{else}}none in {{$.ClusterID}}{{end}}|{{end}}",
            "a,b,|none in shop|",
        ),
        ("{{if .Requirements}}some{{else}}none{{end}}", "some"),
        ("{{range .Requirements}}{{if .Values}}{{.Key}}{{end}}{{end}}", "zone"),
    ] {
        assert_eq!(render(template, &two()), expected, "{template}");
    }
    assert_eq!(render("{{if .Requirements}}some{{else}}none{{end}}", &[]), "none");
    assert_eq!(render("{{range .Requirements}}x{{else}}{{.ClusterID}}{{end}}", &[]), "shop");
    assert!(Template::parse("{{range .Requirements}}{{$.JoinToken}}{{end}}").unwrap().wants_token());
    assert!(!Template::parse("{{.ClusterID}}").unwrap().wants_token());
}

#[test]
fn everything_else_is_refused_where_it_stands() {
    for (template, line, column, part) in [
        ("a\n  {{ .Cluster }}", 2, 3, "\".Cluster\" is not known here"),
        ("{{ .Key }}", 1, 1, "not known here"),
        ("{{ range .Values }}{{ end }}", 1, 1, "cannot be listed here"),
        ("é{{ printf \"%s\" .ClusterID }}", 1, 2, "not in the subset"),
        ("{{ .ClusterID | quote }}", 1, 1, "not in the subset"),
        ("{{ $x := .ClusterID }}", 1, 1, "not in the subset"),
        ("{{ with .ClusterID }}{{ end }}", 1, 1, "not in the subset"),
        ("{{ define \"x\" }}", 1, 1, "not in the subset"),
        ("{{ if .Requirements }}{{ else if .Values }}{{ end }}", 1, 23, "not in the subset"),
        ("{{ range .Requirements }}{{ .ClusterID }}{{ end }}", 1, 26, "$.ClusterID"),
        ("{{ if .Requirements }}", 1, 1, "this if has no end"),
        ("{{ end }}", 1, 1, "an end without"),
        ("{{ else }}", 1, 1, "an else without"),
        ("{{ if .Requirements }}{{ else }}{{ else }}{{ end }}", 1, 33, "an else without"),
        ("{{ .ClusterID", 1, 1, "not closed"),
        ("{{ }}", 1, 1, "nothing stands"),
        ("{{/* x", 1, 1, "no end"),
        ("{{/* x */ .Key}}", 1, 1, "stands alone"),
    ] {
        let error = Template::parse(template).unwrap_err();
        let TemplateError::At { line: l, column: c, problem } = &error else { panic!("{error}") };
        assert_eq!((*l, *c), (line, column), "{template}: {error}");
        assert!(problem.contains(part), "{template}: {error}");
    }
    let long = "x".repeat(LONGEST_TEMPLATE_BYTES + 1);
    assert_eq!(Template::parse(&long), Err(TemplateError::TooLong(LONGEST_TEMPLATE_BYTES + 1)));
    let deep = "{{if .Requirements}}".repeat(17);
    assert!(Template::parse(&deep).unwrap_err().to_string().contains("more than 16"));
}

#[test]
fn what_it_renders_to_has_a_bound() {
    let many: Vec<Requirement> = (0..64).map(|n| Requirement::is_in(format!("k{n}"), ["v"])).collect();
    let body = "x".repeat(100_000);
    let template = Template::parse(&format!("{{{{range .Requirements}}}}{body}{{{{end}}}}")).unwrap();
    let fill = Fill { cluster_id: "shop", requirements: &many, join_token: "" };
    assert_eq!(template.render(fill), Err(RenderedTooLong));
}

proptest! {
    #[test]
    fn any_text_is_taken_or_refused_and_never_panics(text in "([{}\\-/* .a-z\n]|\\{\\{|\\}\\}|range|if|end|else|\\.Requirements|\\.Values){0,40}") {
        if let Ok(template) = Template::parse(&text) {
            let fill = Fill { cluster_id: "shop", requirements: &two(), join_token: "" };
            prop_assert!(template.render(fill).is_ok());
        }
    }
}
