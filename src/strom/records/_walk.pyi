from strom.records.batch import Buffer
from strom.records.plain_walk import Facts

def walk(data: Buffer, start: int, stop: int, count: int, base_timestamp: int) -> Facts: ...
