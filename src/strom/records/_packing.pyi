from strom.records.plain_packing import Packer as Packer
from strom.records.plain_packing import Spreader as Spreader
