"""The schemas of Kafka's own messages, from kio's classes: one for each version of each message.

kio's modules are read, not imported: to import one makes dataclasses and costs milliseconds, and
Metadata alone has twenty-eight. What is read is of one form, which kio generates:

    class JoinGroupRequestProtocol:                                   nested structs first
        __flexible__: ClassVar[bool] = True
        name: str = field(metadata={"kafka_type": "string"})
        metadata: bytes = field(metadata={"kafka_type": "bytes"})
"""

import ast
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from strom.wire.schema import NEVER, STRUCT, Field, Schema, Struct, implicit_default

#: Calls in kio's defaults that only name a type of number: `i32(-1)`.
NUMBERS = {"i8", "i16", "i32", "i64", "u16", "BrokerId", "ProducerId"}


class Version(NamedTuple):
    """What kio's module of one version says."""

    api_key: int
    is_flexible: bool
    structs: dict[str, tuple[Field, ...]]


def data_of_kio() -> list[str]:
    """Return the names of the messages that are neither request nor response: records of logs."""
    names = sorted(each.name for each in files("kio").joinpath("schema").iterdir())
    return [name for name in names if _modules(name, "data")]


@cache
def schema_of_kio(name: str, kind: str) -> Schema:
    """Return the schema of `create_topics`, `request`; LookupError if kio has no such message."""
    versions = {
        version: read_version(module.read_text(encoding="utf-8"))
        for version, module in _modules(name, kind).items()
    }
    if not versions:
        raise LookupError(f"kio has no {kind} of {name}")
    flexible = [version for version, read in versions.items() if read.is_flexible]
    newest = versions[max(versions)]
    return Schema(newest.api_key, min(flexible, default=NEVER), tuple(_merged(versions)))


def _modules(name: str, kind: str) -> dict[int, Traversable]:
    """Return kio's modules of a message by version."""
    directory = files("kio").joinpath("schema", name)
    modules = {
        each.name: each.joinpath(f"{kind}.py")
        for each in (directory.iterdir() if directory.is_dir() else ())
    }
    return {int(name[1:]): each for name, each in modules.items() if each.is_file()}


def _merged(versions: dict[int, Version]) -> list[Struct]:
    """Return the structs of all versions, each behind those that are inside it."""
    structs: dict[str, Struct] = {}

    def add(name: str) -> None:
        layouts = {
            version: read.structs[name]
            for version, read in sorted(versions.items())
            if name in read.structs
        }
        for fields in layouts.values():
            for each in fields:
                if each.struct and each.struct not in structs:
                    add(each.struct)
        structs[name] = Struct(name, layouts)

    # The message itself is the last class of a module.
    add(list(versions[max(versions)].structs)[-1])
    return list(structs.values())


def read_version(source: str) -> Version:
    """Read one of kio's modules."""
    classes = [each for each in ast.parse(source).body if isinstance(each, ast.ClassDef)]
    names = {each.name for each in classes}
    api_key, is_flexible = NEVER, False
    structs = {}
    for each in classes:
        fields = []
        for line in each.body:
            if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
                continue
            name = line.target.id
            if name == "__flexible__":
                is_flexible = _literal(line.value) == "True"
            elif name == "__api_key__":
                api_key = int(_literal(line.value))
            elif not name.startswith("__"):
                fields.append(_read_field(name, line, names))
        structs[each.name] = tuple(fields)
    return Version(api_key, is_flexible, structs)


def _read_field(name: str, line: ast.AnnAssign, structs: set[str]) -> Field:
    keywords = line.value.keywords if isinstance(line.value, ast.Call) else ()
    given = {each.arg: each.value for each in keywords}
    metadata = ast.literal_eval(given["metadata"]) if "metadata" in given else {}
    kind, tag = metadata.get("kafka_type", STRUCT), metadata.get("tag")
    if kind == "timedelta_i64":
        # As many milliseconds as a client may say are more than a timedelta can hold.
        kind = "int64"
    written, nullable = _without_none(ast.unparse(line.annotation))
    is_array = written.startswith("tuple[")
    inner, holds_none = _without_none(written.removeprefix("tuple[").removesuffix(", ...]"))
    struct = inner if inner in structs else ""
    assert bool(struct) == (kind == STRUCT), f"{name}: {written} is no struct, and has no type"
    # kio writes a struct with a tag without the byte that tells whether there is one.
    nullable = nullable and not (struct and tag is not None)
    default = (
        _literal(given["default"], kind)
        if "default" in given
        else implicit_default(kind, struct, is_array=is_array, nullable=nullable)
    )
    return Field(name, kind, struct, is_array, nullable, holds_none, tag, default)


def _without_none(annotation: str) -> tuple[str, bool]:
    bare = annotation.removesuffix(" | None")
    return bare, bare != annotation


def _literal(value: ast.expr | None, kind: str = "") -> str:
    """Return a default as an expression without kio's types."""
    if isinstance(value, ast.Call):
        function = ast.unparse(value.func)
        if function in NUMBERS:
            return ast.unparse(value.args[0])
        if function in {"i32Timedelta.parse", "i64Timedelta.parse"}:
            duration = ast.unparse(value.args[0]).removeprefix("datetime.")
            milliseconds = duration.removeprefix("timedelta(milliseconds=").removesuffix(")")
            return milliseconds if kind == "int64" else duration
    assert value is not None
    return ast.unparse(value)
