"""Broker settings of TLS, authorisation and delegation tokens."""

from typing import Final

from strom.metadata.settings.checks import ANY_LIST, AT_LEAST_0, AT_LEAST_1, OneOf
from strom.metadata.settings.definition import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    PER_BROKER,
    READ_ONLY,
    STRING,
    Setting,
)
from strom.metadata.settings.reasons import ACLS, JAVA_TLS, PLUGIN, TLS, TOKENS

SETTINGS: Final = (
    Setting("ssl.protocol", STRING, "TLSv1.3", None, MEDIUM, PER_BROKER, TLS).says(
        "The TLS version that contexts are made for."
    ),
    Setting(
        "ssl.enabled.protocols",
        LIST,
        (
            "TLSv1.2",
            "TLSv1.3",
        ),
        ANY_LIST,
        MEDIUM,
        PER_BROKER,
        TLS,
    ).says("The TLS versions that a peer may use."),
    Setting("ssl.cipher.suites", LIST, (), ANY_LIST, MEDIUM, PER_BROKER, TLS).says(
        "The cipher suites that may be used; none named means the library's choice."
    ),
    Setting(
        "ssl.client.auth",
        STRING,
        "none",
        OneOf(("required", "requested", "none")),
        MEDIUM,
        PER_BROKER,
        TLS,
    ).says("Whether clients must, may or need not show a certificate."),
    Setting("ssl.provider", STRING, None, None, MEDIUM, PER_BROKER, JAVA_TLS).says(
        "The Java security provider for TLS."
    ),
    Setting("ssl.keymanager.algorithm", STRING, "SunX509", None, MEDIUM, PER_BROKER, JAVA_TLS).says(
        "The algorithm of Java's key manager."
    ),
    Setting("ssl.trustmanager.algorithm", STRING, "PKIX", None, MEDIUM, PER_BROKER, JAVA_TLS).says(
        "The algorithm of Java's trust manager."
    ),
    Setting("ssl.secure.random.implementation", STRING, None, None, LOW, PER_BROKER, JAVA_TLS).says(
        "The random source of Java's TLS."
    ),
    Setting("ssl.engine.factory.class", CLASS, None, None, LOW, PER_BROKER, JAVA_TLS).says(
        "The class that makes Java's TLS engines."
    ),
    Setting(
        "ssl.endpoint.identification.algorithm", STRING, "https", None, LOW, PER_BROKER, TLS
    ).says("How the name in a server's certificate is checked; empty switches it off."),
    Setting("ssl.key.password", PASSWORD, None, None, MEDIUM, PER_BROKER, TLS).says(
        "The password of the private key."
    ),
    Setting("ssl.keystore.type", STRING, "JKS", None, MEDIUM, PER_BROKER, TLS).says(
        "The format of the key store."
    ),
    Setting("ssl.keystore.location", STRING, None, None, MEDIUM, PER_BROKER, TLS).says(
        "The file with the key and its certificates."
    ),
    Setting("ssl.keystore.password", PASSWORD, None, None, MEDIUM, PER_BROKER, TLS).says(
        "The password of the key store."
    ),
    Setting("ssl.keystore.key", PASSWORD, None, None, MEDIUM, PER_BROKER, TLS).says(
        "The private key itself, in PEM."
    ),
    Setting("ssl.keystore.certificate.chain", PASSWORD, None, None, MEDIUM, PER_BROKER, TLS).says(
        "The certificates that belong to the key, in PEM."
    ),
    Setting("ssl.truststore.type", STRING, "JKS", None, MEDIUM, PER_BROKER, TLS).says(
        "The format of the trust store."
    ),
    Setting("ssl.truststore.location", STRING, None, None, MEDIUM, PER_BROKER, TLS).says(
        "The file with the certificates that are trusted."
    ),
    Setting("ssl.truststore.password", PASSWORD, None, None, MEDIUM, PER_BROKER, TLS).says(
        "The password of the trust store."
    ),
    Setting("ssl.truststore.certificates", PASSWORD, None, None, MEDIUM, PER_BROKER, TLS).says(
        "The trusted certificates themselves, in PEM."
    ),
    Setting("ssl.principal.mapping.rules", STRING, "DEFAULT", None, LOW, READ_ONLY, TLS).says(
        "Rules that turn a certificate's name into a principal."
    ),
    Setting("ssl.allow.dn.changes", BOOLEAN, False, None, LOW, READ_ONLY, TLS).says(
        "Whether a new certificate may carry another distinguished name."
    ),
    Setting("ssl.allow.san.changes", BOOLEAN, False, None, LOW, READ_ONLY, TLS).says(
        "Whether a new certificate may carry other alternative names."
    ),
    Setting(
        "principal.builder.class",
        CLASS,
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        None,
        MEDIUM,
        PER_BROKER,
        PLUGIN,
    ).says("The class that says who a connection speaks for."),
    Setting("security.providers", STRING, None, None, LOW, READ_ONLY, JAVA_TLS).says(
        "Classes that add Java security providers."
    ),
    Setting("authorizer.class.name", STRING, "", None, LOW, READ_ONLY, ACLS).says(
        "The class that decides who may do what; empty allows everything."
    ),
    Setting(
        "connection.failed.authentication.delay.ms", INT, 100, AT_LEAST_0, LOW, READ_ONLY, TLS
    ).says("How long a connection that failed to authenticate is held before it is closed."),
    Setting("connections.max.reauth.ms", LONG, 0, None, MEDIUM, READ_ONLY, TLS).says(
        "How long a SASL session lasts before the client must authenticate again; 0 sets no limit."
    ),
    Setting("delegation.token.secret.key", PASSWORD, None, None, MEDIUM, READ_ONLY, TOKENS).says(
        "The secret that delegation tokens are made with."
    ),
    Setting(
        "delegation.token.max.lifetime.ms", LONG, 604_800_000, AT_LEAST_1, MEDIUM, READ_ONLY, TOKENS
    ).says("The longest that a delegation token may live, renewals included."),
    Setting(
        "delegation.token.expiry.time.ms", LONG, 86_400_000, AT_LEAST_1, MEDIUM, READ_ONLY, TOKENS
    ).says("How long a delegation token is valid before it must be renewed."),
    Setting(
        "delegation.token.expiry.check.interval.ms",
        LONG,
        3_600_000,
        AT_LEAST_1,
        LOW,
        READ_ONLY,
        TOKENS,
    ).says("How often expired delegation tokens are removed."),
)
