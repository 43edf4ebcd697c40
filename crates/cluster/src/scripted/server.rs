//! An API server for tests. It keeps objects and checks versions as a real one does, remembers
//! what it was asked, and answers otherwise where a test says so.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tiphys_model::Exit;

use super::{Answer, Asked, kind_and_name};

/// What an API server refuses with, and what we call it.
pub const REFUSALS: [(u16, Exit); 6] = [
    (401, Exit::Credentials),
    (403, Exit::Credentials),
    (410, Exit::Failed),
    (429, Exit::Unreachable),
    (500, Exit::Failed),
    (503, Exit::Unreachable),
];

/// A request that does not get what it asks for, in each way that ends an action.
#[must_use]
pub fn failures() -> [(Answer, Exit); 5] {
    [
        (Answer::refused(401, "no"), Exit::Credentials),
        (Answer::refused(403, "no"), Exit::Credentials),
        (Answer::refused(429, "no"), Exit::Unreachable),
        (Answer::refused(500, "no"), Exit::Failed),
        (Answer::After(Duration::from_secs(20), Box::new(Answer::Cut)), Exit::Unreachable),
    ]
}

#[derive(Clone, Default)]
pub struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// By path.
    objects: BTreeMap<String, Value>,
    /// What was deleted, at the version of its end.
    gone: BTreeMap<String, Value>,
    version: u64,
    asked: Vec<Asked>,
    instead: Vec<Instead>,
    controller: Option<Controller>,
}

/// What controllers make of the objects after a write; how often they wrote is for them to count.
type Controller = Box<dyn FnMut(&mut Objects<'_>, &str) + Send>;

/// Which request is meant.
pub type Meant = Box<dyn FnMut(&Asked) -> bool + Send>;

/// An answer that replaces the right one, once.
struct Instead {
    meant: Meant,
    answer: Answer,
    /// The request takes effect all the same.
    done: bool,
}

/// The objects, for whoever changes them from within.
pub struct Objects<'a> {
    objects: &'a mut BTreeMap<String, Value>,
    version: &'a mut u64,
}

impl Objects<'_> {
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Value> {
        self.objects.get(path).cloned()
    }

    pub fn put(&mut self, path: &str, mut object: Value) -> Value {
        *self.version += 1;
        let name = path.rsplit('/').next().unwrap_or_default();
        object["metadata"]["name"] = name.into();
        if let Some(namespace) = namespace_of(path) {
            object["metadata"]["namespace"] = namespace.into();
        }
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = format!("uid-{}", self.version).into();
        }
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    pub fn remove(&mut self, path: &str) {
        self.objects.remove(path);
    }

    /// Grows with every write.
    #[must_use]
    pub fn version(&self) -> u64 {
        *self.version
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics meanwhile")
    }

    #[must_use]
    pub fn client(&self) -> Client {
        let server = self.clone();
        super::client(move |asked| server.state().answer(asked))
    }

    /// Somebody else writes.
    pub fn put(&self, path: &str, object: Value) {
        self.change(|objects| objects.put(path, object));
    }

    pub fn change<T>(&self, change: impl FnOnce(&mut Objects<'_>) -> T) -> T {
        change(&mut self.state().parts())
    }

    #[must_use]
    pub fn get(&self, path: &str) -> Option<Value> {
        self.state().objects.get(path).cloned()
    }

    /// Called after each write, with its path.
    pub fn control(&self, controller: impl FnMut(&mut Objects<'_>, &str) + Send + 'static) {
        self.state().controller = Some(Box::new(controller));
    }

    /// The next request of this method to a path with this in it is answered so.
    pub fn next(&self, method: Method, path: &str, answer: Answer) {
        self.next_where(at(method, path), answer);
    }

    /// The next request for which this holds is answered so.
    pub fn next_where(&self, meant: impl FnMut(&Asked) -> bool + Send + 'static, answer: Answer) {
        let meant = Box::new(meant);
        self.state().instead.push(Instead { meant, answer, done: false });
    }

    /// It arrives, and its answer does not.
    pub fn lose_answer(&self, method: Method, path: &str) {
        let meant = Box::new(at(method, path));
        self.state().instead.push(Instead { meant, answer: Answer::Cut, done: true });
    }

    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// What it was asked to change, in order: `PATCH applications/vault`.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        let asked = self.asked().into_iter().filter(|asked| asked.method != Method::GET);
        asked.map(|asked| asked.summary()).collect()
    }

    /// All that it was asked, in order.
    pub fn requests(&self) -> Vec<String> {
        self.asked().iter().map(Asked::summary).collect()
    }
}

fn at(method: Method, path: &str) -> impl FnMut(&Asked) -> bool + Send + use<> {
    let path = path.to_owned();
    move |asked| asked.method == method && asked.path.contains(&path)
}

