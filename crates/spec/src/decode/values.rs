//! Scalars: text, numbers, names, durations.

use std::num::NonZeroU32;
use std::time::Duration;

use tiphys_expression::{Expression, ExpressionError};
use tiphys_model::bootstrap::Installer;
use tiphys_model::duration::{self, DurationError};
use tiphys_model::platform::{AppType, ArgoCdAccess, Hold, WorkflowMode};
use tiphys_model::{
    AppName, DeployMode, GroupName, NameError, NamespaceName, PlatformName, PushProvider,
    SecretName, StackName, StatusProvider, TriggerAction, TriggerName,
};

use super::{Decode, expected};
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::document::criteria::{STATUS_CODES, StatusCode};
use crate::document::{Factor, MAX_CONCURRENCY, MAX_COUNT};
use crate::nearest::nearest;
use crate::yaml::{Meaning, Node, Scalar};

impl Decode for String {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        text(node, problems).map(str::to_owned)
    }
}

/// Text. A plain `1.10` or `true` is a number or a truth value to every other YAML tool, so it
/// must be quoted to be text.
fn text<'t>(node: Node<'t>, problems: &mut Diagnostics) -> Option<&'t str> {
    let Some(scalar) = node.scalar() else {
        expected(node, "text", problems);
        return None;
    };
    match scalar.meaning() {
        Meaning::Text if scalar.text.is_empty() => {
            let problem =
                Diagnostic::new("expected text, found an empty string", node.span(), "empty");
            problems.push(problem.hint("set a value, or remove the field"));
            None
        }
        Meaning::Text => Some(scalar.text),
        Meaning::Null => {
            expected(node, "text", problems);
            None
        }
        Meaning::Bool(_) | Meaning::Integer(_) | Meaning::Float => {
            let title = format!("expected text, found {}", node.noun());
            problems.push(
                Diagnostic::new(title, node.span(), "this should be text")
                    .hint(format!("quote it: \"{}\"", scalar.text)),
            );
            None
        }
    }
}

impl Decode for Expression {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = text(node, problems)?;
        let error = match Expression::parse(text) {
            Ok(expression) => return Some(expression),
            Err(error) => error,
        };
        let title = "invalid CEL expression";
        let label = match &error {
            ExpressionError::Syntax { line: 1, column, .. } => {
                format!("at character {column}: {error}")
            }
            ExpressionError::Syntax { line, column, .. } => {
                format!("at line {line}, character {column}: {error}")
            }
            other => other.to_string(),
        };
        let hint = match error {
            ExpressionError::Variable { .. } => "use `obj` for the object",
            ExpressionError::Function { .. } => {
                "use CEL's standard functions; those for dates and durations are not available"
            }
            ExpressionError::Syntax { .. } | ExpressionError::Size => {
                "for example `obj.status.phase == 'Ready'`"
            }
        };
        problems.push(Diagnostic::new(title, node.span(), label).hint(hint));
        None
    }
}

impl Decode for bool {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        if let Some(Meaning::Bool(value)) = node.scalar().map(Scalar::meaning) {
            return Some(value);
        }
        expected(node, "`true` or `false`", problems);
        None
    }
}

/// An integer within limits.
fn integer<T: TryFrom<i64>>(
    node: Node<'_>,
    least: i64,
    most: i64,
    problems: &mut Diagnostics,
) -> Option<T> {
    let Some(Meaning::Integer(value)) = node.scalar().map(Scalar::meaning) else {
        expected(node, "a whole number", problems);
        return None;
    };
    let within = value.filter(|value| (least..=most).contains(value));
    if within.is_none() {
        let title = format!("{} is out of range", node.noun());
        let label = format!("must be from {least} to {most}");
        problems.push(Diagnostic::new(title, node.span(), label));
    }
    within.and_then(|value| T::try_from(value).ok())
}

/// How many apps may be in progress at once.
impl Decode for NonZeroU32 {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        integer::<u32>(node, 1, MAX_CONCURRENCY, problems).and_then(NonZeroU32::new)
    }
}

/// Small counts, such as retries.
impl Decode for u32 {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        integer(node, 0, MAX_COUNT, problems)
    }
}

impl Decode for Factor {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        integer(node, 1, MAX_COUNT, problems).map(Factor)
    }
}

/// Ports.
impl Decode for u16 {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        integer(node, 1, 65_535, problems)
    }
}

impl Decode for StatusCode {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let (least, most) = STATUS_CODES;
        integer(node, least, most, problems).map(StatusCode)
    }
}

const DURATION_HINT: &str = "write hours, minutes and seconds, like `90s`, `18m` or `1h30m`";

impl Decode for Duration {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        if let Some(Meaning::Bool(_)) = node.scalar().map(Scalar::meaning) {
            misplaced(node, "a duration", DURATION_HINT, problems);
            return None;
        }
        // `timeout: 30` is the commonest slip; it deserves more than "expected text", and quotes
        // would not help it.
        let number = node.scalar().and_then(|scalar| match scalar.meaning() {
            Meaning::Integer(_) | Meaning::Float if scalar.text.starts_with('-') => {
                Some(DurationError::Negative)
            }
            Meaning::Integer(_) => Some(DurationError::NoUnit(scalar.text.to_owned())),
            Meaning::Float => Some(DurationError::Fraction),
            Meaning::Null | Meaning::Bool(_) | Meaning::Text => None,
        });
        let error = match number {
            Some(error) => error,
            None => match duration::parse(text(node, problems)?) {
                Ok(duration) => return Some(duration),
                Err(error) => error,
            },
        };
        let shown = node.scalar().map_or(String::new(), |scalar| quoted(scalar.text));
        let hint = match &error {
            DurationError::NoUnit(number) if number.len() <= 9 => {
                format!("write `{number}s` or `{number}m`")
            }
            DurationError::TooLong => "the longest duration is `168h`".to_owned(),
            _ => DURATION_HINT.to_owned(),
        };
        let title = format!("{shown} is not a duration");
        problems.push(Diagnostic::new(title, node.span(), error.to_string()).hint(hint));
        None
    }
}

