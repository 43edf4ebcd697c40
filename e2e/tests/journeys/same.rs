//! The same inputs give the same cluster: a platform is deployed, taken away by hand with all
//! that belongs to it, and deployed again.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};
use tiphys_e2e::inventory::{Inventory, difference, inventory_of};
use tiphys_e2e::{Site, World, figure};
use tiphys_lab::repository::{AppSource, Behaviour};

use crate::deploy::{configure, deploy};

const NAME: &str = "same";

pub(crate) async fn inventory_for_the_same_inputs(world: Arc<World>) {
    let site = site(&world).await;
    site.commit("some apps");
    let file = site.platform_file();
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let first = look(&world).await;
    site.close().await;

    // The repository stays as it is: with the same commit.
    let mut site = self::site(&world).await;
    forget(&site).await;
    assert_eq!(look(&world).await, Inventory::new(), "nothing of it is left");
    configure(&world, &file).await;
    deploy(&world, &file, 0).await;
    let second = look(&world).await;
    assert_eq!(difference(&first, &second), Vec::<String>::new());
    figure(&format!("{} objects, the same twice", second.len()));

    // And what is not the same is seen.
    site.platform.app_mut("same-db").expect("an app").generation = 2;
    site.commit("another pod");
    deploy(&world, &file, 0).await;
    let changed = difference(&second, &look(&world).await);
    let template = "~ apps/Deployment same-db/same-db spec template metadata labels";
    assert!(changed.iter().any(|line| line.starts_with(template)), "{changed:#?}");
    site.close().await;
}

async fn site(world: &Arc<World>) -> Site {
    let mut site = Site::new(world, NAME).await;
    let after = Duration::from_secs(1);
    site.platform.apps = vec![
        AppSource::new("same-db", Behaviour::Healthy { after }),
        AppSource::new("same-api", Behaviour::Healthy { after }).depends_on(&["same-db"]),
        AppSource::new("same-settings", Behaviour::ConfigOnly).depends_on(&["same-db"]),
        AppSource::new("same-web", Behaviour::Healthy { after })
            .depends_on(&["same-api", "same-settings"]),
    ];
    site
}

/// What belongs to the platform: its namespaces with all that is in them, and what carries its
/// name.
async fn look(world: &World) -> Inventory {
    let mut all = inventory_of(&world.client, NAME).await.expect("an inventory");
    // How Argo CD reads the repository comes before the platform.
    all.remove("Secret argocd/same");
    // It lists the namespaces that were there before, those of other tests among them.
    if let Some(graph) = all.get_mut("ConfigMap argocd/tiphys-same") {
        graph["binaryData"] = "(graph)".into();
    }
    // It follows the health of its children when Argo CD next looks at them, minutes later.
    if let Some(root) = all.get_mut("argoproj.io/Application argocd/same-root") {
        root["status"]["health/status"] = "(later)".into();
    }
    all
}

/// What `configure` and runs have left in Argo CD's namespace.
async fn forget(site: &Site) {
    let kinds = [
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "ServiceAccount"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("coordination.k8s.io/v1", "Lease"),
    ];
    for (version, kind) in kinds {
        let objects = site.objects(version, kind, Some("argocd"));
        for object in objects.list(&ListParams::default()).await.expect("a list") {
            let name = object.name_any();
            let own = ["tiphys-same-", "tiphys-same."].iter().any(|of| name.starts_with(of));
            if name == "tiphys-same" || own {
                let deleted = objects.delete(&name, &DeleteParams::default()).await;
                deleted.expect("it can be deleted");
            }
        }
    }
}
