//! Lists: pages, filters, and what is wrong with a query.

use crate::support::{Client, TestService, exchange, pointers, tool, webhook};
use serde_json::{Value, json};
use std::io::Read as _;

/// Reads a list page by page; `between` happens after each page.
async fn pages(client: &Client, path: &str, limit: usize, mut between: impl AsyncFnMut(usize)) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let page = client.get(&format!("{path}{sign}limit={limit}{cursor}")).await.with(200);
        pages.push(page["data"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else { return pages };
        cursor = format!("&cursor={next}");
        between(pages.len()).await;
    }
}

fn names(pages: &[Vec<Value>], key: &str) -> Vec<String> {
    pages.iter().flatten().map(|row| row[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tools_come_in_pages_that_stay_stable_while_others_write() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    let body = |name: &str| tool(name, &json!("h"), &json!({}));
    // In the order of bytes: capitals, then `_`, then small letters.
    let expected = ["A1", "B_", "B__", "Z", "_", "a", "a-b", "a_b", "b"];
    for name in ["b", "a_b", "Z", "_", "a", "B__", "a-b", "A1", "B_"] {
        acme.editor.post("/v1/tools", &body(name)).await.with(201);
    }
    let all = pages(&acme.viewer, "/v1/tools", 2, async |_| {}).await;
    assert_eq!(names(&all, "name"), expected);
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 2, 1]);
    let exact = pages(&acme.viewer, "/v1/tools", 9, async |_| {}).await;
    assert_eq!(exact.len(), 1, "an empty last page");
    let written = pages(&acme.viewer, "/v1/tools", 3, async |page| {
        if page == 1 {
            acme.editor.delete("/v1/tools/B__").await.with(204); // the last that was seen
            acme.editor.post("/v1/tools", &body("AA")).await.with(201); // before it
            acme.editor.post("/v1/tools", &body("a0")).await.with(201); // after it
        }
    })
    .await;
    assert_eq!(names(&written, "name"), ["A1", "B_", "B__", "Z", "_", "a", "a-b", "a0", "a_b", "b"]);
}

#[tokio::test]
async fn every_list_has_pages() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for n in 0..5 {
        service.operator().put(&format!("/v1/tenants/t{n}"), &json!({})).await.with(201);
        acme.editor.put(&format!("/v1/handlers/h{n}"), &webhook()).await.with(201);
        acme.editor.put("/v1/tools/t", &tool("t", &json!(format!("h{n}")), &json!({}))).await;
        acme.agent.post("/v1/tools/calculate/calls", &json!({"input": {"expression": "1"}})).await.with(200);
    }
    for (client, path, key, least) in [
        (&service.operator(), "/v1/tenants", "name", 6),
        (&acme.admin, "/v1/keys", "id", 4),
        (&acme.editor, "/v1/handlers", "name", 5),
        (&acme.viewer, "/v1/tools/t/versions", "created_at", 5),
        (&acme.viewer, "/v1/calls", "id", 5),
    ] {
        let whole = pages(client, path, 200, async |_| {}).await;
        let single = pages(client, path, 1, async |_| {}).await;
        assert_eq!(names(&single, key), names(&whole, key), "{path}");
        assert_eq!((whole.len(), single.len()), (1, least), "{path}");
    }
}

#[tokio::test]
async fn a_page_has_fifty_rows_where_the_request_does_not_say() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    for n in 0..51 {
        acme.editor.post("/v1/tools", &tool(&format!("t{n}"), &json!("h"), &json!({}))).await.with(201);
    }
    assert_eq!(acme.viewer.get("/v1/tools").await.with(200)["data"].as_array().unwrap().len(), 50);
    assert_eq!(acme.viewer.get("/v1/tools?limit=200").await.with(200)["data"].as_array().unwrap().len(), 51);
}

#[tokio::test]
async fn tools_are_filtered_by_tag_handler_state_and_text() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for handler in ["h", "i"] {
        acme.editor.put(&format!("/v1/handlers/{handler}"), &webhook()).await.with(201);
    }
    for (name, handler, more) in [
        ("a", json!("h"), json!({"tags": ["x", "y"], "description": "Finds 100% of weather"})),
        ("b", json!("h"), json!({"tags": ["y"], "enabled": false})),
        ("c_d", json!("i"), json!({"tags": ["x"], "description": "WEATHER by \\night"})),
        ("own", webhook(), json!({})),
    ] {
        acme.editor.post("/v1/tools", &tool(name, &handler, &more)).await.with(201);
    }
    for (query, expected) in [
        ("tag=x", vec!["a", "c_d"]),
        ("tag=x&handler=h", vec!["a"]),
        ("tag=z", vec![]),
        ("handler=i", vec!["c_d"]),
        ("handler=", vec![]),
        ("enabled=false", vec!["b"]),
        ("enabled=true&tag=y", vec!["a"]),
        ("q=weather", vec!["a", "c_d"]),
        ("q=_", vec!["c_d"]),
        ("q=%25", vec!["a"]),
        ("q=%5Cn", vec!["c_d"]),
        ("q=C_", vec!["c_d"]),
        ("q=w%25r", vec![]),
        ("tag=X", vec![]),
        ("q=", vec!["a", "b", "c_d", "own"]),
    ] {
        let got = pages(&acme.viewer, &format!("/v1/tools?{query}"), 1, async |_| {}).await;
        assert_eq!(names(&got, "name"), expected, "{query}");
    }
}

