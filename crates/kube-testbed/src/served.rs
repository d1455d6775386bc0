//! How often an API server has answered, by its own count: for tests that assert how much was asked of it.

use kube::Client;

/// How many requests the server has answered whose series carries all of these labels, written as `name="value"`. Requests that
/// last, such as watches, count when they end.
pub async fn requests_served(client: &Client, labels: &[&str]) -> kube::Result<u64> {
    let request = http::Request::get("/metrics").body(Vec::new()).expect("a request");
    let text = client.request_text(request).await?;
    Ok(sum(&text, labels))
}

fn sum(text: &str, labels: &[&str]) -> u64 {
    let lines = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
    let lines = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_with_all_the_labels_are_added_up() {
        let text = "# TYPE apiserver_request_total counter\n\
            apiserver_request_total{code=\"200\",verb=\"GET\",resource=\"pods\"} 3\n\
            apiserver_request_total{code=\"429\",verb=\"POST\",resource=\"pods\"} 4\n\
            apiserver_request_total{code=\"200\",verb=\"GET\",resource=\"nodes\"} 5\n\
            apiserver_request_duration_seconds_count{code=\"200\",verb=\"GET\"} 9\n";
        assert_eq!(sum(text, &["verb=\"GET\""]), 8);
        assert_eq!(sum(text, &["verb=\"POST\"", "code=\"429\""]), 4);
        assert_eq!(sum(text, &["verb=\"PUT\""]), 0);
    }
}
