"""Can the hub be reached?"""

from __future__ import annotations

import os
import time
from functools import cache

ATTEMPTS, SECONDS = 3, 5


@cache
def reachable() -> bool:
    """Asked once. If it cannot, this process and those that it starts only look in the cache: each
    further question would be repeated for half a minute."""
    import datasets
    import requests
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    for attempt in range(ATTEMPTS):
        try:
            requests.head(constants.ENDPOINT, timeout=SECONDS)
        except requests.RequestException:
            time.sleep(attempt)
        else:
            return True
    os.environ["HF_HUB_OFFLINE"] = "1"
    constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    return False
