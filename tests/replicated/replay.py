"""The property of every machine: the log gives its state back, and deciding changes nothing.

A machine's test makes a subclass with rules that call `decide`; this class does the rest.
"""

from hypothesis.stateful import RuleBasedStateMachine, invariant

from strom.wire.errors import KafkaError


class AnyHistory(RuleBasedStateMachine):
    """Whatever is asked, replaying the log gives the state back."""

    def __init__(self):
        super().__init__()
        self.machine = self.new_machine()
        self.log = []

    def new_machine(self):
        raise NotImplementedError

    def state_of(self, machine):
        raise NotImplementedError

    def to_bytes(self, record):
        raise NotImplementedError

    def from_bytes(self, data):
        raise NotImplementedError

    def decide(self, ask):
        """Decide twice, which must give the same; then carry it out."""
        before = self.state_of(self.machine)
        outcomes = [self._attempt(ask) for _ in range(2)]
        assert outcomes[0] == outcomes[1], "asking twice gave two answers"
        assert self.state_of(self.machine) == before, "a decision changed the state"
        records, reply = outcomes[0]
        for record in records:
            data = self.to_bytes(record)
            self.log.append(data)
            self.machine.apply(self.from_bytes(data))
        return reply

    @staticmethod
    def _attempt(ask):
        try:
            decision = ask()
        except KafkaError as error:
            return (), (error.code, error.message)
        return decision.records, decision.reply

    @invariant()
    def replay_gives_the_state_back(self):
        replayed = self.new_machine()
        for data in self.log:
            replayed.apply(self.from_bytes(data))
        assert self.state_of(replayed) == self.state_of(self.machine)
