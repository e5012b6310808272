//! Generated schemas: every format renders each of them by its provider's rules, no wider input is shut out, and what a
//! model sends under a declaration comes back to the stored schema.

use crate::accepted::schemas;
use crate::dice::Dice;
use crate::given::tool;
use crate::rules;
use serde_json::{Value, json, value::to_raw_value};
use std::time::{Duration, Instant};
use toolhook::domain::{InputSchema, Tool};
use toolhook::format::{Effect, FormatName, ListOptions};

/// How many schemas: all of them take minutes in a debug build, so there a quick run takes some. `ALL_SCHEMAS=1` in the
/// build's environment takes all, as CI does.
const SEEDS: u64 = if cfg!(debug_assertions) && option_env!("ALL_SCHEMAS").is_none() { 250 } else { 10_000 };

/// The schemas that can be stored, as tools, every other one strict.
fn generated() -> impl Iterator<Item = (u64, Tool)> {
    (0..SEEDS).filter_map(|seed| {
        let schema = Dice::new(seed).whole();
        // A definition that is nothing but a reference to itself is not taken, for one.
        InputSchema::compile(&to_raw_value(&schema).unwrap()).ok()?;
        Some((seed, tool(json!({"name": "t", "input_schema": schema, "strict": seed % 2 == 0}))))
    })
}

fn says_strict(format: FormatName, tool: &Tool) -> bool {
    let declaration = format.report(tool).declaration.unwrap();
    ["/strict", "/function/strict", "/toolSpec/strict"]
        .iter()
        .any(|place| declaration.pointer(place) == Some(&json!(true)))
}

#[test]
fn every_schema_is_declared_by_the_rules() {
    let (mut taken, mut strict) = (0, 0);
    for (seed, tool) in generated() {
        taken += 1;
        for format in FormatName::ALL {
            let began = Instant::now();
            let declared = schemas(format, std::slice::from_ref(&tool));
            assert!(began.elapsed() < Duration::from_secs(5), "{format:?} {seed}");
            let says_strict = says_strict(format, &tool);
            strict += u64::from(says_strict);
            for (_, schema) in declared {
                rules::check(format, &schema, says_strict, &|| {
                    format!("{format:?} {seed}: {schema}\n{:?}", tool.input_schema)
                });
            }
        }
    }
    assert!(taken > SEEDS / 2 && strict > SEEDS / 20, "{taken} {strict}");
}

#[test]
fn nothing_that_the_tool_takes_is_shut_out() {
    let mut tried = 0;
    for (seed, strict) in generated() {
        let tool = tool(json!({"name": "t", "input_schema": strict.input_schema.value()}));
        let mut dice = Dice::new(seed);
        let stored = tool.input_schema.value();
        let by_chance: Vec<Value> =
            (0..20).map(|_| dice.input(2)).chain((0..20).map(|_| Dice::new(seed).by(stored, stored, 4))).collect();
        let inputs: Vec<&Value> = by_chance.iter().filter(|input| tool.input_schema.check(input).is_ok()).collect();
        for format in FormatName::ALL {
            let rendered = (format.format().tools)(&[&tool], &ListOptions::default());
            let says = |part: &str| rendered.notes.iter().any(|note| note.detail.contains(part));
            if says("forms") || says("empty text") || says("is called") {
                continue; // here a note says that something is, or is called by another name
            }
            for (_, declared) in schemas(format, std::slice::from_ref(&tool)) {
                let declared = InputSchema::compile(&to_raw_value(&declared).unwrap()).unwrap();
                for input in &inputs {
                    tried += 1;
                    let verdict = declared.check(input);
                    assert!(verdict.is_ok(), "{format:?} {seed}: {input}: {verdict:?}\n{stored}\n{declared:?}");
                }
            }
        }
    }
    assert!(tried > 5 * SEEDS, "{tried}");
}

#[test]
fn what_is_sent_under_a_declaration_comes_back() {
    let (mut back, mut lost) = (0, 0);
    for (seed, tool) in generated() {
        let mut dice = Dice::new(seed);
        for format in FormatName::ALL {
            let notes = format.report(&tool).notes;
            // A rule that is told in words binds the model's reading, not its spelling.
            let lossy =
                notes.iter().any(|note| note.effect == Effect::Lost || note.detail.contains("in the description"));
            for (_, schema) in schemas(format, std::slice::from_ref(&tool)) {
                // Written-out references may be deeper than a stored schema may be.
                let Ok(declared) = InputSchema::compile(&to_raw_value(&schema).unwrap()) else { continue };
                for _ in 0..6 {
                    let sent = dice.by(&schema, &schema, 5);
                    let Some(arguments) = sent.as_object().filter(|_| declared.check(&sent).is_ok()) else { continue };
                    let restored = Value::Object((format.format().restore)(&tool, arguments.clone()));
                    match tool.input_schema.check(&restored) {
                        Ok(()) => back += 1,
                        // The model was not told a rule: then the error says which.
                        Err(violations) if lossy => {
                            lost += 1;
                            assert!(violations.iter().all(|violation| !violation.detail.is_empty()));
                        }
                        Err(violations) => panic!(
                            "{format:?} {seed}: {sent}\n{restored}\n{violations:?}\n{schema}\n{}",
                            tool.input_schema.value()
                        ),
                    }
                }
            }
        }
    }
    assert!(back > 10 * SEEDS && lost < back / 4, "{back} {lost}");
}
