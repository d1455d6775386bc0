//! The small HTTP port: metrics, and two questions an orchestrator asks.

use std::fmt::Write as _;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::pages;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The older format, which everything that reads metrics knows.
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether a reader says it takes `OpenMetrics`. One that says nothing gets what is older.
fn takes_open_metrics(headers: &HeaderMap) -> bool {
    let all = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|kind| {
        let mut parts = kind.split(';').map(str::trim);
        let is_it = parts.next() == Some("application/openmetrics-text");
        is_it && !parts.any(|part| part == "q=0" || part == "q=0.0")
    })
}

/// The older format, from `OpenMetrics`: there a counter is known by the name of its samples, an info is a gauge, and units
/// and the end are not told.
fn as_plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help: Option<(&str, &str)> = None;
    for line in open_metrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                other => ("", other),
            };
            if let Some((_, said)) = help.take().filter(|(of, _)| *of == name) {
                let _ = writeln!(text, "# HELP {name}{suffix} {said}");
            }
            let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with("# UNIT ") && line != "# EOF" {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// `/metrics`, `/healthz` (the process answers) and `/readyz` (it also does its work, or says why not).
pub fn router<Ready, Metrics>(
    ready: impl Fn() -> Ready + Clone + Send + Sync + 'static,
    metrics: impl Fn() -> Metrics + Clone + Send + Sync + 'static,
) -> Router
where
    Ready: Future<Output = Result<(), String>> + Send + 'static,
    Metrics: Future<Output = String> + Send + 'static,
{
    let readiness = move || async move {
        match ready().await {
            Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
            Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        }
    };
    let scrape = move |headers: HeaderMap| async move {
        let text = metrics().await;
        if takes_open_metrics(&headers) {
            ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response()
        } else {
            ([(header::CONTENT_TYPE, PLAIN)], as_plain(&text)).into_response()
        }
    };
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readiness))
        .route("/metrics", get(scrape))
}

/// How many connections may be open at once: those who scrape are few.
const MOST_CONNECTIONS: usize = 128;

/// Serves until `stop`, few callers at once, and none that does not go on with what it began.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    pages::serve(listener, None, MOST_CONNECTIONS, app, stop).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_the_format_it_takes() {
        let takes = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            takes_open_metrics(&headers)
        };
        assert!(takes("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"));
        assert!(
            !takes("text/plain") && !takes("*/*") && !takes("application/openmetrics-text;q=0, text/plain")
        );
        assert!(!takes_open_metrics(&HeaderMap::new()));
    }

    #[test]
    fn counters_and_infos_have_the_names_of_their_samples_in_the_older_format() {
        let open = "# HELP x_calls Calls.\n# TYPE x_calls counter\nx_calls_total{a=\"b\"} 3\n# HELP x_build What.\n# TYPE x_build info\nx_build_info{v=\"1\"} 1\n# HELP x_age_seconds Age.\n# TYPE x_age_seconds gauge\n# UNIT x_age_seconds seconds\nx_age_seconds 2.5\n# EOF\n";
        let plain = "# HELP x_calls_total Calls.\n# TYPE x_calls_total counter\nx_calls_total{a=\"b\"} 3\n# HELP x_build_info What.\n# TYPE x_build_info gauge\nx_build_info{v=\"1\"} 1\n# HELP x_age_seconds Age.\n# TYPE x_age_seconds gauge\nx_age_seconds 2.5\n";
        assert_eq!(as_plain(open), plain);
    }
}
