from strom.records.batch import Buffer

def read_blocks(
    data: Buffer, header: bytes, blocks_max: int
) -> list[tuple[int, int, bool]] | None: ...
