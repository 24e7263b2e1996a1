"""One handler serves every version: translation fills in defaults and drops what is unknown."""

import importlib
from dataclasses import fields
from pathlib import Path

import kio.schema
import pytest
from kio.schema.metadata.v1.request import MetadataRequest as MetadataRequest1
from kio.schema.metadata.v1.request import MetadataRequestTopic as Topic1
from kio.schema.metadata.v13.request import MetadataRequest as MetadataRequest13

from strom.wire.codec import load_class
from strom.wire.translate import translator

SCHEMAS = Path(kio.schema.__path__[0])


def messages():
    for directory in sorted(SCHEMAS.iterdir()):
        for kind in ("request", "response"):
            versions = sorted(
                int(each.name[1:])
                for each in directory.glob("v*")
                if (each / f"{kind}.py").exists()
            )
            if versions:
                yield pytest.param(directory.name, kind, versions, id=f"{directory.name}-{kind}")


def test_an_old_request_gets_the_defaults_of_what_it_cannot_say():
    old = MetadataRequest1(topics=(Topic1(name="flugdaten"),))
    new = translator(MetadataRequest1, MetadataRequest13)(old)
    assert new.topics[0].name == "flugdaten"
    assert new.topics[0].topic_id is None
    assert new.allow_auto_topic_creation is True
    assert new.include_topic_authorized_operations is False


@pytest.mark.parametrize(("name", "kind", "versions"), list(messages()))
def test_every_version_of_every_message_translates(name, kind, versions):
    newest = load_class(name, versions[-1], kind)
    for version in versions:
        older = load_class(name, version, kind)
        translate = translator(older, newest) if kind == "request" else translator(newest, older)
        assert callable(translate)


def test_a_message_of_the_newest_version_is_passed_on_as_it_is():
    message = MetadataRequest13(topics=None, include_topic_authorized_operations=True)
    assert translator(MetadataRequest13, MetadataRequest13)(message) is message


def test_no_schema_module_is_loaded_before_it_is_used():
    importlib.import_module("strom.wire.lazy")
    stand_in = importlib.import_module("strom.wire.lazy").lazy(
        "kio.schema.describe_acls.v1.request"
    )
    assert stand_in.DescribeAclsRequest.__version__ == 1
    assert {each.name for each in fields(stand_in.DescribeAclsRequest)}
