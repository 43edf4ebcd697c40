//! Asking the API server what we may do.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// Whether the caller may do this. The answer is all that comes of asking. A server that does not
/// say is one that does not know better.
pub async fn may(client: &Client, attributes: ResourceAttributes) -> Result<bool, kube::Error> {
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_none_or(|status| status.allowed))
}
