//! A webhook in Rust: it takes what Toolhook signed, and does each thing once.
//!
//! ```text
//! SIGNING_SECRET=whsec_… PORT=9000 cargo run --example receiver
//! ```

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use standardwebhooks::Webhook;

const MOST_BYTES: usize = 2 * 1024 * 1024;
const MOST_REMEMBERED: usize = 10_000;

struct Receiver {
    signature: Webhook,
    work: Mutex<Work>,
}

#[derive(Default)]
struct Work {
    /// What each call was answered, by its id. Yours belongs into your database, in the transaction that does the work.
    answered: HashMap<String, Value>,
    oldest_first: VecDeque<String>,
    notes: Vec<String>,
}

impl Work {
    /// The tool itself: keeps a note.
    fn run(&mut self, call: &Value) -> Value {
        let Some(text) = call["input"]["text"].as_str() else {
            return json!({"error": "There is no text to note. Send one as `text`."});
        };
        self.notes.push(text.to_owned());
        json!({"text": format!("Noted: {text}"), "data": {"notes": self.notes.len()}})
    }

    fn once(&mut self, id: &str, call: &Value) -> Value {
        if let Some(known) = self.answered.get(id) {
            return known.clone();
        }
        let answer = self.run(call);
        self.answered.insert(id.to_owned(), answer.clone());
        self.oldest_first.push_back(id.to_owned());
        if self.oldest_first.len() > MOST_REMEMBERED
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.answered.remove(&oldest);
        }
        answer
    }
}

async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Body) -> (StatusCode, Json<Value>) {
    // The bytes as they came: they are what is signed.
    let Ok(body) = to_bytes(body, MOST_BYTES).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, Json(json!({"error": "The request is too large."})));
    };
    // Also refuses what is more than five minutes off.
    if receiver.signature.verify(&body, &headers).is_err() {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": "The signature does not fit."})));
    }
    let (Some(id), Ok(event)) =
        (headers.get("webhook-id").and_then(|id| id.to_str().ok()), serde_json::from_slice::<Value>(&body))
    else {
        return (StatusCode::BAD_REQUEST, Json(json!({"error": "This is no call."})));
    };
    let mut work = receiver.work.lock().unwrap_or_else(PoisonError::into_inner);
    (StatusCode::OK, Json(work.once(id, &event["data"])))
}

#[expect(clippy::disallowed_methods, reason = "a program of its own, with an environment of its own")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let secret = setting("SIGNING_SECRET").ok_or("SIGNING_SECRET is not set")?;
    let port = setting("PORT").unwrap_or_else(|| "9000".to_owned()).parse()?;
    let receiver = Arc::new(Receiver { signature: Webhook::new(&secret)?, work: Mutex::default() });
    let app = Router::new().route("/", post(receive)).with_state(receiver);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    Ok(axum::serve(listener, app).await?)
}
