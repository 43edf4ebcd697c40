//! Asking the API server who may do what. The answer is all that comes of asking.

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::api::PostParams;
use kube::{Api, Client};

use crate::request::RequestError;

/// Whether the caller may do this.
pub async fn may(client: &Client, attributes: ResourceAttributes) -> Result<bool, kube::Error> {
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    Ok(allowed(reviews.create(&PostParams::default(), &review).await?.status))
}

/// Whether somebody else may do this.
pub async fn may_another(
    client: &Client,
    user: String,
    attributes: ResourceAttributes,
) -> Result<bool, kube::Error> {
    let spec = SubjectAccessReviewSpec {
        user: Some(user),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    Ok(allowed(reviews.create(&PostParams::default(), &review).await?.status))
}

/// As whom the API server knows the caller.
pub async fn own_name(client: &Client) -> Result<String, RequestError> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let review = review.map_err(RequestError::because("cannot ask the cluster who you are"))?;
    let user = review.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username).unwrap_or_default())
}

/// A server that does not say is one that does not know better.
fn allowed(status: Option<SubjectAccessReviewStatus>) -> bool {
    status.is_none_or(|status| status.allowed)
}
