"""Consumer groups (KIP-848): the broker assigns, and moves partitions one by one.

    heartbeat ──▶ member changed? ──▶ group epoch + 1 ──▶ target assignment ──▶ this member's step
                  topics changed?                         (assignors)           (reconcile)

Every change of who subscribes to what raises the *group epoch*. For each group epoch there is one
*target assignment*. A member walks towards it on its own heartbeats: it is told what to give up,
says so when it has, and is then given what others have let go of. Its *member epoch* is that of the
target it has reached. A partition that one member holds is given to nobody else, so no two members
ever read it at once, and nobody stops for what moves between others.

| module | what it decides |
|---|---|
| `group`, `member` | the durable state and what it says |
| `replay`, `rows` | from records to state, and from state to records |
| `assignors/` | who shall have what |
| `target` | the next target assignment, and its records |
| `reconcile` | a member's next step towards its target |
| `subscription` | what changed in what the group subscribes to |
| `patterns` | regular expressions, by RE2 |
| `heartbeat`, `leaving` | what a heartbeat asks for; going, by itself or by time |
| `gathering` | who waits for the end of the turn, to be assigned to together |
| `classic`, `upgrade`, `downgrade` | members of the classic protocol, and the ways between both |
"""
