//! Others write to `argocd-secret` too. What they have changed between a look and a write is looked
//! at again.

use tiphys_cluster::{Cause, RequestError};
use tiphys_model::{Exit, Explain, Explanation};

use super::intent::IntentError;
use super::keys::KeysError;
use super::tokens::TokenError;

const ATTEMPTS: u32 = 10;

/// Why tokens are not registered, handed out or revoked.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.explain())]
pub enum TokenUpdateError {
    Keys(#[from] KeysError),
    Token(#[from] TokenError),
    Intent(#[from] IntentError),
    Request(#[from] RequestError),
    /// Somebody else wrote first, each time.
    TooManyConflicts(#[source] Box<TokenUpdateError>),
}

impl Explain for TokenUpdateError {
    fn explain(&self) -> Explanation {
        match self {
            TokenUpdateError::Keys(error) => error.explain(),
            TokenUpdateError::Token(error) => error.explain(),
            TokenUpdateError::Intent(error) => error.explain(),
            TokenUpdateError::Request(error) => error.explain(),
            // Elsewhere a conflict means that another run holds the platform; here it does not.
            TokenUpdateError::TooManyConflicts(error) => {
                Explanation { exit: Exit::Failed, ..error.explain() }
                    .hint("another client keeps changing it: try again")
            }
        }
    }
}

impl TokenUpdateError {
    fn is_conflict(&self) -> bool {
        match self {
            TokenUpdateError::Keys(KeysError::Request(error))
            | TokenUpdateError::Intent(IntentError::Request(error))
            | TokenUpdateError::Request(error) => error.cause() == Cause::Conflict,
            TokenUpdateError::Keys(_)
            | TokenUpdateError::Token(_)
            // Fields that somebody else manages stay so.
            | TokenUpdateError::Intent(_)
            | TokenUpdateError::TooManyConflicts(_) => false,
        }
    }
}

/// After a conflict there is another attempt, but not for ever; any other error comes back.
pub(super) fn again(attempts: &mut u32, error: TokenUpdateError) -> Result<(), TokenUpdateError> {
    if !error.is_conflict() {
        return Err(error);
    }
    if *attempts == ATTEMPTS {
        return Err(TokenUpdateError::TooManyConflicts(Box::new(error)));
    }
    *attempts += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn answer(code: u16) -> RequestError {
        let status = Status::failure("y", "r").with_code(code).boxed();
        RequestError::because("w")(kube::Error::Api(status))
    }

    #[test]
    fn a_conflict_is_tried_again_and_not_for_ever() {
        let conflict = || IntentError::Request(answer(409)).into();
        let mut attempts = 1;
        for _ in 1..ATTEMPTS {
            assert!(again(&mut attempts, conflict()).is_ok());
        }
        let last = again(&mut attempts, conflict()).unwrap_err().explain();
        assert_eq!((last.exit, &*last.what, &*last.why), (Exit::Failed, "w", "y"));
        assert!(last.next.unwrap().contains("try again"));
        let denied = again(&mut 1, answer(403).into()).unwrap_err();
        assert_eq!(denied.explain(), answer(403).explain());
    }
}