macro_rules! decode_name {
    ($($name:ident: $noun:literal;)*) => {$(
        impl Decode for $name {
            fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
                let text = text(node, problems)?;
                match $name::parse(text) {
                    Ok(name) => Some(name),
                    Err(error) => {
                        problems.push(bad_name(node, text, $noun, &error));
                        None
                    }
                }
            }
        }
    )*};
}

decode_name! {
    AppName: "an app";
    StackName: "a stack";
    GroupName: "a group";
    NamespaceName: "a namespace";
    PlatformName: "a platform";
    SecretName: "a Secret";
    TriggerName: "a trigger";
}

pub(crate) fn bad_name(node: Node<'_>, text: &str, noun: &str, error: &NameError) -> Diagnostic {
    let title = format!("{} is not a valid name for {noun}", quoted(text));
    let problem = Diagnostic::new(title, node.span(), error.to_string());
    // It may look like an ASCII letter, so its code is shown as well.
    if let Some(other) = text.chars().find(|c| !c.is_ascii()) {
        let code = u32::from(other);
        return problem.hint(format!(
            "replace {other:?} (U+{code:04X}) with lower-case ASCII letters, digits or dashes"
        ));
    }
    let suggestion: String = text
        .to_ascii_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let suggestion = suggestion.trim_matches('-');
    if suggestion.is_empty() || suggestion.len() > 40 {
        problem
    } else {
        problem.hint(format!("for example `{suggestion}`"))
    }
}

/// Reports a truth value or a number where something else belongs, and where quotes would not help.
fn misplaced(node: Node<'_>, noun: &str, hint: impl Into<String>, problems: &mut Diagnostics) {
    let title = format!("expected {noun}, found {}", node.noun());
    let label = format!("this should be {noun}");
    problems.push(Diagnostic::new(title, node.span(), label).hint(hint));
}

/// One of a few words.
fn word<T: Copy>(
    node: Node<'_>,
    noun: &str,
    words: &[(&'static str, T)],
    problems: &mut Diagnostics,
) -> Option<T> {
    let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let one_of = || format!("use one of: {}", all.join(", "));
    let meaning = node.scalar().map(Scalar::meaning);
    if let Some(Meaning::Bool(_) | Meaning::Integer(_) | Meaning::Float) = meaning {
        misplaced(node, noun, one_of(), problems);
        return None;
    }
    let text = text(node, problems)?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let hint = match nearest(text, all.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => one_of(),
        };
        let title = format!("{} is not {noun}", quoted(text));
        problems.push(Diagnostic::new(title, node.span(), "unknown value").hint(hint));
    }
    found
}

impl Decode for AppType {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let words = AppType::ALL.map(|app_type| (app_type.as_str(), app_type));
        word(node, "an app type", &words, problems)
    }
}

impl Decode for ArgoCdAccess {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let words = [("api", ArgoCdAccess::Api), ("kubernetes", ArgoCdAccess::Kubernetes)];
        word(node, "an access mode", &words, problems)
    }
}

impl Decode for Installer {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let words = Installer::ALL.map(|installer| (installer.as_str(), installer));
        word(node, "an installer", &words, problems)
    }
}

impl Decode for WorkflowMode {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let words = WorkflowMode::ALL.map(|mode| (mode.as_str(), mode));
        word(node, "a mode of runs on Argo Workflows", &words, problems)
    }
}

impl Decode for DeployMode {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let words = DeployMode::ALL.map(|mode| (mode.as_str(), mode));
        word(node, "a deploy mode", &words, problems)
    }
}

impl Decode for TriggerAction {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let words = TriggerAction::ALL.map(|action| (action.as_str(), action));
        word(node, "an action of a schedule", &words, problems)
    }
}

/// Argo Events checks the secrets of some of them, but only if it may make the webhook there itself.
const UNCHECKED_PROVIDERS: [&str; 4] = ["gitlab", "bitbucketserver", "bitbucket", "gitea"];

impl Decode for PushProvider {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let text = node.scalar().map_or("", |scalar| scalar.text);
        if UNCHECKED_PROVIDERS.contains(&text) {
            let title = format!("Argo Events would not check who calls as {}", quoted(text));
            problems.push(Diagnostic::new(title, node.span(), "anybody could call").hint(
                "use Argo CD's own webhook, or `generic` if the server can send the header \
                 `Authorization: Bearer SECRET`",
            ));
            return None;
        }
        let words = PushProvider::ALL.map(|provider| (provider.as_str(), provider));
        word(node, "a provider of pushes", &words, problems)
    }
}

impl Decode for StatusProvider {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let words = StatusProvider::ALL.map(|provider| (provider.as_str(), provider));
        word(node, "a provider of commit statuses", &words, problems)
    }
}

impl Decode for Hold {
    fn decode(node: Node<'_>, problems: &mut Diagnostics) -> Option<Self> {
        let words = [("during-run", Hold::DuringRun), ("always", Hold::Always)];
        word(node, "a hold policy", &words, problems)
    }
}
