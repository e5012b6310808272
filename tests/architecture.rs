//! The house's rules, held against the source: imports point down, and each kind of reach has one room.

#![expect(clippy::unwrap_used, reason = "a test that cannot read the source has to end")]

use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the ground up. A room may import those of lower floors, and never one of its own floor.
const FLOORS: [&[&str]; 6] = [
    &["domain"],
    &["store", "egress", "format", "telemetry"],
    &["registry"],
    &["execution"],
    &["http"],
    &["cli", "config"],
];
/// The most lines of a file, tests inside it included.
const MOST_LINES: usize = 400;
/// Names that say nothing about what is inside.
const BAGS: [&str; 7] = ["util", "utils", "helper", "helpers", "common", "types", "manager"];
/// What only one room may say: the word, the room or file that may, and why.
const REACH: [(&str, &[&str], &str); 9] = [
    ("sqlx", &["store"], "SQL lives in the store"),
    ("reqwest", &["egress"], "only the guarded client sends requests"),
    ("prometheus_client::", &["telemetry"], "a metric is a field of telemetry's Metrics"),
    ("opentelemetry::", &["telemetry"], "traces are told through telemetry"),
    ("opentelemetry_", &["telemetry"], "traces are told through telemetry"),
    ("StatusCode", &["http"], "status codes are the edge's"),
    ("env::var", &["config"], "one file reads the environment"),
    ("env::args", &["config", "main"], "one file reads the command line"),
    ("tokio::spawn(", &[], "an untracked task is cut off by a shutdown"),
];
/// What the rooms that only compute do not do.
const EFFECTS: [&str; 8] =
    ["async fn", "tokio::", "std::fs", "std::net", "std::process", "now_utc", "Instant::now", "getrandom"];

struct Source {
    path: PathBuf,
    /// The first part of its path below `src`: its room, or its own name.
    room: String,
    code: Vec<(usize, String)>,
    lines: usize,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut sources) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                sources.push(read(&root, &path));
            }
        }
    }
    assert!(sources.len() > 30, "the source was not found");
    sources
}

fn read(root: &Path, path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap();
    let below = path.strip_prefix(root).unwrap();
    let first = below.components().next().unwrap().as_os_str().to_string_lossy();
    let name = first.trim_end_matches(".rs").to_owned();
    let code = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim().to_owned()));
    let code = code.filter(|(_, line)| !line.starts_with("//")).collect();
    Source { room: name, code, lines: text.lines().count(), path: below.to_owned() }
}

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

/// Says every fault at once.
fn expect_none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn imports_point_down() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !["lib", "main"].contains(&source.room.as_str())) {
        let own = floor(&source.room).unwrap_or_else(|| panic!("{} is in no room", source.path.display()));
        for (number, line) in &source.code {
            for (at, _) in line.match_indices("crate::") {
                let rest = &line[at + "crate::".len()..];
                let room: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let down = room == source.room || floor(&room).is_some_and(|other| other < own);
                // The commands read the settings, which are on their floor because they read the environment.
                let settings = source.room == "cli" && room == "config";
                if !down && !settings {
                    faults.push(format!("{}:{number}: imports {room}", source.path.display()));
                }
            }
        }
    }
    expect_none(&faults);
}

#[test]
fn each_kind_of_reach_has_one_room() {
    let mut faults = Vec::new();
    for source in sources() {
        for (word, allowed, why) in REACH {
            if allowed.contains(&source.room.as_str()) {
                continue;
            }
            let said = source.code.iter().filter(|(_, line)| line.contains(word) && !line.contains("reason = "));
            faults.extend(said.map(|(number, _)| format!("{}:{number}: says {word}; {why}", source.path.display())));
        }
    }
    expect_none(&faults);
}

#[test]
fn the_rooms_that_compute_have_no_effects() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| ["domain", "format"].contains(&source.room.as_str())) {
        for (number, line) in &source.code {
            for effect in EFFECTS.iter().filter(|effect| line.contains(**effect)) {
                faults.push(format!("{}:{number}: says {effect}", source.path.display()));
            }
        }
    }
    expect_none(&faults);
}

#[test]
fn files_are_small_and_named_for_one_concept() {
    let mut faults = Vec::new();
    for source in sources() {
        let path = source.path.display();
        if source.lines > MOST_LINES {
            faults.push(format!("{path} has {} lines; split it by concept", source.lines));
        }
        let parts = source.path.with_extension("");
        if parts.iter().any(|part| BAGS.contains(&part.to_string_lossy().as_ref())) {
            faults.push(format!("{path}: a bag's name says nothing about what is inside"));
        }
    }
    expect_none(&faults);
}

#[test]
fn routes_are_only_made_with_their_entry_in_the_reference() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| source.room == "http") {
        let bare = source.code.iter().filter(|(_, line)| line.contains(".route(") || line.contains(".nest"));
        faults.extend(bare.map(|(number, _)| format!("{}:{number}: use routes!", source.path.display())));
    }
    expect_none(&faults);
}

/// The doors to the database: who says as whom it comes, and who may come as the login.
#[test]
fn the_store_reaches_the_database_through_its_doors() {
    const DOORS: &str = "store/scope.rs";
    // What the pool gives, wrapped.
    const POOLED: [&str; 2] = [DOORS, "store/session.rs"];
    // The catalogue, and what migrations have been made.
    const AS_LOGIN: [&str; 4] = [DOORS, "store/mod.rs", "store/inspection.rs", "store/walls.rs"];
    // Migrations, and whether anybody answers.
    const BARE: [&str; 3] = [DOORS, "store/session.rs", "store/mod.rs"];
    // Whether anybody answers is asked beside the pool, and connecting says why it failed.
    const CONNECTS: [&str; 2] = ["store/mod.rs", "store/availability.rs"];
    let mut faults = Vec::new();
    for source in sources() {
        let path = source.path.to_string_lossy().into_owned();
        for (words, allowed) in [
            (["PgPool", ".begin(", ".begin_with("].as_slice(), [DOORS].as_slice()),
            (&["PoolConnection"], &POOLED),
            (&["bare("], &BARE),
            (&["as_login("], &AS_LOGIN),
            (&["connect_with(&self.options", "PgConnection::connect"], &CONNECTS),
        ] {
            let said = source.code.iter().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
            let said = said.filter(|_| source.room == "store" && !allowed.contains(&path.as_str()));
            faults.extend(said.map(|(number, line)| format!("{path}:{number}: use scoped() or system(): {line}")));
        }
    }
    expect_none(&faults);
}

/// A statement that was prepared before a column was added has to go on working: the release before runs beside the next.
#[test]
fn queries_name_their_columns() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| source.room == "store") {
        let starred = source.code.iter().filter(|(_, line)| line.contains("select * ") && !line.contains("from moved"));
        faults.extend(starred.map(|(number, line)| format!("{}:{number}: {line}", source.path.display())));
    }
    expect_none(&faults);
}