#[tokio::test]
async fn everything_wrong_with_a_query_is_told_by_its_name() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for (path, expected) in [
        (
            "/v1/tools?limit=0&cursor=!&enabled=maybe&colour=red&colour=blue",
            vec!["limit", "cursor", "enabled", "colour", "colour"],
        ),
        ("/v1/tools?limit=201", vec!["limit"]),
        ("/v1/tools?limit=-1", vec!["limit"]),
        ("/v1/tools?limit=", vec!["limit"]),
        ("/v1/tools?limit=99999999999999999999", vec!["limit"]),
        ("/v1/tools?limit=1&limit=2", vec!["limit"]),
        ("/v1/tools?cursor=AA", vec!["cursor"]),
        ("/v1/tools?q=%00", vec!["q"]),
        ("/v1/tools?tag=%00", vec!["tag"]),
        ("/v1/tools?cursor=_w", vec!["cursor"]),
        ("/v1/calls?status=odd&since=yesterday&until=2026-11-30&tool=%00", vec!["tool", "status", "since", "until"]),
        ("/v1/calls?cursor=YQ", vec!["cursor"]),
        ("/v1/calls?until=9999-12-31T23:59:59-23:59", vec!["until"]),
        ("/v1/formats?x=1", vec!["x"]),
        ("/v1/formats/gemini/tools?search=maybe&caller=robot&x", vec!["caller", "search", "x"]),
    ] {
        let problem = acme.agent.get(path).await.problem(400, "invalid_query");
        let mut told = pointers(&problem);
        let mut expected = expected;
        told.sort();
        expected.sort_unstable();
        assert_eq!(told, expected, "{path}");
    }
    let calls = "/v1/tools/calculate/calls?dry_run=perhaps&wait=1";
    assert_eq!(pointers(&acme.agent.post(calls, &json!({})).await.problem(400, "invalid_query")), ["dry_run", "wait"]);
}

#[tokio::test]
async fn routes_that_take_no_query_name_what_they_do_not_know() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    acme.editor.put("/v1/handlers/h", &webhook()).await.with(201);
    acme.editor.post("/v1/tools", &tool("t", &json!("h"), &json!({}))).await.with(201);
    for (method, path) in [
        ("GET", "/v1/tools/t"),
        ("GET", "/v1/tools/t/versions/1"),
        ("GET", "/v1/handlers/h"),
        ("DELETE", "/v1/tools/t"),
        ("DELETE", "/v1/handlers/h"),
        ("POST", "/v1/handlers/h/rotate-secret"),
        ("POST", "/v1/tools/t/versions/1/restore"),
    ] {
        let answer = acme.editor.send(method, &format!("{path}?dry_run=true"), None).await;
        assert_eq!(pointers(&answer.problem(400, "invalid_query")), ["dry_run"], "{method} {path}");
    }
    for (method, path) in
        [("POST", "/v1/tools"), ("PUT", "/v1/tools/t"), ("PATCH", "/v1/tools/t"), ("PUT", "/v1/handlers/h")]
    {
        let answer = acme.editor.send(method, &format!("{path}?dry_run=true"), Some(b"{}")).await;
        assert_eq!(pointers(&answer.problem(400, "invalid_query")), ["dry_run"], "{method} {path}");
    }
    acme.viewer.get("/v1/tools/t").await.with(200);
    service.operator().send("DELETE", "/v1/tenants/acme?dry_run=true", None).await.problem(400, "invalid_query");
    acme.admin.send("DELETE", "/v1/keys/x?dry_run=true", None).await.problem(400, "invalid_query");
}

#[tokio::test]
async fn a_list_is_compressed_for_those_who_take_it_and_known_either_way() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for n in 0..30 {
        acme.editor.post("/v1/tools", &tool(&format!("tool_{n}"), &webhook(), &json!({}))).await.with(201);
    }
    for path in ["/v1/formats/anthropic/tools", "/v1/formats/anthropic/tools?cache=5m"] {
        let plain = acme.agent.get(path).await;
        plain.with(200);
        assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("accept-encoding")));
        let asks = acme.agent.with("accept-encoding", "br, gzip");
        let first = exchange(asks.address, &asks.request("GET", path, None)).await;
        assert_eq!((first.status, first.header("content-encoding")), (200, Some("gzip")));
        assert!(first.body.len() * 3 < plain.body.len(), "{} of {}", first.body.len(), plain.body.len());
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(first.body.as_slice()).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain.body, "the same bytes");
        assert_eq!(exchange(asks.address, &asks.request("GET", path, None)).await.body, first.body, "made once");
        assert_ne!(first.etag(), plain.etag(), "two representations have two strong tags");
        for tag in [first.etag(), plain.etag()] {
            acme.agent.with("if-none-match", &tag).get(path).await.with(304);
            asks.with("if-none-match", &tag).get(path).await.with(304);
        }
        let not_taken = acme.agent.with("accept-encoding", "gzip;q=0").get(path).await;
        assert_eq!(not_taken.body, plain.body);
    }
    // What fits into a packet stays as it is.
    let few = acme.agent.with("accept-encoding", "gzip").get("/v1/formats/anthropic/tools?name=tool_1").await;
    few.with(200);
    assert_eq!(few.header("content-encoding"), None);
}
