//! The finalizers that make Argo CD delete what an Application has applied. All others belong to
//! somebody else, and stay: with those of hooks (`post-delete-finalizer…`), Argo CD runs the hooks,
//! with a cascade as without one, and removes them itself.

/// Without a policy, Argo CD deletes in the foreground.
const PLAIN: &str = "resources-finalizer.argocd.argoproj.io";
const FOREGROUND: &str = "resources-finalizer.argocd.argoproj.io/foreground";
const BACKGROUND: &str = "resources-finalizer.argocd.argoproj.io/background";

fn cascades(finalizer: &str) -> bool {
    [PLAIN, FOREGROUND, BACKGROUND].contains(&finalizer)
}

/// With these, what was applied goes in the foreground. `None`: it does so already.
pub(super) fn cascading(before: &[String]) -> Option<Vec<String>> {
    // The first one decides.
    match before.iter().find(|finalizer| cascades(finalizer)) {
        Some(first) if first != BACKGROUND => None,
        Some(_) | None => {
            let others = before.iter().filter(|finalizer| !cascades(finalizer));
            Some(others.cloned().chain([FOREGROUND.to_owned()]).collect())
        }
    }
}

/// With these, what was applied stays. `None`: it does so already.
#[must_use]
pub fn orphaning(before: &[String]) -> Option<Vec<String>> {
    let others: Vec<String> = before.iter().filter(|f| !cascades(f)).cloned().collect();
    (others.len() < before.len()).then_some(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: &str = "post-delete-finalizer.argocd.argoproj.io";
    const CLEANUP: &str = "post-delete-finalizer.argocd.argoproj.io/cleanup";
    const THEIRS: &str = "example.com/theirs";

    type Case = (&'static [&'static str], Option<&'static [&'static str]>);

    fn check(change: fn(&[String]) -> Option<Vec<String>>, cases: &[Case]) {
        for (before, after) in cases {
            let owned = |list: &[&str]| list.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
            assert_eq!(change(&owned(before)), after.map(owned), "{before:?}");
        }
    }

    #[test]
    fn a_cascade_adds_one_entry_and_keeps_those_of_others() {
        check(
            cascading,
            &[
                (&[], Some(&[FOREGROUND])),
                (&[PLAIN], None),
                (&[FOREGROUND], None),
                (&[THEIRS, PLAIN, HOOK], None),
                (&[FOREGROUND, BACKGROUND], None),
                (&[BACKGROUND], Some(&[FOREGROUND])),
                (&[BACKGROUND, FOREGROUND, THEIRS], Some(&[THEIRS, FOREGROUND])),
                (&[HOOK, CLEANUP, THEIRS], Some(&[HOOK, CLEANUP, THEIRS, FOREGROUND])),
            ],
        );
    }

    #[test]
    fn without_a_cascade_only_its_entries_go() {
        check(
            orphaning,
            &[
                (&[], None),
                (&[THEIRS, HOOK, CLEANUP], None),
                (&[PLAIN], Some(&[])),
                (&[PLAIN, HOOK, FOREGROUND, THEIRS, BACKGROUND], Some(&[HOOK, THEIRS])),
                // Not one of Argo CD's policies.
                (&["resources-finalizer.argocd.argoproj.io/other"], None),
            ],
        );
    }
}
