"""Settings that hold for every broker of a cluster.

Kafka keeps them under the empty broker name, and librdkafka refuses an empty name. So these two
requests are sent over a plain connection (`plain`); any broker answers the one and forwards the
other to the controller.
"""

from typing import TYPE_CHECKING, Any

from strom.cli.failure import Failure
from strom.cli.plain import ask
from strom.wire.errors import ErrorCode
from strom.wire.messages import Call

if TYPE_CHECKING:
    from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult

DESCRIBE_CONFIGS = Call("describe_configs", 4)
ALTER_CONFIGS = Call("incremental_alter_configs", 1)

BROKER = 4
EVERY_BROKER = ""
OPERATIONS = {"SET": 0, "DELETE": 1, "APPEND": 2, "SUBTRACT": 3}


def describe(address: tuple[str, int]) -> "list[DescribeConfigsResourceResult]":
    """Return the settings that were made for every broker."""
    request = DESCRIBE_CONFIGS.request
    asked = request.DescribeConfigsRequest(
        resources=(
            request.DescribeConfigsResource(
                resource_type=BROKER, resource_name=EVERY_BROKER, configuration_keys=None
            ),
        )
    )
    (result,) = ask(address, DESCRIBE_CONFIGS, asked).results
    require_success(result)
    return list(result.configs)


def change(address: tuple[str, int], operation: str, values: dict[str, str]) -> None:
    """Change settings for every broker, all or none."""
    request = ALTER_CONFIGS.request
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
    (result,) = ask(address, ALTER_CONFIGS, asked).responses
    require_success(result)


def require_success(result: Any) -> None:  # noqa: ANN401 - either response's item
    """Fail with the broker's words, if it refused."""
    if result.error_code != ErrorCode.NONE:
        raise Failure(result.error_message or result.error_code.name)
