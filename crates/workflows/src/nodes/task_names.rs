//! What the tasks of a DAG are called. Argo Workflows allows letters, digits and dashes, no dots, and no
//! digit at the beginning.

use std::collections::BTreeSet;

use tiphys_model::AppName;

/// Argo Workflows allows 128; what makes a name unique has to fit, too.
const LONGEST: usize = 120;

/// A name for each app, all different. Apps whose names are allowed keep them.
pub(super) fn task_names(apps: &[&AppName]) -> Vec<String> {
    let kept = apps.iter().map(|app| app.as_str()).filter(|name| is_allowed(name));
    let mut taken: BTreeSet<String> = kept.map(str::to_owned).collect();
    let name = |app: &&AppName| {
        let app = app.as_str();
        if is_allowed(app) {
            return app.to_owned();
        }
        let mut base = app.replace('.', "-");
        if base.starts_with(|first: char| first.is_ascii_digit()) {
            base.insert_str(0, "app-");
        }
        base.truncate(LONGEST);
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
        let free = free.unwrap_or(base);
        taken.insert(free.clone());
        free
    };
    apps.iter().map(name).collect()
}

fn is_allowed(name: &str) -> bool {
    name.len() <= LONGEST
        && !name.contains('.')
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(apps: &[&str]) -> Vec<String> {
        let apps: Vec<AppName> = apps.iter().map(|app| AppName::parse(app).unwrap()).collect();
        task_names(&apps.iter().collect::<Vec<_>>())
    }

    #[test]
    fn names_that_argo_workflows_allows_are_kept() {
        assert_eq!(names(&["a", "ceph-cluster"]), ["a", "ceph-cluster"]);
    }

    #[test]
    fn all_others_are_changed_and_stay_different() {
        assert_eq!(names(&["1password", "app-1password"]), ["app-1password-2", "app-1password"]);
        assert_eq!(names(&["a.b", "a-b", "a.b-2"]), ["a-b-2", "a-b", "a-b-2-2"]);
        let long = [format!("{}1", "a".repeat(200)), format!("{}2", "a".repeat(200))];
        let short = names(&[&long[0], &long[1]]);
        assert!(short.iter().all(|name| name.len() <= 128), "{short:?}");
        assert_ne!(short[0], short[1]);
    }
}
