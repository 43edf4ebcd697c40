//! What a teardown would do, in words.

use std::fmt;

use serde_json::{Value, json};
use tiphys_cluster::Target;
use tiphys_engine::TeardownPreview;
use tiphys_model::PlatformName;
use tiphys_report::one_line;

/// What would go, and where.
pub(super) struct Preview {
    pub(super) target: Target,
    pub(super) platform: PlatformName,
    /// Where its Applications are.
    pub(super) namespace: String,
    pub(super) would: TeardownPreview,
    /// Whether what `configure` and `bootstrap` have made goes too.
    pub(super) primitives: bool,
}

impl Preview {
    /// Whether nothing would go that anybody could miss.
    pub(super) fn is_empty(&self) -> bool {
        let TeardownPreview { apps, generators, namespaces, crds, volumes, taken, .. } =
            &self.would;
        apps.is_empty()
            && generators.is_empty()
            && namespaces.is_empty()
            && crds.is_empty()
            && volumes.is_empty()
            && taken.is_empty()
    }

    /// The same as the text, for programs.
    pub(super) fn json(&self) -> Value {
        let would = &self.would;
        let crds = would.crds.iter();
        let crds = crds.map(|(name, objects)| json!({ "name": name, "objects": objects }));
        let volumes = would.volumes.iter();
        let volumes = volumes.map(|(name, data)| json!({ "name": name, "data": data }));
        let taken = would.taken.iter();
        let taken = taken.map(|(object, why)| json!({ "object": object.to_string(), "why": why }));
        let waits = would.unconfirmed.iter().flat_map(|(app, objects)| {
            objects.iter().map(move |object| json!({ "app": app, "object": object.to_string() }))
        });
        json!({
            "kind": "forecast",
            "cluster": self.target.server,
            "platform": self.platform,
            "generators": would.generators,
            "apps": would.apps,
            "namespaces": would.namespaces,
            "crds": crds.collect::<Vec<_>>(),
            "volumes": volumes.collect::<Vec<_>>(),
            "primitives": self.primitives,
            "taken": taken.collect::<Vec<_>>(),
            "unconfirmed": waits.collect::<Vec<_>>(),
            "stays": would.kept.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TeardownPreview {
            apps,
            generators,
            namespaces,
            crds,
            volumes,
            kept,
            taken,
            unconfirmed,
        } = &self.would;
        writeln!(f, "Cluster     {}", self.target)?;
        writeln!(f, "Platform    {}", self.platform)?;
        let crds = crds.iter().map(|(crd, objects)| match objects {
            1 => format!("{crd} (1 object)"),
            objects => format!("{crd} ({objects} objects)"),
        });
        let volumes = volumes.iter().map(|(volume, policy)| format!("{volume} ({policy})"));
        list(f, "Generators", generators.iter().cloned())?;
        list(f, "Apps", apps.iter().cloned())?;
        list(f, "Namespaces", namespaces.iter().cloned())?;
        list(f, "CRDs", crds)?;
        list(f, "Volumes", volumes)?;
        if self.primitives {
            writeln!(f, "Primitives  projects, accounts, tokens and rights of the platform")?;
        }
        if !taken.is_empty() {
            writeln!(f, "Taken along")?;
        }
        taken.iter().try_for_each(|(object, why)| {
            writeln!(f, "  {}", one_line(&format!("{object}: {why}")))
        })?;
        if !unconfirmed.is_empty() {
            writeln!(f, "Waits for confirmation")?;
        }
        for (app, objects) in unconfirmed {
            for object in objects {
                let why = format!("{object}: nothing of `{app}` is removed until you approve it");
                writeln!(f, "  {}", one_line(&why))?;
            }
            writeln!(
                f,
                "  approve while `{app}` is being deleted: {}",
                approval(app, &self.namespace)
            )?;
        }
        if !kept.is_empty() {
            writeln!(f, "Stays")?;
        }
        kept.iter().try_for_each(|kept| writeln!(f, "  {}", one_line(&kept.to_string())))
    }
}

/// The command that lets Argo CD go on. It has to come after the deletion has begun.
fn approval(app: &str, namespace: &str) -> String {
    format!(
        "kubectl annotate applications.argoproj.io {app} -n {namespace} --overwrite \
         argocd.argoproj.io/deletion-approved=$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    )
}

fn list(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    items: impl Iterator<Item = String>,
) -> fmt::Result {
    let items: Vec<String> = items.collect();
    match items.len() {
        0 => writeln!(f, "{title:<12}none"),
        number => writeln!(f, "{title:<12}{number}: {}", items.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use tiphys_cluster::ObjectName;

    use super::*;

    #[test]
    fn what_waits_for_an_approval_comes_with_the_command_that_gives_it() {
        let [group, kind, namespace, name] = ["", "Secret", "db", "data"].map(str::to_owned);
        let objects = vec![ObjectName { group, kind, namespace, name }];
        let would = TeardownPreview {
            unconfirmed: [("db".to_owned(), objects)].into(),
            ..TeardownPreview::default()
        };
        let preview = Preview {
            target: Target { server: "https://10.0.0.1:6443".to_owned(), context: None },
            platform: PlatformName::parse("prod").unwrap(),
            namespace: "argocd".to_owned(),
            would,
            primitives: false,
        };
        let waits = &preview.json()["unconfirmed"][0];
        assert_eq!(*waits, json!({ "app": "db", "object": "Secret/db/data" }));
        let text = preview.to_string();
        let (_, shown) = text.split_once("Waits for confirmation\n").unwrap();
        assert_eq!(
            shown,
            "  Secret/db/data: nothing of `db` is removed until you approve it\n  \
             approve while `db` is being deleted: kubectl annotate applications.argoproj.io db -n argocd \
             --overwrite argocd.argoproj.io/deletion-approved=$(date -u +%Y-%m-%dT%H:%M:%SZ)\n"
        );
    }
}
