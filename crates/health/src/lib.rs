//! Argo CD's health scripts, evaluated here: no cluster, no Argo CD.
//!
//! - [`Evaluator`] runs one script on one object, within [`Limits`].
//! - [`Lookup`] finds the script for an object, in Argo CD's order, and [`assess`] does both.
//! - [`definitions`] are the scripts that Tiphys brings along.
//! - [`Tree`] runs the cases of a directory in Argo CD's layout.

mod argocd_cm;
mod assess;
mod case;
mod clock;
mod concat;
mod definitions;
mod evaluator;
mod format;
mod limits;
mod lookup;
mod number;
mod object;
mod pattern;
mod sandbox;
mod strings;
mod tree;
mod value;
mod verdict;

pub use argocd_cm::{CustomizationsError, overrides_from_argocd_cm};
pub use assess::{Assessment, assess};
pub use definitions::{Definition, definitions};
pub use evaluator::{EvaluationError, Evaluator, FailedBecause};
pub use limits::Limits;
pub use lookup::{Decider, GroupKind, Lookup, Script};
pub use object::{ObjectError, objects};
pub use tree::{CaseReport, Outcome, Tree, TreeError, TreeReport};
pub use verdict::Verdict;