impl State {
    fn parts(&mut self) -> Objects<'_> {
        Objects { objects: &mut self.objects, version: &mut self.version }
    }

    fn answer(&mut self, asked: &Asked) -> Answer {
        self.asked.push(asked.clone());
        let meant = self.instead.iter_mut().position(|next| (next.meant)(asked));
        match meant.map(|at| self.instead.remove(at)) {
            Some(Instead { answer, done: false, .. }) => answer,
            Some(Instead { answer, done: true, .. }) => {
                self.serve(asked);
                answer
            }
            None => self.serve(asked),
        }
    }

    fn serve(&mut self, asked: &Asked) -> Answer {
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let found = self.objects.get(path).cloned();
        let answer = match (&asked.method, found) {
            (&Method::GET, Some(object)) => return Answer::Object(object),
            (&Method::GET, None) => return self.list(path, query),
            (&Method::POST, _) => self.create(path, &asked.body),
            (&Method::DELETE, Some(object)) if is_another(&object, &asked.body) => {
                return Answer::refused(409, "the UID in the precondition does not match");
            }
            // Argo CD's finalizer holds it back until its operation has ended.
            (&Method::DELETE, Some(mut object)) if !object["operation"].is_null() => {
                object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                Answer::Object(self.parts().put(path, object))
            }
            (&Method::DELETE, Some(object)) => {
                let last = self.parts().put(path, object);
                self.objects.remove(path);
                self.gone.insert(path.to_owned(), last);
                Answer::Object(json!({ "kind": "Status", "status": "Success" }))
            }
            // Server-side apply; all else is a merge patch.
            (&Method::PATCH, None) if query.contains("force=true") => {
                Answer::Object(self.parts().put(path, asked.body.clone()))
            }
            (&Method::PUT | &Method::PATCH, Some(object)) => self.write(path, object, asked),
            _ => Answer::refused(404, "not found"),
        };
        if let (Answer::Object(_), Some(mut controller)) = (&answer, self.controller.take()) {
            controller(&mut self.parts(), path);
            self.controller = Some(controller);
        }
        answer
    }

    fn create(&mut self, path: &str, object: &Value) -> Answer {
        // Events have a generated name.
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("generated");
        let path = format!("{path}/{name}");
        if self.objects.contains_key(&path) {
            return Answer::refused(409, "already exists");
        }
        Answer::Object(self.parts().put(&path, object.clone()))
    }

    fn write(&mut self, path: &str, mut object: Value, asked: &Asked) -> Answer {
        let version = &asked.body["metadata"]["resourceVersion"];
        if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
            return Answer::refused(409, "the object has been modified");
        }
        if asked.method == Method::PUT {
            object = asked.body.clone();
        } else {
            merge(&mut object, &asked.body);
        }
        Answer::Object(self.parts().put(path, object))
    }

    fn list(&mut self, path: &str, query: &str) -> Answer {
        if kind_and_name(path).1.is_some() || !path.starts_with("/api") {
            return Answer::refused(404, "not found");
        }
        let items = of_kind(&self.objects, path);
        if query.contains("watch=true") {
            return watch(query, &items, &of_kind(&self.gone, path));
        }
        let metadata = json!({ "resourceVersion": self.version.to_string() });
        Answer::Object(json!({ "metadata": metadata, "items": items }))
    }
}

/// Whether a deletion is meant for another object of the same name.
fn is_another(object: &Value, body: &Value) -> bool {
    let uid = &body["preconditions"]["uid"];
    !uid.is_null() && *uid != object["metadata"]["uid"]
}

/// The objects below this path; of a path without a namespace, those in all namespaces.
fn of_kind(objects: &BTreeMap<String, Value>, path: &str) -> Vec<Value> {
    let (api, kind) = path.rsplit_once('/').unwrap_or_default();
    let namespaced = format!("{api}/namespaces/");
    let of_kind = |at: &str| {
        let name = at.strip_prefix(path).and_then(|rest| rest.strip_prefix('/'));
        let rest = at.strip_prefix(&namespaced).and_then(|rest| rest.split_once('/'));
        let name = name.or_else(|| rest?.1.strip_prefix(kind)?.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/'))
    };
    objects.iter().filter(|(at, _)| of_kind(at)).map(|(_, object)| object.clone()).collect()
}

/// The namespace of an object at this path, unless it is cluster-wide.
fn namespace_of(path: &str) -> Option<&str> {
    let (namespace, rest) = path.split_once("/namespaces/")?.1.split_once('/')?;
    rest.contains('/').then_some(namespace)
}

/// The next change after the version that was asked for; if there is none, that is said later.
fn watch(query: &str, items: &[Value], gone: &[Value]) -> Answer {
    let version = |text: &str| text.parse::<u64>().unwrap_or_default();
    let since = query.split('&').find_map(|part| part.strip_prefix("resourceVersion="));
    let since = version(since.unwrap_or_default());
    let of = |object: &Value| version(object["metadata"]["resourceVersion"].as_str().unwrap_or(""));
    let changed = items.iter().map(|object| ("MODIFIED", object));
    let all = changed.chain(gone.iter().map(|object| ("DELETED", object)));
    let newer = all.filter(|(_, object)| of(object) > since);
    if let Some((kind, object)) = newer.min_by_key(|(_, object)| of(object)) {
        return Answer::Object(json!({ "type": kind, "object": object }));
    }
    let metadata = json!({ "resourceVersion": since.to_string() });
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata,
    });
    let nothing = Answer::Object(json!({ "type": "BOOKMARK", "object": object }));
    Answer::After(Duration::from_millis(100), Box::new(nothing))
}

/// RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().and_then(|target| target.remove(name));
        } else {
            merge(&mut target[name], value);
        }
    }
}
