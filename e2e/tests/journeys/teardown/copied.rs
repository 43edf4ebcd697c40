//! Platforms whose names, or files, are alike.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::DeleteParams;
use serde_json::json;
use tiphys_e2e::{PlatformFile, Site, World};
use tiphys_lab::repository::Behaviour;

use super::{app, teardown};
use crate::audit::Mark;
use crate::deploy::{configure, deploy};

/// A copy of a platform file under another name removes nothing of the first platform, and the
/// graph of one platform is never another's.
pub(crate) async fn under_another_name(world: Arc<World>) {
    let mut site = Site::new(&world, "copy").await;
    site.platform.apps = vec![app("copy-app", Behaviour::ConfigOnly, 60)];
    site.commit("an app");
    let graphs = site.objects("v1", "ConfigMap", Some("argocd"));
    // As another platform would have its graph.
    site.apply(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "tiphys-copy-1", "namespace": "argocd" },
        "data": { "graph": "of copy-1" },
    }))
    .await;
    let with = |name: &str, access: bool| -> PlatformFile {
        site.platform_file_with(|text| {
            let named = text.replacen("name: copy\n", &format!("name: {name}\n"), 1);
            assert!(name == "copy" || named != text, "{text}");
            let root = "    rootProject: copy-root\n";
            let access = if access { "kubernetes" } else { "api" };
            named.replace(root, &format!("{root}    access: {access}\n"))
        })
    };
    configure(&world, &with("copy", false)).await;
    deploy(&world, &with("copy", false), 0).await;
    for access in [false, true] {
        let before = Mark::now(&world);
        let told = teardown(&world, &with("copied", access), &[], 3).await;
        let words = "the AppProject `copy` belongs to another platform, not to `copied`";
        assert!(told.stderr.contains(words), "{}", told.stderr);
        assert_eq!(before.writes(&site).of_ours(), BTreeMap::new(), "{}", told.stderr);
        let application = site.application("copy-app").await;
        assert!(application.metadata.deletion_timestamp.is_none());
    }
    let other = graphs.get("tiphys-copy-1").await.expect("it is another's");
    assert_eq!(other.data["data"]["graph"], "of copy-1");
    graphs.delete("tiphys-copy-1", &DeleteParams::default()).await.expect("the test's own");
    teardown(&world, &with("copy", false), &[], 0).await;
    site.close().await;
}
