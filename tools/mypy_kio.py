"""A mypy plugin: kio's nominal number and string types are plain ones to our code.

kio types a 32-bit field as `i32`, a subclass of int that no int is an instance of for mypy,
though every int in range is one at run time. Without this each number in a message would need
a checked (and slow) conversion that proves nothing.
"""

from collections.abc import Callable

from mypy.nodes import MypyFile
from mypy.plugin import AnalyzeTypeContext, Plugin
from mypy.types import Type

PLAIN = {
    **{
        f"kio.static.primitive.{name}": "builtins.int"
        for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "uvarint", "svarint")
    },
    "kio.static.primitive.f64": "builtins.float",
    "kio.static.primitive.i32Timedelta": "datetime.timedelta",
    "kio.static.primitive.i64Timedelta": "datetime.timedelta",
    "kio.static.primitive.TZAware": "datetime.datetime",
    "kio.static.primitive.Records": "builtins.bytes",
    "kio.schema.types.BrokerId": "builtins.int",
    "kio.schema.types.ProducerId": "builtins.int",
    "kio.schema.types.TopicName": "builtins.str",
    "kio.schema.types.GroupId": "builtins.str",
    "kio.schema.types.TransactionalId": "builtins.str",
    "kio.schema.errors.ErrorCode": "strom.wire.errors.ErrorCode",
}

ERRORS_MODULE = "strom.wire.errors"
#: mypy's number for "imported in the usual way".
PRIORITY_IMPORTED = 10


class PlainTypes(Plugin):
    """Reads the types above as what they hold."""

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """Have mypy read our error codes before the kio modules that are told to use them."""
        if file.fullname.startswith("kio.schema."):
            return [(PRIORITY_IMPORTED, ERRORS_MODULE, -1)]
        return []

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """Give the plain type that a type of kio stands for."""
        plain = PLAIN.get(fullname)
        if plain is None:
            return None
        return lambda context: context.api.named_type(plain, [])  # type: ignore[attr-defined]


def plugin(version: str) -> type[Plugin]:
    """Give mypy the plugin."""
    return PlainTypes
