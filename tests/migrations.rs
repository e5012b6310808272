//! Migrations only add: while replicas are replaced, the release before goes on working on the schema of the new one.
//!
//! So a column is taken away in two releases: the first stops using it, and the migration of a later one drops it. That migration
//! says so right before its statement, in a comment that begins with `-- contracts:` and tells since which release nothing needs it.

#![expect(clippy::unwrap_used, reason = "a test that cannot read the migrations has to end")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Those before it were made before there was a release to go on working.
const FIRST: &str = "0007";
const ESCAPE: &str = "-- contracts:";

/// One statement: its words in small letters, its strings emptied, and whether it says that it contracts.
struct Statement {
    words: Vec<String>,
    escaped: bool,
}

/// Splits a migration. What is between dollar signs belongs to its statement, since a block or a function may do anything.
fn statements(text: &str) -> Vec<Statement> {
    let mut found = Vec::new();
    let (mut rest, mut code, mut escaped, mut dollars) = (text, String::new(), false, None::<String>);
    loop {
        if let Some(tag) = &dollars
            && let Some(after) = rest.strip_prefix(tag.as_str())
        {
            (rest, dollars) = (after, None);
            continue;
        }
        if rest.starts_with("--") {
            let line = rest.lines().next().unwrap();
            escaped |= line.strip_prefix(ESCAPE).is_some_and(|why| why.trim().len() >= 10) && code.trim().is_empty();
            rest = &rest[line.len()..];
            continue;
        }
        let Some(next) = rest.chars().next() else { break };
        match next {
            '\'' => {
                let end = rest[1..].find('\'').unwrap();
                code.push_str(" '' ");
                rest = &rest[end + 2..];
                continue;
            }
            '$' if dollars.is_none() => {
                let end = rest[1..].find('$').unwrap();
                let (tag, after) = rest.split_at(end + 2);
                (dollars, rest) = (Some(tag.to_owned()), after);
                continue;
            }
            ';' if dollars.is_none() => {
                found.push(Statement { words: words(&std::mem::take(&mut code)), escaped });
                escaped = false;
            }
            ',' | '(' | ')' | ';' => code.extend([' ', next, ' ']),
            _ => code.extend(next.to_lowercase()),
        }
        rest = &rest[next.len_utf8()..];
    }
    found.push(Statement { words: words(&code), escaped });
    found.retain(|statement| !statement.words.is_empty());
    found
}

fn words(code: &str) -> Vec<String> {
    code.split_whitespace().map(str::to_owned).collect()
}

/// The word after these, past `if not exists` and the like.
fn after<'a>(words: &'a [String], these: &[&str]) -> Option<&'a str> {
    let at = words.windows(these.len()).position(|some| some == these)? + these.len();
    let skipped = ["if", "not", "exists", "only", "concurrently"];
    words[at..].iter().map(String::as_str).find(|word| !skipped.contains(word))
}

/// What the release before could trip over in one statement. `new` are the tables that the same migration makes.
fn breaks(words: &[String], new: &BTreeSet<String>) -> Option<String> {
    let has = |these: &[&str]| words.windows(these.len()).any(|some| some == these);
    let table = after(words, &["alter", "table"]).or_else(|| after(words, &["on"])).unwrap_or_default();
    let lax = [&["drop", "not", "null"][..], &["drop", "constraint"]];
    let drops = words.iter().filter(|word| *word == "drop").count();
    let harmless: usize = lax.iter().map(|lax| words.windows(lax.len()).filter(|some| some == lax).count()).sum();
    if drops > harmless {
        return Some("drops what it may use".to_owned());
    }
    for word in ["rename", "truncate", "revoke"] {
        // A function that was just made is taken from the public before anybody has it.
        if words.iter().any(|said| said == word) && !has(&["revoke", "execute"]) {
            return Some(format!("says {word}"));
        }
    }
    if new.contains(table) {
        return None;
    }
    if has(&["set", "not", "null"]) {
        return Some("forbids null where it may write it".to_owned());
    }
    if words.first().is_some_and(|word| word == "alter") && words.iter().any(|word| word == "type") {
        return Some("changes a type".to_owned());
    }
    if has(&["create", "unique", "index"]) {
        return Some("forbids two rows that it may write".to_owned());
    }
    let mut depth = 0;
    let clauses = words.split(|word| {
        depth += i32::from(word == "(") - i32::from(word == ")");
        word == "," && depth == 0
    });
    for clause in clauses.filter(|_| words.first().is_some_and(|word| word == "alter")) {
        let Some(add) = clause.iter().position(|word| word == "add") else { continue };
        let adds = &clause[add + 1..];
        let tight = ["constraint", "check", "unique", "primary", "foreign", "exclude"];
        if adds.first().is_some_and(|word| tight.contains(&word.as_str())) {
            return Some("adds a constraint that its rows may break".to_owned());
        }
        let says = |these: &[&str]| adds.windows(these.len()).any(|some| some == these);
        let filled = says(&["default"]) || says(&["generated"]);
        if says(&["not", "null"]) && !filled {
            return Some("adds a column that it does not fill in".to_owned());
        }
    }
    None
}

