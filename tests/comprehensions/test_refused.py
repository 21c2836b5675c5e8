"""What is refused says so when it is defined, with a reason."""

from __future__ import annotations

import pytest

import tc
from tests.comprehensions.refused import REFUSED, Refused


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.name)
def test_is_refused_with_a_reason(refused: Refused) -> None:
    with pytest.raises(refused.error) as caught:
        tc.define(refused.text)
    assert refused.words in str(caught.value)
