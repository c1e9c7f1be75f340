//! What is not built yet answers UNIMPLEMENTED, and says so.

use proto::iam::iam_policy_server::IamPolicy;
use proto::iam::{
    GetIamPolicyRequest, Policy, SetIamPolicyRequest, TestIamPermissionsRequest,
    TestIamPermissionsResponse,
};
use proto::pubsub::schema_service_server::SchemaService;
use proto::pubsub::{
    CommitSchemaRequest, CreateSchemaRequest, DeleteSchemaRequest, DeleteSchemaRevisionRequest,
    GetSchemaRequest, ListSchemaRevisionsRequest, ListSchemaRevisionsResponse, ListSchemasRequest,
    ListSchemasResponse, RollbackSchemaRequest, Schema, ValidateMessageRequest,
    ValidateMessageResponse, ValidateSchemaRequest, ValidateSchemaResponse,
};
use tonic::{Request, Response, Status, async_trait};

/// The answer of a call that this release does not serve.
pub(crate) fn unsupported<T>(call: &str) -> Result<Response<T>, Status> {
    Err(Status::unimplemented(format!(
        "Orderly does not serve {call} yet. The README lists what it serves."
    )))
}

/// The services of which no call is served yet.
pub(crate) struct Unsupported;

#[async_trait]
impl SchemaService for Unsupported {
    async fn create_schema(
        &self,
        _: Request<CreateSchemaRequest>,
    ) -> Result<Response<Schema>, Status> {
        unsupported("CreateSchema")
    }

    async fn get_schema(&self, _: Request<GetSchemaRequest>) -> Result<Response<Schema>, Status> {
        unsupported("GetSchema")
    }

    async fn list_schemas(
        &self,
        _: Request<ListSchemasRequest>,
    ) -> Result<Response<ListSchemasResponse>, Status> {
        unsupported("ListSchemas")
    }

    async fn list_schema_revisions(
        &self,
        _: Request<ListSchemaRevisionsRequest>,
    ) -> Result<Response<ListSchemaRevisionsResponse>, Status> {
        unsupported("ListSchemaRevisions")
    }

    async fn commit_schema(
        &self,
        _: Request<CommitSchemaRequest>,
    ) -> Result<Response<Schema>, Status> {
        unsupported("CommitSchema")
    }

    async fn rollback_schema(
        &self,
        _: Request<RollbackSchemaRequest>,
    ) -> Result<Response<Schema>, Status> {
        unsupported("RollbackSchema")
    }

    async fn delete_schema_revision(
        &self,
        _: Request<DeleteSchemaRevisionRequest>,
    ) -> Result<Response<Schema>, Status> {
        unsupported("DeleteSchemaRevision")
    }

    async fn delete_schema(&self, _: Request<DeleteSchemaRequest>) -> Result<Response<()>, Status> {
        unsupported("DeleteSchema")
    }

    async fn validate_schema(
        &self,
        _: Request<ValidateSchemaRequest>,
    ) -> Result<Response<ValidateSchemaResponse>, Status> {
        unsupported("ValidateSchema")
    }

    async fn validate_message(
        &self,
        _: Request<ValidateMessageRequest>,
    ) -> Result<Response<ValidateMessageResponse>, Status> {
        unsupported("ValidateMessage")
    }
}

#[async_trait]
impl IamPolicy for Unsupported {
    async fn set_iam_policy(
        &self,
        _: Request<SetIamPolicyRequest>,
    ) -> Result<Response<Policy>, Status> {
        unsupported("SetIamPolicy")
    }

    async fn get_iam_policy(
        &self,
        _: Request<GetIamPolicyRequest>,
    ) -> Result<Response<Policy>, Status> {
        unsupported("GetIamPolicy")
    }

    async fn test_iam_permissions(
        &self,
        _: Request<TestIamPermissionsRequest>,
    ) -> Result<Response<TestIamPermissionsResponse>, Status> {
        unsupported("TestIamPermissions")
    }
}
