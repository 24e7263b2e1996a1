"""Broker settings of SASL, Kerberos and OAuth."""

from typing import Final

from strom.metadata.settings.checks import ANY_LIST, OneOf, Range
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    READ_ONLY,
    SHORT,
    STRING,
    Setting,
)
from strom.metadata.settings.reasons import KERBEROS, OAUTH, PLUGIN, SASL

SETTINGS: Final = (
    Setting("sasl.enabled.mechanisms", LIST, ("GSSAPI",), ANY_LIST, MEDIUM, PER_BROKER, SASL).says(
        "The SASL mechanisms that clients may use."
    ),
    Setting(
        "sasl.mechanism.inter.broker.protocol", STRING, "GSSAPI", None, MEDIUM, PER_BROKER, SASL
    ).says("The SASL mechanism between brokers."),
    Setting(
        "sasl.mechanism.controller.protocol", STRING, "GSSAPI", None, HIGH, READ_ONLY, SASL
    ).says("The SASL mechanism to the controllers."),
    Setting("sasl.jaas.config", PASSWORD, None, None, MEDIUM, PER_BROKER, SASL).says(
        "The login settings of a SASL mechanism, in JAAS form."
    ),
    Setting(
        "sasl.server.callback.handler.class", CLASS, None, None, MEDIUM, READ_ONLY, PLUGIN
    ).says("The class that checks credentials on the server."),
    Setting(
        "sasl.client.callback.handler.class", CLASS, None, None, MEDIUM, READ_ONLY, PLUGIN
    ).says("The class that supplies credentials to the client side."),
    Setting("sasl.login.callback.handler.class", CLASS, None, None, MEDIUM, READ_ONLY, PLUGIN).says(
        "The class that supplies credentials at login."
    ),
    Setting("sasl.login.class", CLASS, None, None, MEDIUM, READ_ONLY, PLUGIN).says(
        "The class that does the login."
    ),
    Setting("sasl.server.max.receive.size", INT, 524_288, None, MEDIUM, READ_ONLY, SASL).says(
        "The largest token that is read while a connection authenticates."
    ),
    Setting("sasl.kerberos.service.name", STRING, None, None, MEDIUM, PER_BROKER, KERBEROS).says(
        "The Kerberos name that the brokers run under."
    ),
    Setting(
        "sasl.kerberos.kinit.cmd", STRING, "/usr/bin/kinit", None, MEDIUM, PER_BROKER, KERBEROS
    ).says("Where the kinit command is."),
    Setting(
        "sasl.kerberos.ticket.renew.window.factor", DOUBLE, 0.8, None, MEDIUM, PER_BROKER, KERBEROS
    ).says("The share of a ticket's life after which it is renewed."),
    Setting(
        "sasl.kerberos.ticket.renew.jitter", DOUBLE, 0.05, None, MEDIUM, PER_BROKER, KERBEROS
    ).says("The share of the renewal time that is varied at random."),
    Setting(
        "sasl.kerberos.min.time.before.relogin", LONG, 60_000, None, MEDIUM, PER_BROKER, KERBEROS
    ).says("The least time between two attempts to log in again."),
    Setting(
        "sasl.kerberos.principal.to.local.rules",
        LIST,
        ("DEFAULT",),
        ANY_LIST,
        MEDIUM,
        PER_BROKER,
        KERBEROS,
    ).says("Rules that turn Kerberos principals into short names."),
    Setting("sasl.login.refresh.window.factor", DOUBLE, 0.8, None, MEDIUM, PER_BROKER, OAUTH).says(
        "The share of a credential's life after which it is refreshed."
    ),
    Setting("sasl.login.refresh.window.jitter", DOUBLE, 0.05, None, MEDIUM, PER_BROKER, OAUTH).says(
        "The share of that time that is varied at random."
    ),
    Setting(
        "sasl.login.refresh.min.period.seconds", SHORT, 60, None, MEDIUM, PER_BROKER, OAUTH
    ).says("The least time between two refreshes."),
    Setting("sasl.login.refresh.buffer.seconds", SHORT, 300, None, MEDIUM, PER_BROKER, OAUTH).says(
        "The time before expiry that a refresh should keep clear of."
    ),
    Setting("sasl.login.connect.timeout.ms", INT, None, None, LOW, READ_ONLY, OAUTH).says(
        "How long to wait for a connection to the login provider."
    ),
    Setting("sasl.login.read.timeout.ms", INT, None, None, LOW, READ_ONLY, OAUTH).says(
        "How long to wait for the login provider's answer."
    ),
    Setting("sasl.login.retry.backoff.ms", LONG, 100, None, LOW, READ_ONLY, OAUTH).says(
        "The first rest between attempts to reach the login provider."
    ),
    Setting("sasl.login.retry.backoff.max.ms", LONG, 10_000, None, LOW, READ_ONLY, OAUTH).says(
        "The longest rest between attempts to reach the login provider."
    ),
    Setting("sasl.oauthbearer.scope.claim.name", STRING, "scope", None, LOW, READ_ONLY, OAUTH).says(
        "The claim that holds a token's scope."
    ),
    Setting("sasl.oauthbearer.sub.claim.name", STRING, "sub", None, LOW, READ_ONLY, OAUTH).says(
        "The claim that holds a token's subject."
    ),
    Setting(
        "sasl.oauthbearer.token.endpoint.url", STRING, None, None, MEDIUM, READ_ONLY, OAUTH
    ).says("Where tokens are fetched."),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.url", STRING, None, None, MEDIUM, READ_ONLY, OAUTH
    ).says("Where the keys that tokens are checked with are fetched."),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, None, LOW, READ_ONLY, OAUTH
    ).says("How often those keys are fetched again."),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, None, LOW, READ_ONLY, OAUTH
    ).says("The first rest between attempts to fetch those keys."),
    Setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        None,
        LOW,
        READ_ONLY,
        OAUTH,
    ).says("The longest rest between attempts to fetch those keys."),
    Setting("sasl.oauthbearer.clock.skew.seconds", INT, 30, None, LOW, READ_ONLY, OAUTH).says(
        "How far the clocks of issuer and broker may differ."
    ),
    Setting("sasl.oauthbearer.expected.audience", LIST, (), ANY_LIST, HIGH, READ_ONLY, OAUTH).says(
        "The audiences that a token may be meant for."
    ),
    Setting("sasl.oauthbearer.expected.issuer", STRING, None, None, HIGH, READ_ONLY, OAUTH).says(
        "The issuer that tokens must come from."
    ),
    Setting(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        None,
        MEDIUM,
        READ_ONLY,
        OAUTH,
    ).says("The class that gets tokens."),
    Setting(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        None,
        MEDIUM,
        READ_ONLY,
        OAUTH,
    ).says("The class that checks tokens."),
    Setting("sasl.oauthbearer.scope", STRING, None, None, MEDIUM, READ_ONLY, OAUTH).says(
        "The scope to ask for with a token."
    ),
    Setting(
        "sasl.oauthbearer.client.credentials.client.id",
        STRING,
        None,
        None,
        MEDIUM,
        READ_ONLY,
        OAUTH,
    ).says("The client id for the client-credentials grant."),
    Setting(
        "sasl.oauthbearer.client.credentials.client.secret",
        PASSWORD,
        None,
        None,
        MEDIUM,
        READ_ONLY,
        OAUTH,
    ).says("The client secret for the client-credentials grant."),
    Setting(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        OneOf(("ES256", "RS256"), ignores_case=True),
        MEDIUM,
        READ_ONLY,
        OAUTH,
    ).says("The algorithm that assertions are signed with."),
    Setting(
        "sasl.oauthbearer.assertion.claim.aud", STRING, None, None, MEDIUM, READ_ONLY, OAUTH
    ).says("The audience claim of assertions."),
    Setting(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        INT,
        300,
        Range(0, 86400),
        LOW,
        READ_ONLY,
        OAUTH,
    ).says("How long an assertion is valid."),
    Setting(
        "sasl.oauthbearer.assertion.claim.iss", STRING, None, None, MEDIUM, READ_ONLY, OAUTH
    ).says("The issuer claim of assertions."),
    Setting(
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        False,
        None,
        MEDIUM,
        READ_ONLY,
        OAUTH,
    ).says("Whether assertions carry an id of their own."),
    Setting(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        INT,
        60,
        Range(0, 3600),
        LOW,
        READ_ONLY,
        OAUTH,
    ).says("How long before its making an assertion counts as valid."),
    Setting(
        "sasl.oauthbearer.assertion.claim.sub", STRING, None, None, MEDIUM, READ_ONLY, OAUTH
    ).says("The subject claim of assertions."),
    Setting("sasl.oauthbearer.assertion.file", STRING, None, None, MEDIUM, READ_ONLY, OAUTH).says(
        "A file that holds a ready assertion."
    ),
    Setting(
        "sasl.oauthbearer.assertion.private.key.file", STRING, None, None, MEDIUM, READ_ONLY, OAUTH
    ).says("The file with the key that signs assertions."),
    Setting(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        PASSWORD,
        None,
        None,
        MEDIUM,
        READ_ONLY,
        OAUTH,
    ).says("The passphrase of that key."),
    Setting(
        "sasl.oauthbearer.assertion.template.file", STRING, None, None, MEDIUM, READ_ONLY, OAUTH
    ).says("A file with headers and claims that every assertion gets."),
)
