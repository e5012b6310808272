//! The table of `docs/security.md`, held against the tests.

use std::fs;
use std::path::Path;

/// Every function in the repository's Rust code, as text to look names up in.
fn code(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            code(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_test_in_the_table_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let mut all = String::new();
    for folder in ["src", "tests"] {
        code(&root.join(folder), &mut all);
    }
    let mut checked = 0;
    let mut faults = Vec::new();
    for line in document.lines().filter(|line| line.starts_with("| ")) {
        for name in line.split('`').skip(1).step_by(2) {
            // Names of tests are longer than any word in backticks that is something else, and have nothing but these letters.
            let is_name = name.len() > 16
                && name.contains('_')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            if is_name {
                checked += 1;
                if !all.contains(&format!("fn {name}(")) {
                    faults.push(name.to_owned());
                }
            } else if name.starts_with(".ci/") && !root.join(name).exists() {
                faults.push(name.to_owned());
            }
        }
    }
    assert!(checked > 60, "the table was not found: {checked}");
    assert!(faults.is_empty(), "in the table of docs/security.md and nowhere else: {faults:#?}");
}
