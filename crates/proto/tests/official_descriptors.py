"""Prints what Google's own Python package says about the API, a fact a line.

The test descriptors.rs writes the same lines from our descriptor set and
compares. Messages come from descriptors. The package has none for services of
Pub/Sub, so methods come from the stubs it makes, and REST bindings from its
REST transport.
"""

import re

from google.iam.v1 import iam_policy_pb2, options_pb2, policy_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.pubsub_v1 import types
from google.pubsub_v1.services.publisher.transports import grpc as publisher
from google.pubsub_v1.services.publisher.transports import rest_base as publisher_rest
from google.pubsub_v1.services.schema_service.transports import grpc as schema_service
from google.pubsub_v1.services.schema_service.transports import rest_base as schema_rest
from google.pubsub_v1.services.subscriber.transports import grpc as subscriber
from google.pubsub_v1.services.subscriber.transports import rest_base as subscriber_rest
from google.type import expr_pb2

FILES = [
    types.Topic.pb().DESCRIPTOR.file,
    types.Schema.pb().DESCRIPTOR.file,
    iam_policy_pb2.DESCRIPTOR,
    options_pb2.DESCRIPTOR,
    policy_pb2.DESCRIPTOR,
    expr_pb2.DESCRIPTOR,
]


def print_message(message, scope):
    name = f"{scope}.{message.name}"
    print("message", name)
    for field in message.field:
        print_field(field, message, name)
    for nested in message.nested_type:
        print_message(nested, name)
    for enum in message.enum_type:
        print_enum(enum, name)


def print_field(field, message, scope):
    in_oneof = field.HasField("oneof_index") and not field.proto3_optional
    print(
        "field",
        # The package puts "_" after names that are Python's own.
        f"{scope}.{field.name.rstrip('_')}",
        field.number,
        FieldDescriptorProto.Label.Name(field.label),
        FieldDescriptorProto.Type.Name(field.type),
        field.type_name.lstrip(".") or "-",
        message.oneof_decl[field.oneof_index].name if in_oneof else "-",
        "presence" if field.proto3_optional else "-",
    )


def print_enum(enum, scope):
    print("enum", f"{scope}.{enum.name}")
    for value in enum.value:
        print("value", f"{scope}.{enum.name}.{value.name}", value.number)


def print_method(path, request, request_streams, response, response_streams):
    print(
        "method",
        path.lstrip("/"),
        "stream" if request_streams else "unary",
        request.full_name,
        "stream" if response_streams else "unary",
        response.full_name,
    )


class PrintingChannel:
    """Stands where a stub's channel is, and prints what the stub asks for."""

    def __getattr__(self, kind):
        request_kind, response_kind = kind.split("_")

        def make_stub(path, request_serializer, response_deserializer, **_):
            # IAM has a descriptor of its service.
            if not path.startswith("/google.iam.v1."):
                print_method(
                    path,
                    request_serializer.__self__.pb().DESCRIPTOR,
                    request_kind == "stream",
                    descriptor_of(response_deserializer(b"")),
                    response_kind == "stream",
                )

        return make_stub


def descriptor_of(message):
    plain = getattr(message, "_pb", message)
    return plain.DESCRIPTOR


def print_stubs(transport_class):
    transport = object.__new__(transport_class)
    transport._stubs = {}
    transport._logged_channel = PrintingChannel()
    for name, member in vars(transport_class).items():
        if isinstance(member, property) and not name.startswith("_"):
            if name not in ("grpc_channel", "kind"):
                getattr(transport, name)


def print_bindings(module, service):
    """Prints the REST bindings of one service; IAM's are in every module."""
    (base,) = [c for n, c in vars(module).items() if re.fullmatch(r"_Base\w+RestTransport", n)]
    for name, member in vars(base).items():
        method = name.removeprefix("_Base")
        if method == name or not hasattr(member, "_get_http_options"):
            continue
        if method.endswith(("IamPolicy", "IamPermissions")) != (service == "google.iam.v1.IAMPolicy"):
            continue
        for rule in member._get_http_options():
            print("http", f"{service}/{method}", rule["method"], rule["uri"], rule.get("body", "-"))


def main():
    for descriptor in FILES:
        file = FileDescriptorProto()
        descriptor.CopyToProto(file)
        for message in file.message_type:
            print_message(message, file.package)
        for enum in file.enum_type:
            print_enum(enum, file.package)
    for method in iam_policy_pb2.DESCRIPTOR.services_by_name["IAMPolicy"].methods:
        path = f"{method.containing_service.full_name}/{method.name}"
        print_method(path, method.input_type, False, method.output_type, False)
    print_stubs(publisher.PublisherGrpcTransport)
    print_stubs(subscriber.SubscriberGrpcTransport)
    print_stubs(schema_service.SchemaServiceGrpcTransport)
    print_bindings(publisher_rest, "google.pubsub.v1.Publisher")
    print_bindings(subscriber_rest, "google.pubsub.v1.Subscriber")
    print_bindings(schema_rest, "google.pubsub.v1.SchemaService")
    print_bindings(publisher_rest, "google.iam.v1.IAMPolicy")


main()
