//! Expressions over one object, in CEL. `spec` parses them, so that what is wrong with one is known
//! before anything runs; whoever has the object parses them again and evaluates them.
//!
//! A crate of its own, because CEL takes long to compile and only these two need it.
//!
//! CEL always ends, but its interpreter calls itself for every level of an expression, so an
//! expression has a largest size and depth; and loops within loops take long, so an evaluation has
//! a [`Budget`].

mod budget;

use std::fmt;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::parser::PrattParser;
use cel::{Context, ExecutionError, Value};
use serde::Serialize;

pub use budget::Budget;

/// What an expression calls the object.
const OBJECT: &str = "obj";
/// Far more than a question about an object takes, far less than a stack holds.
const MAX_DEPTH: u16 = 32;
const MAX_NODES: usize = 500;
const MAX_LENGTH: usize = 4096;
/// How much of what was found is shown.
const SHOWN: usize = 3;
const SHOWN_LENGTH: usize = 60;

/// A condition on an object.
pub struct Expression {
    text: String,
    parsed: IdedExpr,
}

/// Why an expression does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unmet {
    /// What was found instead: this quotes the object.
    #[error("{0}")]
    Found(String),
    /// Its budget is spent, so nobody knows.
    #[error("unknown: takes too long")]
    TooLong,
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// Line and column, from 1.
    #[error("{message}")]
    Syntax { line: usize, column: usize, message: String },
    #[error("unknown variable `{name}`")]
    Variable { name: String },
    #[error("unknown function `{name}`")]
    Function { name: String },
    #[error("the expression is too long or too deeply nested")]
    Size,
}

impl Expression {
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > MAX_LENGTH {
            return Err(ExpressionError::Size);
        }
        let parser =
            PrattParser::new().max_recursion_depth(MAX_DEPTH).max_expression_node_count(MAX_NODES);
        let mut parsed = parser.parse(text).map_err(|errors| syntax(&errors))?;
        check(&parsed, 0, &mut vec![OBJECT])?;
        budget::metered(&mut parsed);
        Ok(Expression { text: text.to_owned(), parsed })
    }

    /// Whether it holds of an object.
    pub fn holds(&self, object: &impl Serialize, budget: &Budget) -> Result<(), Unmet> {
        let mut context = Context::default();
        budget.provide(&mut context).map_err(Unmet::Found)?;
        context
            .add_variable(OBJECT, object)
            .map_err(|error| Unmet::Found(format!("cannot read the object: {error}")))?;
        let found = match Value::resolve(&self.parsed, &context) {
            Ok(Value::Bool(true)) => return Ok(()),
            // Whatever came of it: the budget may be the reason.
            _ if budget.is_spent() => return Err(Unmet::TooLong),
            Ok(Value::Bool(false)) => self.found(&context),
            Ok(other) => format!("`{self}` is {}, not true or false", shown(&other)),
            Err(ExecutionError::NoSuchKey(field)) => format!("there is no field `{field}` yet"),
            Err(ExecutionError::IndexOutOfBounds(at)) => {
                format!("there is no item {} yet", shown(&at))
            }
            Err(error) => format!("cannot evaluate `{self}`: {error}"),
        };
        Err(Unmet::Found(found))
    }

    /// The fields that it speaks of, as they are.
    fn found(&self, context: &Context<'_, '_>) -> String {
        let mut fields = Vec::new();
        fields_of(&self.parsed, &mut fields);
        let said = fields.into_iter().filter_map(|(name, field)| {
            let value = Value::resolve(field, context).ok()?;
            Some(format!("{name} is {}", shown(&value)))
        });
        let said: Vec<String> = said.take(SHOWN).collect();
        if said.is_empty() { format!("`{self}` is false") } else { said.join(", ") }
    }
}

