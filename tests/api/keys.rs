//! `/v1/keys`, and what a key opens.

use crate::support::{Client, TestService, eventually, pointers};
use serde_json::{Value, json};
use toolhook::http::{Bounds, Settings};

#[tokio::test]
async fn a_key_is_shown_once_and_works_until_it_is_revoked() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let made = acme.admin.post("/v1/keys", &json!({"role": "viewer", "name": "a dashboard"})).await.with(201);
    let (key, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    assert!(key.starts_with(&format!("thk_{id}_")), "{key}");
    let listed = acme.admin.get("/v1/keys").await.with(200);
    let ours = listed["data"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap();
    assert_eq!(
        (&ours["role"], &ours["name"], &ours["expires_at"]),
        (&json!("viewer"), &json!("a dashboard"), &Value::Null)
    );
    assert!(!listed.to_string().contains(key));

    let holder = service.anonymous().key(key);
    holder.get("/v1/tools").await.with(200);
    acme.admin.delete(&format!("/v1/keys/{id}")).await.with(204);
    holder.get("/v1/tools").await.problem(401, "unauthenticated");
    acme.admin.delete(&format!("/v1/keys/{id}")).await.problem(404, "not_found");
}

#[tokio::test]
async fn i03_a_revoked_key_ends_within_five_seconds_on_another_process() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let other = service.restart().await;
    let made = acme.admin.post("/v1/keys", &json!({"role": "viewer"})).await.with(201);
    let holder = other.anonymous().key(made["key"].as_str().unwrap());
    holder.get("/v1/tools").await.with(200);
    acme.admin.delete(&format!("/v1/keys/{}", made["id"].as_str().unwrap())).await.with(204);
    let began = std::time::Instant::now();
    let refused = eventually(async || Some(holder.get("/v1/tools").await).filter(|answer| answer.status != 200)).await;
    refused.problem(401, "unauthenticated");
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn i01_what_is_no_key_is_refused_and_needs_no_query() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let made = acme.admin.post("/v1/keys", &json!({"role": "viewer"})).await.with(201);
    let key = made["key"].as_str().unwrap();
    let before = service.database.statements();
    assert!(before > 0);
    let cut = &key[..key.len() - 1];
    let changed = format!("{cut}{}", if key.ends_with('a') { 'b' } else { 'a' });
    for header in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        &format!("Basic {key}"),
        &format!("Bearer {cut}"),
        &format!("Bearer {changed}"),
        key,
    ] {
        let odd = service.anonymous().with("authorization", header);
        odd.get("/v1/tools").await.problem(401, "unauthenticated");
    }
    service.anonymous().get("/v1/tools").await.problem(401, "unauthenticated");
    assert_eq!(service.database.statements(), before);
    // The scheme's letters do not matter (RFC 9110).
    service.anonymous().with("authorization", &format!("bearer {key}")).get("/v1/tools").await.with(200);
}

#[tokio::test]
async fn i02_another_secret_under_a_known_id_is_refused() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let made = acme.admin.post("/v1/keys", &json!({"role": "admin"})).await.with(201);
    let id = made["id"].as_str().unwrap();
    let forged = service.anonymous().key(&well_formed(id));
    let problem = forged.get("/v1/tools").await.problem(401, "unauthenticated");
    assert!(problem["detail"].as_str().unwrap().contains("not known"), "the forgery is not well-formed: {problem}");
}

#[tokio::test]
async fn an_expired_key_is_refused() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let end = time::OffsetDateTime::now_utc() + time::Duration::seconds(3);
    let end = end.format(&time::format_description::well_known::Rfc3339).unwrap();
    let made = acme.admin.post("/v1/keys", &json!({"role": "viewer", "expires_at": end})).await.with(201);
    let holder = service.anonymous().key(made["key"].as_str().unwrap());
    holder.get("/v1/tools").await.with(200);
    let refused = eventually(async || Some(holder.get("/v1/tools").await).filter(|answer| answer.status != 200)).await;
    let detail = refused.problem(401, "unauthenticated")["detail"].clone();
    assert!(detail.as_str().unwrap().contains("expired"), "{detail}");
}

#[tokio::test]
async fn a_keys_faults_are_told_together() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    for (body, places) in [
        (json!({}), vec!["/role"]),
        (json!({"role": "operator"}), vec!["/role"]),
        (
            json!({"role": "king", "name": "", "expires_at": "tomorrow", "x": 1}),
            vec!["/expires_at", "/name", "/role", "/x"],
        ),
        (json!({"role": "viewer", "expires_at": "2020-01-01T00:00:00Z"}), vec!["/expires_at"]),
        (json!({"role": "viewer", "expires_at": "9999-12-31T23:59:59-23:59"}), vec!["/expires_at"]),
        (json!({"role": "viewer", "name": "a\u{0}b"}), vec!["/name"]),
    ] {
        let problem = acme.admin.post("/v1/keys", &body).await.problem(422, "invalid_body");
        let mut told = pointers(&problem);
        told.sort();
        assert_eq!(told, places, "{body}");
    }
}

