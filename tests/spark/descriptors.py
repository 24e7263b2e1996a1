"""Protobuf's descriptors for the tests, built in code: no protoc is needed."""

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor as Of

OPTIONAL, REQUIRED, REPEATED = 1, 2, 3
WELL_KNOWN = [f"google/protobuf/{each}.proto" for each in ("timestamp", "wrappers", "duration")]
WELL_KNOWN.append("google/protobuf/struct.proto")


def file_of(*messages, name="shop.proto", syntax="proto3", enums=(), imports=WELL_KNOWN):
    file = descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax=syntax)
    file.dependency.extend(imports)
    file.message_type.extend(messages)
    file.enum_type.extend(enums)
    return file


def set_of(*files):
    return descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()


def message(name, *fields, nested=()):
    """A message; a field is (name, type) with options: label, type_name, oneof_index …"""
    made = descriptor_pb2.DescriptorProto(name=name)
    for number, (field, kind, *more) in enumerate(fields, 1):
        options = {"label": OPTIONAL, **(more[0] if more else {})}
        if isinstance(kind, str):
            options = {"type_name": kind, "type": Of.TYPE_MESSAGE, **options}
        else:
            options["type"] = kind
        if "oneof" in options:
            group = options.pop("oneof")
            names = [each.name for each in made.oneof_decl]
            if group not in names:
                made.oneof_decl.add(name=group)
                names.append(group)
            options["oneof_index"] = names.index(group)
        made.field.add(name=field, number=number, **options)
    made.nested_type.extend(nested)
    return made


def map_entry(name, key, value):
    entry = message(name, ("key", key), ("value", value))
    entry.options.map_entry = True
    return entry


RIDE = message("Ride", ("rider", Of.TYPE_STRING), ("km", Of.TYPE_DOUBLE))
RIDES = set_of(file_of(RIDE, imports=()))