fn syntax(errors: &cel::ParseErrors) -> ExpressionError {
    let Some(first) = errors.errors.first() else { return ExpressionError::Size };
    if first.msg.contains("limit exceeded") {
        return ExpressionError::Size;
    }
    let place = |at: isize| usize::try_from(at).unwrap_or_default().max(1);
    let message = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    // What could stand there instead is a list of a grammar's own words.
    let message = message.split(" expecting ").next().unwrap_or(message).to_owned();
    ExpressionError::Syntax { line: place(first.pos.0), column: place(first.pos.1), message }
}

/// Refuses what the interpreter would only stumble over once it gets there.
fn check<'e>(
    node: &'e IdedExpr,
    depth: u16,
    known: &mut Vec<&'e str>,
) -> Result<(), ExpressionError> {
    if depth > MAX_DEPTH {
        return Err(ExpressionError::Size);
    }
    let mut each =
        |nodes: &[&'e IdedExpr]| nodes.iter().try_for_each(|node| check(node, depth + 1, known));
    match &node.expr {
        Expr::Unspecified | Expr::Literal(_) => Ok(()),
        Expr::Ident(name) => {
            if known.contains(&name.as_str()) || !is_undeclared(node) {
                return Ok(());
            }
            Err(ExpressionError::Variable { name: name.clone() })
        }
        Expr::Select(select) => each(&[&select.operand]),
        Expr::Call(call) => {
            let anything = || IdedExpr {
                id: 0,
                expr: Expr::Literal(LiteralValue::String(String::new().into())),
            };
            let mut tried = call.clone();
            tried.target = call.target.as_ref().map(|_| Box::new(anything()));
            tried.args = call.args.iter().map(|_| anything()).collect();
            if is_undeclared(&IdedExpr { id: 0, expr: Expr::Call(tried) }) {
                return Err(ExpressionError::Function { name: call.func_name.clone() });
            }
            each(&call.target.iter().map(|node| &**node).chain(&call.args).collect::<Vec<_>>())
        }
        Expr::List(list) => each(&list.elements.iter().collect::<Vec<_>>()),
        Expr::Map(map) => each(&entries(&map.entries)),
        Expr::Struct(object) => each(&entries(&object.entries)),
        Expr::Comprehension(over) => {
            each(&[&over.iter_range])?;
            let before = known.len();
            known.extend([&*over.iter_var, &*over.accu_var]);
            known.extend(over.iter_var2.as_deref());
            let parts = [&over.accu_init, &over.loop_cond, &over.loop_step, &over.result];
            let checked = parts.into_iter().try_for_each(|node| check(node, depth + 1, known));
            known.truncate(before);
            checked
        }
    }
}

fn entries(entries: &[cel::common::ast::IdedEntryExpr]) -> Vec<&IdedExpr> {
    let parts = entries.iter().flat_map(|entry| match &entry.expr {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    });
    parts.collect()
}

/// Whether CEL itself has nothing of that name.
fn is_undeclared(node: &IdedExpr) -> bool {
    matches!(Value::resolve(node, &Context::default()), Err(ExecutionError::UndeclaredReference(_)))
}

/// `obj.a.b` and the like, wherever they stand outside a comprehension.
fn fields_of<'e>(node: &'e IdedExpr, into: &mut Vec<(String, &'e IdedExpr)>) {
    match &node.expr {
        Expr::Select(_) => {
            if let Some(name) = field_name(node)
                && !into.iter().any(|(known, _)| *known == name)
            {
                into.push((name, node));
            }
        }
        Expr::Call(call) => {
            let parts = call.target.iter().map(|node| &**node).chain(&call.args);
            parts.for_each(|node| fields_of(node, into));
        }
        Expr::Comprehension(over) => fields_of(&over.iter_range, into),
        Expr::Unspecified
        | Expr::Literal(_)
        | Expr::Ident(_)
        | Expr::List(_)
        | Expr::Map(_)
        | Expr::Struct(_) => {}
    }
}

fn field_name(node: &IdedExpr) -> Option<String> {
    match &node.expr {
        Expr::Ident(name) if name == OBJECT => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", field_name(&select.operand)?, select.field))
        }
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Null => "null".to_owned(),
        Value::List(list) => format!("a list of {}", list.len()),
        Value::Map(_) => "an object".to_owned(),
        other => format!("{other:?}"),
    };
    match text.char_indices().nth(SHOWN_LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(text: &str) -> Result<(), String> {
        let object = json!({
            "metadata": { "labels": { "vault-sealed": "false" } },
            "status": {
                "phase": "Creating", "ready": 3, "share": 1.5,
                "conditions": [{ "type": "Ready", "status": "True" }],
            },
        });
        let expression = Expression::parse(text).unwrap();
        expression.holds(&object, &Budget::default()).map_err(|unmet| unmet.to_string())
    }

    #[test]
    fn what_holds_holds() {
        for text in [
            "obj.status.phase == 'Creating'",
            "obj.status.ready >= 3 && obj.status.share > 1.0",
            "obj.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
            "obj.metadata.labels['vault-sealed'] == 'false'",
            "obj.status.phase.matches('^Creat') && size(obj.status.conditions) == 1",
            "!has(obj.status.error)",
            "type(obj.status.phase) == string",
        ] {
            assert_eq!(judged(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_does_not_hold_says_what_was_found() {
        let found = |text: &str| judged(text).unwrap_err();
        assert_eq!(found("obj.status.phase == 'Ready'"), "obj.status.phase is \"Creating\"");
        assert_eq!(
            found("obj.status.ready > 3 || obj.status.conditions.all(c, c.status == 'False')"),
            "obj.status.ready is 3, obj.status.conditions is a list of 1"
        );
        assert_eq!(found("1 == 2"), "`1 == 2` is false");
        assert_eq!(found("obj.status.health == 'OK'"), "there is no field `health` yet");
        assert_eq!(found("obj.status.conditions[4].type == 'a'"), "there is no item 4 yet");
        assert_eq!(found("obj.status.ready"), "`obj.status.ready` is 3, not true or false");
        let mixed = found("obj.status.phase > 3");
        assert!(mixed.starts_with("cannot evaluate `obj.status.phase > 3`: "), "{mixed}");
    }

    #[test]
    fn what_is_wrong_with_an_expression_is_known_before_it_is_used() {
        let refused = |text: &str| Expression::parse(text).unwrap_err();
        assert!(matches!(
            refused("obj.status.phase = 'Ready'"),
            ExpressionError::Syntax { line: 1, column: 18, .. }
        ));
        assert!(matches!(refused(""), ExpressionError::Syntax { .. }));
        let variable = |name: &str| ExpressionError::Variable { name: name.to_owned() };
        assert_eq!(refused("object.status.phase == 'Ready'"), variable("object"));
        assert_eq!(refused("obj.a.all(c, d.b)"), variable("d"));
        // Also where the interpreter need not come by.
        assert_eq!(refused("has(obj.status) && self.a == 1"), variable("self"));
        let function = |name: &str| ExpressionError::Function { name: name.to_owned() };
        assert_eq!(refused("obj.status.phase.lower() == 'ready'"), function("lower"));
        assert_eq!(refused("has(obj.a) && now() > 3"), function("now"));
    }

    #[test]
    fn no_expression_is_too_much_for_the_stack() {
        for size in [100, 1_000, 1_000_000] {
            let around =
                |open: &str, close: &str| format!("{}obj{}", open.repeat(size), close.repeat(size));
            for text in [
                around("(", ")"),
                around("[", "]"),
                around("size(", ")"),
                around("!", ""),
                around("- ", ""),
                around("1 + ", ""),
                around("", ".a"),
                around("", "[0]"),
                around("true ? 1 : ", ""),
                around("obj.map(a, ", ")"),
            ] {
                if let Ok(expression) = Expression::parse(&text) {
                    expression.holds(&json!({}), &Budget::default()).unwrap_err();
                }
            }
        }
    }
}