#[tokio::test]
async fn an_operator_names_the_tenant() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    service.operator().get("/v1/tools").await.problem(400, "tenant_required");
    acme.operator.get("/v1/tools").await.with(200);
    for odd in ["nobody", "NO", "%00", "é"] {
        service.operator().with("toolhook-tenant", odd).get("/v1/tools").await.problem(404, "not_found");
    }
    // A tenant's own key may say whose it is, and reaches nobody else by saying so.
    service.tenant("other").await;
    acme.viewer.with("toolhook-tenant", "acme").get("/v1/tools").await.with(200);
    let other = acme.viewer.with("toolhook-tenant", "other").get("/v1/tools").await;
    let missing = acme.viewer.with("toolhook-tenant", "missing").get("/v1/tools").await;
    other.problem(404, "not_found");
    assert_eq!(other.body, missing.body);
}

/// A well-formed key with this id and a secret that nobody has, its checksum right.
fn well_formed(id: &str) -> String {
    let secret = "A".repeat(43);
    let sum = crc32fast::hash(format!("{id}_{secret}").as_bytes());
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let sum: String = (0..6).rev().map(|place| char::from(digits[(sum / 62_u32.pow(place) % 62) as usize])).collect();
    format!("thk_{id}_{secret}{sum}")
}

#[tokio::test]
async fn i05_a_key_in_the_query_is_refused_whether_or_not_it_is_good() {
    let service = TestService::start().await;
    let acme = service.tenant("acme").await;
    let made = acme.admin.post("/v1/keys", &json!({"role": "viewer"})).await.with(201);
    let key = made["key"].as_str().unwrap();
    for query in [
        format!("api_key={key}"),
        format!("q={key}"),
        format!("limit=1&access_token=Bearer%20{key}"),
        format!("key=%74hk_{}", &key[4..]),
        format!("key={}", well_formed("abcdefghijkl")),
    ] {
        for asker in [service.anonymous(), acme.viewer.clone()] {
            for path in ["/v1/tools", "/v1/audit", "/v1/formats/anthropic/tools"] {
                let problem = asker.get(&format!("{path}?{query}")).await.problem(400, "key_in_query");
                assert!(!problem.to_string().contains(&key[17..]), "{problem}");
            }
            let call = json!({"input": {"expression": "1"}});
            let refused = asker.post(&format!("/v1/tools/calculate/calls?{query}"), &call).await;
            refused.problem(400, "key_in_query");
        }
    }
    // What only begins like one may be looked for.
    acme.viewer.get("/v1/tools?q=thk_").await.with(200);
}

#[tokio::test]
async fn i06_an_address_that_sends_many_bad_keys_is_throttled_and_good_keys_beside_it_are_not() {
    let first = TestService::start().await;
    let acme = first.tenant("acme").await;
    let settings = Settings { bad_keys_per_minute: 10, ..Settings::default() };
    let service = first.restart_within(Bounds::default(), settings).await;
    let acme = acme.at(&service);
    acme.viewer.get("/v1/tools").await.with(200);
    for n in 0..10 {
        let bad = if n % 2 == 0 { "thk_nonsense".to_owned() } else { well_formed(&format!("guess{n:07}")) };
        service.anonymous().key(&bad).get("/v1/tools").await.problem(401, "unauthenticated");
    }
    let before = service.database.statements();
    for n in 0..20 {
        for bad in ["thk_nonsense".to_owned(), well_formed(&format!("other{n:07}"))] {
            let answer = service.anonymous().key(&bad).get("/v1/tools").await;
            answer.problem(429, "too_many_bad_keys");
            assert_eq!(answer.header("retry-after"), Some("60"));
        }
    }
    // Guesses under the id of a key that works are guesses too.
    let id = acme.viewer.headers.iter().find_map(|(_, value)| value.split('_').nth(1)).unwrap();
    service.anonymous().key(&well_formed(id)).get("/v1/tools").await.problem(429, "too_many_bad_keys");
    assert_eq!(service.database.statements(), before, "guesses reached the database");
    // Who has no key at all is told what to send.
    service.anonymous().get("/v1/tools").await.problem(401, "unauthenticated");
    acme.viewer.get("/v1/tools").await.with(200);
    // From another address even a key that this process has not seen yet.
    let elsewhere = Client { from: Some([127, 0, 0, 2].into()), ..acme.agent.clone() };
    acme.agent.get("/v1/tools").await.problem(429, "too_many_bad_keys");
    elsewhere.get("/v1/tools").await.with(200);
    elsewhere.key("thk_nonsense").get("/v1/tools").await.problem(401, "unauthenticated");
}
