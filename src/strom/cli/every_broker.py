"""Settings that hold for every broker of a cluster.

Kafka keeps them under the empty broker name, and librdkafka refuses an empty name. So these two
requests are sent over a plain socket; any broker answers the one and forwards the other to the
controller. There is no TLS or SASL here: a cluster that wants it must be asked on a plain listener.
"""

import socket
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

from strom.cli.failure import Failure
from strom.wire.errors import ErrorCode
from strom.wire.primitives import INT16, INT32

if TYPE_CHECKING:
    from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult

ANSWER_SECONDS_MAX = 10.0
BROKER = 4
EVERY_BROKER = ""
CLIENT_ID = b"strom"
OPERATIONS = {"SET": 0, "DELETE": 1, "APPEND": 2, "SUBTRACT": 3}

Response = TypeVar("Response")


def describe(address: tuple[str, int]) -> "list[DescribeConfigsResourceResult]":
    """Return the settings that were made for every broker."""
    from kio.schema.describe_configs.v4 import request, response

    asked = request.DescribeConfigsRequest(
        resources=(
            request.DescribeConfigsResource(
                resource_type=BROKER, resource_name=EVERY_BROKER, configuration_keys=None
            ),
        )
    )
    (result,) = ask(address, asked, response.DescribeConfigsResponse).results
    require_success(result)
    return list(result.configs)


def change(address: tuple[str, int], operation: str, values: dict[str, str]) -> None:
    """Change settings for every broker, all or none."""
    from kio.schema.incremental_alter_configs.v1 import request, response

    configs = tuple(
        request.AlterableConfig(
            name=name,
            config_operation=OPERATIONS[operation],
            value=None if operation == "DELETE" else value,
        )
        for name, value in values.items()
    )
    resource = request.AlterConfigsResource(
        resource_type=BROKER, resource_name=EVERY_BROKER, configs=configs
    )
    asked = request.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (result,) = ask(address, asked, response.IncrementalAlterConfigsResponse).responses
    require_success(result)


def require_success(result: Any) -> None:  # noqa: ANN401 - either response's item
    """Fail with the broker's words, if it refused."""
    if result.error_code != ErrorCode.NONE:
        raise Failure(result.error_message or result.error_code.name)


def ask(address: tuple[str, int], request: Any, response: type[Response]) -> Response:  # noqa: ANN401 - any of kio's
    """Send one request with the flexible header; return its response."""
    from kio.serial import entity_reader, entity_writer

    head = INT16.pack(request.__api_key__) + INT16.pack(request.__version__) + INT32.pack(0)
    with BytesIO() as out:
        entity_writer(type(request))(out, request)
        # A client id, then a header without tagged fields.
        frame = head + INT16.pack(len(CLIENT_ID)) + CLIENT_ID + b"\0" + out.getvalue()
    try:
        with socket.create_connection(address, timeout=ANSWER_SECONDS_MAX) as link:
            link.sendall(INT32.pack(len(frame)) + frame)
            with link.makefile("rb") as answers:
                answer = answers.read(INT32.unpack(answers.read(INT32.size))[0])
    except (OSError, ValueError) as error:
        raise Failure(f"the broker did not answer: {error}") from None
    # Behind the correlation id and the header's empty tagged fields.
    read: Response
    read, _ = entity_reader(response)(answer, INT32.size + 1)  # type: ignore[type-var]
    return read
