"""Why some settings are taken, checked and described, but change nothing here.

Each is worded as what it means for the one who sets it; `docs/configuration.md` and the notes at
start-up show it.
"""

from typing import Final

ONE_LOOP: Final = (
    "one loop serves all connections without threads; for more cores, start more brokers"
)
NO_PURGATORY: Final = "waiting requests are woken one by one, so there is nothing to purge"
EARLY: Final = "all listeners open together, once the broker can serve"
PEERS: Final = "a single node sends no requests to other nodes"
PLUGIN: Final = "Java classes cannot be loaded"
OFFLINE: Final = "the controller is in the same process and always hears of a failed directory"
CLEANER: Final = "the cleaner reads and writes a megabyte at a time, and whole batches"
ONE_NODE: Final = "a single node has no followers and no other brokers"
ONE_VOTER: Final = "the only voter of the quorum elects itself at once"
NO_QUEUE: Final = "the controller decides at once and has no queue of events to time"
NO_NOOP: Final = "an idle controller writes nothing"
INNER: Final = "it exists for the tests of Apache Kafka"
FINAL_ONLY: Final = "only versions of requests that are final are served"
ONE_AT_A_TIME: Final = "logs are opened one after the other, beside the loop"
STARTUP: Final = "a start either succeeds or ends with an error; nothing waits"
ONE_WRITE: Final = "a coordinator writes what it decides at once, and keeps no buffer for it"
STREAMS: Final = "streams groups are not coordinated"
SHARE: Final = "share groups are not coordinated"
TWO_PHASES: Final = (
    "it is asked for with InitProducerId v6 (KIP-939), which Kafka 4.3 serves to nobody either"
)
TLS: Final = "listeners are PLAINTEXT only"
JAVA_TLS: Final = "it configures Java's TLS; Strom uses OpenSSL"
ACLS: Final = "every client may do everything"
TOKENS: Final = "delegation tokens are not issued"
SASL: Final = "clients do not authenticate: listeners are PLAINTEXT only"
KERBEROS: Final = "Kerberos is not served"
OAUTH: Final = "OAuth is not served"
TIERED: Final = "all data stays on local disks; there is no tiered storage"
JAVA_METRICS: Final = "metrics are served to Prometheus over HTTP, not by Java reporters"
QUOTAS: Final = "clients and replicas are not throttled"
