"""What is refused says so, with a reason: texts when they are defined, sizes when they are known."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tests.comprehensions.refused import REFUSED, UNFIT, Refused, Unfit


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.name)
def test_text_is_refused_with_a_reason(refused: Refused) -> None:
    with pytest.raises(refused.error) as caught:
        tc.define(refused.text)
    assert refused.words in str(caught.value)


@pytest.mark.parametrize("unfit", UNFIT, ids=lambda unfit: unfit.name)
def test_sizes_are_refused_with_a_reason(unfit: Unfit) -> None:
    definitions = tc.define(unfit.text)
    with pytest.raises(tc.RangeError) as caught:
        definitions.single().specialize(*(np.zeros(shape, np.float32) for shape in unfit.shapes))
    assert unfit.words in str(caught.value)
