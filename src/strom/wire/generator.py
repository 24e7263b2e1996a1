"""Readers and writers of messages, as Python source made from their schemas.

A struct gets a function for each layout that it has; versions with the same layout share one:

    def read_Member_v3(frame: Buffer, at: int) -> tuple[Any, int]:
        member_id, at = read_text(frame, at, False)
        epoch, error_code, = S_ih.unpack_from(frame, at)
        at += 6
        error_code = ErrorCode(error_code)
        return Member(member_id=member_id, epoch=epoch, error_code=error_code), at

    def write_Member_v3(out: bytearray, message: Member) -> None:
        out += text(message.member_id, False)
        out += S_ih.pack(message.epoch, message.error_code)

Every version is read into the one class of the struct and written from it. Neighbouring fields of
fixed size are read and written together. Whatever a length or a count claims is held against the
bytes that are there before anything is made of it (`primitives`).
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from strom.wire.schema import STRUCT, Field, Schema, Struct, implicit_default

#: Letters of `struct`, by kind.
LETTERS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
    "error_code": "h",
    "timedelta_i32": "i",
    "datetime_i64": "q",
}
#: Fewest bytes of what has no fixed size.
LENGTH_BYTES_MIN = 1

#: Makes a value of what `struct` has read, by kind and whether there can be none.
FROM_PACKED = {
    ("uuid", False): "id_of({})",
    ("uuid", True): "nullable_id_of({})",
    ("error_code", False): "ErrorCode({})",
    ("timedelta_i32", False): "timedelta(milliseconds={})",
    ("datetime_i64", False): "time_of({})",
    ("datetime_i64", True): "time_of({})",
}
#: The other way round.
TO_PACKED = {
    "uuid": "id_bytes({})",
    "timedelta_i32": "ms_of({})",
    "datetime_i64": "time_ms_of({})",
}

#: A base class would have to be compiled where one of its heirs is, and only there.
OPERATIONS = """
    def __eq__(self, other: object) -> bool:
        return is_same(self, other)

    def __hash__(self) -> int:
        return hash_of(self)

    def __repr__(self) -> str:
        return shown(self)
"""

HEAD = '''"""{title}; generated."""

from datetime import timedelta
from struct import Struct
from typing import Any, ClassVar, Final
from uuid import UUID

from strom.wire.errors import ErrorCode
from strom.wire.message import hash_of, is_same, shown
from strom.wire.primitives import (
    NO_ID,
    Buffer,
    bytes_of,
    count_of,
    id_bytes,
    id_of,
    ms_of,
    nullable_bytes_of,
    nullable_id_of,
    nullable_text,
    numbers_of,
    read_bytes,
    read_count,
    read_nullable_bytes,
    read_nullable_count,
    read_nullable_text,
    read_nullable_view,
    read_numbers,
    read_tags,
    read_text,
    read_view,
    skip_tags,
    text,
    time_ms_of,
    time_of,
    write_tags,
)

API_KEY: Final = {api_key}
FLEXIBLE_SINCE: Final = {flexible_since}
'''


class Inner(NamedTuple):
    """The functions of a struct inside another one."""

    struct: str
    #: The version that the functions are named after.
    version: int
    bytes_min: int


class Layout(NamedTuple):
    """A struct in one version."""

    struct: str
    fields: tuple[Field, ...]
    flexible: bool
    inner: tuple[Inner, ...]

    def bytes_min(self) -> int:
        """Return the fewest bytes that the struct takes."""
        sizes = {each.struct: each.bytes_min for each in self.inner}
        plain = (each for each in self.fields if each.tag is None)
        return sum(bytes_min(each, sizes) for each in plain) + self.flexible


def source_of(schema: Schema, title: str) -> str:
    """Return a module: the message's classes, and how each version is read and written."""
    versions = sorted(schema.message.layouts)
    parts = [head_source(schema, title), *map(class_source, schema.structs)]
    parts.append(functions_source(schema, versions))
    return "\n\n".join(parts)


