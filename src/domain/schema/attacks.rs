//! Schemas and values that are made to take long, or to overflow the stack, and what they come to.

use super::*;
use serde_json::json;

fn compiled(schema: &Value) -> InputSchema {
    let raw = serde_json::value::to_raw_value(schema).unwrap();
    InputSchema::compile(&raw).unwrap_or_else(|faults| panic!("{faults:?}: {schema}"))
}

fn nested(levels: usize, inner: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(inner, |value, _| wrap(value))
}

/// A filter language as people write it.
fn filters() -> InputSchema {
    let list = |name: &str| json!({"type": "object", "required": [name], "properties": {name: {"type": "array", "items": {"$ref": "#/$defs/f"}}}});
    compiled(&json!({"type": "object", "properties": {"f": {"$ref": "#/$defs/f"}}, "$defs": {
        "f": {"anyOf": [list("and"), list("or"), {"type": "object", "required": ["field", "value"],
            "properties": {"field": {"type": "string"}, "value": {"type": "number"}}}]}}}))
}

#[test]
fn a_value_that_doubles_the_work_with_each_level_ends() {
    let schema = compiled(
        &json!({"properties": {"c": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "additionalProperties": false}),
    );
    let anchored = compiled(
        &json!({"$anchor": "a", "properties": {"c": {"anyOf": [{"$ref": "#a"}, {"$ref": "#a"}]}}, "additionalProperties": false}),
    );
    let summed = compiled(
        &json!({"properties": {"c": {"oneOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "array"}]}}, "unevaluatedProperties": false}),
    );
    let all = compiled(
        &json!({"properties": {"c": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "additionalProperties": false}),
    );
    for schema in [schema, anchored, summed, all] {
        for end in [json!({}), json!({"x": 1}), json!(1)] {
            let value = nested(40, end, |inner| json!({ "c": inner }));
            let told = schema.check(&value).err().unwrap_or_default();
            let length: usize = told.iter().map(|told| told.phrase().len()).sum();
            assert!(length < 6_000, "{length}");
            let _ = schema.mismatches(&value);
        }
    }
}

#[test]
fn a_natural_filter_with_a_mistyped_leaf_is_told_briefly() {
    let schema = filters();
    for depth in [1, 3, 8, 15, 30] {
        let leaf = json!({"field": "a", "value": "1"});
        let value = json!({"f": nested(depth, leaf, |inner| {
            if depth > 8 { json!({"and": [inner]}) } else { json!({"and": [inner.clone()], "or": [inner]}) }
        })});
        let told = schema.check(&value).unwrap_err();
        assert!(told.iter().all(|told| told.phrase().chars().count() < 900), "{told:?}");
    }
}

#[test]
fn deep_checks_do_not_overflow_the_stack() {
    // As many levels between two references as a schema may have, and as many levels in the value as an input may have.
    let inner = json!({"properties": {"a": {"$ref": "#"}}});
    for keyword in ["not", "if", "allOf", "anyOf", "oneOf"] {
        let list = keyword.ends_with("Of");
        let schema = nested(if list { 13 } else { 27 }, inner.clone(), |inner| {
            if list { json!({ keyword: [inner] }) } else { json!({ keyword: inner }) }
        });
        let schema = compiled(&schema);
        let value = nested(62, json!({"a": 1}), |inner| json!({ "a": inner }));
        let _ = schema.check(&value);
        let _ = schema.mismatches(&value);
    }
    let chain: serde_json::Map<String, Value> = (0..60)
        .map(|n| {
            (
                format!("d{n}"),
                if n == 59 {
                    json!({"properties": {"a": {"$ref": "#"}}})
                } else {
                    json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]})
                },
            )
        })
        .collect();
    let schema = compiled(&json!({"$ref": "#/$defs/d0", "$defs": chain}));
    let value = nested(62, json!({"a": 1}), |inner| json!({ "a": inner }));
    let _ = schema.check(&value);
}

#[test]
fn texts_that_meet_a_pattern_are_bounded() {
    let schema = compiled(&json!({"properties": {"a": {"pattern": "^(?:x{1,20}y?){1,20}$"}, "b": {"type": "string"}}}));
    let long = "x".repeat(100_000);
    let told = schema.check(&json!({ "a": long })).unwrap_err();
    assert_eq!(told[0].pointer, "/a");
    assert!(told[0].detail.contains("8192") && told[0].phrase().len() < 200, "{told:?}");
    schema.check(&json!({ "b": long })).unwrap();
    let names = compiled(&json!({"patternProperties": {"^a+$": {}}}));
    assert!(names.check(&json!({ "a".repeat(9_000): 1 })).is_err());
}

#[test]
fn long_lists_are_no_attack() {
    let unique = compiled(&json!({"properties": {"a": {"uniqueItems": true}}}));
    let same_float: Vec<Value> =
        (0..5_000).map(|n| serde_json::from_str(&format!("9007199254740992.{n:04}1")).unwrap()).collect();
    unique.check(&json!({ "a": same_float })).unwrap();
    let objects: Vec<Value> = (0..20_000).map(|n| json!({ "n": n })).collect();
    unique.check(&json!({ "a": objects })).unwrap();
    let typed = compiled(
        &json!({"properties": {"a": {"type": "array", "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}}}}),
    );
    typed.check(&json!({ "a": objects })).unwrap();
}

#[test]
fn the_verdict_is_that_of_the_plain_validator() {
    for (schema, value) in [
        (json!({"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}), json!({"a": 1, "b": 2})),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/definitions/s", "minLength": 5}},
            "definitions": {"s": {"type": "string"}}}),
            json!({"a": "x"}),
        ),
        (
            json!({"properties": {"a": {"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}}}),
            json!({"a": ["x", 1, 2]}),
        ),
        (json!({"properties": {"a": {"contains": {"type": "integer"}, "minContains": 2}}}), json!({"a": [1, "x"]})),
        (json!({"propertyNames": {"maxLength": 2}}), json!({"abc": 1})),
        (json!({"properties": {"a": {"type": "integer", "multipleOf": 0.1}}}), json!({"a": 3})),
    ] {
        let plain = jsonschema::validator_for(&schema).unwrap();
        let ours = compiled(&schema);
        assert_eq!(ours.check(&value).is_ok(), plain.is_valid(&value), "{schema}");
        let told: Vec<Violation> = plain.iter_errors(&value).map(|error| Violation::from_error(&error)).collect();
        assert_eq!(ours.check(&value).err().unwrap_or_default(), told, "{schema}");
    }
}

#[test]
fn what_takes_too_long_to_mask_is_masked_whole() {
    let refs: Vec<Value> = (0..300).map(|n| json!({"$ref": format!("#/$defs/d{n}")})).collect();
    let definitions: serde_json::Map<String, Value> = (0..300)
        .map(|n| (format!("d{n}"), json!({"items": {"$ref": "#/$defs/all"}, "title": n.to_string()})))
        .collect();
    let mut schema =
        json!({"properties": {"a": {"$ref": "#/$defs/all"}, "pin": {"writeOnly": true}}, "$defs": definitions});
    schema["$defs"]["all"] = json!({ "anyOf": refs });
    let schema = compiled(&schema);
    let input = json!({"a": vec![json!([1, 2, 3]); 2_000], "pin": 1});
    let masked = Value::Object(schema.masked(input.as_object().unwrap()));
    assert_eq!(masked, json!({"a": "***", "pin": "***"}));
}
