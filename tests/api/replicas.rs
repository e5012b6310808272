//! Two processes on one database: `Toolhook-Registry-Version` carries what one has answered over to the other.

use crate::support::{TestService, tool, webhook};
use serde_json::json;

const LIST: &str = "/v1/formats/toolhook/tools";
const SEEN: &str = "toolhook-registry-version";

#[tokio::test]
async fn who_has_seen_a_version_sees_nothing_older_elsewhere() {
    let one = TestService::start().await;
    let acme = one.tenant("acme").await;
    acme.editor.post("/v1/tools", &tool("t", &webhook(), &json!({}))).await.with(201);
    // Nothing tells this process of changes, so what it has in memory grows old.
    let other = one.restart().await;
    let elsewhere = acme.at(&other);
    let old = elsewhere.agent.get(LIST).await.with(200);

    let written = acme.editor.patch("/v1/tools/t", &json!({"description": "Newer"})).await;
    written.with(200);
    let version = written.header(SEEN).unwrap().to_owned();
    assert_eq!(elsewhere.agent.get(LIST).await.with(200), old, "it does not know yet");
    let list = elsewhere.agent.with(SEEN, &version).get(LIST).await;
    assert_eq!(list.with(200)["registry_version"].to_string(), version);
    assert_eq!(list.header(SEEN), Some(version.as_str()));
    assert!(list.text().contains("Newer"));

    // A call is of the same version, and so is a removal.
    let gone = acme.editor.delete("/v1/tools/t").await;
    gone.with(204);
    let version = gone.header(SEEN).unwrap().to_owned();
    let call = elsewhere.agent.with(SEEN, &version).post("/v1/tools/t/calls", &json!({"input": {}})).await;
    call.with(404);

    let ahead = elsewhere.agent.with(SEEN, "999999").get(LIST).await;
    ahead.problem(412, "version_ahead");
    for odd in ["x", "-1", "", "1.0"] {
        elsewhere.agent.with(SEEN, odd).get(LIST).await.problem(400, "invalid_header");
    }
}
