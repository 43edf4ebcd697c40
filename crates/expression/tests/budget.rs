//! No expression takes long, and none that people write is refused for it.

use serde_json::{Value, json};
use tiphys_expression::{Budget, Expression, Unmet};

fn object(items: usize) -> Value {
    let items: Vec<Value> = (0..items).map(|number| json!({ "n": number, "s": "x" })).collect();
    json!({ "items": items, "text": "x".repeat(1_000_000) })
}

/// Each of these would take minutes, days or all memory. What is left of the budget when an error
/// is absorbed does not matter, so a small one shows the same as a large one, and sooner.
#[test]
fn what_takes_long_ends_soon() {
    let object = object(2_000);
    let doubled = |times: usize| format!("['x']{} == []", ".map(a, a + a)".repeat(times));
    let paired = |times: usize| format!("['x']{} == []", ".map(a, [a, a])".repeat(times));
    for text in [
        "obj.items.all(a, obj.items.all(b, a.n + b.n >= 0))",
        "obj.items.exists(a, obj.items.exists(b, obj.items.exists(c, a.n + b.n + c.n < 0)))",
        "obj.items.exists_one(a, obj.items.exists_one(b, a.n == b.n + 1u))",
        "size(obj.items.map(a, obj.items.map(b, a.n + b.n))) == 0",
        "obj.items.filter(a, obj.items.filter(b, a.n > b.n) == []) == []",
        "obj.items.map(a, obj.items.exists(b, a.n > b.n), 'x') == []",
        // Errors that CEL absorbs: in `all`, and beside `||`.
        "obj.items.all(a, obj.items.all(b, a.absent == b.absent) || false)",
        "obj.items.all(a, obj.items.map(b, b.n) == [] || obj.items.all(b, b.absent))",
        "{'a': obj.items.map(a, [obj.items.filter(b, b.n > a.n)])}.a == []",
        "[1, 2, 3].map(a, obj.text + obj.text + obj.text + obj.text).map(a, a + a + a) == []",
        &doubled(28),
        &paired(28),
    ] {
        let judged = Expression::parse(text).unwrap().holds(&object, &Budget::new(5_000));
        assert_eq!(judged, Err(Unmet::TooLong), "{text}");
    }
}

#[test]
fn what_people_ask_is_within_the_budget() {
    let object = object(20_000);
    let judged = |text: &str, object: &Value| {
        Expression::parse(text).unwrap().holds(object, &Budget::default())
    };
    for text in [
        "obj.items.all(a, a.n >= 0)",
        "size(obj.items.filter(a, a.s == 'x')) == 20000",
        "obj.items.map(a, a.n).exists(n, n == 19999)",
        "obj.items.exists_one(a, a.n == 7)",
        "obj.items.filter(a, a.n < 300).all(a, true)",
        "obj.text.matches('^x+$')",
    ] {
        assert_eq!(judged(text, &object), Ok(()), "{text}");
    }
    let nodes: Vec<Value> = (0..300).map(|n| json!({ "n": n, "of": [{ "n": n }] })).collect();
    let nodes = json!({ "nodes": nodes });
    let each = "obj.nodes.all(a, obj.nodes.exists(b, b.of.exists(c, c.n == a.n)))";
    assert_eq!(judged(each, &nodes), Ok(()));
}

/// What was decided before the budget ran out is decided.
#[test]
fn a_spent_budget_makes_nothing_true() {
    let budget = Budget::default();
    budget.withdraw();
    let holds = |text: &str| {
        Expression::parse(text).unwrap().holds(&json!({ "items": [1, 2, 3] }), &budget)
    };
    assert_eq!(holds("obj.items.exists(a, a == 2)"), Err(Unmet::TooLong));
    assert_eq!(holds("!obj.items.exists(a, a == 2)"), Err(Unmet::TooLong));
    assert_eq!(holds("obj.items.all(a, a > 0)"), Err(Unmet::TooLong));
    assert_eq!(holds("obj.items.filter(a, a > 0) == []"), Err(Unmet::TooLong));
    assert_eq!(holds("obj.items.map(a, a + 1) == []"), Err(Unmet::TooLong));
    assert_eq!(holds("true || obj.items.all(a, a > 0)"), Ok(()));
}
