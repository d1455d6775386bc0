//! The page itself, embedded: nothing is fetched from elsewhere, and nobody needs Node to build the program.
//!
//! `web/` holds the sources; `scripts/web build` makes these files from them, and a test makes them again and compares.

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA256, digest};
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;

use crate::answer::{gzip, takes_gzip};
use crate::tokens::hex;

struct Asset {
    path: &'static str,
    kind: &'static str,
    body: &'static [u8],
}

const ASSETS: &[Asset] = &[
    Asset { path: "/", kind: "text/html; charset=utf-8", body: include_bytes!("../assets/index.html") },
    Asset {
        path: "/app.js",
        kind: "text/javascript; charset=utf-8",
        body: include_bytes!("../assets/app.js"),
    },
    Asset { path: "/app.css", kind: "text/css; charset=utf-8", body: include_bytes!("../assets/app.css") },
    Asset { path: "/icon.svg", kind: "image/svg+xml", body: include_bytes!("../assets/icon.svg") },
];

struct Ready {
    packed: Bytes,
    tag: String,
}

/// Compressed once, when somebody first asks.
static READY: LazyLock<Vec<Ready>> = LazyLock::new(|| {
    let ready = |asset: &Asset| {
        let tag = hex(&digest(&SHA256, asset.body).as_ref()[..12]);
        Ready { packed: gzip(asset.body, Compression::best()).into(), tag }
    };
    ASSETS.iter().map(ready).collect()
});

/// A file of the page.
pub(crate) async fn asset(uri: Uri, headers: HeaderMap) -> Response {
    let Some(at) = ASSETS.iter().position(|asset| asset.path == uri.path()) else {
        return (StatusCode::NOT_FOUND, "nothing here; the page is at /\n").into_response();
    };
    let (asset, ready) = (&ASSETS[at], &READY[at]);
    let tag = format!("\"{}\"", ready.tag);
    let has = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()) == Some(tag.as_str());
    let response = Response::builder()
        .header(header::CONTENT_TYPE, asset.kind)
        .header(header::CACHE_CONTROL, "no-cache")
        .header(header::VARY, "accept-encoding")
        .header(header::ETAG, &tag);
    let response = if has {
        response.status(StatusCode::NOT_MODIFIED).body(Body::empty())
    } else if takes_gzip(&headers) {
        response.header(header::CONTENT_ENCODING, "gzip").body(Body::from(ready.packed.clone()))
    } else {
        response.body(Body::from(asset.body))
    };
    response.expect("constant headers are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a browser must fetch before it shows anything.
    const MOST_BYTES: usize = 150 * 1024;

    #[test]
    fn the_whole_page_is_small() {
        let all: usize = READY.iter().map(|ready| ready.packed.len()).sum();
        assert!(all <= MOST_BYTES, "{all} bytes compressed");
    }

    #[test]
    fn the_page_runs_no_inline_script_and_fetches_nothing_from_elsewhere() {
        let html = std::str::from_utf8(ASSETS[0].body).unwrap();
        assert!(html.contains("src=\"/app.js\"") && html.contains("href=\"/app.css\""), "{html}");
        assert!(!html.contains("://") && !html.contains("<style") && !html.contains(" style="), "{html}");
        assert_eq!(html.matches("<script").count(), 1);
    }
}
