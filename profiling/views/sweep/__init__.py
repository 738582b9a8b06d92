"""What a sweep shows: charts, cost breakdowns, and the model beside measurements."""

from __future__ import annotations

from louvain_um.deprecated import getattr_of

__getattr__ = getattr_of(__name__)
