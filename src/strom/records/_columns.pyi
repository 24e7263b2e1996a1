from strom.records.plain_columns import Columns as Columns