def head_source(schema: Schema, title: str) -> str:
    """Return what stands in front of the classes and functions of a message."""
    return HEAD.format(title=title, api_key=schema.api_key, flexible_since=schema.flexible_since)


def class_source(described: Struct) -> str:
    """Return the class of a struct, with the fields of all versions."""
    attributes = described.attributes()
    names = "".join(f'"{name}", ' for name in attributes).strip()
    lines = [
        f"class {described.name}:",
        f"    __slots__ = ({names})",
        f"    FIELDS: ClassVar[tuple[str, ...]] = ({names})",
    ]
    if attributes:
        given = ", ".join(f"{name}: Any = {each.default}" for name, each in attributes.items())
        lines += ["", f"    def __init__(self, *, {given}) -> None:"]
        lines += [f"        self.{name} = {name}" for name in attributes]
    return "\n".join((*lines, OPERATIONS))


def functions_source(schema: Schema, versions: Iterable[int]) -> str:
    """Return the functions of these versions, and tables of them by version."""
    #: The first version of each layout: its functions serve the others too.
    first: dict[Layout, int] = {}
    serving: dict[int, int] = {}
    letters: set[str] = set()
    functions: list[str] = []
    for version in versions:
        made: dict[str, Inner] = {}
        for described in schema.structs:
            fields = described.layouts.get(version)
            if fields is None:
                continue
            inner = tuple(made[each.struct] for each in fields if each.struct)
            layout = Layout(described.name, fields, schema.is_flexible(version), inner)
            if layout not in first:
                first[layout] = version
                of_layout = _Functions(layout, version, described.attributes())
                functions += (of_layout.reader(), of_layout.writer())
                letters |= of_layout.letters
            made[described.name] = Inner(described.name, first[layout], layout.bytes_min())
        serving[version] = made[schema.message.name].version
    name = schema.message.name
    tables = []
    for table, verb in (("READERS", "read"), ("WRITERS", "write")):
        rows = ", ".join(f"{version}: {verb}_{name}_v{of}" for version, of in serving.items())
        tables.append(f"{table}: Final = {{{rows}}}")
    packed = [f'{packed_name(each)}: Final = Struct(">{each}")' for each in sorted(letters)]
    return "\n\n".join(("\n".join(packed), *functions, "\n".join(tables))) + "\n"


def packed_name(letters: str) -> str:
    """Return what the `Struct` of these letters is called."""
    return "S_" + letters.replace("?", "o")


def bytes_min(field: Field, sizes: Mapping[str, int]) -> int:
    """Return the fewest bytes that a value of the field takes, given those of structs."""
    if is_packed(field):
        return struct.calcsize(f">{LETTERS[field.kind]}")
    if field.kind == STRUCT and not field.is_array and not field.nullable:
        return sizes[field.struct]
    return LENGTH_BYTES_MIN


def is_packed(field: Field) -> bool:
    """Return whether a field has a fixed size."""
    return field.kind in LETTERS and not field.is_array


def are_numbers(field: Field) -> bool:
    """Return whether a field is an array that `struct` reads and writes in one go."""
    return field.is_array and field.kind in LETTERS and field.kind not in {"uuid", "error_code"}


def element_of(field: Field) -> Field:
    """Return what the elements of an array are."""
    name = f"_each_{field.name}"
    return field._replace(name=name, is_array=False, nullable=field.holds_none, tag=None)


