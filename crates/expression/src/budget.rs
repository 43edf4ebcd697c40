//! What an evaluation may cost.
//!
//! Only comprehensions repeat anything, and CEL's interpreter has no limit for them. So each is
//! changed to pay for every item that it comes by and for whatever it makes, and ends with an error
//! when nothing is left. CEL absorbs errors in some places (`error || true`); then the next item has
//! to pay again, and cannot.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::{Context, ExecutionError, Value};

/// Enough for two loops over 300 items each, one within the other.
const MAX_STEPS: usize = 100_000;
/// Text of this length counts as much as a step.
const TEXT: usize = 100;

/// Names that cannot be written in an expression.
const STEP: &str = "@step";
const MADE: &str = "@made";

/// The steps that an evaluation has left. Clones share them.
#[derive(Debug, Clone)]
pub struct Budget(Arc<AtomicUsize>);

impl Default for Budget {
    fn default() -> Self {
        Budget::new(MAX_STEPS)
    }
}

impl Budget {
    #[must_use]
    pub fn new(steps: usize) -> Self {
        Budget(Arc::new(AtomicUsize::new(steps)))
    }

    /// Ends the evaluation that uses it, wherever that runs.
    pub fn withdraw(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    fn spend(&self, steps: usize) -> Result<(), ExecutionError> {
        let less = |left: usize| Some(left.saturating_sub(steps));
        // The closure always has an answer, so this is never an error.
        let (Ok(left) | Err(left)) =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        if left > steps { Ok(()) } else { Err(ExecutionError::function_error(STEP, "too long")) }
    }

    /// Lets an expression that is [`metered`] pay from this.
    pub(crate) fn provide(&self, context: &mut Context<'_, '_>) -> Result<(), String> {
        let (steps, made) = (self.clone(), self.clone());
        let step = move || steps.spend(1).map(|()| true);
        let made = move |value: Value| made.spend(size(&value)).map(|()| value);
        let added =
            context.add_function(STEP, step).and_then(|()| context.add_function(MADE, made));
        added.map_err(|error| error.to_string())
    }
}

/// How much there is of a value.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / TEXT,
        Value::Bytes(bytes) => 1 + bytes.len() / TEXT,
        Value::List(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Map(map) => 1 + map.map.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Makes every comprehension pay.
pub(crate) fn metered(node: &mut IdedExpr) {
    match &mut node.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Select(select) => metered(&mut select.operand),
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| metered(target));
            call.args.iter_mut().for_each(metered);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(metered),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| metered_entry(&mut entry.expr)),
        Expr::Struct(object) => {
            object.entries.iter_mut().for_each(|entry| metered_entry(&mut entry.expr));
        }
        Expr::Comprehension(over) => {
            let parts = [
                &mut over.iter_range,
                &mut over.accu_init,
                &mut over.loop_cond,
                &mut over.loop_step,
                &mut over.result,
            ];
            parts.into_iter().for_each(metered);
            // The interpreter has a fast way for `map` and `filter`, which it knows by their form:
            // that must stay as it is.
            let makes_a_list = matches!(over.accu_init.expr, Expr::List(_));
            if !(makes_a_list && pay_in_append(&mut over.loop_step)) {
                pay_before(&mut over.loop_cond);
            }
        }
    }
}

fn metered_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => metered(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            metered(&mut entry.key);
            metered(&mut entry.value);
        }
    }
}

/// `result + [item]`, or `condition ? result + [item] : result`; false for anything else.
fn pay_in_append(step: &mut IdedExpr) -> bool {
    if let Expr::Call(CallExpr { func_name, args, .. }) = &mut step.expr
        && func_name == operators::CONDITIONAL
        && let [condition, append, _] = args.as_mut_slice()
    {
        let Some(items) = appended(append) else { return false };
        items.iter_mut().filter(|item| makes(item)).for_each(pay_for);
        pay_before(condition);
        return true;
    }
    let Some(items) = appended(step) else { return false };
    for item in items {
        if makes(item) { pay_for(item) } else { pay_before(item) }
    }
    true
}

/// The items of `result + [item]`.
fn appended(node: &mut IdedExpr) -> Option<&mut [IdedExpr]> {
    let Expr::Call(call) = &mut node.expr else { return None };
    match (call.func_name.as_str(), call.args.as_mut_slice()) {
        (operators::ADD, [_, IdedExpr { expr: Expr::List(items), .. }]) => {
            Some(&mut items.elements)
        }
        _ => None,
    }
}

/// Whether something is made that was not there before.
fn makes(node: &IdedExpr) -> bool {
    !matches!(node.expr, Expr::Ident(_) | Expr::Select(_) | Expr::Literal(_))
}

/// `NODE` becomes `@step() ? NODE : false`. Unlike `&&`, this absorbs no error.
fn pay_before(node: &mut IdedExpr) {
    let step = call(STEP, Vec::new());
    let never = Expr::Literal(LiteralValue::Boolean(false.into()));
    let args = vec![step, std::mem::take(node), IdedExpr { id: 0, expr: never }];
    *node = call(operators::CONDITIONAL, args);
}

/// `NODE` becomes `@made(NODE)`.
fn pay_for(node: &mut IdedExpr) {
    *node = call(MADE, vec![std::mem::take(node)]);
}

fn call(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let call = CallExpr { func_name: name.to_owned(), target: None, args };
    IdedExpr { id: 0, expr: Expr::Call(call) }
}
