"""Types of NumPy arrays, for annotations."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
AnyFloats = NDArray[np.floating[Any]]
Ints = NDArray[np.int_]