class _Functions:
    """The reader and the writer of one layout."""

    def __init__(self, layout: Layout, version: int, attributes: dict[str, Field]) -> None:
        self._struct = layout.struct
        self._fields = layout.fields
        self._version = version
        self._attributes = attributes
        self._flexible = layout.flexible
        self._inner = {each.struct: each for each in layout.inner}
        self._sizes = {each.struct: each.bytes_min for each in layout.inner}
        self._plain = [each for each in layout.fields if each.tag is None]
        self._tagged = [each for each in layout.fields if each.tag is not None]
        self._tagged.sort(key=lambda each: each.tag or 0)
        #: What the `Struct`s are called by that the functions use.
        self.letters: set[str] = set()

    # Reading. `at` is the name of the variable that moves over the frame.

    def reader(self) -> str:
        """Return the function that reads the struct."""
        lines = [
            f"def read_{self._struct}_v{self._version}(frame: Buffer, at: int) -> tuple[Any, int]:"
        ]
        for run in runs(self._plain):
            lines += self._read_packed(run) if is_packed(run[0]) else self._read_one(run[0])
        if self._tagged:
            lines += self._read_tagged()
        elif self._flexible:
            lines.append("at = skip_tags(frame, at)")
        values = ", ".join(f"{each.name}={self._kept(each)}" for each in self._fields)
        lines.append(f"return {self._struct}({values}), at")
        return indented(lines)

    def _read_packed(self, run: list[Field], at: str = "at") -> list[str]:
        letters = "".join(LETTERS[each.kind] for each in run)
        self.letters.add(letters)
        names = "".join(f"{each.name}, " for each in run).strip()
        lines = [
            f"{names} = {packed_name(letters)}.unpack_from(frame, {at})",
            f"{at} += {struct.calcsize(f'>{letters}')}",
        ]
        for each in run:
            convert = FROM_PACKED.get((each.kind, each.nullable))
            if convert:
                lines.append(f"{each.name} = {convert.format(each.name)}")
        return lines

    def _read_one(self, field: Field, at: str = "at") -> list[str]:
        """Return what reads a field into a variable of its name."""
        if are_numbers(field):
            letters = LETTERS[field.kind]
            read = f'read_numbers(frame, {at}, {self._flexible}, "{letters}", {field.nullable})'
            return [f"{field.name}, {at} = {read}"]
        if field.is_array:
            return self._read_array(field, at)
        if field.kind == STRUCT:
            return self._read_struct(field, at)
        if field.kind in LETTERS:
            return self._read_packed([field], at)
        kind = {"string": "text", "bytes": "bytes", "records": "view"}[field.kind]
        nullable = "nullable_" if field.nullable else ""
        return [f"{field.name}, {at} = read_{nullable}{kind}(frame, {at}, {self._flexible})"]

    def _read_struct(self, field: Field, at: str) -> list[str]:
        read = f"read_{field.struct}_v{self._inner[field.struct].version}"
        if not field.nullable:
            return [f"{field.name}, {at} = {read}(frame, {at})"]
        # KIP-893: a byte in front tells: below 0 if there is none; 0 in a tagged field.
        is_there = "<= 0x7F" if field.tag is None else "== 1"
        return [
            f"{field.name} = None",
            f"{at} += 1",
            f"if frame[{at} - 1] {is_there}:",
            f"    {field.name}, {at} = {read}(frame, {at})",
        ]

    def _read_array(self, field: Field, at: str) -> list[str]:
        element = element_of(field)
        nullable = "nullable_" if field.nullable else ""
        size = self._sizes[field.struct] if field.struct else bytes_min(element, {})
        lines = [
            f"_count, {at} = read_{nullable}count(frame, {at}, {self._flexible}, {size})",
            f"_{field.name}: list[Any] = []",
            "for _ in range(_count):",
            *(f"    {line}" for line in self._read_one(element, at)),
            f"    _{field.name}.append({element.name})",
            f"{field.name} = tuple(_{field.name})",
        ]
        if field.nullable:
            lines[-1] += " if _count >= 0 else None"
        return lines

    def _read_tagged(self) -> list[str]:
        lines = ["_tags, at = read_tags(frame, at)"]
        for each in self._tagged:
            read = [f"_inside = _tags[{each.tag}]", *self._read_one(each, "_inside")]
            lines.append(f"{each.name} = {each.default}")
            lines.append(f"if {each.tag} in _tags:")
            lines += [f"    {line}" for line in read]
        return lines

    def _kept(self, field: Field) -> str:
        """Return a field's value: the newest version may not know that there can be none."""
        if field.nullable and not self._attributes[field.name].nullable:
            return f"{empty_of(field)} if {field.name} is None else {field.name}"
        return field.name

    # Writing.

    def writer(self) -> str:
        """Return the function that writes the struct."""
        lines = [
            f"def write_{self._struct}_v{self._version}(out: bytearray, message: {self._struct})"
            " -> None:"
        ]
        for run in runs(self._plain):
            lines += self._write_packed(run) if is_packed(run[0]) else self._write_one(run[0])
        if self._tagged:
            lines += self._write_tagged()
        elif self._flexible:
            lines.append('out += b"\\0"')
        if len(lines) == 1:
            lines.append("pass")
        return indented(lines)

    def _write_packed(
        self, run: list[Field], out: str = "out", owner: str = "message."
    ) -> list[str]:
        letters = "".join(LETTERS[each.kind] for each in run)
        self.letters.add(letters)
        values = (TO_PACKED.get(each.kind, "{}").format(owner + each.name) for each in run)
        return [f"{out} += {packed_name(letters)}.pack({', '.join(values)})"]

    def _write_one(self, field: Field, out: str = "out") -> list[str]:
        value = f"message.{field.name}"
        if self._attributes[field.name].nullable and not field.nullable:
            value = f"({empty_of(field)} if {value} is None else {value})"
        if field.is_array:
            return self._write_array(field, value, out)
        if field.kind in LETTERS:
            return self._write_packed([field], out)
        if field.kind == STRUCT and field.nullable:
            absent = "\\xff" if field.tag is None else "\\0"
            return [
                f"if {value} is None:",
                f'    {out} += b"{absent}"',
                "else:",
                f'    {out} += b"\\1"',
                f"    {self._write_value(field, value, out)}",
            ]
        return [self._write_value(field, value, out)]

    def _write_value(self, field: Field, value: str, out: str) -> str:
        if field.kind == STRUCT:
            return f"write_{field.struct}_v{self._inner[field.struct].version}({out}, {value})"
        kind = "text" if field.kind == "string" else "bytes_of"
        nullable = "nullable_" if field.nullable else ""
        return f"{out} += {nullable}{kind}({value}, {self._flexible})"

    def _write_array(self, field: Field, value: str, out: str) -> list[str]:
        flexible, element = self._flexible, element_of(field)
        if are_numbers(field):
            lines = [f'{out} += numbers_of(values, {flexible}, "{LETTERS[field.kind]}")']
        else:
            lines = [
                f"{out} += count_of(len(values), {flexible})",
                f"for {element.name} in values:",
            ]
            if is_packed(element):
                lines += [f"    {line}" for line in self._write_packed([element], out, "")]
            else:
                lines.append("    " + self._write_value(element, element.name, out))
        if field.nullable:
            absent = f"    {out} += count_of(-1, {flexible})"
            lines = ["if values is None:", absent, "else:", *(f"    {line}" for line in lines)]
        return [f"values = {value}", *lines]

    def _write_tagged(self) -> list[str]:
        lines = ["tags: list[tuple[int, bytearray]] = []"]
        for each in self._tagged:
            write = ["body = bytearray()", *self._write_one(each, "body")]
            write.append(f"tags.append(({each.tag}, body))")
            # A struct left out has all of its defaults, which is not the same as none.
            if each.kind == STRUCT and each.nullable:
                lines += write
            else:
                lines.append(f"if message.{each.name} != {each.default}:")
                lines += [f"    {line}" for line in write]
        return [*lines, "write_tags(out, tags)"]


def empty_of(field: Field) -> str:
    """Return the expression of a field's value in a version where there cannot be none."""
    return implicit_default(field.kind, field.struct, is_array=field.is_array, nullable=False)


def runs(fields: list[Field]) -> Iterator[list[Field]]:
    """Yield neighbouring fields of fixed size together, every other field alone."""
    run: list[Field] = []
    for each in fields:
        if is_packed(each):
            run.append(each)
            continue
        if run:
            yield run
        run = []
        yield [each]
    if run:
        yield run


def indented(lines: list[str]) -> str:
    """Return a function's source: its first line, and the others further in."""
    return "\n".join((lines[0], *(f"    {line}" for line in lines[1:])))