/// Every fault of a migration.
fn faults(name: &str, text: &str) -> Vec<String> {
    let statements = statements(text);
    let made = statements.iter().filter_map(|statement| after(&statement.words, &["create", "table"]));
    let new: BTreeSet<String> = made.map(str::to_owned).collect();
    let broken = statements.iter().filter(|statement| !statement.escaped);
    broken
        .filter_map(|statement| {
            let why = breaks(&statement.words, &new)?;
            Some(format!("{name}: {why}: {}", statement.words.iter().take(12).cloned().collect::<Vec<_>>().join(" ")))
        })
        .collect()
}

fn migrations() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() >= 6, "the migrations were not found");
    found
}

#[test]
fn l08_migrations_only_add_to_what_the_release_before_works_with() {
    let of_releases = migrations().into_iter().filter(|(name, _)| name.as_str() >= FIRST);
    let faults: Vec<String> = of_releases.flat_map(|(name, text)| faults(&name, &text)).collect();
    assert!(faults.is_empty(), "\n{}\nsee the head of tests/migrations.rs", faults.join("\n"));
}

#[test]
fn l08_the_rule_finds_what_breaks_the_release_before() {
    for bad in [
        "drop table calls;",
        "alter table calls drop column picture;",
        "alter table calls drop not null, alter column input drop default;",
        "alter table calls rename column tool to name;",
        "alter table calls rename to calls_before;",
        "alter table tools alter column version type bigint;",
        "alter table tools alter column version set data type bigint;",
        "alter table tools alter column output_schema set not null;",
        "alter table tools add column owner text not null;",
        "alter table tools add column a text, add b numeric (5, 2) not null, add column c text;",
        "alter table tools add column a integer not null default 1, add column b integer not null;",
        "alter table tools add constraint short check (length(name) < 9);",
        "alter table tools add unique (tenant_id, description);",
        "create unique index concurrently once on tools (tenant_id, lower(name));",
        "revoke select on tools from toolhook_app;",
        "truncate audit;",
        "do $$ begin execute 'x'; alter table tools drop column tags; end $$;",
        "-- contracts:\ndrop table calls;",
        "-- contracts: nothing needs it since 1.4\nselect 1; drop table calls;",
        "create table more (a text); alter table tools add column a text not null;",
        "select 'drop'; drop index calls_tool;",
    ] {
        assert_eq!(faults("bad", bad).len(), 1, "{bad}");
    }
    for good in [
        "alter table tools add column a text, add column b integer not null default 1;",
        "alter table tools alter column output_schema drop not null;",
        "alter table tools drop constraint tools_handler_fkey;",
        "create table more (tenant_id uuid not null, type text not null, primary key (tenant_id)); select toolhook_wall('more');
         create unique index more_type on more (tenant_id, type); alter table more add constraint x check (type <> '');",
        "create index calls_due on calls (due_at) where due_at is not null;",
        "grant select, insert on audit to toolhook_app; revoke execute on function f() from public;",
        "-- It would drop a table, if it said so.\nselect 'drop table calls; rename';",
        "-- contracts: nothing reads it since 1.4\nalter table calls drop column picture;",
    ] {
        assert_eq!(faults("good", good), Vec::<String>::new(), "{good}");
    }
    // And in the migrations that were made before the rule held.
    let (name, text) = migrations().swap_remove(1);
    assert!(faults(&name, &text).iter().any(|fault| fault.contains("rename")), "{name}");
    let found = migrations().iter().filter(|(name, text)| !faults(name, text).is_empty()).count();
    assert!((1..=4).contains(&found), "{found} migrations are found to break something");
}
