//! What Argo CD says where its words alone tell two cases apart. Each was seen in 3.2.6; another
//! version that says it differently needs a line here, and a fact in `e2e/tests/facts`.

/// In a 403 for a sync that a window denies to everybody; a missing right is a 403 too.
pub(crate) const BLOCKED_BY_WINDOW: &str = "blocked by sync window";
/// In a 403 for a sync to another revision than the Application follows, where Argo CD (since 3.3) is told
/// to ask for a right of its own for that.
pub const OVERRIDE_WANTED: &str = "applications, override,";
/// In the condition of an Application that could not be compared because a part of Argo CD was not
/// there to do it, such as a repo-server that restarts; a source that is wrong is such a condition too.
pub const PART_UNAVAILABLE: &str = "code = Unavailable";
/// In the condition of an Application whose project Argo CD does not know: it is not there, or was made
/// a moment ago.
pub const PROJECT_UNKNOWN: &str = "which does not exist";
/// In the condition of an Application whose Git server Argo CD does not know, over HTTPS and SSH. What
/// it knows servers by is mounted into its pods, and Kubernetes takes a minute to bring a change there.
pub const SERVER_UNKNOWN: [&str; 2] =
    ["certificate signed by unknown authority", "knownhosts: key is unknown"];
/// In a 400 for a sync while another operation is under way; a wrong revision is a 400 too.
pub(crate) const OPERATION_IN_PROGRESS: &str = "another operation is already in progress";
