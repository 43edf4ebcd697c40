//! Hooks that Argo CD runs after it has deleted an app, and leaves.

use std::sync::Arc;

use kube::api::DeleteParams;
use tiphys_e2e::{Site, World};
use tiphys_lab::repository::Behaviour;

use super::{app, teardown};
use crate::deploy::{configure, deploy};

/// The hook is made with either way of access, and is not waited for.
pub(crate) async fn after_the_deletion(world: Arc<World>) {
    let mut site = Site::new(&world, "hook").await;
    let maps = site.objects("v1", "ConfigMap", Some("default"));
    site.platform.apps =
        vec![app("hook-app", Behaviour::Resource { manifests: HOOK.to_owned() }, 60)];
    site.commit("an app with a hook");
    let access = "    rootProject: hook-root\n";
    let through_fields = site.platform_file_with(|text| {
        assert!(text.contains(access), "{text}");
        text.replace(access, &format!("{access}    access: kubernetes\n"))
    });
    for file in [site.platform_file(), through_fields] {
        // It may be left of a test that failed.
        maps.delete("hook-done", &DeleteParams::default()).await.ok();
        configure(&world, &file).await;
        deploy(&world, &file, 0).await;
        let finalizers = site.application("hook-app").await.metadata.finalizers.unwrap_or_default();
        let post_delete = |name: &String| name.starts_with("post-delete-finalizer");
        assert!(finalizers.iter().any(post_delete), "{finalizers:?}");
        let told = teardown(&world, &file, &[], 0).await;
        maps.get("hook-done").await.expect("Argo CD has made the hook");
        let note = "ConfigMap/default/hook-done stays: it is a hook of `hook-app`";
        assert!(told.stderr.contains(note), "{}", told.stderr);
    }
    maps.delete("hook-done", &DeleteParams::default()).await.expect("it was left");
    site.close().await;
}

const HOOK: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: { name: hook-map }
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: hook-done
  namespace: default
  annotations: { argocd.argoproj.io/hook: PostDelete }
";
